//! A client on a raw socket, which can be rude.
//!
//! Owns one connection, TCP or unix, and the bytes that came but were not taken yet. Never retries and never
//! reconnects: what happens to the connection is what the phase wants to know.
//! Invariant: nothing here waits without a bound; a time-out is an error that says what was awaited.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::answer::{self, Answer, Chunk, Framing, Head};
use crate::tls::Records;

mod sealed;

/// Default bound of one wait: long against a loaded machine, short against a phase.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How the other side ended the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// End of stream (FIN).
    Fin,
    /// Reset (RST): bytes on their way may be lost.
    Reset,
    /// End of stream over TLS without the word (close_notify) that would have told it from a cut.
    Unannounced,
}

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// That many bytes more are pending.
    Bytes(usize),
    /// The other side ended the connection.
    Closed(Closing),
    /// Nothing until the deadline.
    Silence,
}

/// One connection.
#[derive(Debug)]
pub struct Peer {
    socket: Socket,
    /// Of a connection over TLS.
    tls: Option<Box<Records>>,
    pending: Vec<u8>,
    /// Bound of each wait that has no bound of its own.
    pub patience: Duration,
}

impl Peer {
    /// Connects within [`PATIENCE`].
    pub fn connect(to: SocketAddr) -> Result<Self> {
        Self::connect_within(to, PATIENCE)
    }

    /// Connects within `bound`.
    pub fn connect_within(to: SocketAddr, bound: Duration) -> Result<Self> {
        let socket = TcpStream::connect_timeout(&to, bound)
            .with_context(|| format!("connect to {to} within {} ms", bound.as_millis()))?;
        Self::over(socket.into())
    }

