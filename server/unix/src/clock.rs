//! Time that never goes back.
//!
//! Owns the two readings of the monotonic clock that every bound of the server uses.
//! Refuses to know the time of day: a bound measured with it breaks when an operator sets the clock.
//! Invariant: two readings of one function, also in two processes of one boot, never go backwards.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds since an arbitrary moment of this boot (`CLOCK_MONOTONIC`, `clock_gettime(2)`).
///
/// Comparable across the processes of one boot (of one time namespace), so it may be written to shared memory.
/// It stands still while the machine is suspended. A `u64` of nanoseconds lasts 584 years.
///
/// ```
/// let before = m0_unix::clock::monotonic_ns();
/// assert!(m0_unix::clock::monotonic_ns() >= before);
/// ```
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .expect("CLOCK_MONOTONIC exists on every kernel we run on");
    let seconds = u64::try_from(now.tv_sec()).expect("the monotonic clock starts at or above zero");
    seconds * 1_000_000_000 + now.tv_nsec() as u64
}

/// Milliseconds of the same clock, read the cheap way where there is one (`CLOCK_MONOTONIC_COARSE` on Linux).
///
/// The coarse reading is up to one timer tick (10 ms) behind [`monotonic_ns`], never ahead of it. For sweeps and
/// uptimes, not for measuring.
pub fn monotonic_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::CLOCK_MONOTONIC_COARSE;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::CLOCK_MONOTONIC;
    let now = clock_gettime(clock).expect("the coarse monotonic clock exists since Linux 2.6.32");
    let seconds = u64::try_from(now.tv_sec()).expect("the monotonic clock starts at or above zero");
    seconds * 1_000 + now.tv_nsec() as u64 / 1_000_000
}
