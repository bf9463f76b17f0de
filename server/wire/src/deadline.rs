//! Decides when a peer has used up its time.
//!
//! Owns the five deadlines and what each of them does. Refuses to know the clock: times are milliseconds
//! that the host read once for a whole sweep.
//! Invariant: only the body and write deadlines are moved by progress; a head's runs from its first
//! byte, however steadily the rest trickles in.

use crate::scanner::Phase;

/// How long a peer may take, in milliseconds. 0 means no deadline.
///
/// ```
/// use m0_wire::{Deadlines, Phase};
///
/// let deadlines = Deadlines::default();
/// let begun = 1_000;
/// let expired = deadlines.verdict(Phase::Head, begun, begun + 9_999, begun + 10_000).unwrap();
/// assert_eq!(expired.answer, Some(408));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From accept to the first byte.
    pub first_byte: u64,
    /// From a head's first byte to its last.
    pub head: u64,
    /// Between two bytes of a body.
    pub body: u64,
    /// Between an answer and the next request.
    pub idle: u64,
    /// Between two bytes that a peer takes of an answer.
    pub write: u64,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_byte: 10_000,
            head: 10_000,
            body: 30_000,
            idle: 75_000,
            write: 30_000,
        }
    }
}

/// A deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// The status to answer before the close; `None` closes without a word.
    pub answer: Option<u16>,
    /// Which deadline, for the log.
    pub why: &'static str,
}

impl Expired {
    /// Whether the close lingers: an answer goes out while the peer may still be sending, and a plain
    /// close would reset the connection under it.
    pub fn lingers(&self) -> bool {
        self.answer.is_some()
    }
}

impl Deadlines {
    /// Judges what a connection waits for from its peer: `since_ms` is when the phase began,
    /// `last_progress_ms` when the last byte of it came.
    pub fn verdict(
        &self,
        phase: Phase,
        since_ms: u64,
        last_progress_ms: u64,
        now_ms: u64,
    ) -> Option<Expired> {
        match phase {
            // A peer that sent nothing, or nothing more, did nothing wrong: browsers open spare connections.
            Phase::FirstByte => expired(
                self.first_byte,
                since_ms,
                now_ms,
                None,
                "no first byte in time",
            ),
            Phase::Idle => expired(self.idle, since_ms, now_ms, None, "idle too long"),
            Phase::Head => expired(
                self.head,
                since_ms,
                now_ms,
                Some(408),
                "head not complete in time",
            ),
            Phase::Body => expired(
                self.body,
                last_progress_ms,
                now_ms,
                Some(408),
                "body stalled",
            ),
            Phase::Complete => None,
        }
    }

    /// Judges a peer that does not take its answer: `last_progress_ms` is when it last took a byte, or
    /// when the first byte was refused by the socket. An answer is under way, so the cut is silent.
    pub fn write_verdict(&self, last_progress_ms: u64, now_ms: u64) -> Option<Expired> {
        expired(
            self.write,
            last_progress_ms,
            now_ms,
            None,
            "peer does not read its answer",
        )
    }
}

fn expired(
    bound: u64,
    from_ms: u64,
    now_ms: u64,
    answer: Option<u16>,
    why: &'static str,
) -> Option<Expired> {
    (bound > 0 && now_ms.saturating_sub(from_ms) >= bound).then_some(Expired { answer, why })
}

/// Keeps the times that the deadlines need. One per connection.
///
/// A body that nobody reads is not the peer's fault: the host says [`waits`](Self::waits) when it asked
/// the socket and got nothing, and only from then on the body's deadline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    phase: Phase,
    since_ms: u64,
    read_ms: u64,
    waiting: bool,
    write_blocked_ms: Option<u64>,
}

impl Progress {
    /// A connection accepted now.
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self {
            phase: Phase::FirstByte,
            since_ms: now_ms,
            read_ms: now_ms,
            waiting: true,
            write_blocked_ms: None,
        }
    }

    /// Bytes came; `phase` is the scanner's after they were fed. A new head within one read begins anew
    /// because `new_request` says so (the scanner's `requests_seen` moved).
    pub fn received(&mut self, phase: Phase, new_request: bool, now_ms: u64) {
        self.enter(phase, new_request, now_ms);
        self.read_ms = now_ms;
        self.waiting = false;
    }

    /// The host asked the socket for bytes and there were none.
    pub fn waits(&mut self, now_ms: u64) {
        if !self.waiting {
            self.waiting = true;
            self.read_ms = now_ms;
        }
    }

    /// An answer is out; `phase` is the scanner's now.
    pub fn answered(&mut self, phase: Phase, now_ms: u64) {
        self.enter(phase, true, now_ms);
    }

    /// The socket took `written` bytes and, when `blocked`, wanted no more.
    pub fn wrote(&mut self, written: usize, blocked: bool, now_ms: u64) {
        self.write_blocked_ms = match self.write_blocked_ms {
            Some(since) if blocked && written == 0 => Some(since),
            _ if blocked => Some(now_ms),
            _ => None,
        };
    }

    /// The deadline that has passed, if one has.
    pub fn expired(&self, deadlines: &Deadlines, now_ms: u64) -> Option<Expired> {
        if let Some(expired) = self
            .write_blocked_ms
            .and_then(|since| deadlines.write_verdict(since, now_ms))
        {
            return Some(expired);
        }
        if self.phase == Phase::Body && !self.waiting {
            return None;
        }
        deadlines.verdict(self.phase, self.since_ms, self.read_ms, now_ms)
    }

    /// What the connection waits for.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    fn enter(&mut self, phase: Phase, anew: bool, now_ms: u64) {
        if anew || phase != self.phase {
            self.phase = phase;
            self.since_ms = now_ms;
        }
    }
}
