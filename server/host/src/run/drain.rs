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
use crate::link::{Link, ORPHAN};
use crate::log;
use crate::producer::{Joined, ProducerThread};
use crate::settings::Level;
use crate::worker::Worker;

/// The drain's bound once the supervisor is gone.
const ORPHAN_DRAIN: Duration = Duration::from_millis(400);

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
    worker.share().draining();
    let told = worker.fanout().tell_drain();
    worker.each_conn(Conn::wake);
    let mut cut = 0;
    let all_gone = async {
        tokio::select! {
            biased;
            () = worker.all_gone() => {}
            // The supervisor may go while we drain: the rest is then bounded anew by the watch thread.
            () = hurried(link) => {}
        }
    };
    if timeout_at(deadline, all_gone).await.is_err() || worker.open() > 0 {
        cut = worker.cut_all();
        // The drivers close what was cut; each has nothing left to wait for.
        let _ = timeout_at(tokio::time::Instant::now() + SWEEP, worker.all_gone()).await;
    }
    Drained {
        began_ms,
        bound,
        cut,
        told,
    }
}

/// Waits for the order that cuts a drain short.
async fn hurried(link: &Link) {
    while link.orders().await & ORPHAN == 0 {}
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
