//! The coding of answers on their way out (RFC 9110 sections 8.4 and 12.5.3).
//!
//! Owns what is coded, and the fields that change with it; tower-http codes. Refuses to know the engine. Invariant: a
//! body whose length is not known beforehand, so every stream, passes as it is; and no body keeps the loop for longer
//! than a few pieces of it take to be coded.

use std::cell::Cell;
use std::fmt::Display;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, TRAILER, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Empty};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use super::at_once::at_once;
use super::coding::Coding;
use super::{BoxBody, BoxError, vary};

/// Bytes that are coded at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// Pieces after which others have their turn.
const PIECES: u32 = 4;

/// Digests of content, which a coding would belie (RFC 9530).
const DIGESTS: [&str; 4] = ["content-digest", "repr-digest", "digest", "content-md5"];

/// Codes answers by Brotli or gzip for peers that take it.
///
/// Coded are answers of status 200 whose length is known, at least [`least`](Self::least) bytes, whose type is text,
/// JSON, XML, JavaScript, SVG, WebAssembly or the like, which have no coding yet, and are not `no-transform`. Streams,
/// event streams and WebSockets pass as they are. What could be coded says `Vary: accept-encoding`, and a coded answer's
/// ETag is weak, for its bytes are others (RFC 9110 section 8.8.3.3).
///
/// ```
/// use m0_host::{AppConfig, Compression};
/// let config = AppConfig::from_env().compression(Compression::new().least(2_048));
/// # let _ = config;
/// ```
///
/// Do not code answers that hold a secret beside what a stranger chose: the length tells about the secret (BREACH).
#[derive(Debug, Clone)]
pub struct Compression {
    least: u64,
}

/// An answer, coded or as it was.
pub(crate) enum Coded<B> {
    As(Response<B>),
    Other(Response<BoxBody>),
}

impl Default for Compression {
    fn default() -> Self {
        Self::new()
    }
}

impl Compression {
    /// Codes answers of 1,024 bytes and more: a smaller one fits into a packet as it is.
    pub fn new() -> Self {
        Compression { least: 1_024 }
    }

    /// Leaves answers of fewer bytes as they are.
    #[must_use]
    pub fn least(mut self, bytes: u64) -> Self {
        self.least = bytes;
        self
    }

    pub(super) fn code<B>(
        &self,
        coding: Option<Coding>,
        head: bool,
        mut answer: Response<B>,
    ) -> Coded<B>
    where
        B: Body<Data = Bytes, Error: Display> + 'static,
    {
        if answer.status() == StatusCode::NOT_MODIFIED && answer.headers().contains_key(ETAG) {
            // As the answer that it stands for would (section 15.4.5).
            vary(answer.headers_mut(), "accept-encoding");
            return Coded::As(answer);
        }
        if !self.is_worth_it(head, &answer) {
            return Coded::As(answer);
        }
        vary(answer.headers_mut(), "accept-encoding");
        let Some(coding) = coding else {
            return Coded::As(answer);
        };
        weaken(answer.headers_mut());
        if head {
            return Coded::Other(head_of(coding, answer));
        }
        let layer = CompressionLayer::new()
            .quality(CompressionLevel::Default)
            .compress_when(|_: StatusCode, _, _: &HeaderMap, _: &http::Extensions| true);
        let mut request = Request::new(());
        let named = HeaderValue::from_static(coding.name());
        request.headers_mut().insert(ACCEPT_ENCODING, named);
        let said: Vec<_> = answer.headers().get_all(VARY).iter().cloned().collect();
        let given = Rc::new(Cell::new(0));
        let pieces = answer.map(|body| Pieces::new(body, Rc::clone(&given)));
        let mut coded = at_once(&layer, request, pieces)
            .expect("a coder waits for nothing but its inner service");
        // tower-http says it again beside a `*`.
        coded.headers_mut().remove(VARY);
        for value in said {
            coded.headers_mut().append(VARY, value);
        }
        Coded::Other(coded.map(|body| {
            Box::pin(InTurns {
                coder: Box::pin(body),
                given,
            }) as BoxBody
        }))
    }

