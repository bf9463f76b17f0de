//! Which exchanges are open on a connection, by the heads of its frames.
//!
//! Owns the walk over the frames of both directions. Refuses to judge them: the engine does, and ends the connection
//! where they are wrong. Invariant: an exchange is open from the end of the frame that began it until the last byte of
//! its answer, or of a reset from either side, has gone by.

use std::collections::BTreeSet;

use crate::scanner::Phase;

/// Bytes before each frame (RFC 9113 section 4.1).
const HEAD_BYTES: usize = 9;

/// Types of frames (RFC 9113 section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;

/// Flags of those types.
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// A frame without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
}

impl Frame {
    /// Whether it carries a piece of a head.
    fn is_of_a_head(self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION)
    }
}

/// A place in a sequence of frames.
#[derive(Debug, Default)]
struct Walker {
    head: [u8; HEAD_BYTES],
    /// Bytes of `head` that have come.
    came: usize,
    /// Bytes of the payload that are still to come.
    left: usize,
}

impl Walker {
    /// Goes over `bytes`; tells of each frame whose last byte is among them.
    fn walk(&mut self, mut bytes: &[u8], mut whole: impl FnMut(Frame)) {
        // Each turn uses bytes or returns.
        loop {
            if self.came < HEAD_BYTES {
                let take = (HEAD_BYTES - self.came).min(bytes.len());
                self.head[self.came..self.came + take].copy_from_slice(&bytes[..take]);
                self.came += take;
                bytes = &bytes[take..];
                if self.came < HEAD_BYTES {
                    return;
                }
                let [a, b, c, ..] = self.head;
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
            }
            let take = self.left.min(bytes.len());
            self.left -= take;
            bytes = &bytes[take..];
            if self.left > 0 {
                return;
            }
            whole(self.frame());
            self.came = 0;
        }
    }

    fn frame(&self) -> Frame {
        let [_, _, _, kind, flags, a, b, c, d] = self.head;
        Frame {
            kind,
            flags,
            // The highest bit is reserved.
            stream: u32::from_be_bytes([a & 0x7f, b, c, d]),
        }
    }

    /// The frame of which a part has come, once it is known which one it is.
    fn begun(&self) -> Option<Frame> {
        (self.came == HEAD_BYTES).then(|| self.frame())
    }
}

/// What is open on one connection. Shown every byte behind the preface, of both directions.
///
/// ```
/// use m0_wire::Phase;
/// use m0_wire::http2::Ledger;
///
/// let mut ledger = Ledger::default();
/// ledger.received(b"\0\0\0\x04\0\0\0\0\0");
/// assert_eq!(ledger.phase(), Phase::Idle);
/// // A request without a body, whose head is one byte of HPACK.
/// ledger.received(b"\0\0\x01\x01\x05\0\0\0\x01\x82");
/// assert_eq!((ledger.phase(), ledger.open()), (Phase::Complete, 1));
/// // Its answer: a head that ends it.
/// ledger.sent(b"\0\0\x01\x01\x05\0\0\0\x01\x88");
/// assert_eq!(ledger.phase(), Phase::Idle);
/// ```
#[derive(Debug, Default)]
pub struct Ledger {
    incoming: Walker,
    outgoing: Walker,
    open: BTreeSet<u32>,
    /// The last exchange that the peer began.
    last: u32,
    /// The peer's first frame, its settings, has come.
    settled: bool,
    /// A head has begun in a frame that is whole, and goes on in the next one.
    head_goes_on: bool,
    begun: u64,
}

impl Ledger {
    /// Bytes came from the peer.
    pub fn received(&mut self, bytes: &[u8]) {
        let Ledger {
            incoming,
            open,
            last,
            settled,
            head_goes_on,
            begun,
            ..
        } = self;
        incoming.walk(bytes, |frame| {
            *settled = true;
            match frame.kind {
                // Trailers are of one that began before.
                HEADERS if frame.stream > *last => {
                    *last = frame.stream;
                    *begun += 1;
                    open.insert(frame.stream);
                }
                RST_STREAM => {
                    open.remove(&frame.stream);
                }
                _ => {}
            }
            if frame.is_of_a_head() {
                *head_goes_on = frame.flags & END_HEADERS == 0;
            }
        });
    }

    /// The socket took bytes for the peer.
    pub fn sent(&mut self, bytes: &[u8]) {
        let Ledger { outgoing, open, .. } = self;
        outgoing.walk(bytes, |frame| {
            let ends = match frame.kind {
                DATA | HEADERS => frame.flags & END_STREAM != 0,
                RST_STREAM => true,
                _ => false,
            };
            if ends {
                open.remove(&frame.stream);
            }
        });
    }

    /// What the connection waits for: a head that has begun, nothing while an exchange is open, or the next one.
    pub fn phase(&self) -> Phase {
        if !self.settled || self.is_in_a_head() {
            Phase::Head
        } else if self.open.is_empty() {
            Phase::Idle
        } else {
            Phase::Complete
        }
    }

    /// Whether no exchange is open and none has begun to arrive. A peer whose settings are still to come has asked
    /// nothing.
    pub fn is_quiet(&self) -> bool {
        self.open.is_empty() && !self.is_in_a_head()
    }

    fn is_in_a_head(&self) -> bool {
        self.head_goes_on || self.incoming.begun().is_some_and(Frame::is_of_a_head)
    }

    /// Exchanges that are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Exchanges that the peer has begun so far.
    pub fn begun(&self) -> u64 {
        self.begun
    }
}
