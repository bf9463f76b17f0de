//! The records of one connection: what its peer sends is opened, what it is sent is sealed.
//!
//! Owns the state of TLS and the bytes between it and the socket. Refuses to know sockets and HTTP. Invariant: bytes are
//! opened only as far as somebody takes them; the rest waits as it came, at most one read of it.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::mem;
use std::sync::Arc;

use rustls::ServerConnection;

use super::identity::{HTTP2, Identity};

/// One connection over TLS.
pub(crate) struct Sealed {
    records: ServerConnection,
    /// What came behind that which was opened last.
    behind: Vec<u8>,
    /// Bytes sealed since nothing was left to send, and those that the socket took since.
    put_in: u64,
    gone: u64,
}

impl Sealed {
    /// A handshake begins.
    pub(crate) fn new(identity: &Identity) -> Self {
        let records = ServerConnection::new(Arc::clone(identity.config()));
        Sealed {
            records: records.expect("only a length of records can be wrong, and none is set"),
            behind: Vec::new(),
            put_in: 0,
            gone: 0,
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.records.is_handshaking()
    }

    /// Whether HTTP/2 was agreed on.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.records.alpn_protocol() == Some(HTTP2)
    }

    /// Takes what the socket brought. After an error nothing more is opened; an alert waits to be sent.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.records.read_tls(&mut bytes)? == 0 {
                // The peer has said that nothing follows: whatever does is nothing (RFC 8446 section 6.1).
                return Ok(());
            }
            let state = self
                .records
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if state.plaintext_bytes_to_read() > 0 {
                self.behind.extend_from_slice(bytes);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Opened bytes, 0 at the end that the peer has told; none until the socket has brought more.
    pub(crate) fn open(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.records.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                opened => return opened.map(Some),
            }
            if self.behind.is_empty() {
                return Ok(None);
            }
            let behind = mem::take(&mut self.behind);
            self.feed(&behind)?;
        }
    }

    /// Whether bytes, or an end, can be opened without the socket.
    pub(crate) fn has_opened(&mut self) -> bool {
        let opened = self.records.reader().fill_buf().map(<[u8]>::len);
        opened.is_ok() || !self.behind.is_empty()
    }

    /// Seals bytes, as many as there is room for; how many.
    pub(crate) fn seal(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sealed = self.records.writer().write(bytes)?;
        self.put_in += sealed as u64;
        Ok(sealed)
    }

    /// Whether something sealed waits for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.records.wants_write()
    }

    /// Bytes of those handed to `seal` that the socket has not taken: as many as are left beside what a record adds.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.put_in.saturating_sub(self.gone)
    }

    /// Gives the socket what is sealed; how many bytes it took.
    pub(crate) fn send(&mut self, socket: &mut dyn io::Write) -> io::Result<usize> {
        let sent = self.records.write_tls(socket)?;
        self.gone += sent as u64;
        if !self.has_unsent() {
            (self.put_in, self.gone) = (0, 0);
        }
        Ok(sent)
    }

    /// Says that nothing follows, once.
    pub(crate) fn say_end(&mut self) {
        self.records.send_close_notify();
    }
}
