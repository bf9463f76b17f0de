//! One request between the engine and the application.
//!
//! Owns what the host answers itself (health, refusals in the drain, a panicking handler). Refuses to know the wire. Invariant: every request gets exactly one answer, also
//! when the application panics.

mod application;

use std::convert::Infallible;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use m0_wire::http2::Fault;
use serde_json::json;
use tower::util::{Oneshot, ServiceExt};

use crate::access::Entry;
use crate::answer::{AnswerBody, without_a_body};
use crate::body::RequestBody;
use crate::closing::say_close;
use crate::driver;
use crate::engine::{Answer, Handle};
use crate::exchange::Exchange;
use crate::log;
use crate::metrics;
use crate::middleware::{Asked, BoxBody, Coded, Denied, Found, request_id};
use crate::settings::Level;
use crate::worker::Worker;

pub(crate) use application::app_answer;

/// The application behind the connections of a worker.
pub(crate) struct Handler<S> {
    service: S,
    worker: Rc<Worker>,
}

impl<S: Clone> Clone for Handler<S> {
    fn clone(&self) -> Self {
        Handler {
            service: self.service.clone(),
            worker: Rc::clone(&self.worker),
        }
    }
}

impl<S> Handler<S> {
    pub(crate) fn new(service: S, worker: Rc<Worker>) -> Self {
        Handler { service, worker }
    }
}

impl<S, B> Handle for Handler<S>
where
    S: tower::Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Display> + 'static,
{
    type Body = B;

    fn handle(
        &self,
        mut request: Request<RequestBody>,
        exchange: Exchange,
    ) -> impl Future<Output = Answer<B>> + 'static {
        let Handler { service, worker } = self.clone();
        exchange.request_begins();
        let settings = worker.settings();
        let layers = &settings.middleware;
        let mut entry = settings.access_log.then(|| {
            Entry::new(
                request.method().clone(),
                request.uri().path(),
                exchange.conn().peer_json(),
                worker.slot(),
                exchange.head_ns(),
            )
        });
        let id = settings
            .request_id
            .then(|| request_id::settle(request.headers_mut()));
        if let Some(id) = &id {
            exchange.identify(id);
            if let Some(entry) = &mut entry {
                entry.identified(id.clone());
            }
        }
        let asked = layers
            .remembers()
            .then(|| Box::new(layers.remember(&request)));
        let head_alone = request.method() == Method::HEAD;
        let own = worker
            .settings()
            .health
            .then(|| own_answer(&request, &worker))
            .flatten();
        // What is decided now need not be carried along by the future, which is as large as all that it may hold.
        let step = if let Err(fault) = exchange.judge(&request, &worker.limits()) {
            Step::answer(refused_answer(fault, &exchange, id.as_ref(), entry.take()))
        } else if let Some((status, text)) = own {
            Step::answer(host_answer(status, text, &exchange, entry.take()))
        } else if layers.preflight(&request) {
            Step::answer(host_answer(
                StatusCode::NO_CONTENT,
                "",
                &exchange,
                entry.take(),
            ))
        } else if let Some(denied) = layers.deny(&mut request) {
            Step::answer(denied_answer(denied, &exchange, entry.take()))
        } else if asks_for_figures(&request, &worker) {
            Step::answer(figures_answer(&exchange, &worker, entry.take()))
        } else if layers.files.is_empty() {
            Step::Call(Box::pin(service.oneshot(request)))
        } else {
            Step::Find(Box::pin(find(Rc::clone(&worker), service, request)))
        };
        async move {
            let step = match step {
                Step::Find(found) => found.await,
                step => step,
            };
            let mut answer = match step {
                Step::Answer(answer) => *answer,
                Step::File(found) => {
                    file_answer(*found, &exchange, &worker, asked.as_deref(), entry)
                }
                Step::Call(called) => match caught(called, &exchange).await {
                    Came::Answer(answer) => {
                        app_answer(answer, &exchange, &worker, asked.as_deref(), entry)
                    }
                    Came::Panic => {
                        exchange.conn().count_panic();
                        failed_answer(&exchange, entry)
                    }
                    Came::Refused(fault) => refused_answer(fault, &exchange, id.as_ref(), entry),
                },
                Step::Find(_) => unreachable!("files are looked for once"),
            };
            if let Some(asked) = asked {
                asked.finish(answer.headers_mut());
            }
            if let Some(id) = id {
                answer.headers_mut().insert(request_id::FIELD, id);
            }
            // A connection that becomes a WebSocket carries no request anyway.
            let upgraded = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
            if !upgraded && exchange.closes(worker.limits().max_requests, worker.draining()) {
                // HTTP/1.1 clients must not send another request on this connection.
                say_close(answer.headers_mut());
            }
            if let Exchange::Beside(_) = exchange {
                without_a_body(&mut answer, head_alone);
            }
            exchange.response_begins();
            Ok(answer)
        }
    }
}

/// What comes next for a request.
enum Step<S: tower::Service<Request<RequestBody>>, B> {
    /// The host has answered it.
    Answer(Box<Response<AnswerBody<B>>>),
    /// A root of files is asked for it.
    Find(Pin<Box<dyn Future<Output = Step<S, B>>>>),
    /// It is of a file.
    File(Box<Found>),
    /// The application is asked.
    Call(Pin<Box<Oneshot<S, Request<RequestBody>>>>),
}

