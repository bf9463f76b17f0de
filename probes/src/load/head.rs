//! The head of an answer, as far as the load reads it.
//!
//! Refuses bodies and chunks. Invariant: the bytes behind the head are kept, for they belong to the body.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail, ensure};

use crate::server::PATIENCE;

/// Longest head that is read.
const MOST_BYTES: usize = 16 * 1024;

/// A head and what came behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Status line and fields, with the empty line.
    pub text: String,
    /// First bytes of the body.
    pub behind: Vec<u8>,
}

impl Head {
    /// Reads one head, at most 16 KiB, within the socket's read timeout.
    pub fn read(socket: &mut TcpStream) -> Result<Self> {
        let mut bytes = Vec::with_capacity(1024);
        loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let behind = bytes.split_off(end + 4);
                let text = String::from_utf8(bytes).context("a head that is not UTF-8")?;
                return Ok(Self { text, behind });
            }
            ensure!(
                bytes.len() < MOST_BYTES,
                "a head of more than {MOST_BYTES} bytes"
            );
            let mut piece = [0; 2048];
            match socket.read(&mut piece).context("no answer")? {
                0 => bail!("the connection ended in a head of {} bytes", bytes.len()),
                count => bytes.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// An error unless the status is 200.
    pub fn ok(self) -> Result<Self> {
        let line = self.text.lines().next().unwrap_or_default();
        ensure!(line.starts_with("HTTP/1.1 200"), "the answer is {line:?}");
        Ok(self)
    }

    /// An error unless the status is 200, 201 or 202.
    pub fn taken(self) -> Result<Self> {
        let line = self.text.lines().next().unwrap_or_default();
        let good = ["200", "201", "202"].map(|status| format!("HTTP/1.1 {status}"));
        ensure!(
            good.iter().any(|good| line.starts_with(good)),
            "the answer is {line:?}"
        );
        Ok(self)
    }

    /// The value of a field; names are compared without case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self
            .text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }

    /// Length of the body, by `content-length`.
    pub fn body_bytes(&self) -> Result<usize> {
        let length = self
            .field("content-length")
            .context("an answer without content-length")?;
        length
            .parse()
            .with_context(|| format!("content-length {length:?}"))
    }

    /// The slot of the worker that answered, by host_check's `x-worker`.
    pub fn slot(&self) -> Result<usize> {
        let slot = self
            .field("x-worker")
            .context("an answer without x-worker")?;
        slot.parse().with_context(|| format!("x-worker {slot:?}"))
    }
}

/// A connection on which small writes leave at once and nothing waits without a bound.
pub fn connect(to: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&to, PATIENCE).with_context(|| format!("{to}"))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// One GET on a connection that is kept: the head, and the body as text.
pub fn get(socket: &mut TcpStream, path: &str) -> Result<(Head, String)> {
    ask(
        socket,
        format!("GET {path} HTTP/1.1\r\nHost: probe\r\n\r\n").as_bytes(),
    )
}

/// One request on a connection that is kept. The answer must be 200 and say how long it is.
pub fn ask(socket: &mut TcpStream, request: &[u8]) -> Result<(Head, String)> {
    ask_for(socket, request, Head::ok)
}

/// The same of an event that is published: 201 and 202 say as well that it was taken.
pub fn publish(socket: &mut TcpStream, request: &[u8]) -> Result<(Head, String)> {
    ask_for(socket, request, Head::taken)
}

fn ask_for(
    socket: &mut TcpStream,
    request: &[u8],
    good: fn(Head) -> Result<Head>,
) -> Result<(Head, String)> {
    socket.write_all(request).context("a request")?;
    let head = good(Head::read(socket)?)?;
    let mut body = head.behind.clone();
    let got = body.len();
    body.resize(head.body_bytes()?.max(got), 0);
    socket
        .read_exact(&mut body[got..])
        .context("a body that ends early")?;
    Ok((
        head,
        String::from_utf8(body).context("a body that is not UTF-8")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::Head;

    #[m0_spec::row(H37)]
    #[test]
    fn an_answer_that_is_no_success_is_an_error() {
        let head = |status: &str| Head {
            text: format!("HTTP/1.1 {status} X\r\n\r\n"),
            behind: Vec::new(),
        };
        let cases = [
            ("200", true, true),
            ("201", false, true),
            ("202", false, true),
            ("204", false, false),
            ("503", false, false),
        ];
        for (status, ok, taken) in cases {
            let got = (head(status).ok().is_ok(), head(status).taken().is_ok());
            assert_eq!(got, (ok, taken), "{status}");
        }
    }
}
