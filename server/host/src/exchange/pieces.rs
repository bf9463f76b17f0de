//! An answer's body over HTTP/2, in pieces that the engine holds one at a time.
//!
//! Owns how much of an answer waits for its peer's window. Refuses to know where the bytes come from. Invariant: the
//! engine asks for a piece only once the peer takes the one before, so whoever does not read is known by that.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::Beside;

/// Most bytes of a piece: what waits in the engine for a window that stays shut.
const PIECE_BYTES: usize = 16 * 1024;

pin_project! {
    /// A body in pieces.
    pub(crate) struct Pieces<B> {
        #[pin]
        body: B,
        // Of the body's last frame.
        rest: Bytes,
        exchange: Rc<Beside>,
    }
}

impl<B> Pieces<B> {
    pub(crate) fn new(body: B, exchange: Rc<Beside>) -> Self {
        Pieces {
            body,
            rest: Bytes::new(),
            exchange,
        }
    }
}

impl<B: Body<Data = Bytes>> Body for Pieces<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        this.exchange.owes(false);
        if this.rest.is_empty() {
            match ready!(this.body.poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => *this.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE_BYTES));
        this.exchange.owes(true);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut whole = SizeHint::new();
        whole.set_lower(rest + hint.lower());
        if let Some(upper) = hint.upper() {
            whole.set_upper(rest + upper);
        }
        whole
    }
}
