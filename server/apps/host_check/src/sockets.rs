//! The WebSockets of the check.
//!
//! Owns what each session does; some are rude on purpose (they dawdle, flood or panic). Invariant: an echo is
//! the message that came, text as text and bytes as bytes.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::Response;
use axum::routing::any;
use m0_host::{HostContext, Message, WebSocket};
use serde::Deserialize;

#[derive(Deserialize)]
struct Ms {
    ms: u64,
}

#[derive(Deserialize)]
struct Last {
    last: Option<String>,
}

#[derive(Deserialize)]
struct Size {
    bytes: usize,
}

#[derive(Deserialize)]
struct Code {
    code: u16,
}

/// The routes below `/ws`.
pub(crate) fn router() -> Router<HostContext> {
    // A method that is not GET is the host's to refuse: that is part of the handshake.
    Router::new()
        .route("/ws", any(echo))
        .route("/ws/events", any(events))
        .route("/ws/slow", any(slow))
        .route("/ws/flood", any(flood))
        .route("/ws/close", any(close))
        .route("/ws/panic", any(panics))
}

async fn echo(State(context): State<HostContext>, request: Request) -> Response<Body> {
    context
        .websocket(&request)
        .on(|socket| each(socket, Duration::ZERO))
}

/// Every published frame; a browser cannot set a field of the handshake, so the last id is in the query.
async fn events(
    State(context): State<HostContext>,
    Query(Last { last }): Query<Last>,
    request: Request,
) -> Response<Body> {
    let frames = context.frames(last.as_deref());
    context.websocket(&request).frames(frames)
}

/// Takes its time with each message.
async fn slow(
    State(context): State<HostContext>,
    Query(Ms { ms }): Query<Ms>,
    request: Request,
) -> Response<Body> {
    context
        .websocket(&request)
        .on(move |socket| each(socket, Duration::from_millis(ms)))
}

async fn each(socket: WebSocket, pause: Duration) {
    while let Some(message) = socket.recv().await {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        if socket.send(message).await.is_err() {
            break;
        }
    }
}

/// Sends messages of this size, each with its number in front, as fast as the peer takes them.
async fn flood(
    State(context): State<HostContext>,
    Query(Size { bytes }): Query<Size>,
    request: Request,
) -> Response<Body> {
    context.websocket(&request).on(move |socket| async move {
        let mut number = 0_u64;
        loop {
            let text = format!("{number:0>bytes$}");
            if socket.send(Message::Text(text)).await.is_err() {
                break;
            }
            number += 1;
            // A task that never waits would be the only one of its loop.
            tokio::task::yield_now().await;
        }
    })
}

/// Says three words and closes with this code.
async fn close(
    State(context): State<HostContext>,
    Query(Code { code }): Query<Code>,
    request: Request,
) -> Response<Body> {
    context.websocket(&request).on(move |socket| async move {
        for word in ["one", "two", "three"] {
            if socket.send(Message::Text(word.to_owned())).await.is_err() {
                return;
            }
        }
        socket.close(code, "as asked");
        // The session may outlast its last word.
        std::future::pending::<()>().await;
    })
}

/// Panics at the first message.
async fn panics(State(context): State<HostContext>, request: Request) -> Response<Body> {
    context.websocket(&request).on(|socket| async move {
        socket.recv().await;
        panic!("host_check was asked to panic")
    })
}
