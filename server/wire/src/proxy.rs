//! Reads the header by which a proxy tells whose connection it passes on: the PROXY protocol, versions 1 and 2.
//!
//! Owns where the header ends, what it says, and when it is none or malformed (the protocol's specification,
//! "The PROXY protocol, versions 1 & 2", sections 2.1 and 2.2). Refuses to know who may send one: the host asks for
//! it from the peers that its operator named, and from nobody else. Why not a crate: of `ppp` 2.3, `proxy-header` 0.1
//! and `proxy-protocol` 0.5 none verifies the checksum, which a receiver that knows of it must, and none bounds
//! version 2 below 64 KiB; the ports of version 1 may have a sign in the first two.
//! Invariant: what is found depends on the bytes alone and never on how they were cut into reads; at most
//! [`MOST_BYTES`] are held.

mod networks;
mod v1;
mod v2;

use std::net::SocketAddr;

pub use networks::Networks;

/// Most bytes of a header. Version 1 has at most 107; version 2 could have 65,551, of which nobody needs more than
/// a few hundred.
pub const MOST_BYTES: usize = 4096;

/// What a header says about the connection that it stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The client's address, where it is one of TCP.
    Client(SocketAddr),
    /// Nothing: the proxy speaks for itself (`LOCAL`), does not know (`UNKNOWN`), or tells of something that is not
    /// TCP. The connection's own peer stands.
    Nothing,
}

/// What the bytes so far come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All of them were taken, and they decide nothing yet.
    More,
    /// The header is whole; the first `used` of the bytes shown last belong to it.
    Header {
        /// Bytes of the last call that belong to the header.
        used: usize,
        /// What it says.
        told: Told,
    },
    /// They are no header and none is required: [`Reader::held`] and all of the bytes shown last are the
    /// connection's.
    None,
    /// They are no header where one is required, or a broken one. The connection goes no further.
    Malformed(&'static str),
}

/// How one look at the bytes from the first on ended; what `v1` and `v2` answer.
enum Look {
    /// They may become a header.
    More,
    /// A header of so many bytes.
    Header(usize, Told),
    /// Another protocol.
    Other,
    Malformed(&'static str),
}

/// Reads one header. One for each connection from which one may come.
///
/// ```
/// use m0_wire::proxy::{Reader, Step, Told};
///
/// let mut reader = Reader::new(true);
/// assert_eq!(reader.feed(b"PROXY TCP4 192.0.2.1 "), Step::More);
/// let step = reader.feed(b"198.51.100.1 40000 80\r\nGET / HTTP/1.1\r\n");
/// let client = "192.0.2.1:40000".parse().unwrap();
/// assert_eq!(step, Step::Header { used: 23, told: Told::Client(client) });
/// ```
#[derive(Debug)]
pub struct Reader {
    required: bool,
    held: Vec<u8>,
}

impl Reader {
    /// A reader for a new connection. Holds no heap memory until a header arrives in pieces. `required`: what is no
    /// header is malformed.
    #[must_use]
    pub fn new(required: bool) -> Self {
        Reader {
            required,
            held: Vec::new(),
        }
    }

    /// Looks at the next received bytes, at least one.
    pub fn feed(&mut self, bytes: &[u8]) -> Step {
        let before = self.held.len();
        let look = if before == 0 {
            look(bytes)
        } else {
            // No byte behind the bound decides anything.
            let room = MOST_BYTES.saturating_sub(before);
            self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
            look(&self.held)
        };
        match look {
            Look::More if before == 0 => self.held.extend_from_slice(bytes),
            Look::More => {}
            Look::Header(length, told) => {
                return Step::Header {
                    used: length - before,
                    told,
                };
            }
            Look::Other if self.required => return Step::Malformed("no PROXY header"),
            Look::Other => {
                self.held.truncate(before);
                return Step::None;
            }
            Look::Malformed(why) => return Step::Malformed(why),
        }
        Step::More
    }

    /// Bytes of earlier calls: once [`Step::None`] has come, the first of the connection.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether a header has begun to arrive.
    ///
    /// ```
    /// let mut reader = m0_wire::proxy::Reader::new(true);
    /// assert!(!reader.has_begun());
    /// reader.feed(b"PRO");
    /// assert!(reader.has_begun());
    /// ```
    pub fn has_begun(&self) -> bool {
        !self.held.is_empty()
    }
}

/// Judges the first bytes of a connection.
fn look(bytes: &[u8]) -> Look {
    let shared = |prefix: &[u8]| {
        let length = prefix.len().min(bytes.len());
        (prefix[..length] == bytes[..length]).then_some(length == prefix.len())
    };
    match (shared(v1::PREFIX), shared(v2::SIGNATURE)) {
        (Some(true), _) => v1::look(bytes),
        (_, Some(true)) => v2::look(bytes),
        (Some(false), _) | (_, Some(false)) => Look::More,
        (None, None) => Look::Other,
    }
}
