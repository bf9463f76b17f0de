//! Where a process may die: one call after each store of `append` and `repair`.
//!
//! Owns the hook of the death tests and models. In a product build there is no hook and the call is
//! nothing.
//!
//! Invariant: every store to shared memory in `append`, `lock` and `repair` is followed by
//! [`stored`] before the next one.

#[cfg(any(loom, feature = "death-points"))]
mod hook {
    use std::cell::Cell;

    thread_local! {
        static HOOK: Cell<Option<fn(u32)>> = const { Cell::new(None) };
        static DEAD: Cell<u32> = const { Cell::new(0) };
    }

    /// Calls `hook` with the acting process's pid after each store made by this thread.
    pub fn set(hook: Option<fn(u32)>) {
        HOOK.set(hook);
    }

    /// From now on the guards of process `pid` on this thread do nothing, as if it had been killed:
    /// a model's hook says so and then unwinds out of the append. 0 for none.
    pub fn kill(pid: u32) {
        DEAD.set(pid);
    }

    pub(crate) fn stored(pid: u32) {
        if let Some(hook) = HOOK.get() {
            hook(pid);
        }
    }

    pub(crate) fn dead(pid: u32) -> bool {
        DEAD.get() == pid
    }
}

#[cfg(any(loom, feature = "death-points"))]
pub(crate) use hook::{dead, stored};
#[cfg(any(loom, feature = "death-points"))]
pub use hook::{kill, set};

#[cfg(not(any(loom, feature = "death-points")))]
pub(crate) fn stored(_pid: u32) {}

#[cfg(not(any(loom, feature = "death-points")))]
pub(crate) fn dead(_pid: u32) -> bool {
    false
}
