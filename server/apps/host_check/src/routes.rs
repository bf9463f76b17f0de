//! The routes of the check.
//!
//! Owns what each path does; several are rude on purpose (they block, panic or answer without end).
//! Invariant: every answer names its worker in `x-worker`.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use m0_host::HostContext;
use serde::Deserialize;

use crate::sockets;
use crate::stats::stats;

/// The name of the header that tells which worker answered.
const WORKER: HeaderName = HeaderName::from_static("x-worker");

/// A piece of a large answer.
const PIECE_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
struct Ms {
    ms: u64,
}

#[derive(Deserialize)]
struct Size {
    bytes: usize,
}

/// All routes.
pub(crate) fn router(context: HostContext) -> Router {
    Router::new()
        .route("/", get(|| async { "m0 host_check\n" }))
        .route("/events", get(events))
        .route(
            "/stats",
            get(|State(context): State<HostContext>| async move { axum::Json(stats(&context)) }),
        )
        .route("/pid", get(|| async { std::process::id().to_string() }))
        .route("/echo", post(|body: Bytes| async { body }))
        .route("/upload", post(upload))
        .route("/publish", post(publish))
        .route("/sleep", get(sleep))
        .route("/block", get(block))
        .route("/panic", get(panics))
        .route("/big", get(big))
        .merge(sockets::router())
        .merge(crate::mirror::routes())
        .merge(crate::layers::routes())
        .layer(axum::extract::DefaultBodyLimit::disable())
        .layer(from_fn_with_state(context.clone(), name_worker))
        .with_state(context)
}

async fn name_worker(
    State(context): State<HostContext>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let mut response = next.run(request).await;
    response
        .headers_mut()
        .insert(WORKER, HeaderValue::from(context.slot()));
    response
}

async fn events(State(context): State<HostContext>, headers: HeaderMap) -> Response<Body> {
    context.events(&headers).into_response()
}

async fn upload(request: Request) -> Response<Body> {
    let mut body = request.into_body();
    let mut bytes = 0_usize;
    loop {
        let frame = std::future::poll_fn(|cx| {
            http_body::Body::poll_frame(std::pin::Pin::new(&mut body), cx)
        })
        .await;
        match frame {
            None => return bytes.to_string().into_response(),
            Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(error)) => {
                return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
            }
        }
    }
}

async fn publish(State(context): State<HostContext>, text: String) -> Response<Body> {
    match context.publisher().publish(|frame| {
        frame.event("note").data(&text);
    }) {
        Ok(published) => published.id.to_string().into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

async fn sleep(Query(Ms { ms }): Query<Ms>) -> &'static str {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    "slept\n"
}

async fn block(Query(Ms { ms }): Query<Ms>) -> &'static str {
    // Blocks the worker's only loop: what a careless handler does.
    std::thread::sleep(Duration::from_millis(ms));
    "blocked\n"
}

async fn panics() -> &'static str {
    panic!("host_check was asked to panic")
}

async fn big(Query(Size { bytes }): Query<Size>) -> Response<Body> {
    Response::new(Body::new(Big {
        left: bytes,
        piece: Bytes::from(vec![b'x'; PIECE_BYTES]),
    }))
}

/// A large body that is made as it is sent, so that a slow reader costs no memory here.
struct Big {
    left: usize,
    piece: Bytes,
}

impl http_body::Body for Big {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let bytes = self.left.min(PIECE_BYTES);
        self.left -= bytes;
        let piece = (bytes > 0).then(|| Ok(http_body::Frame::data(self.piece.slice(..bytes))));
        std::task::Poll::Ready(piece)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.left as u64)
    }
}
