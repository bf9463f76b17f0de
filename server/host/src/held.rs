//! A held stream as a handler returns it: a response whose body the host writes.
//!
//! Owns the head of an event stream and what the request asked to replay. Refuses to know sockets.
//! Invariant: the body of such a response is never polled for bytes; the host takes the connection
//! over once the head is out.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response};

/// Name of the request field that asks for replay (WHATWG HTML, "Server-sent events").
const LAST_EVENT_ID: &str = "last-event-id";

/// Marks a response as held; found by the host among the response's extensions.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) last_event_id: Option<String>,
}

/// An event stream that carries every frame published on the host.
///
/// ```
/// use http::HeaderMap;
/// use m0_host::EventStream;
/// let response: http::Response<String> = EventStream::from_request(&HeaderMap::new()).into_response();
/// assert_eq!(response.headers()["content-type"], "text/event-stream");
/// ```
#[derive(Debug, Clone)]
pub struct EventStream {
    held: Held,
}

impl EventStream {
    /// A stream for this request: from now on, or after its `Last-Event-ID`.
    pub fn from_request(headers: &HeaderMap) -> Self {
        let last_event_id = headers
            .get(LAST_EVENT_ID)
            // Bytes that are not text are no id of ours: they ask for a reset, not for a fresh start.
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        EventStream {
            held: Held { last_event_id },
        }
    }

    /// The response to return from the handler; its body stays empty until the host takes over.
    pub fn into_response<B: Default>(self) -> Response<B> {
        let mut response = Response::new(B::default());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // nginx buffers a proxied response unless told otherwise.
        headers.insert(
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        );
        response.extensions_mut().insert(self.held);
        response
    }
}
