//! The life of one connection, from accept to close.
//!
//! Owns the order: the engine works until it ends, is interrupted or hands over a held stream; then the
//! host's own last words, and a close that lets them arrive. Refuses to know how bytes are judged or
//! written. Invariant: every way out of here closes the connection and says so once.

mod http2;
mod tls;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use http::HeaderValue;
use m0_framelog::Replay;
use m0_streams::Fate;
use m0_unix::clock::monotonic_ms;
use m0_unix::sockets::Peer;
use m0_wire::respond::error_answer;
use m0_wire::{Phase, Place, Refusal, Scanner};
use serde_json::json;
use socket2::Socket;
use tokio::time::{Instant, timeout_at};

use crate::access::Entry;
use crate::conn::{Conn, Held, Interruption, Response};
use crate::engine::{Engine, EngineEnd, Handle};
use crate::log;
use crate::middleware::request_id;
use crate::settings::Level;
use crate::websocket::{self, Begin, End};
use crate::worker::{SocketHeld, Worker};

/// Most bytes that are read and dropped from a peer that was refused.
const LINGER_BYTES: usize = 256 * 1024;

/// The same of a WebSocket: a client writes the whole of a message before it reads that it is too long. What
/// this costs is bounded by time.
const SOCKET_LINGER_BYTES: usize = 64 * 1024 * 1024;

/// Why the engine's part ended, and how far the answer was then: dropping the engine ends it.
enum Outcome {
    Ended(EngineEnd, Response),
    Interrupted(Interruption, Response),
    TakenOver,
    /// Its first bytes were the preface of HTTP/2.
    Http2,
    /// The drain found nothing asked and nothing being answered.
    Idle,
}

/// Drives one connection to its end.
pub(crate) async fn drive<S: Handle>(conn: Rc<Conn>, handler: S, worker: Rc<Worker>) {
    // In a box, so that other connections need no room for it.
    if let Some(tls) = worker.tls_for(conn.peer())
        && !Box::pin(tls::shake(&conn, &worker, tls)).await
    {
        return;
    }
    let spare = worker.settings().http2.then(|| handler.clone());
    let outcome = engine_part(&conn, handler, &worker).await;
    match outcome {
        Outcome::Ended(end, response) => {
            if conn.header_has_begun() {
                header_refused(&conn, &worker, "ended before its PROXY header was complete");
            } else if let Some(refusal) = conn.refusal() {
                refused(&conn, &worker, refusal, response).await;
            } else if end == EngineEnd::Broken && response != Response::None {
                // A cut answer must not look whole.
                conn.reset_on_close();
            } else if conn.owes_input() || conn.may_have_crossed(worker.limits().max_requests) {
                linger(&conn, &worker, LINGER_BYTES).await;
            }
        }
        Outcome::Interrupted(why, response) => interrupted(&conn, &worker, why, response).await,
        Outcome::TakenOver => take_over(&conn, &worker).await,
        // In a box, so that other connections need no room for it.
        Outcome::Http2 => {
            let handler = spare.expect("a preface is awaited where HTTP/2 is on");
            Box::pin(http2::drive(&conn, handler, &worker)).await;
        }
        Outcome::Idle => close(&conn, &worker).await,
    }
}

/// Lets the engine work until something ends its part. The engine is gone when this returns.
async fn engine_part<S: Handle>(conn: &Rc<Conn>, handler: S, worker: &Rc<Worker>) -> Outcome {
    let mut engine = Engine::new(Rc::clone(conn), handler, worker.settings());
    let mut told_last = false;
    poll_fn(|cx: &mut Context<'_>| {
        conn.register(cx);
        if let Some(why) = conn.take_interruption() {
            return Poll::Ready(Outcome::Interrupted(why, conn.response()));
        }
        let mut polled = engine.poll(cx);
        // Told only when nothing waits to be read, and no head has come in part: an engine that is told
        // drops what it has not read. A late comer is told by its answer instead, for it may not have asked
        // yet.
        if polled.is_pending()
            && worker.draining()
            && !told_last
            && !conn.is_late()
            && !conn.has_input()
            && conn.phase() != Phase::Head
        {
            told_last = true;
            engine.last_request();
            polled = engine.poll(cx);
        }
        if let Some(why) = conn.take_interruption() {
            return Poll::Ready(Outcome::Interrupted(why, conn.response()));
        }
        if conn.taken_over() {
            return Poll::Ready(Outcome::TakenOver);
        }
        if conn.http2().is_some() {
            return Poll::Ready(Outcome::Http2);
        }
        if let Poll::Ready(end) = polled {
            return Poll::Ready(Outcome::Ended(end, conn.response()));
        }
        // The poll above has read what had come: nothing asked now means that nothing was asked in time.
        if told_last && conn.is_idle() {
            return Poll::Ready(Outcome::Idle);
        }
        Poll::Pending
    })
    .await
}

