//! The middleware that a smoke can ask for, and the routes that show what it does.
//!
//! Owns the knobs that hold text. Refuses to know what a layer does: the host does it. Invariant: without knobs there
//! is no layer, and the routes are ordinary ones.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use m0_host::{AppConfig, Compression, Cors, Files, Guard, HostContext};
use serde::Deserialize;

/// Names of the knobs.
pub(crate) const NAMES: [&str; 5] = [
    "M0_HOSTCHECK_FILES",
    "M0_HOSTCHECK_COMPRESSION",
    "M0_HOSTCHECK_CORS",
    "M0_HOSTCHECK_CORS_CREDENTIALS",
    "M0_HOSTCHECK_GUARD",
];

fn text(name: &str) -> Option<String> {
    // A text that is not UTF-8 is refused by the host, as that of any of its variables.
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The configuration with the layers that the knobs ask for.
pub(crate) fn config() -> AppConfig {
    let mut config = AppConfig::from_env();
    if let Some(root) = text("M0_HOSTCHECK_FILES") {
        let files = Files::at("/files", root).cached_for(Duration::from_mins(1));
        config = config.files(files);
    }
    if text("M0_HOSTCHECK_COMPRESSION").is_some() {
        config = config.compression(Compression::new());
    }
    if let Some(origins) = text("M0_HOSTCHECK_CORS") {
        let cors = Cors::of(origins.split(','))
            .methods(["GET", "POST", "DELETE"])
            .headers(["content-type"])
            .exposed(["x-worker"]);
        let cors = match text("M0_HOSTCHECK_CORS_CREDENTIALS") {
            Some(_) => cors.credentials(),
            None => cors,
        };
        config = config.cors(cors);
    }
    if text("M0_HOSTCHECK_GUARD").is_some() {
        let basic = Guard::basic("host_check", |user, password| {
            assert!(user != "panic", "host_check was asked to panic");
            user == "ada" && password.is("correct horse")
        });
        let bearer = Guard::bearer("host_check", |token| token.is("t0ken"));
        config = config
            .guard(basic.below("/guarded/basic"))
            .guard(bearer.below("/guarded/token"));
    }
    config
}

/// Routes of answers that layers look at.
pub(crate) fn routes() -> Router<HostContext> {
    Router::new()
        .route("/id", get(id))
        .route("/text", get(long_text))
        .route("/drip", get(drip))
        .route("/guarded/{*rest}", get(|| async { "let in\n" }))
}

/// The id that the host gave the request.
async fn id(headers: HeaderMap) -> Response<Body> {
    match headers.get("x-request-id") {
        Some(id) => id.as_bytes().to_vec().into_response(),
        None => (StatusCode::NOT_FOUND, "no id\n").into_response(),
    }
}

#[derive(Deserialize)]
struct Size {
    bytes: usize,
}

/// Text of so many bytes that packs well, with a tag.
async fn long_text(Query(Size { bytes }): Query<Size>) -> Response<Body> {
    let line = "all work and no play makes a dull text\n";
    let mut text = line.repeat(bytes / line.len() + 1);
    text.truncate(bytes);
    ([("etag", "\"dull\"")], text).into_response()
}

#[derive(Deserialize)]
struct Drops {
    count: u32,
    ms: u64,
}

/// A text in pieces of a kilobyte, with a pause behind each.
async fn drip(Query(Drops { count, ms }): Query<Drops>) -> Response<Body> {
    let body = Drip {
        left: count,
        pause: Duration::from_millis(ms),
        waits: Box::pin(tokio::time::sleep(Duration::ZERO)),
    };
    ([("content-type", "text/plain")], Body::new(body)).into_response()
}

struct Drip {
    left: u32,
    pause: Duration,
    waits: std::pin::Pin<Box<tokio::time::Sleep>>,
}

impl http_body::Body for Drip {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        std::task::ready!(self.waits.as_mut().poll(cx));
        if self.left == 0 {
            return std::task::Poll::Ready(None);
        }
        self.left -= 1;
        let pause = self.pause;
        self.waits.set(tokio::time::sleep(pause));
        let piece = Bytes::from(vec![b'd'; 1_024]);
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(piece))))
    }
}
