//! The HTTP engine behind one seam: hyper drives a connection over the host's own I/O.
//!
//! The sole file that names hyper. Owns the translation between hyper's types and the host's. Refuses
//! to know deadlines, drains and streams: `driver` decides, `conn` holds the socket. Invariant: hyper
//! sees only bytes that the scanner passed, and it never sees the socket.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::Service;

use crate::answer::AnswerBody;
use crate::body::RequestBody;
use crate::conn::Conn;
use crate::settings::Settings;
use crate::turn::Turn;

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
    inner: Pin<Box<http1::Connection<Io, Adapter<S>>>>,
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
            .serve_connection(
                Io {
                    conn: Rc::clone(&conn),
                    turn: Turn::default(),
                },
                Adapter { handler, conn },
            );
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

/// The host's I/O in the engine's terms.
struct Io {
    conn: Rc<Conn>,
    turn: Turn,
}

impl Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buf.remaining();
        self.conn
            .poll_read(cx, room, &mut |bytes| buf.put_slice(bytes))
    }
}

impl Write for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = ready!(self.turn.poll_room(cx)).min(bytes.len());
        let sent = ready!(self.conn.poll_send(cx, &bytes[..room]))?;
        self.turn.sent(sent);
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.engine_shutdown();
        Poll::Ready(Ok(()))
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
        let peer = self.conn.peer();
        let request = request.map(|body| RequestBody::new(body, peer));
        Box::pin(self.handler.handle(request))
    }
}
