//! The atomics and the waiting of this crate: the page's (the standard library's, or modelled ones in
//! the loom models) and a wait that is the model's own there.
//!
//! Nothing else in the crate names an atomic type or puts a thread to sleep, so a model explores
//! the product's own code.

pub use m0_page::sync::{AtomicU64, Ordering, fence, words};

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
