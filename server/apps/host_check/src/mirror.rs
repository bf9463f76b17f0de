//! Routes that show what an application was given, and that answer in every framing.
//!
//! Owns the text that the table of raw requests compares. Refuses to judge a request: whatever arrives
//! is told back. Invariant: two requests that differ for an application have two different texts.

use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request};
use axum::http::uri::Scheme;
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use http_body::Frame;
use m0_host::{HostContext, Peer};
use serde::Deserialize;

/// The routes, for the router of the check.
pub(crate) fn routes() -> axum::Router<HostContext> {
    axum::Router::new()
        .route("/seen", any(seen))
        .route("/seen/{*rest}", any(seen))
        .route("/decode/{text}", get(decode))
        .route("/status/{code}", any(status))
        .route("/header", get(header))
        .route("/peer", get(peer))
        .route("/scheme", get(scheme))
        .route("/parts", any(parts))
}

/// Method, target and version, then each field, an empty line and the body, all as they were read.
async fn seen(request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut text = format!("{} {} {:?}\n", head.method, head.uri, head.version);
    for (name, value) in &head.headers {
        let value = value.as_bytes().escape_ascii();
        // A String takes every write.
        let _ = writeln!(text, "{name}: {value}");
    }
    text.push('\n');
    match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => {
            let _ = write!(text, "{}", bytes.escape_ascii());
            text.into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// Who asks, as the host tells it.
async fn peer(Extension(peer): Extension<Peer>) -> String {
    peer.to_string()
}

/// How they ask, as the host tells it.
async fn scheme(Extension(scheme): Extension<Scheme>) -> String {
    scheme.to_string()
}

/// The decoded piece of the path.
async fn decode(Path(text): Path<String>) -> String {
    text.escape_default().to_string()
}

/// An answer of any final status, without a body.
async fn status(Path(code): Path<u16>) -> Response<Body> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
    code.into_response()
}

#[derive(Deserialize)]
struct Value {
    value: String,
}

/// An answer with a field whose value the peer chose: what a careless handler does.
async fn header(Query(Value { value }): Query<Value>) -> Response<Body> {
    match HeaderValue::from_str(&value) {
        Ok(value) => ([("x-chosen", value)], "set\n").into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

#[derive(Deserialize)]
struct Asked {
    count: usize,
    bytes: Option<usize>,
    then: Option<Ending>,
}

/// How an answer in parts goes on behind its last part.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ending {
    End,
    Fail,
    Panic,
    Hang,
}

/// An answer in parts, of a length that nobody knows beforehand.
async fn parts(Query(asked): Query<Asked>) -> Response<Body> {
    Response::new(Body::new(Parts {
        left: asked.count,
        part: Bytes::from(vec![b'p'; asked.bytes.unwrap_or(5)]),
        then: asked.then.unwrap_or(Ending::End),
        paused: false,
    }))
}

struct Parts {
    left: usize,
    part: Bytes,
    then: Ending,
    /// Each part but the first waits for the loop to come round, so that parts leave one by one.
    paused: bool,
}

/// What a body of [`Ending::Fail`] says.
#[derive(Debug)]
struct Failed;

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("host_check was asked to fail midway")
    }
}

impl std::error::Error for Failed {}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = Failed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failed>>> {
        if std::mem::replace(&mut self.paused, true) {
            self.paused = false;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.left > 0 {
            self.left -= 1;
            return Poll::Ready(Some(Ok(Frame::data(self.part.clone()))));
        }
        match self.then {
            Ending::End => Poll::Ready(None),
            Ending::Fail => Poll::Ready(Some(Err(Failed))),
            Ending::Panic => panic!("host_check was asked to panic midway"),
            // Nobody wakes it: only a deadline or the drain ends this answer.
            Ending::Hang => Poll::Pending,
        }
    }
}
