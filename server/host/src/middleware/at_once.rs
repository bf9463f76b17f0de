//! Asking a layer of tower whose answer is there at once.
//!
//! Owns the one poll. Invariant: nothing waits.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use tower::{Layer, Service};

/// What a layer makes of an answer to a request. The layer waits for nothing but its inner service.
pub(super) fn at_once<L, S, B, A>(
    layer: &L,
    request: Request<()>,
    answer: Response<B>,
) -> Option<Response<A>>
where
    L: Layer<Inner<B>, Service = S>,
    S: Service<Request<()>, Response = Response<A>, Error = Infallible>,
{
    let mut service = layer.layer(Inner(Some(answer)));
    let mut cx = Context::from_waker(Waker::noop());
    if !matches!(service.poll_ready(&mut cx), Poll::Ready(Ok(()))) {
        return None;
    }
    match pin!(service.call(request)).poll(&mut cx) {
        Poll::Ready(Ok(answer)) => Some(answer),
        Poll::Ready(Err(_)) | Poll::Pending => None,
    }
}

/// A service that has one answer; asked again it would have none.
pub(super) struct Inner<B>(Option<Response<B>>);

impl<B> Service<Request<()>> for Inner<B> {
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Once<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Once<B> {
        Once(self.0.take())
    }
}

/// The one answer.
pub(super) struct Once<B>(Option<Response<B>>);

impl<B> Unpin for Once<B> {}

impl<B> Future for Once<B> {
    type Output = Result<Response<B>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        self.0
            .take()
            .map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer)))
    }
}
