//! One request between the engine and the application.
//!
//! Owns what the host answers itself (health, refusals in the drain, a panicking handler) and the mark
//! of a held stream. Refuses to know the wire. Invariant: every request gets exactly one answer, also
//! when the application panics.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::json;
use tower::util::{Oneshot, ServiceExt};

use crate::access::Entry;
use crate::answer::AnswerBody;
use crate::body::RequestBody;
use crate::closing::say_close;
use crate::conn::{self, Conn};
use crate::engine::{Answer, Handle};
use crate::held::Held;
use crate::log;
use crate::metrics;
use crate::middleware::{Asked, BoxBody, Coded, Denied, Found, request_id};
use crate::settings::Level;
use crate::websocket::Upgraded;
use crate::worker::Worker;

/// Seconds after which a client that was refused in the drain may find the host restarted.
const RETRY_AFTER_SECONDS: &str = "1";

/// The application behind one connection.
pub(crate) struct Handler<S> {
    service: S,
    conn: Rc<Conn>,
    worker: Rc<Worker>,
}

impl<S: Clone> Clone for Handler<S> {
    fn clone(&self) -> Self {
        Handler {
            service: self.service.clone(),
            conn: Rc::clone(&self.conn),
            worker: Rc::clone(&self.worker),
        }
    }
}

impl<S> Handler<S> {
    pub(crate) fn new(service: S, conn: Rc<Conn>, worker: Rc<Worker>) -> Self {
        Handler {
            service,
            conn,
            worker,
        }
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
    ) -> impl Future<Output = Answer<B>> + 'static {
        let Handler {
            service,
            conn,
            worker,
        } = self.clone();
        conn.request_begins();
        let settings = worker.settings();
        let layers = &settings.middleware;
        let mut entry = settings.access_log.then(|| {
            Box::new(Entry::new(
                request.method().clone(),
                request.uri().path().to_owned(),
                conn.peer_text(),
                worker.slot(),
                conn.take_head_ns(),
            ))
        });
        let id = settings
            .request_id
            .then(|| request_id::settle(request.headers_mut()));
        if let Some(id) = &id {
            conn.identify(id);
            if let Some(entry) = &mut entry {
                entry.identified(id.clone());
            }
        }
        let asked = layers
            .remembers()
            .then(|| Box::new(layers.remember(&request)));
        let own = worker
            .settings()
            .health
            .then(|| own_answer(&request, &worker))
            .flatten();
        // What is decided now need not be carried along by the future, which is as large as all that it may hold.
        let step = if let Some((status, text)) = own {
            Step::answer(host_answer(status, text, &conn, entry.take()))
        } else if layers.preflight(&request) {
            Step::answer(host_answer(StatusCode::NO_CONTENT, "", &conn, entry.take()))
        } else if let Some(denied) = layers.deny(&mut request) {
            Step::answer(denied_answer(denied, &conn, entry.take()))
        } else if asks_for_figures(&request, &worker) {
            Step::answer(figures_answer(&conn, &worker, entry.take()))
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
                Step::File(found) => file_answer(*found, &conn, &worker, asked.as_deref(), entry),
                Step::Call(called) => {
                    if let Some(answer) = caught(called).await {
                        app_answer(answer, &conn, &worker, asked.as_deref(), entry)
                    } else {
                        conn.count_panic();
                        failed_answer(&conn, entry)
                    }
                }
                Step::Find(_) => unreachable!("files are looked for once"),
            };
            if let Some(asked) = asked {
                asked.finish(answer.headers_mut());
            }
            if let Some(id) = id {
                answer.headers_mut().insert(request_id::FIELD, id);
            }
            // A connection that becomes a WebSocket carries no request anyway.
            let last = conn.is_used_up(worker.limits().max_requests)
                && answer.status() != StatusCode::SWITCHING_PROTOCOLS;
            if worker.draining() || conn.body_may_not_come() || last {
                // HTTP/1.1 clients must not send another request on this connection.
                say_close(answer.headers_mut());
            }
            conn.response_begins();
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
    conn: &Rc<Conn>,
    worker: &Worker,
    entry: Option<Box<Entry>>,
) -> Response<AnswerBody<B>> {
    let Ok(text) = metrics::encode(worker.figures()) else {
        let why = "the figures could not be written\n";
        return host_answer(StatusCode::INTERNAL_SERVER_ERROR, why, conn, entry);
    };
    let mut answer = host_answer(StatusCode::OK, text, conn, entry);
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

/// The answer of a future, or nothing when it panicked.
async fn caught<T>(answer: impl Future<Output = Result<T, Infallible>>) -> Option<T> {
    let mut answer = pin!(answer);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Ok(answer))) => Poll::Ready(Some(answer)),
            Err(_) => Poll::Ready(None),
        },
    )
    .await
}

