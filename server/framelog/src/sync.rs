//! The atomics and the waiting of this crate: the page's (the standard library's, or modelled ones in
//! the loom models) and a wait that is the model's own there.
//!
//! Nothing else in the crate names an atomic type or puts a thread to sleep, so a model explores
//! the product's own code.

#[cfg(not(loom))]
use std::time::Duration;

pub use m0_page::sync::{AtomicU64, Ordering, fence, words};

/// What one who waits does between two looks.
#[cfg(not(loom))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    Spin,
    Yield,
    Sleep(Duration),
}

/// The pause behind look `attempt` (0, 1, 2...); none when the bound is reached, after about 50 ms. No sleep is long: a
/// producer of large frames leaves the lock for shorter moments than a millisecond, and who looks that seldom misses
/// them all.
#[cfg(not(loom))]
fn pause(attempt: u32) -> Option<Pause> {
    const SPINS: u32 = 100;
    const YIELDS: u32 = SPINS + 20;
    const SLEEPS: u32 = YIELDS + 280;
    match attempt {
        0..SPINS => Some(Pause::Spin),
        SPINS..YIELDS => Some(Pause::Yield),
        YIELDS..SLEEPS => {
            let micros = 20 << (attempt - YIELDS).min(3);
            Some(Pause::Sleep(Duration::from_micros(micros)))
        }
        _ => None,
    }
}

/// Waits a little for another thread or process, more with each `attempt` (0, 1, 2...). `false` when
/// the bound is reached and the caller has to give up.
#[cfg(not(loom))]
pub(crate) fn wait(attempt: u32) -> bool {
    match pause(attempt) {
        Some(Pause::Spin) => std::hint::spin_loop(),
        Some(Pause::Yield) => std::thread::yield_now(),
        Some(Pause::Sleep(time)) => std::thread::sleep(time),
        None => return false,
    }
    true
}

/// As above, in a model: the other threads go on, three times.
#[cfg(loom)]
pub(crate) fn wait(attempt: u32) -> bool {
    loom::thread::yield_now();
    attempt < 3
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use super::{Pause, pause};

    #[m0_spec::row(F29)]
    #[test]
    fn who_waits_looks_every_200_us_for_about_50_ms() {
        let mut slept = Duration::ZERO;
        for pause in (0..).map_while(pause) {
            if let Pause::Sleep(time) = pause {
                assert!(
                    time <= Duration::from_micros(200),
                    "{time:?} between two looks"
                );
                slept += time;
            }
        }
        let bound = Duration::from_millis(40)..Duration::from_millis(50);
        assert!(bound.contains(&slept), "{slept:?}");
    }
}