/// The connection cannot go on: the last words where they can still be understood, else a cut.
async fn interrupted(conn: &Rc<Conn>, worker: &Worker, why: Interruption, response: Response) {
    let answerable = matches!(response, Response::None | Response::Pending);
    match why {
        Interruption::Refused(refusal) => refused(conn, worker, refusal, response).await,
        Interruption::Header(why) => header_refused(conn, worker, why),
        Interruption::Expired(_) if conn.header_has_begun() => {
            header_refused(conn, worker, "PROXY header not complete in time");
        }
        Interruption::Expired(expired) => match expired.answer {
            Some(status) if answerable => {
                tell_cut(conn, Level::Info, expired.why);
                let id = last_id(conn, worker, response != Response::None);
                last_words(conn, worker, status, expired.why, None, id).await;
            }
            None if response == Response::None => close(conn, worker).await,
            _ => {
                tell_cut(conn, Level::Warn, expired.why);
                conn.reset_on_close();
            }
        },
        Interruption::Disagreed(why) => {
            tell_cut(conn, Level::Info, why);
            conn.reset_on_close();
        }
        Interruption::Cut => {
            tell_cut(conn, Level::Warn, "the drain's bound passed");
            conn.reset_on_close();
        }
    }
}

/// Bytes were refused: they are answered once, unless the answer to their request is out or on its way.
async fn refused(conn: &Rc<Conn>, worker: &Worker, refusal: Refusal, response: Response) {
    let id = last_id(conn, worker, refusal.place == Place::Body);
    tell_refusal(conn, refusal.status, refusal.reason, id.as_ref());
    let answerable = matches!(response, Response::None | Response::Pending);
    if !conn.is_unanswered(&refusal) {
        // A second answer would be taken for that to another request.
        linger(conn, worker, LINGER_BYTES).await;
    } else if answerable {
        last_words(conn, worker, refusal.status, refusal.reason, None, id).await;
    } else {
        conn.reset_on_close();
    }
}

/// The id of an answer of the host's own, where answers have one: that of the request in hand, if it is about one.
fn last_id(conn: &Conn, worker: &Worker, in_hand: bool) -> Option<HeaderValue> {
    let known = || conn.request_id().filter(|_| in_hand);
    let settings = worker.settings();
    settings
        .request_id
        .then(|| known().unwrap_or_else(request_id::make))
}

/// A proxy that does not keep its protocol gets no answer: it has asked nothing, and would take it for its client's.
fn header_refused(conn: &Conn, worker: &Worker, why: &str) {
    worker.count_header_refused();
    tell_cut(conn, Level::Warn, why);
}

/// Goes on with a connection whose head is out and whose engine is gone.
pub(crate) async fn take_over(conn: &Rc<Conn>, worker: &Rc<Worker>) {
    match conn.take_held() {
        Some((Held::Events(plan), entry)) => hold(conn, worker, plan, entry).await,
        // In a box, so that other connections need no room for it.
        Some((Held::Socket(begin, place), entry)) => {
            Box::pin(talk(conn, worker, (begin, place), entry)).await;
        }
        None => {}
    }
}

