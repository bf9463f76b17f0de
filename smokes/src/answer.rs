//! HTTP/1.1 answers as bytes on a wire (RFC 9112), read strictly.
//!
//! Owns the parsing of a head and of a chunk, and the whole answer made of them; reads no socket. It is the harness's own on purpose:
//! a parser shared with the server would share its mistakes.
//! Invariant: anything that RFC 9112 does not allow in an answer is an error that says what came.

use anyhow::{Context, Result, bail, ensure};

/// Largest head that a server may send us, in bytes.
pub const LARGEST_HEAD: usize = 64 * 1024;

/// Status line and fields of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// 100..=599.
    pub status: u16,
    /// Names as sent, values without surrounding white space, in order.
    pub fields: Vec<(String, String)>,
}

/// How the end of a body is known (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// The status or the method has no body.
    Empty,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Until the connection closes.
    Close,
}

impl Head {
    /// The value of the only field of that name, if there is one. The name's case does not matter.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(each, _)| each.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// How many fields of that name there are.
    pub fn count(&self, name: &str) -> usize {
        self.fields
            .iter()
            .filter(|(each, _)| each.eq_ignore_ascii_case(name))
            .count()
    }

    /// Whether the server announces that it will close (`Connection: close`).
    pub fn closes(&self) -> bool {
        self.field("connection").is_some_and(|value| {
            value
                .split(',')
                .any(|token| token.trim().eq_ignore_ascii_case("close"))
        })
    }

    /// How the body ends. `to_head` says that the request was a HEAD.
    pub fn framing(&self, to_head: bool) -> Result<Framing> {
        let coding = self.field("transfer-encoding");
        let length = self.field("content-length");
        ensure!(
            coding.is_none() || length.is_none(),
            "an answer with both Transfer-Encoding and Content-Length: {self:?}"
        );
        ensure!(
            self.count("content-length") <= 1 && self.count("transfer-encoding") <= 1,
            "an answer with its framing twice: {self:?}"
        );
        if to_head || self.status < 200 || matches!(self.status, 204 | 304) {
            return Ok(Framing::Empty);
        }
        match (coding, length) {
            (Some(coding), _) => {
                ensure!(
                    coding.eq_ignore_ascii_case("chunked"),
                    "transfer coding {coding:?}"
                );
                Ok(Framing::Chunked)
            }
            (None, Some(length)) => {
                let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
                ensure!(digits, "Content-Length {length:?}");
                Ok(Framing::Length(length.parse().context("Content-Length")?))
            }
            (None, None) => Ok(Framing::Close),
        }
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status and fields.
    pub head: Head,
    /// The body, its framing taken off.
    pub body: Vec<u8>,
    /// Whether `100 Continue` came before it.
    pub continued: bool,
}

impl Answer {
    /// Status code.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The slot of the worker that answered (`x-worker`).
    pub fn slot(&self) -> Result<u32> {
        slot_of(&self.head)
    }

    /// The answer itself when its status is `wanted`, else an error that shows it.
    pub fn expect(self, wanted: u16) -> Result<Self> {
        ensure!(
            self.status() == wanted,
            "status {} instead of {wanted}: {:?}",
            self.status(),
            lossy(&self.body)
        );
        Ok(self)
    }
}

/// The slot named by the `x-worker` field.
pub fn slot_of(head: &Head) -> Result<u32> {
    head.field("x-worker")
        .with_context(|| format!("no x-worker in {head:?}"))?
        .parse()
        .context("x-worker")
}

/// Reads a head from the start of `bytes`. `None` when its blank line has not come yet; else the head
/// and how many bytes it took.
pub fn head(bytes: &[u8]) -> Result<Option<(Head, usize)>> {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        ensure!(
            bytes.len() < LARGEST_HEAD,
            "a head of more than {LARGEST_HEAD} bytes"
        );
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..end]).context("a head that is not UTF-8")?;
    let mut lines = text.split("\r\n");
    let start = lines.next().unwrap_or_default();
    let status = start
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| start.strip_prefix("HTTP/1.0 "))
        .and_then(|rest| rest.get(..3))
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|digits| digits.parse::<u16>().ok())
        .with_context(|| format!("not a status line: {start:?}"))?;
    ensure!((100..600).contains(&status), "status {status}");
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) = line
            .split_once(':')
            .with_context(|| format!("not a field line: {line:?}"))?;
        let token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        ensure!(token, "a field name {name:?}");
        ensure!(
            !value.contains(['\r', '\n', '\0']),
            "control bytes in the value of {name}"
        );
        fields.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok(Some((Head { status, fields }, end + 4)))
}

