//! One function as a `tower::Service`, without a router: what is left of a request's cost is the host's own.
use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::Full;
use m0_host::{AppConfig, RequestBody, serve_service};

fn main() -> std::process::ExitCode {
    serve_service(AppConfig::from_env(), |_| {
        Ok(tower::service_fn(|_: Request<RequestBody>| async {
            let mut answer = Response::new(Full::new(Bytes::from_static(b"[\"a\",\"b\"]")));
            let json = HeaderValue::from_static("application/json");
            answer.headers_mut().insert(CONTENT_TYPE, json);
            Ok::<_, Infallible>(answer)
        }))
    })
}
