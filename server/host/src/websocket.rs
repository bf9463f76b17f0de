//! How an application answers a request with a WebSocket.
//!
//! Owns the answer to the handshake and the mark by which the host finds it. Refuses to know frames
//! (`m0_wire::ws`) and sockets. Invariant: only a request that `m0_wire` took for a right handshake gets
//! 101, and it offers no extension.

mod channel;
mod hub;
mod session;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{Request, Response, StatusCode, Version};
use m0_wire::ws::handshake::{Head, Origins, Refused, VERSION, judge};

use crate::frames::Frames;

pub use channel::{Closed, Message, WebSocket};
pub(crate) use session::{End, run};

/// What an application does with its WebSocket, on the worker's loop.
pub(crate) type Talk = Pin<Box<dyn Future<Output = ()>>>;

/// Begins to talk; called once, when the answer's head is out.
pub(crate) type Begin = Box<dyn FnOnce(WebSocket) -> Talk + Send>;

/// Marks a response as a WebSocket; found by the host among the response's extensions.
#[derive(Clone)]
pub(crate) struct Upgraded {
    begin: Arc<Mutex<Option<Begin>>>,
}

impl Upgraded {
    /// What to do with the WebSocket; none when a middleware has answered twice with one response.
    pub(crate) fn take(&self) -> Option<Begin> {
        // A panic while it was held took nothing out.
        self.begin
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// A request for a WebSocket, judged: the answer is 101, or what RFC 6455 asks for instead.
///
/// ```
/// use m0_host::{HostContext, WebSocketUpgrade};
///
/// async fn echo(context: HostContext, request: http::Request<String>) -> http::Response<String> {
///     context.websocket(&request).on(|socket| async move {
///         while let Some(message) = socket.recv().await {
///             if socket.send(message).await.is_err() {
///                 break;
///             }
///         }
///     })
/// }
/// ```
#[derive(Debug)]
pub struct WebSocketUpgrade {
    judged: Result<String, Refused>,
}

impl WebSocketUpgrade {
    pub(crate) fn judge<B>(request: &Request<B>, origins: &Origins) -> Self {
        let fields: Vec<(&str, &[u8])> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let head = Head {
            method: request.method().as_str(),
            http11: request.version() == Version::HTTP_11,
            fields: &fields,
        };
        WebSocketUpgrade {
            judged: judge(&head, origins),
        }
    }

    /// The response to return from the handler. After a 101 `session` talks over the WebSocket; it runs on the
    /// worker's loop, so it must not block, and is dropped where it waits once the connection has ended.
    /// When it returns, the WebSocket is closed with 1000.
    pub fn on<B, F, T>(self, session: F) -> Response<B>
    where
        B: From<String>,
        F: FnOnce(WebSocket) -> T + Send + 'static,
        T: Future<Output = ()> + 'static,
    {
        let begin: Begin = Box::new(|socket| Box::pin(session(socket)));
        self.answer(Upgraded {
            begin: Arc::new(Mutex::new(Some(begin))),
        })
    }

    /// The response that carries every published frame, each as a message of text that holds the event as an
    /// [`EventStream`](crate::EventStream) would. A peer that is so slow that the log overtakes it is closed
    /// with 1008.
    pub fn frames<B: From<String>>(self, frames: Frames) -> Response<B> {
        self.on(|socket| hub::run(socket, frames))
    }

    fn answer<B: From<String>>(self, upgraded: Upgraded) -> Response<B> {
        let accept = match self.judged {
            Ok(accept) => accept,
            Err(refused) => return refusal(refused),
        };
        let mut response = Response::new(B::from(String::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        let accept = HeaderValue::try_from(accept).expect("base64 is visible ASCII");
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        response.extensions_mut().insert(upgraded);
        response
    }
}

fn refusal<B: From<String>>(refused: Refused) -> Response<B> {
    let mut response = Response::new(B::from(format!("{}\n", refused.why)));
    *response.status_mut() =
        StatusCode::from_u16(refused.status).expect("wire refuses with statuses that exist");
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    match refused.status {
        426 => {
            // RFC 9110 sections 7.8 and 15.5.22, RFC 6455 section 4.4.
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        }
        405 => {
            headers.insert(ALLOW, HeaderValue::from_static("GET"));
        }
        _ => {}
    }
    response
}