    /// Whether the answer might be coded, whatever its peer takes.
    fn is_worth_it<B: Body>(&self, head: bool, answer: &Response<B>) -> bool {
        let headers = answer.headers();
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let length = answer.body().size_hint().exact();
        // The answer to HEAD may have no body; then its field says what GET would have had.
        let told = || text(&CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let length = if head { told().or(length) } else { length };
        answer.status() == StatusCode::OK
            && length.is_some_and(|length| length >= self.least)
            && ![CONTENT_ENCODING, CONTENT_RANGE, TRAILER]
                .iter()
                .any(|name| headers.contains_key(name))
            && !DIGESTS.iter().any(|name| headers.contains_key(*name))
            && !headers.get_all(CACHE_CONTROL).iter().any(is_no_transform)
            && text(&CONTENT_TYPE).is_some_and(is_compressible)
    }
}

/// What HEAD is told of an answer that GET would have coded: the same fields, and no length, for nobody knows it
/// (section 8.6).
fn head_of<B>(coding: Coding, mut answer: Response<B>) -> Response<BoxBody> {
    let headers = answer.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    let nothing = Empty::new().map_err(|never| -> BoxError { match never {} });
    answer.map(|_| Box::pin(nothing) as BoxBody)
}

/// Whether a line of Cache-Control forbids another form of the content (RFC 9111 section 5.2.2.6).
fn is_no_transform(rules: &HeaderValue) -> bool {
    let rules = rules.as_bytes().to_ascii_lowercase();
    rules
        .windows(b"no-transform".len())
        .any(|rule| rule == b"no-transform")
}

/// Whether content of this type shrinks.
fn is_compressible(kind: &str) -> bool {
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let application = |kind: &str| {
        [
            "json",
            "javascript",
            "xml",
            "wasm",
            "x-javascript",
            "manifest+json",
            "graphql",
            "yaml",
            "toml",
            "sql",
        ]
        .contains(&kind)
    };
    kind != "text/event-stream"
        && (kind.starts_with("text/")
            || kind.ends_with("+json")
            || kind.ends_with("+xml")
            || kind.strip_prefix("application/").is_some_and(application))
}

/// Whether a request asks for a change of an answer of a weak tag.
pub(super) fn knows_weak(asked: &HeaderMap) -> bool {
    let tags = asked.get_all(IF_NONE_MATCH).iter();
    tags.flat_map(|tags| tags.as_bytes().windows(3))
        .any(|start| start == b"W/\"")
}

/// Gives an answer that says of a coded one that it has not changed the tag of that one (section 15.4.5): by a strong
/// tag a cache would not find it (RFC 9111 section 4.3.4).
pub(super) fn keep_weak<B>(answer: &mut Response<B>) {
    if answer.status() == StatusCode::NOT_MODIFIED {
        weaken(answer.headers_mut());
    }
}

/// Makes the ETag of uncoded bytes one of the same content in other bytes.
fn weaken(headers: &mut HeaderMap) {
    if let Some(tag) = headers.get(ETAG)
        && !tag.as_bytes().starts_with(b"W/")
    {
        match HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
            Ok(weak) => headers.insert(ETAG, weak),
            Err(_) => headers.remove(ETAG),
        };
    }
}

/// A body in small pieces, which ends its turn after a few of them: a coder takes whatever it is given at once.
struct Pieces<B> {
    inner: Pin<Box<B>>,
    rest: Bytes,
    /// In this turn.
    given: Rc<Cell<u32>>,
}

impl<B> Pieces<B> {
    fn new(body: B, given: Rc<Cell<u32>>) -> Self {
        Pieces {
            inner: Box::pin(body),
            rest: Bytes::new(),
            given,
        }
    }
}

/// A coder that lets others go first once its turn has ended. It gives what it has before.
struct InTurns<B> {
    coder: Pin<Box<B>>,
    given: Rc<Cell<u32>>,
}

impl<B: Body<Data = Bytes>> Body for InTurns<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.given.get() == PIECES {
            self.given.set(0);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.coder.as_mut().poll_frame(cx)
    }
}

impl<B: Body<Data = Bytes, Error: Display>> Body for Pieces<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.given.get() == PIECES {
            // What was coded so far goes out; a coder that has nothing is asked again.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.rest.is_empty() {
            match self.inner.as_mut().poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(error.to_string().into())));
                }
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
            }
        }
        let bytes = self.rest.len().min(PIECE_BYTES);
        self.given.set(self.given.get() + 1);
        let piece = self.rest.split_to(bytes);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

#[cfg(test)]
mod tests;
