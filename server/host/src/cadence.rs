//! When the producer's next step starts.
//!
//! Knows no clock: time arrives as nanoseconds. Invariant: a schedule keeps its phase while steps fit
//! in their period and never catches up after one that did not (seed, "The three choices a helper
//! would have had to make").

/// Shortest period in nanoseconds: a step that asks for less would take a core for itself.
pub(crate) const SHORTEST_PERIOD_NS: u64 = 1_000_000;

/// The scheduled start of the step in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cadence {
    scheduled_ns: u64,
}

/// What follows a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Following {
    /// Scheduled start of the next step, in nanoseconds.
    pub(crate) start_ns: u64,
    /// Starts that passed while the step ran and that will never run.
    pub(crate) missed: u64,
}

impl Cadence {
    /// The first step is due now.
    pub(crate) fn starting(now_ns: u64) -> Self {
        Cadence {
            scheduled_ns: now_ns,
        }
    }

    /// The step in hand ended at `now_ns` and asked for the next start `period_ns` after its own.
    pub(crate) fn follow(&mut self, period_ns: u64, now_ns: u64) -> Following {
        let period = period_ns.max(SHORTEST_PERIOD_NS);
        let due = self.scheduled_ns.saturating_add(period);
        let following = if due >= now_ns {
            Following {
                start_ns: due,
                missed: 0,
            }
        } else {
            Following {
                start_ns: now_ns,
                missed: (now_ns - due) / period,
            }
        };
        self.scheduled_ns = following.start_ns;
        following
    }
}

#[cfg(test)]
mod tests {
    use super::{Cadence, Following};

    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    proptest! {
        #[m0_spec::row(E33, E34)]
        #[test]
        fn the_phase_is_kept_until_an_overrun_and_no_start_is_caught_up(
            first in 0..u64::from(u32::MAX),
            steps in proptest::collection::vec((0..300 * MS, 0..900 * MS), 1..60),
        ) {
            let mut cadence = Cadence::starting(first);
            let mut start = first;
            for (period, took) in steps {
                let ended = start + took;
                let due = start + period.max(MS);
                let following = cadence.follow(period, ended);
                if ended <= due {
                    prop_assert_eq!(following, Following { start_ns: due, missed: 0 });
                } else {
                    // From now, with every whole period that has passed counted and none run.
                    prop_assert_eq!(following.start_ns, ended);
                    let counted = following.missed * period.max(MS);
                    prop_assert!(counted <= ended - due && ended - due < counted + period.max(MS));
                }
                start = following.start_ns;
            }
        }
    }

    #[m0_spec::row(E33)]
    #[test]
    fn steps_that_fit_keep_the_phase_of_the_first() {
        let mut cadence = Cadence::starting(7 * MS);
        for step in 1..=50 {
            // Each step takes a different share of its period.
            let ended = 7 * MS + (step - 1) * 100 * MS + (step % 90) * MS;
            let following = cadence.follow(100 * MS, ended);
            assert_eq!(following.start_ns, 7 * MS + step * 100 * MS, "step {step}");
            assert_eq!(following.missed, 0);
        }
    }

    #[m0_spec::row(E34)]
    #[test]
    fn one_overrun_moves_the_schedule_and_is_not_caught_up() {
        let mut cadence = Cadence::starting(0);
        let late = cadence.follow(100 * MS, 1_050 * MS);
        assert_eq!(
            late,
            Following {
                start_ns: 1_050 * MS,
                missed: 9
            }
        );
        // The window after it holds as many steps as any other.
        let mut starts = 0;
        let mut now = late.start_ns;
        while now < 2_050 * MS {
            starts += 1;
            now = cadence.follow(100 * MS, now + MS).start_ns;
        }
        assert_eq!(starts, 10);
    }

    #[m0_spec::row(E34)]
    #[test]
    fn a_period_of_zero_does_not_spin() {
        let mut cadence = Cadence::starting(0);
        assert_eq!(cadence.follow(0, 0).start_ns, MS);
    }
}
