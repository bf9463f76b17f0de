//! Decides when a dead worker's slot is filled again, and when it has died too often.
//!
//! Knows no pid and no clock: time arrives in the event. Knows nothing of a stop: who is stopping
//! does not ask. Invariant: within one row of deaths the delay never shrinks, and never exceeds
//! the configured maximum.

use crate::config::Config;

/// Deaths (and failed forks) of one slot in a row, without a healthy run between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// How many, 0 before the first.
    pub deaths: u32,
    /// When the first of them happened, ms; 0 before it.
    pub since_ms: u64,
}

impl Row {
    /// Counts one more. A healthy run before it ends the row, and this one begins the next.
    pub(crate) fn count(&mut self, now_ms: u64, after_healthy_run: bool) {
        if after_healthy_run || self.deaths == 0 {
            *self = Self {
                deaths: 1,
                since_ms: now_ms,
            };
        } else {
            self.deaths += 1;
        }
    }

    /// Whether this is a crash loop.
    pub(crate) fn is_crash_loop(&self, config: &Config) -> bool {
        self.deaths >= config.crash_limit()
    }

    /// Time from the first of the row to `now_ms`, ms.
    pub(crate) fn window_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }

    /// Delay of the respawn after the row's last death, ms: none after the first, then the
    /// backoff, doubled each time, up to its maximum.
    pub(crate) fn delay_after_death_ms(&self, config: &Config) -> u64 {
        match self.deaths {
            0 | 1 => 0,
            deaths => doubled(config, deaths - 2),
        }
    }

    /// Delay of the next try after a fork that failed, ms. Never at once: a system that is out of
    /// memory or processes needs the pause more than the slot needs its worker.
    pub(crate) fn delay_after_failed_fork_ms(&self, config: &Config) -> u64 {
        doubled(config, self.deaths.saturating_sub(1))
    }
}

/// Whether a worker served long enough for its death to begin a new row. Counted from readiness:
/// a worker that never was ready has never been healthy, however long it tried.
pub(crate) fn was_healthy(config: &Config, ready_ms: Option<u64>, now_ms: u64) -> bool {
    ready_ms.is_some_and(|ready_ms| now_ms.saturating_sub(ready_ms) >= config.healthy_ms())
}

/// The backoff doubled so many times, up to its maximum, ms.
fn doubled(config: &Config, times: u32) -> u64 {
    let factor = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
    config
        .backoff_ms()
        .saturating_mul(factor)
        .min(config.backoff_max_ms())
}
