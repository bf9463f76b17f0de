//! What the application has answered, on its way to the engine: a body, a held stream, or a WebSocket.
//!
//! Owns the mark of a held stream and of an upgrade, and what there is no place for. Refuses to know the wire. Invariant:
//! whoever finds no place is told so; a WebSocket, and a stream beside other exchanges, have theirs before their head goes.

use std::fmt::Display;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use super::host_answer;
use crate::access::Entry;
use crate::answer::AnswerBody;
use crate::conn;
use crate::exchange::Exchange;
use crate::feed::Feed;
use crate::held::Held;
use crate::middleware::{Asked, Coded};
use crate::websocket::Upgraded;
use crate::worker::{NO_ROOM, Worker};

/// Seconds after which a client that was refused in the drain may find the host restarted.
const RETRY_AFTER_SECONDS: &str = "1";

/// There is no room for one more stream, or no time.
fn unavailable<B>(
    why: &'static str,
    exchange: &Exchange,
    entry: Option<Entry>,
) -> Response<AnswerBody<B>> {
    let mut answer = host_answer(StatusCode::SERVICE_UNAVAILABLE, why, exchange, entry);
    answer
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    answer
}

pub(crate) fn app_answer<B>(
    response: Response<B>,
    exchange: &Exchange,
    worker: &Rc<Worker>,
    asked: Option<&Asked>,
    mut entry: Option<Entry>,
) -> Response<AnswerBody<B>>
where
    B: http_body::Body<Data = Bytes, Error: Display> + 'static,
{
    let (mut head, body) = response.into_parts();
    if let Some(held) = head.extensions.remove::<Held>() {
        if let Some(why) = worker.refuses_streams() {
            return unavailable(why, exchange, entry);
        }
        let plan = worker.fanout().plan(&held);
        let beside = match exchange {
            Exchange::Alone(_) => None,
            Exchange::Beside(_) => match Feed::join(worker, plan) {
                Some(feed) => Some(feed),
                None => return unavailable(NO_ROOM, exchange, entry),
            },
        };
        if let Some(entry) = &mut entry {
            entry.answered(head.status);
        }
        // A router measures the empty body that stood in for the stream.
        head.headers.remove(CONTENT_LENGTH);
        let body = if let Some(feed) = beside {
            AnswerBody::feed(feed, exchange.clone(), entry)
        } else {
            exchange.conn().hold(conn::Held::Events(plan), entry);
            AnswerBody::held(exchange.clone())
        };
        return Response::from_parts(head, body);
    }
    if let Some(begin) = head
        .extensions
        .remove::<Upgraded>()
        .and_then(|it| it.take())
    {
        if let Some(why) = worker.refuses_streams() {
            return unavailable(why, exchange, entry);
        }
        if !exchange.may_upgrade() {
            let why = "a handshake has no body\n";
            return host_answer(StatusCode::BAD_REQUEST, why, exchange, entry);
        }
        if let Some(entry) = &mut entry {
            entry.answered(head.status);
        }
        head.headers.remove(CONTENT_LENGTH);
        // Its place is taken now: until the head is out others may ask for the same one.
        exchange
            .conn()
            .hold(conn::Held::Socket(begin, worker.hold_socket()), entry);
        return Response::from_parts(head, AnswerBody::upgraded(exchange.clone()));
    }
    if let Some(entry) = &mut entry {
        entry.answered(head.status);
    }
    let layers = &worker.settings().middleware;
    match layers.code(asked, Response::from_parts(head, body)) {
        Coded::As(answer) => answer.map(|body| AnswerBody::app(body, exchange.clone(), entry)),
        Coded::Other(answer) => answer.map(|body| AnswerBody::layer(body, exchange.clone(), entry)),
    }
}
