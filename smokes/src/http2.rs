//! Clients of HTTP/2: a well-behaved one, and frames by hand for rude ones (RFC 9113).
//!
//! Owns the frames' form and the few bytes of HPACK that a request needs. The well-behaved client is the `h2` crate's,
//! on a loop of its own that runs only while something is awaited. Invariant: nothing waits without a bound.

use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Method, Request};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::peer::{Closing, PATIENCE, Peer};
use crate::tls;

/// What a connection begins with.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames (section 6).
pub mod kind {
    /// A piece of a body.
    pub const DATA: u8 = 0;
    /// The beginning of a head.
    pub const HEADERS: u8 = 1;
    /// The end of one exchange.
    pub const RST_STREAM: u8 = 3;
    /// Settings, or that they were taken over.
    pub const SETTINGS: u8 = 4;
    /// A question for a sign of life, or the answer.
    pub const PING: u8 = 6;
    /// No further request is taken.
    pub const GOAWAY: u8 = 7;
    /// Room for more bytes.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a head.
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames: the end of a body, or that this answers.
pub const END_STREAM: u8 = 1;
/// The end of a head.
pub const END_HEADERS: u8 = 4;

/// The reason of a GOAWAY by which a bound of floods is told.
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame of these parts.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        Self {
            kind,
            flags,
            stream,
            payload: payload.to_vec(),
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        let head = [
            &length.to_be_bytes()[1..],
            &[self.kind, self.flags],
            &self.stream.to_be_bytes(),
        ]
        .concat();
        [head, self.payload.clone()].concat()
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (head, rest) = bytes.split_at_checked(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = rest.get(..length)?;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        Some((Self::new(head[3], head[4], stream, payload), 9 + length))
    }

    /// The reason of a GOAWAY.
    pub fn reason(&self) -> Option<u32> {
        let code = self.payload.get(4..8)?;
        Some(u32::from_be_bytes(code.try_into().ok()?))
    }
}

/// A field in HPACK, literal and not to be remembered (RFC 7541 section 6.2.2). Both parts are short.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        [
            &[text.len().min(126) as u8],
            &text.as_bytes()[..text.len().min(126)],
        ]
        .concat()
    };
    [&[0][..], &text(name), &text(value)].concat()
}

/// The head of a GET of this path, in HPACK.
pub fn get_head(path: &str) -> Vec<u8> {
    // `:method GET` and `:scheme http` stand in the static table.
    [
        &[0x82, 0x86][..],
        &field(":path", path),
        &field(":authority", "smokes"),
    ]
    .concat()
}

/// A client that writes its frames by hand.
#[derive(Debug)]
pub struct Rude {
    peer: Peer,
    /// Bytes of the block of a flood that went already.
    went: usize,
}

impl Rude {
    /// Connects, and says the preface and these settings.
    pub fn connect(to: SocketAddr, settings: &[(u16, u32)]) -> Result<Self> {
        let mut peer = Peer::connect(to)?;
        let pairs: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        peer.send([PREFACE, &Frame::new(kind::SETTINGS, 0, 0, &pairs).bytes()].concat())?;
        Ok(Self { peer, went: 0 })
    }

    /// Its connection.
    pub fn peer(&mut self) -> &mut Peer {
        &mut self.peer
    }

    /// Sends frames in one piece.
    pub fn send(&mut self, frames: &[Frame]) -> Result<()> {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        self.peer.send(bytes)
    }

    /// Sends what the connection takes at once of a block that repeats itself, and drops what came; how many bytes went.
    pub fn flood(&mut self, block: &[u8]) -> Result<usize> {
        let went = self.peer.push(&block[self.went..])?;
        self.went = (self.went + went) % block.len();
        Ok(went)
    }

    /// Begins a GET on this stream.
    pub fn get(&mut self, stream: u32, path: &str) -> Result<()> {
        let flags = END_HEADERS | END_STREAM;
        self.send(&[Frame::new(kind::HEADERS, flags, stream, &get_head(path))])
    }

    /// The next frame that pleases `wanted`; others are passed over.
    pub fn await_frame(
        &mut self,
        what: &str,
        bound: Duration,
        wanted: impl Fn(&Frame) -> bool,
    ) -> Result<Frame> {
        let deadline = Instant::now() + bound;
        loop {
            let frame = self
                .peer
                .take(what, deadline, |bytes| Ok(Frame::read(bytes)))?;
            if wanted(&frame) {
                return Ok(frame);
            }
        }
    }

    /// Awaits the GOAWAY that tells of a broken bound or rule, and the end; the reason.
    pub fn told_to_leave(&mut self, bound: Duration) -> Result<u32> {
        let told = self.await_frame("a GOAWAY", bound, |frame| frame.kind == kind::GOAWAY)?;
        let reason = told.reason().context("a GOAWAY without a reason")?;
        let (_, how) = self.peer.drained(bound)?;
        ensure!(how == Closing::Fin, "reset behind the GOAWAY");
        Ok(reason)
    }
}

/// An answer over HTTP/2.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A request that was sent and not answered yet.
#[derive(Debug)]
pub struct Asked {
    answer: ResponseFuture,
    /// What is left to send of its body.
    pub body: SendStream<Bytes>,
}

