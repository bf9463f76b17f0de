//! The body of a request, as an application reads it.
//!
//! Owns the type that applications name. Refuses to know framing: the engine delivers, the scanner has
//! already judged. Invariant: at most `M0_MAX_BODY_BYTES` pass, because the scanner refuses the rest, or where no
//! scanner stands (over HTTP/2) the body itself.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http_body::{Body, Frame, SizeHint};
use m0_unix::sockets::Peer;
use m0_wire::http2::Fault;
use tokio::time::{Sleep, sleep};

use crate::conn::Conn;
use crate::engine::EngineBody;

/// A request's body: a stream of [`Bytes`], at most `M0_MAX_BODY_BYTES` of them.
///
/// It also knows who sent it and how, since nothing else of a request does without a cost to every one of them. An axum
/// `Router` wraps the body, so a service around it looks first:
///
/// ```
/// use m0_host::{Peer, RequestBody};
///
/// fn tell_peer(request: &mut http::Request<RequestBody>) {
///     let peer: Peer = request.body().peer();
///     let scheme = request.body().scheme();
///     request.extensions_mut().insert(peer);
///     request.extensions_mut().insert(scheme);
/// }
/// ```
pub struct RequestBody {
    inner: EngineBody,
    peer: Peer,
    over_tls: bool,
    bounds: Option<Box<Bounds>>,
}

/// What a body that no scanner has seen may be.
struct Bounds {
    left: u64,
    /// Longest wait for the next piece.
    stall: Duration,
    /// A timer only while a piece is waited for.
    waits: Option<Pin<Box<Sleep>>>,
    stopped: Arc<Stopped>,
}

/// Why a body goes no further, for whoever answers in the application's place. The application may read the body
/// wherever it likes.
#[derive(Debug, Default)]
pub(crate) struct Stopped {
    status: AtomicU16,
}

impl Stopped {
    const TOO_LONG: Fault = Fault {
        status: 413,
        reason: "body is too long",
    };
    const STALLED: Fault = Fault {
        status: 408,
        reason: "body stalled",
    };

    /// The reason, once there is one.
    pub(crate) fn fault(&self) -> Option<Fault> {
        // The status says it all: nothing else is read with it.
        let status = self.status.load(Ordering::Relaxed);
        [Self::TOO_LONG, Self::STALLED]
            .into_iter()
            .find(|fault| fault.status == status)
    }

    fn because(&self, fault: Fault) -> BodyError {
        self.status.store(fault.status, Ordering::Relaxed);
        BodyError {
            message: fault.reason.to_owned(),
        }
    }
}

impl Bounds {
    /// Judges what the engine has: a piece that is one too many, or one that is waited for too long.
    fn judge(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<Option<Result<Frame<Bytes>, BodyError>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &polled {
            Poll::Pending => {
                let stall = self.stall;
                let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(stall)));
                if waits.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Some(Err(self.stopped.because(Stopped::STALLED))));
                }
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.waits = None;
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                let Some(left) = self.left.checked_sub(bytes) else {
                    return Poll::Ready(Some(Err(self.stopped.because(Stopped::TOO_LONG))));
                };
                self.left = left;
            }
            Poll::Ready(_) => self.waits = None,
        }
        polled
    }
}

impl RequestBody {
    pub(crate) fn new(inner: EngineBody, conn: &Conn) -> Self {
        RequestBody {
            inner,
            peer: conn.peer(),
            over_tls: conn.is_sealed(),
            bounds: None,
        }
    }

    /// A body that no scanner has seen: at most so many bytes, no piece of which takes longer than `stall`.
    pub(crate) fn bounded(self, most: u64, stall: Duration, stopped: Arc<Stopped>) -> Self {
        RequestBody {
            bounds: Some(Box::new(Bounds {
                left: most,
                stall,
                waits: None,
                stopped,
            })),
            ..self
        }
    }

    /// Who sent the request: the other end of the connection, or the client that a proxy told of, where the operator
    /// takes its word (`M0_PROXY_FROM`).
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// How the request came: `https` over TLS that this host ends (`M0_TLS_CERT`), else `http`, also where a proxy in
    /// front has ended it. A client's own word for it, in the request's target, is not asked.
    pub fn scheme(&self) -> Scheme {
        if self.over_tls {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        }
    }
}

/// The body ended before it was complete: the peer left, was too slow, or sent what is no body.
#[derive(Debug)]
pub struct BodyError {
    message: String,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request's body was cut short: {}", self.message)
    }
}

impl std::error::Error for BodyError {}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.inner)
            .poll_frame(cx)
            .map_err(|error| BodyError {
                message: error.to_string(),
            });
        match &mut self.bounds {
            None => polled,
            Some(bounds) => bounds.judge(cx, polled),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").finish_non_exhaustive()
    }
}