impl<S: tower::Service<Request<RequestBody>>, B> Step<S, B> {
    fn answer(answer: Response<AnswerBody<B>>) -> Self {
        Step::Answer(Box::new(answer))
    }
}

/// The health endpoints.
fn own_answer(
    request: &Request<RequestBody>,
    worker: &Worker,
) -> Option<(StatusCode, &'static str)> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    match request.uri().path() {
        "/healthz" => Some((StatusCode::OK, "ok\n")),
        "/readyz" if worker.draining() => Some((StatusCode::SERVICE_UNAVAILABLE, "draining\n")),
        "/readyz" => Some((StatusCode::OK, "ready\n")),
        _ => None,
    }
}

/// Whether the request is of the path that the operator chose for the figures.
fn asks_for_figures(request: &Request<RequestBody>, worker: &Worker) -> bool {
    let path = worker.settings().metrics.as_deref();
    path == Some(request.uri().path()) && matches!(*request.method(), Method::GET | Method::HEAD)
}

/// The figures of all workers, whichever of them is asked.
fn figures_answer<B>(
    exchange: &Exchange,
    worker: &Worker,
    entry: Option<Entry>,
) -> Response<AnswerBody<B>> {
    let Ok(text) = metrics::encode(worker.figures()) else {
        let why = "the figures could not be written\n";
        return host_answer(StatusCode::INTERNAL_SERVER_ERROR, why, exchange, entry);
    };
    let mut answer = host_answer(StatusCode::OK, text, exchange, entry);
    let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// Looks for the file that a request asks for; the application is asked where there is none.
async fn find<S, B>(worker: Rc<Worker>, service: S, request: Request<RequestBody>) -> Step<S, B>
where
    S: tower::Service<Request<RequestBody>>,
{
    match worker.settings().middleware.find(&request).await {
        Some(found) => Step::File(Box::new(found)),
        None => Step::Call(Box::pin(service.oneshot(request))),
    }
}

/// What came of asking the application.
enum Came<T> {
    Answer(T),
    Panic,
    /// The request's body was not let in, so that nothing the application says is the answer.
    Refused(Fault),
}

/// The answer of a future, whatever it does instead of one.
async fn caught<T>(
    answer: impl Future<Output = Result<T, Infallible>>,
    exchange: &Exchange,
) -> Came<T> {
    let mut answer = pin!(answer);
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx)));
        if let Some(fault) = exchange.body_fault() {
            return Poll::Ready(Came::Refused(fault));
        }
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Ok(answer))) => Poll::Ready(Came::Answer(answer)),
            Err(_) => Poll::Ready(Came::Panic),
        }
    })
    .await
}

fn host_answer<B>(
    status: StatusCode,
    text: impl Into<Bytes>,
    exchange: &Exchange,
    mut entry: Option<Entry>,
) -> Response<AnswerBody<B>> {
    if let Some(entry) = &mut entry {
        entry.answered(status);
    }
    let mut answer = Response::new(AnswerBody::text(text.into(), exchange.clone(), entry));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    answer
}

fn failed_answer<B>(exchange: &Exchange, entry: Option<Entry>) -> Response<AnswerBody<B>> {
    let why = "the application failed; the log says how\n";
    host_answer(StatusCode::INTERNAL_SERVER_ERROR, why, exchange, entry)
}

/// What was asked breaks a rule that stands before the application.
fn refused_answer<B>(
    fault: Fault,
    exchange: &Exchange,
    id: Option<&HeaderValue>,
    entry: Option<Entry>,
) -> Response<AnswerBody<B>> {
    driver::tell_refusal(exchange.conn(), fault.status, fault.reason, id);
    let status = StatusCode::from_u16(fault.status).expect("wire refuses with statuses that exist");
    let text = format!("{status}: {}\n", fault.reason);
    host_answer(status, text, exchange, entry)
}

/// A guard let the request not pass.
fn denied_answer<B>(
    denied: Denied,
    exchange: &Exchange,
    entry: Option<Entry>,
) -> Response<AnswerBody<B>> {
    let Denied::Challenge(challenge) = denied else {
        exchange.conn().count_panic();
        return failed_answer(exchange, entry);
    };
    let why = "credentials are needed\n";
    let mut answer = host_answer(StatusCode::UNAUTHORIZED, why, exchange, entry);
    answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    answer
}

/// A file was found, or could not be read.
fn file_answer<B>(
    found: Found,
    exchange: &Exchange,
    worker: &Worker,
    asked: Option<&Asked>,
    mut entry: Option<Entry>,
) -> Response<AnswerBody<B>> {
    match found {
        Ok(file) => {
            if let Some(entry) = &mut entry {
                entry.answered(file.status());
            }
            let layers = &worker.settings().middleware;
            let answer = match layers.code(asked, file) {
                Coded::As(file) => file.map(|body| Box::pin(body.map_err(Into::into)) as BoxBody),
                Coded::Other(answer) => answer,
            };
            answer.map(|body| AnswerBody::layer(body, exchange.clone(), entry))
        }
        Err(error) => {
            log::event(
                Level::Warn,
                "file-failed",
                json!({ "message": error.to_string(), "peer": exchange.conn().peer().to_string() }),
            );
            let why = "the file could not be read\n";
            host_answer(StatusCode::INTERNAL_SERVER_ERROR, why, exchange, entry)
        }
    }
}
