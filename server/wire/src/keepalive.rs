//! Decides whether a connection carries another request, and how it is closed.
//!
//! Owns the cap on requests of one connection and the meaning of drain and refusal for it. Refuses to
//! know time (see `deadline.rs`) and sockets.
//! Invariant: a connection on which unread bytes may wait is never closed without lingering, because a
//! reset would destroy the answer on its way (RFC 9112 section 9.6).

/// What is known when an answer is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The request's head allows another request.
    pub head_keeps_alive: bool,
    /// The answer's own head said `connection: close`.
    pub answer_closes: bool,
    /// Requests on this connection so far, this one included.
    pub requests: u64,
    /// The most requests of one connection; 0 means any number.
    pub max_requests: u64,
    /// The worker drains.
    pub draining: bool,
    /// The scanner refused the bytes that came next.
    pub refused: bool,
    /// The request's body was received whole.
    pub body_complete: bool,
}

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Wait for the next request.
    Continue,
    /// Close; `linger` first half-closes and reads until the peer has had its answer.
    Close {
        /// Bytes may be unread, so a plain close would reset the connection.
        linger: bool,
        /// For the log.
        why: &'static str,
    },
}

/// Decides what follows an answer.
///
/// ```
/// use m0_wire::keepalive::{After, Facts, after_answer};
///
/// let facts = Facts { head_keeps_alive: true, requests: 1, body_complete: true, ..Facts::default() };
/// assert_eq!(after_answer(&facts), After::Continue);
/// ```
pub fn after_answer(facts: &Facts) -> After {
    let why = if facts.refused {
        "refused"
    } else if !facts.body_complete {
        "answered before the body was complete"
    } else if !facts.head_keeps_alive {
        "the request asked for it"
    } else if facts.answer_closes {
        "the answer asked for it"
    } else if facts.draining {
        "drain"
    } else if used_up(facts.requests, facts.max_requests) {
        "requests of this connection used up"
    } else {
        return After::Continue;
    };
    // In a drain or at the cap the peer may already have sent its next request.
    let linger = facts.refused || !facts.body_complete || facts.head_keeps_alive;
    After::Close { linger, why }
}

/// Whether a connection that has carried `requests` requests carries no other; `max_requests` of 0 means
/// any number.
///
/// ```
/// use m0_wire::keepalive::used_up;
///
/// assert!(used_up(3, 3) && !used_up(2, 3) && !used_up(u64::MAX, 0));
/// ```
pub fn used_up(requests: u64, max_requests: u64) -> bool {
    max_requests > 0 && requests >= max_requests
}

/// A lingering close under way: the answer and the FIN are out, what still comes is read and dropped.
///
/// ```
/// use m0_wire::keepalive::Linger;
///
/// let mut linger = Linger::begin(5_000, 1_000, 65_536);
/// assert!(!linger.is_over(5_999));
/// assert!(linger.is_over(6_000));
/// linger.dropped(65_536);
/// assert!(linger.is_over(5_001));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linger {
    until_ms: u64,
    bytes_left: u64,
}

impl Linger {
    /// Begins at `now_ms`, for at most `bound_ms` milliseconds and `bound_bytes` of the peer's bytes.
    #[must_use]
    pub fn begin(now_ms: u64, bound_ms: u64, bound_bytes: u64) -> Self {
        Self {
            until_ms: now_ms.saturating_add(bound_ms),
            bytes_left: bound_bytes,
        }
    }

    /// Counts bytes that were read and dropped.
    pub fn dropped(&mut self, count: u64) {
        self.bytes_left = self.bytes_left.saturating_sub(count);
    }

    /// Whether the socket is closed now, whatever the peer does.
    pub fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.until_ms || self.bytes_left == 0
    }
}
