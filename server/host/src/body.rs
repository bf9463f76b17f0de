//! The body of a request, as an application reads it.
//!
//! Owns the type that applications name. Refuses to know framing: the engine delivers, the scanner has
//! already judged. Invariant: at most `M0_MAX_BODY_BYTES` pass, because the scanner refuses the rest.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use m0_unix::sockets::Peer;

use crate::engine::EngineBody;

/// A request's body: a stream of [`Bytes`], at most `M0_MAX_BODY_BYTES` of them.
///
/// It also knows who sent it, since nothing else of a request does without a cost to every one of them. An axum
/// `Router` wraps the body, so a service around it looks first:
///
/// ```
/// use m0_host::{Peer, RequestBody};
///
/// fn tell_peer(request: &mut http::Request<RequestBody>) {
///     let peer: Peer = request.body().peer();
///     request.extensions_mut().insert(peer);
/// }
/// ```
pub struct RequestBody {
    inner: EngineBody,
    peer: Peer,
}

impl RequestBody {
    pub(crate) fn new(inner: EngineBody, peer: Peer) -> Self {
        RequestBody { inner, peer }
    }

    /// Who sent the request: the other end of the connection, or the client that a proxy told of, where the operator
    /// takes its word (`M0_PROXY_FROM`).
    pub fn peer(&self) -> Peer {
        self.peer
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
        Pin::new(&mut self.inner)
            .poll_frame(cx)
            .map_err(|error| BodyError {
                message: error.to_string(),
            })
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
