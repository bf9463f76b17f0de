//! Time: that which never goes back, and that of the day.
//!
//! Owns the two readings of the monotonic clock that every bound of the server uses, and the cheap one of the time of
//! day, for lines of a log. No bound is measured with that one: it breaks when an operator sets the clock.
//! Invariant: two readings of one monotonic function, also in two processes of one boot, never go backwards.

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

/// Milliseconds since 1970 in UTC, read the cheap way where there is one (`CLOCK_REALTIME_COARSE` on Linux): up to one
/// timer tick (10 ms) behind. It goes back when somebody sets the clock, so it is for telling and not for measuring.
///
/// ```
/// assert!(m0_unix::clock::wall_ms() > 1_700_000_000_000, "it is after 2023");
/// ```
pub fn wall_ms() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::CLOCK_REALTIME_COARSE;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::CLOCK_REALTIME;
    let now = clock_gettime(clock).expect("the coarse time of day exists since Linux 2.6.32");
    now.tv_sec() * 1_000 + now.tv_nsec() / 1_000_000
}
