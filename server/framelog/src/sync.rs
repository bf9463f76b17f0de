//! The atomics and the waiting of this crate: the standard library's, or loom's in the models.
//!
//! Nothing else in the crate names an atomic type or puts a thread to sleep, so a model explores
//! the product's own code.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering, fence};

/// `count` zeroed words in private memory: for tests, models, examples and a host of one process.
pub fn words(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Waits a little for another thread or process, more with each `attempt` (0, 1, 2...). `false` when
/// the bound is reached and the caller has to give up: after about 50 ms.
#[cfg(not(loom))]
pub(crate) fn wait(attempt: u32) -> bool {
    const SPINS: u32 = 100;
    const YIELDS: u32 = SPINS + 20;
    const SLEEPS: u32 = YIELDS + 50;
    match attempt {
        0..SPINS => std::hint::spin_loop(),
        SPINS..YIELDS => std::thread::yield_now(),
        YIELDS..SLEEPS => {
            let micros = 20_u64 << (attempt - YIELDS).min(6);
            std::thread::sleep(std::time::Duration::from_micros(micros.min(1000)));
        }
        _ => return false,
    }
    true
}

/// As above, in a model: the other threads go on, three times.
#[cfg(loom)]
pub(crate) fn wait(attempt: u32) -> bool {
    loom::thread::yield_now();
    attempt < 3
}
