//! The part of a connection by which others make its driver act.
//!
//! Owns the reason of an interruption and the waker. Refuses to know what the driver does about it. Invariant: the
//! first reason stands until the driver has taken it.

use std::task::Context;

use m0_wire::{Deadlines, Expired};

use super::{Conn, Interruption};

impl Conn {
    /// The deadline that this connection has passed, if one has.
    pub(crate) fn expired(&self, deadlines: &Deadlines, now_ms: u64) -> Option<Expired> {
        self.progress.get().expired(deadlines, now_ms)
    }

    /// Makes the driver act; the first reason stands.
    pub(crate) fn interrupt(&self, why: Interruption) {
        if self.interruption.get().is_none() {
            self.interruption.set(Some(why));
        }
        self.wake();
    }

    /// Whether the driver is about to close it, unanswered.
    pub(super) fn is_to_close(&self) -> bool {
        let why = self.interruption.get();
        matches!(
            why,
            Some(Interruption::Header(_) | Interruption::Disagreed(_))
        )
    }

    pub(crate) fn take_interruption(&self) -> Option<Interruption> {
        self.interruption.take()
    }

    /// Remembers whom to wake.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        let mut driver = self.driver.borrow_mut();
        match driver.as_mut() {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *driver = Some(cx.waker().clone()),
        }
    }

    /// Wakes the driver.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.driver.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}
