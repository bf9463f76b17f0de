//! The HTTP engine behind one seam: hyper drives a connection over the host's own I/O.
//!
//! The sole file that names hyper. Owns the translation between hyper's types and the host's. Refuses
//! to know deadlines, drains and streams: `driver` decides, `conn` holds the socket. Invariant: hyper
//! sees only bytes that the scanner passed, or the ledger of HTTP/2, and it never sees the socket.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Executor, Read, ReadBufCursor, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use tokio::task::spawn_local;

use crate::answer::AnswerBody;
use crate::body::RequestBody;
use crate::conn::Conn;
use crate::exchange::{Beside, Exchange, Pieces};
use crate::settings::Settings;
use crate::turn::Turn;

/// Streams that a peer may begin and reset before the host has looked at them; one more ends the connection
/// (CVE-2023-44487). A client that gives requests up does so once it has waited for a while.
const RESETS_UNSEEN: usize = 20;

/// Streams of a connection that the host may have reset because of what the peer sent; one more ends it
/// (RUSTSEC-2024-0003).
const RESETS_OURS: usize = 128;

/// Bytes of one request's body, and of all on one connection, that wait for the application.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Bytes of one answer that the engine takes before the peer does.
const SEND_BYTES: usize = 64 * 1024;

/// The request body as the engine delivers it.
pub(crate) type EngineBody = hyper::body::Incoming;

/// How the engine ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineEnd {
    /// Everything that was asked is answered, or the peer has left in between.
    Clean,
    /// The peer left in the middle, or the answer's body failed.
    Broken,
}

/// One connection inside the engine.
pub(crate) struct Engine<S: Handle> {
    inner: Pin<Box<http1::Connection<Io<OneByOne>, Adapter<S>>>>,
}

/// What the engine takes as an answer. It is the engine's own form, because a future around a future moves and
/// holds everything twice.
pub(crate) type Answer<B> = Result<http::Response<AnswerBody<B>>, Infallible>;

/// What answers a request. Implemented by the driver's side of the host.
pub(crate) trait Handle: Clone + 'static {
    type Body: http_body::Body<Data = bytes::Bytes, Error: std::fmt::Display> + 'static;
    fn handle(
        &self,
        request: http::Request<RequestBody>,
        exchange: Exchange,
    ) -> impl Future<Output = Answer<Self::Body>> + 'static;
}

impl<S: Handle> Engine<S> {
    pub(crate) fn new(conn: Rc<Conn>, handler: S, settings: &Settings) -> Self {
        let inner = http1::Builder::new()
            // A peer that has said all it wants to say is still answered.
            .half_close(true)
            // One copy of a small answer is cheaper than a vectored write.
            .writev(false)
            // The scanner holds heads to the operator's limits; the engine must not be stricter.
            .max_headers(settings.max_headers)
            .max_buf_size(settings.max_head_bytes.max(64 * 1024))
            // Deadlines are kept by one sweep over all connections.
            .header_read_timeout(None)
            .serve_connection(Io::new(Rc::clone(&conn)), Adapter { handler, conn });
        Engine {
            inner: Box::pin(inner),
        }
    }

    /// Lets the engine work; ready when it has nothing left to do.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<EngineEnd> {
        self.inner.as_mut().poll(cx).map(|ended| {
            if ended.is_ok() {
                EngineEnd::Clean
            } else {
                EngineEnd::Broken
            }
        })
    }

    /// No further request after the one in hand.
    pub(crate) fn last_request(&mut self) {
        self.inner.as_mut().graceful_shutdown();
    }
}

/// One connection of HTTP/2 inside the engine. Each of its exchanges is a task of its own, so that one that waits
/// holds up no other.
pub(crate) struct Http2Engine<S: Handle> {
    inner: Pin<Box<Beneath<S>>>,
}

/// What the engine is beneath.
type Beneath<S> = http2::Connection<Io<Together>, Http2Adapter<S>, Tasks>;

impl<S: Handle> Http2Engine<S> {
    pub(crate) fn new(conn: Rc<Conn>, handler: S, settings: &Settings) -> Self {
        let tasks = Tasks::default();
        let adapter = Http2Adapter {
            handler,
            conn: Rc::clone(&conn),
            tasks: tasks.clone(),
            most_body: settings.max_body_bytes,
            stall: settings.body_timeout,
        };
        let inner = http2::Builder::new(tasks)
            .max_concurrent_streams(settings.http2_max_streams)
            // Also bounds the frames over which a head may be spread (CONTINUATION).
            .max_header_list_size(settings.max_head_bytes as u32)
            .max_pending_accept_reset_streams(RESETS_UNSEEN)
            .max_local_error_reset_streams(RESETS_OURS)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BYTES)
            .serve_connection(Io::new(conn), adapter);
        Http2Engine {
            inner: Box::pin(inner),
        }
    }

    /// Lets the engine work; ready when it has nothing left to do, with what the peer has broken where it has.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Option<String>>> {
        self.inner.as_mut().poll(cx).map_err(|error| fault(&error))
    }

    /// Tells the peer that no further request is taken (GOAWAY).
    pub(crate) fn last_request(&mut self) {
        self.inner.as_mut().graceful_shutdown();
    }
}