/// Holds a stream until its peer leaves, it is finished, or it is cut.
async fn hold(conn: &Rc<Conn>, worker: &Worker, plan: Replay, mut entry: Option<Entry>) {
    let others = worker.sockets();
    let Some(key) = worker.fanout().join(conn, plan, conn.is_http10(), others) else {
        // Others took the last places between the answer's head and now.
        conn.reset_on_close();
        return;
    };
    conn.stream_stands(worker.fanout().pump(key));
    if worker.draining() {
        // The drain told the streams that were held by then; the head of this one was still on its way.
        worker.fanout().tell_drain();
    }
    let first_byte = conn.first_byte_ns();
    let sent_before = conn.sent_bytes();
    let cut = poll_fn(|cx| {
        conn.register(cx);
        if let Some(why) = conn.take_interruption() {
            return Poll::Ready(Some(why));
        }
        if conn.poll_discard(cx, LINGER_BYTES).is_ready() {
            return Poll::Ready(None);
        }
        loop {
            // Over TLS the fan-out leaves here what the socket did not take.
            match conn.poll_flush(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
            match conn.stream_fate() {
                Fate::Clear => return Poll::Pending,
                Fate::Finished | Fate::Gone => return Poll::Ready(None),
                Fate::Blocked => {
                    if conn.poll_writable(cx).is_pending() {
                        return Poll::Pending;
                    }
                    conn.stream_stands(worker.fanout().pump(key));
                }
            }
        }
    })
    .await;
    worker.fanout().leave(key);
    if let Some(entry) = &mut entry {
        entry.moments.first = first_byte;
        entry.sent(conn.sent_bytes() - sent_before);
    }
    if cut.is_some() {
        worker.count_cut_stream();
        tell_cut(
            conn,
            Level::Info,
            match cut {
                Some(Interruption::Expired(expired)) => expired.why,
                _ => "the drain's bound passed",
            },
        );
        conn.reset_on_close();
    } else if conn.stream_fate() == Fate::Finished {
        close(conn, worker).await;
        if conn.owes_input() {
            linger(conn, worker, LINGER_BYTES).await;
        }
    }
}

/// Holds a WebSocket until both sides have said close, its peer leaves, or it is cut.
async fn talk(
    conn: &Rc<Conn>,
    worker: &Worker,
    (begin, place): (Begin, SocketHeld),
    mut entry: Option<Entry>,
) {
    let first_byte = conn.first_byte_ns();
    let sent_before = conn.sent_bytes();
    let tell = |why| tell_cut(conn, Level::Info, why);
    let end = websocket::run(conn, worker, begin, tell).await;
    drop(place);
    if let Some(entry) = &mut entry {
        entry.moments.first = first_byte;
        entry.sent(conn.sent_bytes() - sent_before);
    }
    match end {
        // The server's side of the connection ends first (RFC 6455 section 7.1.1), and the peer's close frame
        // was its last.
        End::Closed => close(conn, worker).await,
        End::Failed => linger(conn, worker, SOCKET_LINGER_BYTES).await,
        End::Gone => {}
        End::Cut => {
            worker.count_cut_stream();
            conn.reset_on_close();
        }
    }
}

/// Writes an answer of the host's own and closes so that it arrives.
async fn last_words(
    conn: &Rc<Conn>,
    worker: &Worker,
    status: u16,
    reason: &str,
    field: Option<(&str, &str)>,
    id: Option<HeaderValue>,
) {
    let id = id.as_ref().and_then(|id| id.to_str().ok());
    let id = id.map(|id| (request_id::FIELD_NAME, id));
    let fields: Vec<_> = field.into_iter().chain(id).collect();
    let answer = error_answer(status, reason, &fields);
    let bound = Instant::now() + worker.settings().linger;
    let mut sent = 0;
    let all = poll_fn(|cx| {
        while sent < answer.len() {
            match conn.poll_send(cx, &answer[sent..]) {
                Poll::Ready(Ok(n)) => sent += n,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    });
    // A peer that does not take even this gets the close alone.
    if timeout_at(bound, all).await.is_ok() {
        linger(conn, worker, LINGER_BYTES).await;
    }
}

/// Sends FIN, over TLS behind what is still to be said there.
async fn close(conn: &Rc<Conn>, worker: &Worker) {
    if conn.is_sealed() {
        // In a box, so that other connections need no room for it.
        Box::pin(tls::close(conn, worker)).await;
    } else {
        conn.shutdown();
    }
}

/// Sends FIN and reads on until the peer has closed too, within bounds: closing with bytes unread
/// would reset the connection and destroy the answer on its way (RFC 9112 section 9.6).
async fn linger(conn: &Rc<Conn>, worker: &Worker, most: usize) {
    let bound = Instant::now() + worker.settings().linger;
    let drained = poll_fn(|cx| {
        conn.register(cx);
        let shut = conn.poll_shutdown(cx);
        if worker.cutting() {
            return Poll::Ready(());
        }
        let drained = conn.poll_discard(cx, most);
        if shut.is_ready() {
            drained
        } else {
            Poll::Pending
        }
    });
    // The bound is the answer to a peer that never closes.
    let _ = timeout_at(bound, drained).await;
}

/// Tells of a request that was refused, with the id of its answer where that has one.
pub(crate) fn tell_refusal(conn: &Conn, status: u16, reason: &str, id: Option<&HeaderValue>) {
    let mut told = json!({ "status": status, "why": reason, "peer": conn.peer().to_string() });
    if let Some(id) = id.and_then(|id| id.to_str().ok()) {
        told["id"] = id.into();
    }
    log::event(Level::Info, "request-refused", told);
}

fn tell_cut(conn: &Conn, level: Level, why: &str) {
    log::event(
        level,
        "cut",
        json!({ "why": why, "peer": conn.peer().to_string() }),
    );
}

/// Answers a connection that there is no room for, and closes it so that the answer arrives.
pub(crate) fn refuse(worker: &Rc<Worker>, socket: Socket, peer: Peer) {
    worker.count_refused();
    if worker.tls_for(peer).is_some() {
        // The close is the answer: another would cost a handshake.
        return;
    }
    let Some(place) = worker.begin_refusal() else {
        // Even refusals are bounded: the close is the answer.
        return;
    };
    // A loop that cannot watch the connection closes it: the same answer, less politely.
    let scanner = Scanner::new(worker.limits());
    if let Ok(conn) = Conn::new(socket, peer, scanner, worker.share(), true) {
        let worker = Rc::clone(worker);
        tokio::task::spawn_local(async move {
            let conn = Rc::new(conn);
            let why = "this worker holds as many connections as it may";
            let id = last_id(&conn, &worker, false);
            let soon = Some(("retry-after", "1"));
            last_words(&conn, &worker, 503, why, soon, id).await;
            drop(place);
        });
    }
}

/// The sweep over all connections of a worker: one clock read, one look at each.
pub(crate) fn sweep(worker: &Worker) {
    let now = monotonic_ms();
    let deadlines = worker.deadlines();
    worker.each_conn(|conn| {
        conn.wake_if_silent(worker.rhythm(), now);
        let beside = conn.http2().and_then(|it| it.expired(deadlines, now));
        if let Some(expired) = beside.or_else(|| conn.expired(deadlines, now))
            && !conn.has_drained_a_little()
        {
            conn.interrupt(Interruption::Expired(expired));
        }
    });
}
