//! What a connection that speaks HTTP/2 must be known by: its first bytes, what is open on it, and which heads pass.
//!
//! The engine reads and writes the frames (RFC 9113). It tells nobody whether a head has arrived in part, nor whether
//! the last byte of an answer is with the socket; a drain and a deadline need both. So the host shows every byte that
//! comes and goes to a [`Ledger`], which reads the nine bytes before each frame and nothing else.
//!
//! Refuses to know sockets, clocks, HPACK and flow control. Invariant: what is found depends on the bytes alone and
//! never on how they were cut into reads and writes.

mod head;
mod ledger;

pub use head::{Asked, Fault, judge};
pub use ledger::Ledger;

/// The first bytes of a connection that speaks HTTP/2 (RFC 9113 section 3.4). No request of HTTP/1.1 begins so.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What the first bytes of a connection come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All of them were taken, and they decide nothing yet.
    More,
    /// The preface is whole; the first `used` of the bytes shown last belong to it.
    Whole {
        /// Bytes of the last call that belong to the preface.
        used: usize,
    },
    /// Another protocol: [`Preface::held`] and all of the bytes shown last are its.
    Other,
}

/// Awaits the preface. One for each connection that may speak HTTP/2; holds nothing but a count.
///
/// ```
/// use m0_wire::http2::{PREFACE, Preface, Step};
///
/// let mut preface = Preface::default();
/// assert_eq!(preface.feed(b"PRI * HTTP"), Step::More);
/// assert_eq!(preface.feed(b"/2.0\r\n\r\nSM\r\n\r\n\0\0\0"), Step::Whole { used: 14 });
/// assert_eq!(Preface::default().feed(b"PROPFIND / "), Step::Other);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Preface {
    /// So many bytes have come, all of them right.
    came: usize,
}

impl Preface {
    /// Looks at the next received bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Step {
        let owed = &PREFACE[self.came..];
        let shared = owed.len().min(bytes.len());
        if owed[..shared] != bytes[..shared] {
            return Step::Other;
        }
        self.came += shared;
        if self.came == PREFACE.len() {
            Step::Whole { used: shared }
        } else {
            Step::More
        }
    }

    /// Bytes of earlier calls: once [`Step::Other`] has come, the first of the connection.
    pub fn held(&self) -> &'static [u8] {
        &PREFACE[..self.came]
    }
}
