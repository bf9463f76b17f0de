//! Waiting for a state, never for a time.
//!
//! Owns the one loop of the harness that polls. Knows nothing of what it waits for.
//! Invariant: it returns within its bound plus one look, and a time-out names what was awaited and
//! what was last seen.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Pause between two looks: short against every promise that is measured with it.
const PAUSE: Duration = Duration::from_millis(2);

/// Calls `look` until it answers `Ok`, at most for `bound`.
///
/// `look` answers `Err(seen)` with a description of the present state while the awaited one is not
/// there; the last such description is part of the failure. `look` should return soon: it is not
/// interrupted.
///
/// ```
/// use std::time::Duration;
/// let mut count = 0;
/// let reached = smokes::until("the count to reach three", Duration::from_secs(1), || {
///     count += 1;
///     if count >= 3 { Ok(count) } else { Err(format!("count {count}")) }
/// });
/// assert_eq!(reached.unwrap(), 3);
/// ```
pub fn until<T>(
    what: &str,
    bound: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(seen) if start.elapsed() >= bound => {
                bail!(
                    "waited {} ms for {what}; last seen: {seen}",
                    bound.as_millis()
                )
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// `Ok(())` when `condition` holds, else `Err(seen)`: the usual last line of a look.
pub fn holds(condition: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(seen()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(H22)]
    #[test]
    fn a_time_out_names_what_was_awaited_and_what_was_seen() {
        let failure = until::<()>(
            "the moon",
            Duration::from_millis(5),
            || Err("clouds".into()),
        )
        .expect_err("it never comes")
        .to_string();
        assert!(
            failure.contains("for the moon") && failure.contains("last seen: clouds"),
            "{failure}"
        );
    }

    #[m0_spec::row(H22)]
    #[test]
    fn a_state_that_is_there_is_seen_even_with_no_time_left() {
        assert_eq!(
            until("now", Duration::ZERO, || Ok(1)).expect("it is there"),
            1
        );
    }
}