/// One chunk of a chunked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Its payload, at least one byte.
    Data(Vec<u8>),
    /// The last chunk with its trailer section: the body is complete.
    Last,
}

/// Reads a chunk from the start of `bytes`. `None` when it is not whole yet; else the chunk and how many
/// bytes it took. Verifies size line, the CRLF behind the payload, and that no trailer follows the last.
pub fn chunk(bytes: &[u8]) -> Result<Option<(Chunk, usize)>> {
    let Some(line) = find(bytes, b"\r\n") else {
        ensure!(
            bytes.len() < 64,
            "no end of a chunk's size line in {:?}",
            lossy(bytes)
        );
        return Ok(None);
    };
    let digits = std::str::from_utf8(&bytes[..line]).unwrap_or_default();
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(plain, "a chunk's size line {:?}", lossy(&bytes[..line]));
    let size = usize::from_str_radix(digits, 16).context("chunk size")?;
    let start = line + 2;
    let end = start + size;
    let Some(close) = bytes.get(end..end + 2) else {
        return Ok(None);
    };
    if close != b"\r\n" {
        bail!("{:?} behind a chunk of {size} bytes", lossy(close));
    }
    let read = if size == 0 {
        Chunk::Last
    } else {
        Chunk::Data(bytes[start..end].to_vec())
    };
    Ok(Some((read, end + 2)))
}

/// First place of `needle` in `bytes`.
pub fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}

/// Bytes as text for a message, at most 200 of them.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &str) -> Result<Framing> {
        head(bytes.as_bytes())?
            .context("not whole")?
            .0
            .framing(false)
    }

    #[m0_spec::row(H40)]
    #[test]
    fn framing_is_read_and_ambiguity_is_an_error() {
        let cases = [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
                Some(Framing::Length(3)),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                Some(Framing::Chunked),
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", Some(Framing::Empty)),
            ("HTTP/1.1 200 OK\r\n\r\n", Some(Framing::Close)),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
                None,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                None,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n", None),
            ("HTTP/2 200 OK\r\n\r\n", None),
            ("HTTP/1.1 2x0 OK\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\nbad name: 1\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\na: 1\nb: 2\r\n\r\n", None),
        ];
        for (bytes, wanted) in cases {
            assert_eq!(check(bytes).ok(), wanted, "{bytes:?}");
        }
    }

    #[m0_spec::row(H40)]
    #[test]
    fn a_head_that_is_not_whole_is_none() {
        assert_eq!(
            head(b"HTTP/1.1 200 OK\r\na: b\r\n").expect("no error"),
            None
        );
        assert!(head(&vec![b'a'; LARGEST_HEAD]).is_err(), "but not for ever");
    }

    #[m0_spec::row(H40)]
    #[test]
    fn chunks_are_strict() {
        let data = |text: &str| Some((Chunk::Data(text.into()), text.len() + 5));
        let cases = [
            ("3\r\nabc\r\nrest", Ok(data("abc"))),
            ("3\r\nabc", Ok(None)),
            ("3", Ok(None)),
            ("0\r\n\r\n", Ok(Some((Chunk::Last, 5)))),
            ("0\r\nx: y\r\n\r\n", Err(())),
            ("3\r\nabcd\r\n", Err(())),
            ("3;a=b\r\nabc\r\n", Err(())),
            ("\r\nabc\r\n", Err(())),
            ("-3\r\nabc\r\n", Err(())),
        ];
        for (bytes, wanted) in cases {
            assert_eq!(chunk(bytes.as_bytes()).map_err(|_| ()), wanted, "{bytes:?}");
        }
    }
}