fn host_answer<B>(
    status: StatusCode,
    text: impl Into<Bytes>,
    conn: &Rc<Conn>,
    mut entry: Option<Box<Entry>>,
) -> Response<AnswerBody<B>> {
    if let Some(entry) = &mut entry {
        entry.answered(status);
    }
    let mut answer = Response::new(AnswerBody::text(text.into(), Rc::clone(conn), entry));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    answer
}

fn failed_answer<B>(conn: &Rc<Conn>, entry: Option<Box<Entry>>) -> Response<AnswerBody<B>> {
    let why = "the application failed; the log says how\n";
    host_answer(StatusCode::INTERNAL_SERVER_ERROR, why, conn, entry)
}

/// A guard let the request not pass.
fn denied_answer<B>(
    denied: Denied,
    conn: &Rc<Conn>,
    entry: Option<Box<Entry>>,
) -> Response<AnswerBody<B>> {
    let Denied::Challenge(challenge) = denied else {
        conn.count_panic();
        return failed_answer(conn, entry);
    };
    let why = "credentials are needed\n";
    let mut answer = host_answer(StatusCode::UNAUTHORIZED, why, conn, entry);
    answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    answer
}

/// A file was found, or could not be read.
fn file_answer<B>(
    found: Found,
    conn: &Rc<Conn>,
    worker: &Worker,
    asked: Option<&Asked>,
    mut entry: Option<Box<Entry>>,
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
            answer.map(|body| AnswerBody::layer(body, Rc::clone(conn), entry))
        }
        Err(error) => {
            log::event(
                Level::Warn,
                "file-failed",
                json!({ "message": error.to_string(), "peer": conn.peer().to_string() }),
            );
            let why = "the file could not be read\n";
            host_answer(StatusCode::INTERNAL_SERVER_ERROR, why, conn, entry)
        }
    }
}

/// There is no room for one more stream, or no time.
fn unavailable<B>(
    why: &'static str,
    conn: &Rc<Conn>,
    entry: Option<Box<Entry>>,
) -> Response<AnswerBody<B>> {
    let mut answer = host_answer(StatusCode::SERVICE_UNAVAILABLE, why, conn, entry);
    answer
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    answer
}

pub(crate) fn app_answer<B>(
    response: Response<B>,
    conn: &Rc<Conn>,
    worker: &Rc<Worker>,
    asked: Option<&Asked>,
    mut entry: Option<Box<Entry>>,
) -> Response<AnswerBody<B>>
where
    B: http_body::Body<Data = Bytes, Error: Display> + 'static,
{
    let (mut head, body) = response.into_parts();
    if let Some(held) = head.extensions.remove::<Held>() {
        if let Some(why) = worker.refuses_streams() {
            return unavailable(why, conn, entry);
        }
        if let Some(entry) = &mut entry {
            entry.answered(head.status);
        }
        // A router measures the empty body that stood in for the stream.
        head.headers.remove(CONTENT_LENGTH);
        conn.hold(conn::Held::Events(worker.fanout().plan(&held)), entry);
        return Response::from_parts(head, AnswerBody::held(Rc::clone(conn)));
    }
    if let Some(begin) = head
        .extensions
        .remove::<Upgraded>()
        .and_then(|it| it.take())
    {
        if let Some(why) = worker.refuses_streams() {
            return unavailable(why, conn, entry);
        }
        if !conn.may_upgrade() {
            let why = "a handshake has no body\n";
            return host_answer(StatusCode::BAD_REQUEST, why, conn, entry);
        }
        if let Some(entry) = &mut entry {
            entry.answered(head.status);
        }
        head.headers.remove(CONTENT_LENGTH);
        // Its place is taken now: until the head is out others may ask for the same one.
        conn.hold(conn::Held::Socket(begin, worker.hold_socket()), entry);
        return Response::from_parts(head, AnswerBody::upgraded(Rc::clone(conn)));
    }
    if let Some(entry) = &mut entry {
        entry.answered(head.status);
    }
    let layers = &worker.settings().middleware;
    match layers.code(asked, Response::from_parts(head, body)) {
        Coded::As(answer) => answer.map(|body| AnswerBody::app(body, Rc::clone(conn), entry)),
        Coded::Other(answer) => answer.map(|body| AnswerBody::layer(body, Rc::clone(conn), entry)),
    }
}
