//! TLS in one worker: the certificate that handshakes use now, and what is said of those that failed.
//!
//! Owns the look at the files while the host runs, and the rate of the lines about handshakes. Refuses to know sockets:
//! [`Sealed`] turns bytes into records, `conn` moves them. Invariant: a certificate that is in use is replaced by one
//! that can be used, and by nothing else; a handshake that has begun keeps the one that it began with.

mod identity;
mod sealed;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use m0_unix::clock::monotonic_ms;
use m0_unix::sockets::Peer;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::log;
use crate::refusal::Refusal;
use crate::settings::Level;

pub(crate) use identity::Identity;
pub(crate) use sealed::Sealed;

/// Time between two looks at the files: a certificate is renewed days before it ends, and both are small.
const LOOK: Duration = Duration::from_secs(1);

/// Least time between two lines about failed handshakes: whoever scans the port must not fill the log.
const TELL_MS: u64 = 1_000;

/// The TLS of one worker.
pub(crate) struct Tls {
    identity: RefCell<Identity>,
    /// Why the files as they are now cannot be used, as it was told.
    kept_for: RefCell<Option<Refusal>>,
    told_ms: Cell<Option<u64>>,
    untold: Cell<u64>,
}

impl Tls {
    /// Begins with what the files hold by now, or with `identity`, which they held once: a worker that comes in the
    /// place of a dead one serves also where the files have become unusable meanwhile.
    pub(crate) fn new(identity: Identity) -> Self {
        let tls = Tls {
            identity: RefCell::new(identity),
            kept_for: RefCell::new(None),
            told_ms: Cell::new(None),
            untold: Cell::new(0),
        };
        let looked = tls.identity().look();
        tls.take(looked);
        tls
    }

    /// What a handshake that begins now uses.
    pub(crate) fn identity(&self) -> Identity {
        self.identity.borrow().clone()
    }

    /// Takes over what a look has found; whether that was told, which it is once for each change.
    fn take(&self, looked: Result<Option<Identity>, Refusal>) -> bool {
        let kept_for = looked.as_ref().err().cloned();
        let told = match looked {
            Ok(None) => false,
            Ok(Some(identity)) => {
                log::event(Level::Info, "tls-reloaded", identity.fields());
                self.identity.replace(identity);
                true
            }
            Err(refusal) if self.kept_for.borrow().as_ref() == Some(&refusal) => false,
            Err(refusal) => {
                log::event(Level::Warn, "tls-kept", refusal.fields());
                true
            }
        };
        self.kept_for.replace(kept_for);
        told
    }

    /// Tells of a handshake that failed, or counts it for the next line that may tell.
    pub(crate) fn tell_failed(&self, peer: Peer, why: &str) {
        let now = monotonic_ms();
        let soon = |told: u64| now.saturating_sub(told) < TELL_MS;
        if self.told_ms.get().is_some_and(soon) {
            self.untold.set(self.untold.get() + 1);
            return;
        }
        self.told_ms.set(Some(now));
        let mut told = json!({ "why": why, "peer": peer.to_string() });
        let untold = self.untold.take();
        if untold > 0 {
            told["untold"] = untold.into();
        }
        log::event(Level::Info, "tls-failed", told);
    }
}

/// Looks at the files for as long as the worker serves.
pub(crate) async fn keep(tls: Rc<Tls>) {
    let mut tick = interval_at(Instant::now() + LOOK, LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let identity = tls.identity();
        // On a thread beside the loop: a disk may let it wait.
        if let Ok(looked) = tokio::task::spawn_blocking(move || identity.look()).await {
            tls.take(looked);
        }
    }
}

#[cfg(test)]
mod tests;
