//! Decides when a silent WebSocket peer is asked whether it lives, and when it is given up.
//!
//! Owns the rhythm of pings and the bounds of a pong and of a closing handshake. Refuses to know the clock:
//! times are milliseconds that the host read once for a whole sweep.
//! Invariant: a peer is silent only while somebody listens: what waits unread in the socket is no fault of
//! its own.

/// How long a peer may take, in milliseconds. 0 means no deadline, and no ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// Silence after which a ping is sent.
    pub ping: u64,
    /// From that ping to any byte of the peer.
    pub pong: u64,
    /// From our close frame to the peer's.
    pub close: u64,
}

/// What is due on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Send a ping, and say so with [`Vitals::pinged`].
    Ping,
    /// Give the connection up; why, for the log.
    Cut(&'static str),
}

/// Keeps the times that the rhythm needs. One per connection.
///
/// ```
/// use m0_wire::ws::{Due, Rhythm, Vitals};
///
/// let rhythm = Rhythm { ping: 20_000, pong: 10_000, close: 5_000 };
/// let mut vitals = Vitals::new(0);
/// assert_eq!(vitals.due(&rhythm, 19_999), None);
/// assert_eq!(vitals.due(&rhythm, 20_000), Some(Due::Ping));
/// vitals.pinged(20_000);
/// assert_eq!(vitals.due(&rhythm, 29_999), None);
/// assert_eq!(vitals.due(&rhythm, 30_000), Some(Due::Cut("no pong in time")));
/// vitals.heard(29_999);
/// assert_eq!(vitals.due(&rhythm, 30_000), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vitals {
    heard_ms: u64,
    pinged_ms: Option<u64>,
    closing_ms: Option<u64>,
    listening: bool,
}

impl Vitals {
    /// A connection upgraded now.
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self {
            heard_ms: now_ms,
            pinged_ms: None,
            closing_ms: None,
            listening: true,
        }
    }

    /// A byte of the peer came.
    pub fn heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
        self.pinged_ms = None;
    }

    /// A ping is on its way.
    pub fn pinged(&mut self, now_ms: u64) {
        self.pinged_ms = Some(now_ms);
    }

    /// Our close frame is on its way; the first one counts.
    pub fn closing(&mut self, now_ms: u64) {
        self.closing_ms.get_or_insert(now_ms);
    }

    /// Whether the host asks the socket for bytes. Once it does again, the peer's time begins anew: until
    /// then a pong could not have been heard.
    pub fn listens(&mut self, listening: bool, now_ms: u64) {
        if listening && !self.listening {
            self.heard_ms = now_ms;
            self.pinged_ms = self.pinged_ms.map(|_| now_ms);
        }
        self.listening = listening;
    }

    /// What is due now.
    pub fn due(&self, rhythm: &Rhythm, now_ms: u64) -> Option<Due> {
        let passed = |bound: u64, since: u64| bound > 0 && now_ms.saturating_sub(since) >= bound;
        if let Some(since) = self.closing_ms {
            // Once we have said close there is nothing else to ask.
            return passed(rhythm.close, since).then_some(Due::Cut("close not answered in time"));
        }
        if !self.listening {
            return None;
        }
        match self.pinged_ms {
            Some(since) => passed(rhythm.pong, since).then_some(Due::Cut("no pong in time")),
            None => passed(rhythm.ping, self.heard_ms).then_some(Due::Ping),
        }
    }
}
