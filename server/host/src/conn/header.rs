//! The part of a connection that a proxy passes on: its header comes before the first request.
//!
//! Owns the moment at which the peer becomes the one that the header tells of. Refuses to know the header's form and
//! from whom one is taken. Invariant: no byte of a header reaches the scanner, and every byte behind it does.

use m0_unix::clock::monotonic_ms;
use m0_unix::sockets::Peer;
use m0_wire::Phase;
use m0_wire::proxy::{Reader, Step, Told};

use super::{Conn, Interruption};

impl Conn {
    /// The first bytes are to be a header.
    pub(crate) fn expect_header(&self, reader: Reader) {
        *self.header.borrow_mut() = Some(Box::new(reader));
    }

    /// Whether the next bytes belong to a header.
    pub(super) fn awaits_header(&self) -> bool {
        self.header.borrow().is_some()
    }

    /// Whether a header has begun to arrive and is not whole.
    pub(crate) fn header_has_begun(&self) -> bool {
        let header = self.header.borrow();
        header.as_ref().is_some_and(|reader| reader.has_begun())
    }

    /// Looks at bytes that belong to a header. How many of them do, once it is whole: the others are those of whoever
    /// asks, and so are those before them that it `missed` where there is no header.
    pub(super) fn read_header(&self, bytes: &[u8], missed: impl FnOnce(&[u8])) -> Option<usize> {
        let mut header = self.header.borrow_mut();
        let reader = header.as_mut()?;
        let used = match reader.feed(bytes) {
            Step::More => {
                // It is given as long as a head is, from its first byte on.
                self.note(|progress| progress.received(Phase::Head, false, monotonic_ms()));
                return None;
            }
            Step::Malformed(why) => {
                self.interrupt(Interruption::Header(why));
                return None;
            }
            Step::Header { used, told } => {
                if let Told::Client(client) = told {
                    self.peer.set(Peer::Tcp(client));
                }
                used
            }
            Step::None => {
                // Fewer bytes than any head has, so none of them is released yet.
                missed(reader.held());
                0
            }
        };
        *header = None;
        Some(used)
    }
}
