//! The drain of one worker: from the order to the last connection and the producer's join.
//!
//! Owns the order in which everyone is told and the one bound that all of it shares. Refuses to know
//! who ordered it. Invariant: the producer is told first, and nothing here waits past the bound.

use std::rc::Rc;
use std::time::Duration;

use m0_unix::clock::monotonic_ms;
use m0_unix::sockets::Peer;
use serde_json::json;
use socket2::Socket;
use tokio::time::timeout_at;

use super::SWEEP;
use crate::accept;
use crate::conn::Conn;
use crate::link::{FORCE, LOOK, Link, ORPHAN};
use crate::log;
use crate::producer::{Joined, ProducerThread};
use crate::settings::Level;
use crate::worker::Worker;

/// How long an answer to a late comer may take once everything else is done.
const LATE_GRACE: Duration = Duration::from_millis(100);

/// The drain's bound once the supervisor is gone.
const ORPHAN_DRAIN: Duration = Duration::from_millis(250);

/// What the drain came to.
pub(super) struct Drained {
    pub(super) began_ms: u64,
    bound: Duration,
    pub(super) cut: usize,
    pub(super) told: usize,
}

impl Drained {
    /// What is left of the bound.
    pub(super) fn left(&self) -> Duration {
        self.bound
            .saturating_sub(Duration::from_millis(monotonic_ms() - self.began_ms))
    }
}

/// Step 12, its first half: from the order to the last connection, within the bound.
pub(super) async fn drain(
    worker: &Rc<Worker>,
    link: &Link,
    producer: Option<&ProducerThread>,
    orphaned: bool,
    take: &dyn Fn(Socket, Peer),
) -> Drained {
    let began_ms = monotonic_ms();
    let mut bound = worker.settings().drain;
    if orphaned {
        bound = bound.min(ORPHAN_DRAIN);
    }
    let deadline = tokio::time::Instant::now() + bound;
    // At once: the drain's bound and the producer's run together.
    if let Some(producer) = producer {
        producer.stop();
    }
    // Those that were accepted by the kernel before the order are ours to answer.
    accept::look(worker, true, take);
    worker.context().begin_drain();
    let streams = worker.fanout().tell_drain();
    // Their drivers tell them once they are woken.
    let told = streams + worker.sockets();
    worker.each_conn(Conn::wake);
    let mut cut = 0;
    let finished = async {
        tokio::select! {
            biased;
            () = worker.early_gone() => {}
            // Until then who comes is answered, with 503 where it wants a stream or asks for readiness.
            () = late_comers(worker, link, take) => {}
        }
        // Nobody that came before is left; an answer that is being made for a late comer is let out.
        let grace = tokio::time::Instant::now() + LATE_GRACE;
        let _ = timeout_at(grace, worker.nobody_answered()).await;
    };
    if timeout_at(deadline, finished).await.is_err() || worker.open_early() > 0 {
        cut = worker.cut_all();
        // The drivers close what was cut; each has nothing left to wait for.
        let _ = timeout_at(tokio::time::Instant::now() + SWEEP, worker.early_gone()).await;
    }
    Drained {
        began_ms,
        bound,
        cut,
        told,
    }
}

/// Takes who comes during the drain; returns when the supervisor has gone: the rest is then bounded
/// anew, by the watch thread.
async fn late_comers(worker: &Rc<Worker>, link: &Link, take: &dyn Fn(Socket, Peer)) {
    loop {
        let orders = link.orders().await;
        if orders & (LOOK | FORCE) != 0 {
            link.answer(accept::look(worker, orders & FORCE != 0, take));
        }
        if orders & ORPHAN != 0 {
            return;
        }
    }
}

/// Joins the producer within what is left of the bound; true when it is left behind, by name.
pub(super) fn join(producer: &ProducerThread, left: Duration) -> bool {
    match producer.join_within(left) {
        Joined::Ended(_) => false,
        Joined::Abandoned => {
            log::event(
                Level::Warn,
                "producer-abandoned",
                json!({
                    "producer": producer.name(),
                    "message": "a step is still running at the drain's bound; leaving without it",
                }),
            );
            true
        }
    }
}
