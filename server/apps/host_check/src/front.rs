//! What stands before the router: the request's body is still the host's there, and knows the peer and how it asks.
//!
//! Owns the paths that want it. Invariant: any other request pays a comparison for it, and nothing else.

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use m0_host::RequestBody;
use tower::Service;

/// The router of the check behind its front.
#[derive(Clone)]
pub(crate) struct Front {
    router: Router,
}

impl Front {
    pub(crate) fn new(router: Router) -> Self {
        Front { router }
    }
}

impl Service<Request<RequestBody>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <Router as Service<Request<RequestBody>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        <Router as Service<Request<RequestBody>>>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        if matches!(request.uri().path(), "/peer" | "/scheme") {
            let (peer, scheme) = (request.body().peer(), request.body().scheme());
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(scheme);
        }
        self.router.call(request)
    }
}