/// A client that keeps to the protocol.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    scheme: &'static str,
    send: SendRequest<Bytes>,
    connection: Connection,
}

type Connection = JoinHandle<Result<(), h2::Error>>;

/// The preface, and the settings of both sides.
async fn shake<T>(socket: T, window: u32) -> Result<(SendRequest<Bytes>, Connection)>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(window)
        .initial_connection_window_size(1 << 24);
    let (send, connection) = within(PATIENCE, "the handshake", builder.handshake(socket)).await??;
    Ok((send, tokio::spawn(connection)))
}

impl Client {
    /// Connects, with windows large enough that only a phase that asks for it meets them.
    pub fn connect(to: SocketAddr) -> Result<Self> {
        Self::with_window(to, 1 << 24)
    }

    /// The same with this window for each exchange.
    pub fn with_window(to: SocketAddr, window: u32) -> Result<Self> {
        Self::made(to, window, None)
    }

    /// The same over TLS, where both sides have to agree on HTTP/2.
    pub fn over_tls(to: SocketAddr, tls: &tls::Client) -> Result<Self> {
        Self::made(to, 1 << 24, Some(tls))
    }

    fn made(to: SocketAddr, window: u32, tls: Option<&tls::Client>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (send, connection) = runtime.block_on(async {
            let socket = within(PATIENCE, "connecting", TcpStream::connect(to)).await??;
            socket.set_nodelay(true)?;
            let Some(tls) = tls else {
                return shake(socket, window).await;
            };
            let socket = within(PATIENCE, "the handshake of TLS", tls.connect(socket)).await??;
            ensure!(
                socket.get_ref().1.alpn_protocol() == Some(&b"h2"[..]),
                "HTTP/2 was not agreed on"
            );
            shake(socket, window).await
        })?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        Ok(Self {
            runtime,
            scheme,
            send,
            connection,
        })
    }

    fn request(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Result<Request<()>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}://smokes{path}", self.scheme));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        Ok(request.body(())?)
    }

    /// Sends a request; `open` when its body is still to come.
    pub fn ask(
        &mut self,
        method: Method,
        path: &str,
        fields: &[(&str, &str)],
        open: bool,
    ) -> Result<Asked> {
        let request = self.request(method, path, fields)?;
        let send = self.send.clone();
        let (answer, body) = self.runtime.block_on(async {
            let mut send = within(PATIENCE, "room for a request", send.ready()).await??;
            anyhow::Ok(send.send_request(request, !open)?)
        })?;
        Ok(Asked { answer, body })
    }

    /// Sends a request with a body, or none, and awaits its answer.
    pub fn exchange(
        &mut self,
        method: Method,
        path: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply> {
        let mut asked = self.ask(method, path, fields, !body.is_empty())?;
        if !body.is_empty() {
            asked.body.send_data(Bytes::copy_from_slice(body), true)?;
        }
        self.answer(asked)
    }

    /// A GET and its answer.
    pub fn get(&mut self, path: &str) -> Result<Reply> {
        self.exchange(Method::GET, path, &[], b"")
    }

    /// Awaits an answer, whole.
    pub fn answer(&mut self, asked: Asked) -> Result<Reply> {
        let (mut reply, mut stream) = self.head(asked)?;
        self.runtime.block_on(async {
            while let Some(piece) = within(PATIENCE, "the body", stream.data()).await? {
                let piece = piece?;
                stream.flow_control().release_capacity(piece.len())?;
                reply.body.extend_from_slice(&piece);
            }
            anyhow::Ok(())
        })?;
        Ok(reply)
    }

    /// Awaits the head of an answer.
    pub fn head(&mut self, asked: Asked) -> Result<(Reply, RecvStream)> {
        let Asked { answer, .. } = asked;
        let response = self
            .runtime
            .block_on(within(PATIENCE, "an answer", answer))??;
        let (head, stream) = response.into_parts();
        let reply = Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: Vec::new(),
        };
        Ok((reply, stream))
    }

    /// The next piece of a body, taken off its window; nothing at its end.
    pub fn piece(&mut self, stream: &mut RecvStream, bound: Duration) -> Result<Option<Bytes>> {
        self.runtime.block_on(async {
            let Some(piece) = within(bound, "a piece of a body", stream.data()).await? else {
                return Ok(None);
            };
            let piece = piece?;
            stream.flow_control().release_capacity(piece.len())?;
            Ok(Some(piece))
        })
    }

    /// Awaits the end of the connection, which the host has announced.
    pub fn ended(&mut self, bound: Duration) -> Result<()> {
        let connection = &mut self.connection;
        let ended =
            self.runtime
                .block_on(within(bound, "the end of the connection", connection))??;
        ended.context("the connection ended in disorder")
    }

    /// Lets the connection work until `bound` has passed or it has ended.
    pub fn live(&mut self, bound: Duration) {
        let connection = &mut self.connection;
        let _ = self
            .runtime
            .block_on(async { timeout(bound, connection).await });
    }
}

async fn within<T>(bound: Duration, what: &str, work: impl Future<Output = T>) -> Result<T> {
    match timeout(bound, work).await {
        Ok(done) => Ok(done),
        Err(_) => bail!("{what} took longer than {} ms", bound.as_millis()),
    }
}