    /// Connects to a unix socket.
    pub fn connect_unix(path: &Path) -> Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket
            .connect_timeout(&SockAddr::unix(path)?, PATIENCE)
            .with_context(|| format!("connect to {}", path.display()))?;
        Self::over(socket)
    }

    /// Connects with a receive buffer of about `bytes` (the kernel doubles it and has a least size,
    /// socket(7)), set before the handshake so that the window is small from the first byte.
    pub fn connect_narrow(to: SocketAddr, bytes: usize) -> Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        socket.set_recv_buffer_size(bytes)?;
        socket
            .connect_timeout(&to.into(), PATIENCE)
            .context("connect")?;
        Self::over(socket)
    }

    fn over(socket: Socket) -> Result<Self> {
        if socket.domain()? != Domain::UNIX {
            socket.set_tcp_nodelay(true)?;
        }
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            socket,
            tls: None,
            pending: Vec::new(),
            patience: PATIENCE,
        })
    }

    /// Our own address, as the server's logs name this peer.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.socket
            .local_addr()?
            .as_socket()
            .context("no TCP address")
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.deliver(bytes.as_ref()).context("send")
    }

    /// Sends `bytes` in pieces of `size` bytes with `pause` between them: the pace is the rudeness.
    pub fn send_slowly(&mut self, bytes: &[u8], size: usize, pause: Duration) -> Result<()> {
        for (index, piece) in bytes.chunks(size).enumerate() {
            if index > 0 {
                std::thread::sleep(pause);
            }
            self.send(piece)?;
        }
        Ok(())
    }

    /// Sends as much as the connection takes without waiting longer than `pause` for one byte of
    /// progress, at most `limit` bytes of `fill`. Answers how many went.
    pub fn stuff(&mut self, fill: u8, limit: usize, pause: Duration) -> Result<usize> {
        self.socket.set_write_timeout(Some(pause))?;
        let block = vec![fill; 64 * 1024];
        let mut sent = 0;
        let stopped = loop {
            if sent >= limit {
                break Ok(sent);
            }
            match self.socket.write(&block[..block.len().min(limit - sent)]) {
                Ok(count) => sent += count,
                Err(error) if is_silence(error.kind()) => break Ok(sent),
                Err(error) if is_closed(error.kind()) => break Ok(sent),
                Err(error) => break Err(error.into()),
            }
        };
        self.socket.set_write_timeout(Some(PATIENCE))?;
        stopped
    }

    /// Drops what came, and sends what the connection takes at once; how many bytes that was.
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize> {
        self.pending.clear();
        self.socket.set_nonblocking(true)?;
        let mut block = [0; 16 * 1024];
        while let Ok(1..) = self.socket.read(&mut block) {}
        let sent = self.socket.write(bytes);
        self.socket.set_nonblocking(false)?;
        match sent {
            Ok(count) => Ok(count),
            Err(error) if is_silence(error.kind()) => Ok(0),
            Err(error) => Err(error).context("send"),
        }
    }

    /// Ends our direction; the other side may still answer.
    pub fn half_close(&mut self) -> Result<()> {
        self.announce_end()?;
        self.socket.shutdown(Shutdown::Write).context("half-close")
    }

    /// Ends the connection with a reset instead of a FIN (`SO_LINGER` of zero, socket(7)).
    pub fn reset(self) -> Result<()> {
        self.socket
            .set_linger(Some(Duration::ZERO))
            .context("linger")
    }

    /// Waits until `deadline` for more bytes.
    pub fn fill(&mut self, deadline: Instant) -> Result<Arrival> {
        let mut block = [0_u8; 16 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // A zero time-out would mean "for ever".
            self.socket
                .set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            match self.receive(&mut block) {
                Ok(0) => return Ok(Arrival::Closed(Closing::Fin)),
                Ok(count) => {
                    self.pending.extend_from_slice(&block[..count]);
                    return Ok(Arrival::Bytes(count));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_silence(error.kind()) => return Ok(Arrival::Silence),
                Err(error) if is_closed(error.kind()) => {
                    return Ok(Arrival::Closed(Closing::Reset));
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(Arrival::Closed(Closing::Unannounced));
                }
                Err(error) => return Err(error).context("receive"),
            }
        }
    }

    /// Bytes that came and were not taken.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Fills until `parse` finds something in the pending bytes, then takes what it used.
    pub(crate) fn take<T>(
        &mut self,
        what: &str,
        deadline: Instant,
        parse: impl Fn(&[u8]) -> Result<Option<(T, usize)>>,
    ) -> Result<T> {
        loop {
            if let Some((found, used)) = parse(&self.pending)? {
                self.pending.drain(..used);
                return Ok(found);
            }
            match self.fill(deadline)? {
                Arrival::Bytes(_) => {}
                Arrival::Closed(how) => bail!(
                    "the connection ended ({how:?}) before {what}; pending: {:?}",
                    answer::lossy(&self.pending)
                ),
                Arrival::Silence => bail!(
                    "no {what} within the bound; pending: {:?}",
                    answer::lossy(&self.pending)
                ),
            }
        }
    }

    /// Reads the next head, also that of an interim answer.
    pub fn head(&mut self, bound: Duration) -> Result<Head> {
        self.take("a head", Instant::now() + bound, answer::head)
    }

    /// Reads the next chunk of a chunked body.
    pub fn chunk(&mut self, bound: Duration) -> Result<Chunk> {
        self.take("a chunk", Instant::now() + bound, answer::chunk)
    }

    /// The next chunk if it is whole within `bound`, else why not.
    pub fn chunk_or(&mut self, deadline: Instant) -> Result<Result<Chunk, Arrival>> {
        loop {
            if let Some((found, used)) = answer::chunk(&self.pending)? {
                self.pending.drain(..used);
                return Ok(Ok(found));
            }
            match self.fill(deadline)? {
                Arrival::Bytes(_) => {}
                other => return Ok(Err(other)),
            }
        }
    }

    /// Reads a whole answer within our patience.
    pub fn answer(&mut self) -> Result<Answer> {
        self.answer_within(self.patience)
    }

    /// Reads a whole answer within `bound`.
    pub fn answer_within(&mut self, bound: Duration) -> Result<Answer> {
        let deadline = Instant::now() + bound;
        let mut continued = false;
        let head = loop {
            let head = self.take("an answer's head", deadline, answer::head)?;
            if head.status != 100 {
                break head;
            }
            continued = true;
        };
        let body = self.body(head.framing(false)?, deadline)?;
        Ok(Answer {
            head,
            body,
            continued,
        })
    }

    /// Reads a body of this framing until `deadline`.
    pub fn body(&mut self, framing: Framing, deadline: Instant) -> Result<Vec<u8>> {
        match framing {
            Framing::Empty => Ok(Vec::new()),
            Framing::Length(length) => {
                let length = usize::try_from(length)?;
                self.take("the whole body", deadline, |bytes| {
                    Ok(bytes.get(..length).map(|body| (body.to_vec(), length)))
                })
            }
            Framing::Chunked => self.chunked_body(deadline),
            Framing::Close => self.body_until_closed(deadline),
        }
    }

    fn chunked_body(&mut self, deadline: Instant) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            match self.take("a chunk", deadline, answer::chunk)? {
                Chunk::Data(data) => body.extend_from_slice(&data),
                Chunk::Last => return Ok(body),
            }
        }
    }

    fn body_until_closed(&mut self, deadline: Instant) -> Result<Vec<u8>> {
        loop {
            match self.fill(deadline)? {
                Arrival::Bytes(_) => {}
                Arrival::Closed(Closing::Fin) => return Ok(std::mem::take(&mut self.pending)),
                Arrival::Closed(how) => bail!("{how:?} inside a body"),
                Arrival::Silence => bail!("a body that has no end"),
            }
        }
    }

    /// Awaits the end of the connection. A byte that comes before it is an error.
    pub fn closed(&mut self, bound: Duration) -> Result<Closing> {
        let deadline = Instant::now() + bound;
        loop {
            ensure!(
                self.pending.is_empty(),
                "bytes where the connection should end: {:?}",
                answer::lossy(&self.pending)
            );
            match self.fill(deadline)? {
                Arrival::Bytes(_) => {}
                Arrival::Closed(how) => return Ok(how),
                Arrival::Silence => bail!("still open after {} ms", bound.as_millis()),
            }
        }
    }

    /// Reads and drops bytes until the connection ends; answers how many came and how it ended.
    pub fn drained(&mut self, bound: Duration) -> Result<(usize, Closing)> {
        let deadline = Instant::now() + bound;
        let mut count = std::mem::take(&mut self.pending).len();
        loop {
            match self.fill(deadline)? {
                Arrival::Bytes(more) => {
                    count += more;
                    self.pending.clear();
                }
                Arrival::Closed(how) => return Ok((count, how)),
                Arrival::Silence => {
                    bail!(
                        "still open after {} ms and {count} bytes",
                        bound.as_millis()
                    )
                }
            }
        }
    }

    /// Whether nothing came and the connection stands, looked at for `pause`.
    pub fn is_open_and_silent(&mut self, pause: Duration) -> Result<bool> {
        Ok(self.pending.is_empty() && self.fill(Instant::now() + pause)? == Arrival::Silence)
    }

    /// Sends a GET on this connection and reads the answer.
    pub fn get(&mut self, path: &str) -> Result<Answer> {
        self.send(request("GET", path, &[], b""))?;
        self.answer()
    }

    /// Sends a POST with a body and reads the answer.
    pub fn post(&mut self, path: &str, body: &[u8]) -> Result<Answer> {
        self.send(request("POST", path, &[], body))?;
        self.answer()
    }
}

/// One GET on a connection of its own.
pub fn get(to: SocketAddr, path: &str) -> Result<Answer> {
    Peer::connect(to)?.get(path)
}

/// One POST on a connection of its own.
pub fn post(to: SocketAddr, path: &str, body: &[u8]) -> Result<Answer> {
    Peer::connect(to)?.post(path, body)
}

/// A well-formed request. A body other than empty gets its Content-Length.
pub fn request(method: &str, path: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: smokes\r\n").into_bytes();
    for (name, value) in fields {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if !body.is_empty() {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

fn is_silence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}

#[cfg(test)]
mod tests;
