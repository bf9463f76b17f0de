//! Follows the chunks of a body (RFC 9112 section 7.1), up to the trailer section.
//!
//! Owns chunk sizes, extensions and the CRLF after chunk data. Refuses to know the trailers (a block of
//! fields, see `head.rs`) and the data itself.
//! Invariant: a byte is passed only if what stands before it in its chunk line was right, so the engine
//! never sees the byte that makes a size ambiguous.

use crate::limits::Limits;
use crate::scanner::Fault;

/// How far the chunks went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunks {
    /// All bytes were used and the body goes on.
    More,
    /// The last chunk ended here; the trailer section follows.
    Last,
    /// The byte after the passed ones is refused.
    Refused(Fault),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first digit of a size.
    Size,
    /// After this many digits.
    Digits(u8),
    Extension,
    /// After the CR of a chunk line.
    LineFeed,
    Data,
    DataCr,
    DataLf,
}

/// Sixteen hexadecimal digits fill a `u64`; more, even zeros, are a peer that tries something.
const MAX_SIZE_DIGITS: u8 = 16;

/// The reading of one chunked body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunked {
    at: At,
    /// Size read so far, then bytes of data still to come.
    size: u64,
    body_bytes: u64,
    ext_bytes: usize,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self {
            at: At::Size,
            size: 0,
            body_bytes: 0,
            ext_bytes: 0,
        }
    }

    /// Uses as many of `bytes` as belong to the chunks; tells how many those are.
    pub(crate) fn advance(&mut self, bytes: &[u8], limits: &Limits) -> (usize, Chunks) {
        let mut used = 0;
        while used < bytes.len() {
            if self.at == At::Data {
                let take = self.size.min((bytes.len() - used) as u64);
                self.size -= take;
                used += take as usize;
                if self.size == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            match self.take(bytes[used], limits) {
                Ok(Line::GoesOn) => used += 1,
                Ok(Line::WasLast) => return (used + 1, Chunks::Last),
                Err(fault) => return (used, Chunks::Refused(fault)),
            }
        }
        (used, Chunks::More)
    }

    fn take(&mut self, byte: u8, limits: &Limits) -> Result<Line, Fault> {
        match (self.at, byte) {
            (At::Size | At::Digits(_), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.digit(byte)?;
            }
            (At::Size, _) => return Err(Fault::new(400, "chunk size is not a hexadecimal number")),
            (At::Digits(_), b';') => {
                self.count_extension(limits)?;
                self.at = At::Extension;
            }
            (At::Digits(_) | At::Extension, b'\r') => self.at = At::LineFeed,
            (At::Digits(_), _) => {
                return Err(Fault::new(400, "chunk size is not a hexadecimal number"));
            }
            (At::Extension, byte) if byte.is_ascii_control() && byte != b'\t' => {
                return Err(Fault::new(400, "control character in a chunk extension"));
            }
            (At::Extension, _) => self.count_extension(limits)?,
            (At::LineFeed, b'\n') => return self.end_of_line(limits),
            (At::LineFeed, _) => return Err(Fault::new(400, "chunk line has CR without LF")),
            (At::DataCr, b'\r') => self.at = At::DataLf,
            (At::DataLf, b'\n') => self.at = At::Size,
            (At::DataCr | At::DataLf, _) => {
                return Err(Fault::new(400, "chunk data is not followed by CRLF"));
            }
            (At::Data, _) => unreachable!("data is taken in blocks, never byte by byte"),
        }
        Ok(Line::GoesOn)
    }

    fn digit(&mut self, byte: u8) -> Result<(), Fault> {
        let before = if let At::Digits(count) = self.at {
            count
        } else {
            0
        };
        if before == MAX_SIZE_DIGITS {
            return Err(Fault::new(400, "chunk size has too many digits"));
        }
        if before == 0 {
            self.size = 0;
        }
        let value = (byte as char)
            .to_digit(16)
            .expect("the caller matched a hexadecimal digit");
        self.size = self.size << 4 | u64::from(value);
        self.at = At::Digits(before + 1);
        Ok(())
    }

    fn count_extension(&mut self, limits: &Limits) -> Result<(), Fault> {
        self.ext_bytes += 1;
        if self.ext_bytes > limits.max_chunk_ext_bytes {
            return Err(Fault::new(
                400,
                "chunk extensions are larger than the limit",
            ));
        }
        Ok(())
    }

    fn end_of_line(&mut self, limits: &Limits) -> Result<Line, Fault> {
        if self.size == 0 {
            return Ok(Line::WasLast);
        }
        let room = limits.max_body_bytes - self.body_bytes;
        if self.size > room {
            return Err(Fault::new(413, "body is larger than the limit"));
        }
        self.body_bytes += self.size;
        self.at = At::Data;
        Ok(Line::GoesOn)
    }
}

/// What a byte of a chunk line led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    GoesOn,
    WasLast,
}
