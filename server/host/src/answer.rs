//! The body of an answer on its way out: the application's, a text of the host's, a held stream, or a WebSocket.
//!
//! Owns what happens when a body ends, fails, panics or is given up: it is counted and logged once.
//! Refuses to know the socket. Invariant: a body that did not end by itself is never seen as whole:
//! its error reaches the engine, which cuts the connection.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::access::Entry;
use crate::conn::Conn;
use crate::exchange::Exchange;
use crate::feed::Feed;
use crate::middleware::BoxBody;

/// Why a body was cut.
#[derive(Debug)]
pub(crate) struct CutBody;

impl Display for CutBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer's body failed")
    }
}

impl std::error::Error for CutBody {}

pin_project! {
    /// What the bytes come from.
    #[project = SourceProjection]
    enum Source<B> {
        App { #[pin] body: B },
        // Of a layer around the application: a file, or a coded body.
        Layer { body: BoxBody },
        Text { text: Option<Bytes> },
        Held,
        // A held stream beside other exchanges.
        Feed { feed: Feed },
        // Nothing: the connection becomes a WebSocket.
        Upgraded,
    }
}

pin_project! {
    /// The body that the engine sends.
    pub(crate) struct AnswerBody<B> {
        #[pin]
        source: Source<B>,
        exchange: Exchange,
        // Becomes a line of the access log when it is dropped; none when the log is off.
        entry: Option<Entry>,
    }

    impl<B> PinnedDrop for AnswerBody<B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let conn = this.exchange.conn();
            match this.source.project() {
                // The engine has the head, and never asks for a body behind a 101.
                SourceProjection::Upgraded => conn.arm_takeover(),
                // A held stream that was never asked for a byte (the answer to HEAD) ends like any other.
                SourceProjection::Held if !conn.release_held() => {}
                SourceProjection::Feed { feed } => {
                    if this.exchange.was_cut() {
                        feed.count_cut();
                    }
                    this.exchange.response_ends(this.entry.take());
                }
                _ => this.exchange.response_ends(this.entry.take()),
            }
        }
    }
}

impl<B> AnswerBody<B> {
    pub(crate) fn app(body: B, exchange: Exchange, entry: Option<Entry>) -> Self {
        AnswerBody {
            source: Source::App { body },
            exchange,
            entry,
        }
    }

    pub(crate) fn layer(body: BoxBody, exchange: Exchange, entry: Option<Entry>) -> Self {
        AnswerBody {
            source: Source::Layer { body },
            exchange,
            entry,
        }
    }

    pub(crate) fn text(text: Bytes, exchange: Exchange, entry: Option<Entry>) -> Self {
        let text = Some(text).filter(|text| !text.is_empty());
        AnswerBody {
            source: Source::Text { text },
            exchange,
            entry,
        }
    }

    /// The body of a held stream: the connection keeps its entry, for the stream outlives this body.
    pub(crate) fn held(exchange: Exchange) -> Self {
        AnswerBody {
            source: Source::Held,
            exchange,
            entry: None,
        }
    }

    /// The body of a held stream beside other exchanges.
    pub(crate) fn feed(feed: Feed, exchange: Exchange, entry: Option<Entry>) -> Self {
        AnswerBody {
            source: Source::Feed { feed },
            exchange,
            entry,
        }
    }

    /// Gives the body up: the answer has none, whatever there would be to say.
    fn silence(&mut self) {
        self.source = Source::Text { text: None };
    }

    /// The body of a 101, which has none: the connection keeps its entry.
    pub(crate) fn upgraded(exchange: Exchange) -> Self {
        AnswerBody {
            source: Source::Upgraded,
            exchange,
            entry: None,
        }
    }
}

/// The next frame of a body; one that fails or panics is told of or counted here.
fn polled<B: Body<Data = Bytes, Error: Display> + ?Sized>(
    mut body: Pin<&mut B>,
    cx: &mut Context<'_>,
    conn: &Conn,
) -> Poll<Option<Result<Frame<Bytes>, CutBody>>> {
    match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll_frame(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(Some(Ok(frame)))) => Poll::Ready(Some(Ok(frame))),
        Ok(Poll::Ready(Some(Err(error)))) => {
            conn.body_failed(&error.to_string());
            Poll::Ready(Some(Err(CutBody)))
        }
        Ok(Poll::Ready(None)) => Poll::Ready(None),
        Err(_) => {
            conn.count_panic();
            Poll::Ready(Some(Err(CutBody)))
        }
    }
}

impl<B: Body<Data = Bytes, Error: Display>> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = CutBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutBody>>> {
        let this = self.project();
        let frame = match this.source.project() {
            SourceProjection::Text { text } => text.take().map(|text| Ok(Frame::data(text))),
            SourceProjection::Held | SourceProjection::Upgraded => {
                this.exchange.conn().arm_takeover();
                return Poll::Pending;
            }
            SourceProjection::Feed { feed } => {
                ready!(feed.poll(cx)).map(|piece| Ok(Frame::data(piece)))
            }
            SourceProjection::App { body } => ready!(polled(body, cx, this.exchange.conn())),
            SourceProjection::Layer { body } => {
                ready!(polled(body.as_mut(), cx, this.exchange.conn()))
            }
        };
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
            && let Some(entry) = this.entry
        {
            entry.sent(data.len() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::App { body } => body.is_end_stream(),
            Source::Layer { body } => body.is_end_stream(),
            Source::Text { text } => text.is_none(),
            // Else the engine would drop it, which is the sign, before the head is in its buffer.
            Source::Held | Source::Upgraded | Source::Feed { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::App { body } => body.size_hint(),
            Source::Layer { body } => body.size_hint(),
            Source::Text { text } => {
                SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64)
            }
            Source::Held | Source::Upgraded | Source::Feed { .. } => SizeHint::default(),
        }
    }
}

/// Takes the body from an answer that has none (RFC 9110 sections 9.3.2, 15.3.5 and 15.4.5), which the engine does for
/// HTTP/1.1 alone.
pub(crate) fn without_a_body<B>(answer: &mut Response<AnswerBody<B>>, head_alone: bool)
where
    B: Body<Data = Bytes, Error: Display>,
{
    let never = matches!(
        answer.status(),
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    );
    if head_alone
        && !never
        && let Some(bytes) = Body::size_hint(answer.body()).exact()
        // Nothing may stand there because nobody knows how much it would be.
        && bytes > 0
    {
        let length = answer.headers_mut().entry(CONTENT_LENGTH);
        length.or_insert_with(|| HeaderValue::from(bytes));
    }
    if head_alone || never {
        answer.body_mut().silence();
    }
}

#[cfg(test)]
mod tests {
    use m0_spec::row;

    use super::*;
    use crate::stream_tests::Scene;

    #[row(E128)]
    #[test]
    fn head_over_http2_is_told_the_length_that_is_known_and_no_other() {
        let mut scene = Scene::new(&[]);
        Scene::on_a_loop(async {
            let exchange = Exchange::Alone(scene.conn());
            // What GET would have coded has nothing in its place, as long as it may be.
            for (text, length) in [("four", Some("4")), ("", None)] {
                let body = AnswerBody::<String>::text(text.into(), exchange.clone(), None);
                let mut answer = Response::new(body);
                without_a_body(&mut answer, true);
                let told = answer.headers().get(CONTENT_LENGTH);
                assert_eq!(told.map(HeaderValue::as_bytes), length.map(str::as_bytes));
                assert!(answer.body().is_end_stream(), "there is a body");
            }
        });
    }
}
