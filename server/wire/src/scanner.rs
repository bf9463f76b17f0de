//! Follows the framing of a whole connection and releases only what the engine may see.
//!
//! Owns the order head, body, next head, the bytes of a head that is not complete, and the count of
//! requests. Refuses to know sockets and time. How lines are judged is `head.rs`, chunks `chunked.rs`.
//! Invariant: released bytes are a prefix of the received ones and end, when refused, before the head
//! (or before the byte of the body) that was refused. All cuts into reads give the same result.

use crate::chunked::{Chunked, Chunks};
use crate::head::{Block, Facts, Framing, Kind, Step};
use crate::keepalive::used_up;
use crate::limits::Limits;

/// A rule that was broken: the status to answer and what was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    status: u16,
    reason: &'static str,
}

impl Fault {
    pub(crate) const fn new(status: u16, reason: &'static str) -> Self {
        Self { status, reason }
    }
}

/// Why a connection goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status to answer before the connection closes: 400, 413, 414, 417, 431, 501 or 505.
    pub status: u16,
    /// What was wrong, for the log and the short body of the answer. No text of the peer's.
    pub reason: &'static str,
    /// Requests whose heads were released before. Their answers go out first.
    pub after_requests: u64,
    /// Whether a head was refused or the body of the last released request.
    pub place: Place,
}

/// What was being read when a refusal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A request head; the engine saw none of it.
    Head,
    /// Chunks or trailers of request number `after_requests`, which the engine already serves.
    Body,
}

/// What the scanner says to the bytes it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Pass,
    /// Answer this and close; every later `feed` says the same.
    Refuse(Refusal),
}

/// The result of [`Scanner::feed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// How many of the shown bytes, from the first, the engine may see where they are. The others were
    /// taken into the scanner (or dropped, after a refusal or the last request of the connection).
    pub pass: usize,
    /// Whether the connection goes on. Bytes passed or ready before a refusal are still the engine's.
    pub verdict: Verdict,
}

/// What the connection is waiting for, as its deadlines see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing of a first request has arrived.
    FirstByte,
    /// Every request was answered and nothing of the next has arrived.
    Idle,
    /// A head has begun and is not complete.
    Head,
    /// A body is not complete.
    Body,
    /// Every request is complete and at least one waits for its answer.
    Complete,
}

/// Shows the engine only what is unambiguous. One per connection.
///
/// The host reads from the socket into the engine's buffer, feeds the scanner, and lets the engine
/// have the first `pass` bytes. When [`ready`](Self::ready) is not empty the host hands that out first,
/// before it reads again.
///
/// ```
/// use m0_wire::{Limits, Phase, Scanner, Verdict};
///
/// let mut scanner = Scanner::new(Limits::default());
/// let request = b"GET / HTTP/1.1\r\nHost: example\r\n\r\n";
/// let fed = scanner.feed(request);
/// assert_eq!((fed.pass, fed.verdict), (request.len(), Verdict::Pass));
/// assert_eq!(scanner.phase(), Phase::Complete);
///
/// let fed = scanner.feed(b"GET / HTTP/1.1\nHost: example\n\n");
/// let Verdict::Refuse(refusal) = fed.verdict else { panic!("a bare LF passed") };
/// assert_eq!((fed.pass, refusal.status, refusal.after_requests), (0, 400, 1));
/// ```
#[derive(Debug)]
pub struct Scanner {
    limits: Limits,
    state: State,
    /// Bytes received and not seen by the engine: `taken..ready` released, `ready..` held back.
    held: Vec<u8>,
    taken: usize,
    ready: usize,
    requests_seen: u64,
    answered: u64,
    /// Of the last complete head.
    facts: Facts,
}

#[derive(Debug)]
enum State {
    Head(Block),
    Length {
        left: u64,
    },
    Chunks(Chunked),
    Trailers(Block),
    /// The last request of the connection is complete: later bytes mean nothing (RFC 9112, 9.6).
    Ended,
    /// The last request asks for another protocol: until it is answered nobody knows what later bytes are.
    Undecided,
    /// The bytes are no longer HTTP.
    Tunnel,
    Refused(Refusal),
}