/// What the peer has broken, where it is the peer's doing and not the end of its connection.
fn fault(error: &hyper::Error) -> Option<String> {
    let cause = std::error::Error::source(error)?.downcast_ref::<h2::Error>()?;
    cause.is_library().then(|| cause.to_string())
}

/// Where the exchanges of a connection run.
#[derive(Clone, Default)]
struct Tasks {
    /// The exchange that was begun last and has no task yet.
    begun: Rc<Cell<Option<Rc<Beside>>>>,
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Tasks {
    fn execute(&self, work: F) {
        let exchange = self.begun.take();
        spawn_local(async move {
            let mut work = pin!(work);
            // Dropped where it was cut: the engine resets what is left of the exchange.
            poll_fn(|cx| match &exchange {
                Some(exchange) if exchange.poll_cut(cx).is_ready() => Poll::Ready(()),
                _ => work.as_mut().poll(cx),
            })
            .await;
        });
    }
}

/// The host's handler for exchanges beside each other.
struct Http2Adapter<S> {
    handler: S,
    conn: Rc<Conn>,
    tasks: Tasks,
    most_body: u64,
    stall: Duration,
}

impl<S: Handle> Service<hyper::Request<EngineBody>> for Http2Adapter<S> {
    type Response = hyper::Response<Pieces<AnswerBody<S::Body>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: hyper::Request<EngineBody>) -> Self::Future {
        let exchange = Beside::new(Rc::clone(&self.conn));
        let stopped = Arc::clone(exchange.stopped());
        let request = request.map(|body| {
            RequestBody::new(body, &self.conn).bounded(self.most_body, self.stall, stopped)
        });
        self.tasks.begun.set(Some(Rc::clone(&exchange)));
        let answer = self
            .handler
            .handle(request, Exchange::Beside(Rc::clone(&exchange)));
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| Pieces::new(body, exchange)))
        })
    }
}

/// How the two engines meet their connection: what differs between them.
trait Way: 'static {
    fn poll_read(
        conn: &Conn,
        cx: &mut Context<'_>,
        room: usize,
        give: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>>;
    fn poll_send(conn: &Conn, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
    fn flushed(conn: &Conn);
    fn poll_shutdown(conn: &Conn, cx: &mut Context<'_>) -> Poll<()>;
}

/// One exchange behind the other.
struct OneByOne;

impl Way for OneByOne {
    fn poll_read(
        conn: &Conn,
        cx: &mut Context<'_>,
        room: usize,
        give: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        conn.poll_read(cx, room, give)
    }

    fn poll_send(conn: &Conn, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        conn.poll_send(cx, bytes)
    }

    fn flushed(conn: &Conn) {
        conn.flushed();
    }

    fn poll_shutdown(conn: &Conn, cx: &mut Context<'_>) -> Poll<()> {
        conn.poll_engine_shutdown(cx)
    }
}

/// Exchanges beside each other.
struct Together;

impl Way for Together {
    fn poll_read(
        conn: &Conn,
        cx: &mut Context<'_>,
        room: usize,
        give: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        conn.poll_read_http2(cx, room, give)
    }

    fn poll_send(conn: &Conn, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        conn.poll_send_http2(cx, bytes)
    }

    fn flushed(conn: &Conn) {
        conn.flushed_http2();
    }

    fn poll_shutdown(conn: &Conn, cx: &mut Context<'_>) -> Poll<()> {
        conn.poll_shutdown(cx)
    }
}

/// The host's I/O in the engine's terms.
struct Io<W> {
    conn: Rc<Conn>,
    turn: Turn,
    way: PhantomData<fn() -> W>,
}

impl<W: Way> Io<W> {
    fn new(conn: Rc<Conn>) -> Self {
        Io {
            conn,
            turn: Turn::default(),
            way: PhantomData,
        }
    }
}

impl<W: Way> Read for Io<W> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buf.remaining();
        W::poll_read(&self.conn, cx, room, &mut |bytes| buf.put_slice(bytes))
    }
}

impl<W: Way> Write for Io<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = ready!(self.turn.poll_room(cx)).min(bytes.len());
        let sent = ready!(W::poll_send(&self.conn, cx, &bytes[..room]))?;
        self.turn.sent(sent);
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.conn.poll_flush(cx))?;
        W::flushed(&self.conn);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        W::poll_shutdown(&self.conn, cx).map(Ok)
    }
}

/// The host's handler in the engine's terms.
struct Adapter<S> {
    handler: S,
    conn: Rc<Conn>,
}

impl<S: Handle> Service<hyper::Request<EngineBody>> for Adapter<S> {
    type Response = hyper::Response<AnswerBody<S::Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: hyper::Request<EngineBody>) -> Self::Future {
        let request = request.map(|body| RequestBody::new(body, &self.conn));
        let exchange = Exchange::Alone(Rc::clone(&self.conn));
        Box::pin(self.handler.handle(request, exchange))
    }
}
