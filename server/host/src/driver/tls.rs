//! The life of a connection over TLS before its first request, and behind its last answer.
//!
//! Owns what becomes of a handshake that does not succeed, and how long a peer has to take the last word. Refuses to
//! know records: `conn` moves them. Invariant: a handshake ends in a connection that can be asked, or in one that is
//! closed; each that has begun and failed is counted, and told at a bounded rate.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::time::{Instant, timeout_at};

use super::{LINGER_BYTES, header_refused, tell_cut};
use crate::conn::{Conn, Interruption, Unshaken};
use crate::settings::Level;
use crate::tls::Tls;
use crate::worker::Worker;

/// How it went on.
enum Ended {
    Shaken(Result<(), Unshaken>),
    Interrupted(Interruption),
}

/// Awaits the handshake; whether the connection can be asked now.
pub(super) async fn shake(conn: &Rc<Conn>, worker: &Worker, tls: &Tls) -> bool {
    let ended = poll_fn(|cx| {
        conn.register(cx);
        if let Some(why) = conn.take_interruption() {
            return Poll::Ready(Ended::Interrupted(why));
        }
        if let Poll::Ready(shaken) = conn.poll_handshake(cx, || tls.identity()) {
            return Poll::Ready(Ended::Shaken(shaken));
        }
        // Nothing was asked in time. A late comer may not have said anything yet.
        if worker.draining() && !conn.is_late() && conn.is_untouched() {
            return Poll::Ready(Ended::Shaken(Err(Unshaken::Silent)));
        }
        Poll::Pending
    })
    .await;
    let refused = |why: &str| header_refused(conn, worker, why);
    match ended {
        Ended::Shaken(Ok(())) => return true,
        Ended::Shaken(Err(_)) if conn.header_has_begun() => {
            refused("ended before its PROXY header was complete");
        }
        Ended::Shaken(Err(Unshaken::Silent)) => {}
        Ended::Shaken(Err(Unshaken::Failed(why))) => {
            failed(conn, worker, tls, &why);
            let_alert_arrive(conn, worker).await;
        }
        Ended::Interrupted(Interruption::Header(why)) => refused(why),
        Ended::Interrupted(Interruption::Expired(_)) if conn.header_has_begun() => {
            refused("PROXY header not complete in time");
        }
        // A spare connection, or one that a proxy opened for nobody.
        Ended::Interrupted(Interruption::Expired(_)) if !conn.is_sealed() => {}
        Ended::Interrupted(Interruption::Expired(_)) => {
            failed(conn, worker, tls, "not complete in time");
        }
        Ended::Interrupted(
            Interruption::Cut | Interruption::Refused(_) | Interruption::Disagreed(_),
        ) => {
            tell_cut(conn, Level::Warn, "the drain's bound passed");
            conn.reset_on_close();
        }
    }
    false
}

fn failed(conn: &Conn, worker: &Worker, tls: &Tls, why: &str) {
    worker.count_tls_failed();
    tls.tell_failed(conn.peer(), why);
}

/// Sends the alert and reads on until the peer has closed too, within bounds.
async fn let_alert_arrive(conn: &Conn, worker: &Worker) {
    within_linger(worker, |cx| {
        conn.register(cx);
        let shut = conn.poll_shutdown(cx);
        let drained = conn.poll_discard_raw(cx, LINGER_BYTES);
        if shut.is_ready() {
            drained
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Sends what is sealed, the word that nothing follows, and FIN.
pub(super) async fn close(conn: &Conn, worker: &Worker) {
    within_linger(worker, |cx| {
        conn.register(cx);
        conn.poll_shutdown(cx)
    })
    .await;
}

/// Goes on until `step` is ready, the drain cuts, or a peer that takes nothing has had its time.
async fn within_linger(worker: &Worker, mut step: impl FnMut(&mut Context<'_>) -> Poll<()>) {
    let bound = Instant::now() + worker.settings().linger;
    let work = poll_fn(|cx| {
        let done = step(cx);
        if worker.cutting() {
            Poll::Ready(())
        } else {
            done
        }
    });
    // The bound is the answer to a peer that never closes.
    let _ = timeout_at(bound, work).await;
}
