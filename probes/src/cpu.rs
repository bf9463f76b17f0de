//! Time that processes spent on a processor.
//!
//! Owns the reading of `/proc/PID/task/*/schedstat` (nanoseconds on a processor, kernel documentation
//! `scheduler/sched-stats`) and of the tick counts in `/proc/PID/stat` (proc(5)). Refuses to know what the time was spent for.
//! Invariant: the total is exact; the division into user and system is sampled by the kernel in ticks of 10 ms,
//! so it is taken over all rounds together and never over one.

use std::fs;

use anyhow::{Context, Result};

/// What some processes have used since they began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Nanoseconds on a processor, all threads that live.
    pub total_ns: u64,
    /// Ticks in user mode.
    pub user_ticks: u64,
    /// Ticks in the kernel.
    pub system_ticks: u64,
}

impl Cpu {
    /// Reads the use of these processes so far. A process that is gone is an error: its time would be missing.
    pub fn of(pids: &[u32]) -> Result<Self> {
        let mut sum = Self::default();
        for &pid in pids {
            let gone = || format!("process {pid} is gone while it is measured");
            let line = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(gone)?;
            let (user, system) =
                ticks(&line).with_context(|| format!("/proc/{pid}/stat is {line:?}"))?;
            sum.user_ticks += user;
            sum.system_ticks += system;
            for thread in fs::read_dir(format!("/proc/{pid}/task")).with_context(gone)? {
                // A thread may end between the listing and the reading.
                if let Ok(line) = fs::read_to_string(thread?.path().join("schedstat")) {
                    sum.total_ns += on_processor(&line)
                        .with_context(|| format!("a schedstat of {pid} is {line:?}"))?;
                }
            }
        }
        Ok(sum)
    }

    /// What was used since an earlier reading of the same processes.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
        }
    }

    /// The share of user mode in the ticks, in 0..=1; none when there was no tick.
    pub fn user_share(self) -> Option<f64> {
        let ticks = self.user_ticks + self.system_ticks;
        (ticks > 0).then(|| self.user_ticks as f64 / ticks as f64)
    }
}

impl std::ops::AddAssign for Cpu {
    fn add_assign(&mut self, other: Self) {
        self.total_ns += other.total_ns;
        self.user_ticks += other.user_ticks;
        self.system_ticks += other.system_ticks;
    }
}

/// User and system ticks: fields 14 and 15, counted behind the command name, which may hold spaces and
/// parentheses itself.
fn ticks(line: &str) -> Option<(u64, u64)> {
    let (_, behind) = line.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The first field: nanoseconds on a processor.
fn on_processor(line: &str) -> Option<u64> {
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Cpu, on_processor, ticks};

    #[m0_spec::row(H38)]
    #[test]
    fn ticks_are_found_behind_any_command_name() {
        let cases = [
            (
                "7 (a) S 1 7 7 0 -1 4194560 99 0 0 0 31 12 0 0 20 0",
                Some((31, 12)),
            ),
            (
                "7 (a) b) (c) S 1 7 7 0 -1 4194560 99 0 0 0 5 6 0 0 20 0",
                Some((5, 6)),
            ),
            ("7 (a) S 1 7", None),
            ("7 a S 1 7 7 0 -1 4194560 99 0 0 0 31 12", None),
            ("", None),
        ];
        for (line, wanted) in cases {
            assert_eq!(ticks(line), wanted, "{line:?}");
        }
        assert_eq!(on_processor("944120 133121 2\n"), Some(944_120));
        assert_eq!(on_processor(""), None);
    }

    #[m0_spec::row(H38)]
    #[test]
    fn a_process_that_works_uses_time_and_one_that_is_gone_is_an_error() {
        let own = std::process::id();
        let before = Cpu::of(&[own]).expect("this process lives");
        let mut word = 1_u64;
        while Cpu::of(&[own])
            .expect("this process lives")
            .since(before)
            .total_ns
            < 20_000_000
        {
            word = std::hint::black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        assert!(word % 2 == 1, "an odd number stays odd");
        assert!(Cpu::of(&[own, u32::MAX]).is_err());
    }

    #[m0_spec::row(H38)]
    #[test]
    fn the_share_of_user_mode_is_of_all_ticks() {
        let mut sum = Cpu {
            total_ns: 1,
            user_ticks: 1,
            system_ticks: 2,
        };
        sum += Cpu {
            total_ns: 1,
            user_ticks: 0,
            system_ticks: 1,
        };
        assert_eq!(sum.user_share(), Some(0.25));
        assert_eq!(Cpu::default().user_share(), None);
    }
}