impl Scanner {
    /// A scanner for a new connection. Holds no heap memory until a head arrives in pieces.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Head(Block::new(Kind::Request)),
            held: Vec::new(),
            taken: 0,
            ready: 0,
            requests_seen: 0,
            answered: 0,
            facts: Facts::default(),
        }
    }

    /// Looks at the next received bytes. Any cut into calls gives the same released bytes and the same
    /// verdict. While [`ready`](Self::ready) is not empty everything is taken in and `pass` is 0, so the
    /// order is kept. Holds at most one head plus what one call brought.
    pub fn feed(&mut self, bytes: &[u8]) -> Fed {
        if self.held.is_empty() {
            let pass = self.walk(bytes);
            if self.keeps_bytes() {
                self.held.extend_from_slice(&bytes[pass..]);
            }
            return Fed {
                pass,
                verdict: self.verdict(),
            };
        }
        let mut held = std::mem::take(&mut self.held);
        if self.keeps_bytes() {
            held.extend_from_slice(bytes);
            self.ready += self.walk(&held[self.ready..]);
        }
        if !self.keeps_bytes() {
            held.truncate(self.ready);
        }
        self.held = held;
        self.free_if_empty();
        Fed {
            pass: 0,
            verdict: self.verdict(),
        }
    }

    /// Released bytes that the engine has not had yet, to be handed out before anything else.
    pub fn ready(&self) -> &[u8] {
        &self.held[self.taken..self.ready]
    }

    /// The engine has had the first `count` bytes of [`ready`](Self::ready).
    ///
    /// # Panics
    /// If there were not so many.
    pub fn consume(&mut self, count: usize) {
        assert!(
            count <= self.ready - self.taken,
            "more consumed than was ready"
        );
        self.taken += count;
        if self.taken == self.ready {
            self.held.drain(..self.ready);
            (self.taken, self.ready) = (0, 0);
            self.free_if_empty();
        }
    }

    /// The answer to the oldest unanswered request went out. Where that decides what held bytes are, they are
    /// judged now: look at [`refusal`](Self::refusal) and [`ready`](Self::ready).
    ///
    /// # Panics
    /// If every request seen was already answered.
    pub fn answered(&mut self) {
        assert!(
            self.answered < self.requests_seen,
            "more answers than requests"
        );
        self.answered += 1;
        if matches!(self.state, State::Undecided) && self.unanswered() == 0 {
            // The answer was no: what was held is HTTP after all.
            self.state = self.next_request();
            self.feed(&[]);
        }
    }

    /// The connection was upgraded: from now on every byte passes unseen, held ones included.
    pub fn become_tunnel(&mut self) {
        self.state = State::Tunnel;
        self.ready = self.held.len();
    }

    /// What the connection waits for.
    pub fn phase(&self) -> Phase {
        let begun = match &self.state {
            State::Length { .. } | State::Chunks(_) | State::Trailers(_) => return Phase::Body,
            State::Head(block) => block.has_begun(&self.held[self.ready..]),
            State::Ended | State::Undecided | State::Tunnel | State::Refused(_) => false,
        };
        // A pipelined head may take its time while an answer is owed: the peer is not at fault.
        if self.answered < self.requests_seen {
            Phase::Complete
        } else if begun {
            Phase::Head
        } else if self.requests_seen == 0 {
            Phase::FirstByte
        } else {
            Phase::Idle
        }
    }

    /// Request heads released so far.
    pub fn requests_seen(&self) -> u64 {
        self.requests_seen
    }

    /// Requests whose heads were released and whose answers are owed.
    pub fn unanswered(&self) -> u64 {
        self.requests_seen - self.answered
    }

    /// The refusal, once there is one.
    pub fn refusal(&self) -> Option<Refusal> {
        if let State::Refused(refusal) = self.state {
            Some(refusal)
        } else {
            None
        }
    }

    /// Whether the last released head lets the connection carry another request (RFC 9112, 9.3).
    pub fn keep_alive(&self) -> bool {
        self.facts.keep_alive()
    }

    /// Whether the last released head was HTTP/1.0.
    pub fn is_http10(&self) -> bool {
        self.facts.http10
    }

    /// Whether the last released head waits for `100 Continue` before it sends its body. HTTP/1.0
    /// requests never do (RFC 9110 section 10.1.1).
    pub fn expects_continue(&self) -> bool {
        self.facts.expects_continue && !self.facts.http10
    }

    /// Whether the only unanswered request waits for `100 Continue`, or has gone on without it, and its body
    /// is not complete: after a final answer nobody can tell whether the next bytes are that body
    /// (RFC 9110 section 10.1.1).
    pub fn body_may_not_come(&self) -> bool {
        self.expects_continue() && self.unanswered() == 1 && self.phase() == Phase::Body
    }

    /// Whether the last released head asks for another protocol (RFC 9110 section 7.8).
    pub fn wants_upgrade(&self) -> bool {
        self.facts.says_upgrade && self.facts.upgrade_seen && !self.facts.http10
    }

    /// Whether what comes next can only be judged once the last request is answered: it asks for another
    /// protocol. Read no further until then.
    pub fn is_undecided(&self) -> bool {
        matches!(self.state, State::Undecided)
    }

    /// Bytes of memory on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.held.capacity()
    }

    fn verdict(&self) -> Verdict {
        self.refusal().map_or(Verdict::Pass, Verdict::Refuse)
    }

    /// Whether bytes that were not released are still worth holding.
    fn keeps_bytes(&self) -> bool {
        !matches!(self.state, State::Ended | State::Refused(_))
    }

    fn free_if_empty(&mut self) {
        if self.held.is_empty() {
            self.held = Vec::new();
        }
    }

    /// Follows the framing through `bytes`, whose first byte is the first of the current block when a
    /// block of lines is being read, else the next unseen one. Returns how many bytes are released.
    fn walk(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        // At most one turn for each block or chunk run, each of which uses bytes or returns.
        loop {
            let rest = &bytes[at..];
            match &mut self.state {
                State::Head(block) => match block.advance(rest, &self.limits) {
                    Step::More => return at,
                    Step::Refused(fault) => {
                        self.refuse(fault, Place::Head);
                        return at;
                    }
                    Step::Done(length) => {
                        at += length;
                        self.requests_seen += 1;
                        self.facts = block.facts();
                        match block.framing() {
                            Framing::None => self.end_request(),
                            Framing::Length(left) => self.state = State::Length { left },
                            Framing::Chunked => self.state = State::Chunks(Chunked::new()),
                        }
                    }
                },
                State::Length { left } => {
                    let take = (*left).min(rest.len() as u64);
                    *left -= take;
                    at += take as usize;
                    if *left > 0 {
                        return at;
                    }
                    self.end_request();
                }
                State::Chunks(chunked) => {
                    let (used, chunks) = chunked.advance(rest, &self.limits);
                    at += used;
                    match chunks {
                        Chunks::More => return at,
                        Chunks::Last => self.state = State::Trailers(Block::new(Kind::Trailers)),
                        Chunks::Refused(fault) => {
                            self.refuse(fault, Place::Body);
                            return at;
                        }
                    }
                }
                State::Trailers(block) => match block.advance(rest, &self.limits) {
                    Step::More => return at,
                    Step::Refused(fault) => {
                        self.refuse(fault, Place::Body);
                        return at;
                    }
                    Step::Done(length) => {
                        at += length;
                        self.end_request();
                    }
                },
                State::Tunnel => return bytes.len(),
                State::Ended | State::Undecided | State::Refused(_) => return at,
            }
        }
    }

    fn end_request(&mut self) {
        self.state = if self.wants_upgrade() && self.unanswered() > 0 {
            State::Undecided
        } else {
            self.next_request()
        };
    }

    /// What is read behind a request that is complete.
    fn next_request(&self) -> State {
        let last = used_up(self.requests_seen, self.limits.max_requests);
        if self.facts.keep_alive() && !last {
            State::Head(Block::new(Kind::Request))
        } else {
            State::Ended
        }
    }

    fn refuse(&mut self, fault: Fault, place: Place) {
        self.state = State::Refused(Refusal {
            status: fault.status,
            reason: fault.reason,
            after_requests: self.requests_seen,
            place,
        });
    }
}
