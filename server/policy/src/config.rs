//! The bounds that the supervisor keeps.
//!
//! Owns their defaults and ranges. Does not know where they come from (flags, environment).
//! Invariant: a `Config` that exists is in range, so no decision checks it again.

use std::fmt;
use std::time::Duration;

/// The largest number of workers of one host.
pub const MAX_WORKERS: usize = 64;

/// The longest duration that any bound takes.
const LONGEST: Duration = Duration::from_hours(24);

/// How many workers, and every bound of their supervision. Durations count in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    workers: usize,
    drain_ms: u64,
    kill_margin_ms: u64,
    backoff_ms: u64,
    backoff_max_ms: u64,
    healthy_ms: u64,
    crash_limit: u32,
}

impl Config {
    /// The defaults for this many workers: a drain of 5 s, 250 ms after it the kill; a backoff
    /// from 100 ms to 10 s, reset by 10 s of service; ten deaths in a row are a crash loop.
    ///
    /// ```
    /// use std::time::Duration;
    /// use m0_policy::Config;
    ///
    /// let config = Config::new(4)?.with_drain(Duration::from_secs(30))?;
    /// assert_eq!(config.drain_ms(), 30_000);
    /// assert!(Config::new(0).is_err());
    /// # Ok::<(), m0_policy::ConfigError>(())
    /// ```
    pub fn new(workers: usize) -> Result<Self, ConfigError> {
        if workers == 0 || workers > MAX_WORKERS {
            return Err(ConfigError::Workers { workers });
        }
        Ok(Self {
            workers,
            drain_ms: 5_000,
            kill_margin_ms: 250,
            backoff_ms: 100,
            backoff_max_ms: 10_000,
            healthy_ms: 10_000,
            crash_limit: 10,
        })
    }

    /// Time that a worker has from SIGTERM until it should be gone, 0 to 24 h.
    pub fn with_drain(mut self, drain: Duration) -> Result<Self, ConfigError> {
        self.drain_ms = millis("drain", drain, 0)?;
        Ok(self)
    }

    /// Time after the drain's bound at which the supervisor kills what is left, 0 to 24 h.
    pub fn with_kill_margin(mut self, margin: Duration) -> Result<Self, ConfigError> {
        self.kill_margin_ms = millis("kill_margin", margin, 0)?;
        Ok(self)
    }

    /// Delay of the second respawn in a row, 1 ms to 24 h, and the largest delay, which is not
    /// below it.
    pub fn with_backoff(mut self, first: Duration, max: Duration) -> Result<Self, ConfigError> {
        self.backoff_ms = millis("backoff", first, 1)?;
        self.backoff_max_ms = millis("backoff_max", max, 1)?;
        if self.backoff_ms > self.backoff_max_ms {
            return Err(ConfigError::BackoffAboveMax { first, max });
        }
        Ok(self)
    }

    /// Time of service (from a worker's readiness) that makes its run healthy, 1 ms to
    /// 24 h: with 0 no crash of a ready worker would ever wait.
    pub fn with_healthy(mut self, healthy: Duration) -> Result<Self, ConfigError> {
        self.healthy_ms = millis("healthy", healthy, 1)?;
        Ok(self)
    }

    /// Deaths of one slot in a row, without a healthy run between them, that are a crash loop;
    /// at least 1.
    pub fn with_crash_limit(mut self, limit: u32) -> Result<Self, ConfigError> {
        if limit == 0 {
            return Err(ConfigError::NoCrashLimit);
        }
        self.crash_limit = limit;
        Ok(self)
    }

    /// Number of slots, 1 to [`MAX_WORKERS`].
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Time from SIGTERM until a worker should be gone, ms.
    pub fn drain_ms(&self) -> u64 {
        self.drain_ms
    }

    /// Time from the drain's bound to the kill, ms.
    pub fn kill_margin_ms(&self) -> u64 {
        self.kill_margin_ms
    }

    /// Delay of the second respawn in a row, ms.
    pub fn backoff_ms(&self) -> u64 {
        self.backoff_ms
    }

    /// Largest delay of a respawn, ms.
    pub fn backoff_max_ms(&self) -> u64 {
        self.backoff_max_ms
    }

    /// Time of service that makes a run healthy, ms.
    pub fn healthy_ms(&self) -> u64 {
        self.healthy_ms
    }

    /// Deaths in a row that are a crash loop.
    pub fn crash_limit(&self) -> u32 {
        self.crash_limit
    }
}

/// A duration in whole milliseconds, within `least_ms` and [`LONGEST`].
fn millis(name: &'static str, value: Duration, least_ms: u64) -> Result<u64, ConfigError> {
    let out_of_range = ConfigError::Duration { name, value };
    if value > LONGEST {
        return Err(out_of_range);
    }
    let ms = u64::try_from(value.as_millis()).map_err(|_| out_of_range)?;
    if ms < least_ms {
        Err(out_of_range)
    } else {
        Ok(ms)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "workers={} drain={} kill_margin={} backoff={} backoff_max={} healthy={} crash_limit={}",
            self.workers,
            self.drain_ms,
            self.kill_margin_ms,
            self.backoff_ms,
            self.backoff_max_ms,
            self.healthy_ms,
            self.crash_limit
        )
    }
}

/// Why a bound was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The number of workers is not within 1 and [`MAX_WORKERS`].
    Workers {
        /// The number given.
        workers: usize,
    },
    /// A duration is out of its range.
    Duration {
        /// The bound's name.
        name: &'static str,
        /// The duration given.
        value: Duration,
    },
    /// The first delay of a respawn is larger than the largest.
    BackoffAboveMax {
        /// The first delay given.
        first: Duration,
        /// The largest delay given.
        max: Duration,
    },
    /// A crash limit of 0 would end the host before its first death.
    NoCrashLimit,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers { workers } => {
                write!(f, "{workers} workers: not within 1 and {MAX_WORKERS}")
            }
            Self::Duration { name, value } => write!(f, "{name} of {value:?}: out of range"),
            Self::BackoffAboveMax { first, max } => {
                write!(f, "backoff of {first:?}: above its maximum of {max:?}")
            }
            Self::NoCrashLimit => f.write_str("crash_limit of 0: at least 1 is needed"),
        }
    }
}

impl std::error::Error for ConfigError {}
