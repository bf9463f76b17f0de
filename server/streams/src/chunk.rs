//! Frames one event for HTTP/1.1, so that a worker frames it once and every stream shares the bytes.
//!
//! Owns the chunk form of RFC 9112 section 7.1. Refuses to know what the payload says.
//! Invariant: one chunk holds one whole event; neither is ever split or joined.

use bytes::{Bytes, BytesMut};
use std::fmt::Write;

/// The chunk that ends a chunked body, without trailers.
pub const LAST: Bytes = Bytes::from_static(b"0\r\n\r\n");

/// Writes `payload`, which is not empty, as one chunk; where in `into` it begins.
pub(crate) fn write_chunk(into: &mut BytesMut, payload: &[u8]) -> usize {
    write!(into, "{:x}\r\n", payload.len()).expect("a buffer takes every write");
    let payload_at = into.len();
    into.extend_from_slice(payload);
    into.extend_from_slice(b"\r\n");
    payload_at
}

/// Most bytes of framing around a payload: sixteen digits and two CRLF.
pub(crate) const MOST_FRAMING_BYTES: usize = 20;

/// One payload in both forms: as a chunk, and bare for an HTTP/1.0 peer whose stream ends with the
/// connection. Both share one piece of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    framed: Bytes,
    payload_at: usize,
}

impl Chunk {
    /// Frames `payload`, which is copied once.
    ///
    /// ```
    /// let chunk = m0_streams::Chunk::encode(b": hb\n\n");
    /// assert_eq!(&chunk.framed()[..], b"6\r\n: hb\n\n\r\n");
    /// assert_eq!(&chunk.payload()[..], b": hb\n\n");
    /// ```
    ///
    /// # Panics
    /// If `payload` is empty: an empty chunk is the last one.
    #[must_use]
    pub fn encode(payload: &[u8]) -> Self {
        assert!(!payload.is_empty(), "an empty chunk would end the stream");
        let mut framed = BytesMut::with_capacity(payload.len() + MOST_FRAMING_BYTES);
        let payload_at = write_chunk(&mut framed, payload);
        Self {
            framed: framed.freeze(),
            payload_at,
        }
    }

    /// The chunk.
    pub fn framed(&self) -> Bytes {
        self.framed.clone()
    }

    /// The payload without its framing.
    pub fn payload(&self) -> Bytes {
        self.framed.slice(self.payload_at..self.framed.len() - 2)
    }

    /// What a peer of this version gets.
    pub fn bytes_for(&self, http10: bool) -> Bytes {
        if http10 {
            self.payload()
        } else {
            self.framed()
        }
    }

    /// What a peer of this version gets, without a new reference.
    pub fn slice_for(&self, http10: bool) -> &[u8] {
        if http10 {
            &self.framed[self.payload_at..self.framed.len() - 2]
        } else {
            &self.framed
        }
    }
}
