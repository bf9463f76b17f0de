//! The life of a connection that speaks HTTP/2, from its preface to its close.
//!
//! Owns when its peer is told that there is no further request, and how long a peer that does not answer that is
//! awaited. Refuses to know the exchanges: each ends by itself. Invariant: a connection on which nothing is in flight
//! never holds up a drain for longer than [`GOODBYE`].

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use m0_wire::Phase;
use tokio::time::{Instant, sleep_until};

use super::{LINGER_BYTES, close, linger, tell_cut};
use crate::conn::{Conn, Http2, Interruption};
use crate::engine::{Handle, Http2Engine};
use crate::settings::Level;
use crate::worker::Worker;

/// How long a peer on whose connection nothing is in flight has to answer that it was told: a round trip, in which
/// its last request may be on the way.
const GOODBYE: Duration = Duration::from_millis(250);

/// Requests behind the last one that a connection may bring: more than one read can, so that those which the engine
/// refuses are not among them.
const MOST_PASSED_OVER: u64 = 4_096;

/// How the engine's part ended.
enum Ended {
    /// All is answered, or the peer has left.
    Clean,
    /// The peer has broken a rule or a bound, and was told so where the engine could.
    Broken(String),
    /// It cannot go on.
    Cut(&'static str, Level),
    /// Told that there is no further request, and silent since.
    Silent,
}

/// Drives a connection whose preface has come to its end.
pub(super) async fn drive<S: Handle>(conn: &Rc<Conn>, handler: S, worker: &Rc<Worker>) {
    // The engine is gone once this has returned, and with it what its exchanges wait for.
    match engine_part(conn, handler, worker).await {
        Ended::Clean => {
            close(conn, worker).await;
            if conn.owes_input() {
                linger(conn, worker, LINGER_BYTES).await;
            }
        }
        Ended::Broken(why) => {
            tell_cut(conn, Level::Info, &why);
            // What the peer was told must reach it, although it goes on sending.
            linger(conn, worker, LINGER_BYTES).await;
        }
        Ended::Cut(why, level) => {
            tell_cut(conn, level, why);
            conn.reset_on_close();
        }
        Ended::Silent => close(conn, worker).await,
    }
}

async fn engine_part<S: Handle>(conn: &Rc<Conn>, handler: S, worker: &Rc<Worker>) -> Ended {
    let mut engine = Http2Engine::new(Rc::clone(conn), handler, worker.settings());
    let mut told = false;
    let mut goodbye = Box::pin(sleep_until(Instant::now()));
    poll_fn(|cx: &mut Context<'_>| {
        conn.register(cx);
        if let Some(http2) = conn.http2() {
            http2.begin_turn();
        }
        let mut idle_too_long = false;
        match conn.take_interruption() {
            Some(Interruption::Expired(_)) if conn.phase() == Phase::Idle => idle_too_long = true,
            Some(Interruption::Expired(expired)) => {
                return Poll::Ready(Ended::Cut(expired.why, Level::Warn));
            }
            Some(Interruption::Cut) => {
                return Poll::Ready(Ended::Cut("the drain's bound passed", Level::Warn));
            }
            // Said of what came before the preface, or in its place: there was none.
            Some(
                Interruption::Refused(_) | Interruption::Header(_) | Interruption::Disagreed(_),
            )
            | None => {}
        }
        let mut polled = engine.poll(cx);
        let limit = worker.limits().max_requests;
        // A late comer may not have asked yet.
        let drains = worker.draining() && (!conn.is_late() || conn.requests() > 0);
        if polled.is_pending() && !told && (drains || idle_too_long || conn.is_used_up(limit)) {
            told = true;
            engine.last_request();
            goodbye.as_mut().reset(Instant::now() + GOODBYE);
            polled = engine.poll(cx);
        }
        match polled {
            Poll::Ready(Ok(()) | Err(None)) => return Poll::Ready(Ended::Clean),
            Poll::Ready(Err(Some(why))) => return Poll::Ready(Ended::Broken(why)),
            Poll::Pending => {}
        }
        let (open, overshoot) = (conn.http2().map_or(0, Http2::open), overshoot(worker));
        let served = limit > 0 && conn.requests() > limit.saturating_add(overshoot);
        // Those that the engine passes over are open for ever.
        if told && (served || open as u64 > overshoot + MOST_PASSED_OVER) {
            let why = "requests go on behind the last one";
            return Poll::Ready(Ended::Cut(why, Level::Info));
        }
        // What is sealed and not with the socket is in flight as well.
        let quiet = conn.http2().is_some_and(Http2::is_quiet) && conn.poll_flush(cx).is_ready();
        if !told || !quiet {
            return Poll::Pending;
        }
        goodbye.as_mut().poll(cx).map(|()| Ended::Silent)
    })
    .await
}

/// Requests that may have been on their way when their peer was told that there are no further ones.
fn overshoot(worker: &Worker) -> u64 {
    u64::from(worker.settings().http2_max_streams)
}
