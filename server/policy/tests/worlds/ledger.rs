//! A second telling of the rules: what every event is owed.
//!
//! Written from the promises (spec/D.yaml), in other words than the policy: it counts what
//! happened in the world, and shares no code with `step`. `judge` holds the actions against it.
//! Invariant: it never looks into the supervisor's state to decide what is right, only to see that
//! strangers do not change it.

use std::collections::{BTreeMap, BTreeSet};

use m0_policy::{Action, Config, Ending, Event, State};

use crate::world::Child;

/// What one slot has been through.
#[derive(Clone, Copy, Default)]
pub(crate) struct History {
    deaths: u32,
    first_ms: u64,
    last_delay_ms: u64,
    /// When it is to be filled again, by the supervisor's clock.
    pub(crate) due_ms: Option<u64>,
    marked: bool,
}

pub(crate) struct Ledger {
    pub(crate) config: Config,
    pub(crate) slots: Vec<History>,
    started: bool,
    /// The supervisor's clock, which never runs backwards.
    pub(crate) clock_ms: u64,
    /// When the stop was recorded.
    pub(crate) stop_ms: Option<u64>,
    asked: u32,
    pub(crate) killing: bool,
    /// The host's code by what happened so far.
    pub(crate) verdict: i32,
    pub(crate) announced: bool,
    pub(crate) standing_in: bool,
    pub(crate) exit: Option<i32>,
    /// What the current event is owed.
    pub(crate) owed: Vec<Action>,
    pub(crate) nudge: bool,
    /// What was seen in this world, for the test that the worlds are rich.
    pub(crate) sights: BTreeSet<&'static str>,
}

/// Codes of the host from best to worst.
const SEVERITY: [i32; 5] = [0, 1, 71, 70, 78];

impl Ledger {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            slots: vec![History::default(); config.workers()],
            started: false,
            clock_ms: 0,
            stop_ms: None,
            asked: 0,
            killing: false,
            verdict: 0,
            announced: false,
            standing_in: false,
            exit: None,
            owed: Vec::new(),
            nudge: false,
            sights: BTreeSet::new(),
        }
    }

    pub(crate) fn exit(&self) -> Option<i32> {
        self.exit
    }

    pub(crate) fn stop_ms(&self) -> Option<u64> {
        self.stop_ms
    }

    /// Reads an event before the world's books are changed by it, and notes what it is owed.
    pub(crate) fn sees(
        &mut self,
        event: Event,
        before: &State,
        after: &State,
        actions: &[Action],
        children: &BTreeMap<u32, Child>,
        in_flight: &[usize],
    ) {
        if self.exit.is_some() {
            assert_eq!(
                (actions, before),
                (&[][..], after),
                "D32: nothing follows the exit"
            );
            self.sights.insert("event after the exit");
            return;
        }
        let time_stood = event.now_ms().is_none_or(|now_ms| now_ms <= self.clock_ms);
        self.clock_ms = self.clock_ms.max(event.now_ms().unwrap_or(0));
        assert!(
            self.owed.is_empty(),
            "an earlier event was owed {:?}",
            self.owed
        );
        self.nudge = false;
        match event {
            Event::Start { .. } => self.starts(),
            Event::ForkFailed { slot, errno, .. } => {
                self.fork_failed(slot, errno, children.is_empty());
            }
            Event::Exited { pid, .. }
            | Event::Signaled { pid, .. }
            | Event::Stopped { pid, .. }
            | Event::Continued { pid, .. }
            | Event::Ready { pid, .. }
                if !children.contains_key(&pid) =>
            {
                if matches!(event, Event::Exited { .. } | Event::Signaled { .. }) {
                    self.owed.push(Action::ReapedStranger { pid });
                    self.sights.insert("stranger reaped");
                }
                if time_stood {
                    assert_eq!(before, after, "D15: a stranger changes nothing");
                    assert_eq!(actions, self.owed, "D15: and nothing is done about it");
                }
            }
            Event::Exited { pid, code, .. } => {
                self.reaped(pid, children[&pid], Ending::Code(code), children);
            }
            Event::Signaled { pid, signal, .. } => {
                self.reaped(pid, children[&pid], Ending::Signal(signal), children);
            }
            Event::Stopped { pid, .. } => self.freezes(pid, true, children),
            Event::Continued { pid, .. } => self.freezes(pid, false, children),
            Event::StopRequested { signal, .. } => self.asks(signal),
            Event::JournalRequested => {
                self.owed.push(Action::WriteJournal);
                let due = self
                    .slots
                    .iter()
                    .any(|slot| slot.due_ms == Some(self.clock_ms));
                assert!(due || before == after, "D46: to look changes nothing");
            }
            Event::Forked { slot, .. } => {
                assert!(
                    in_flight.contains(&slot),
                    "the world forks what was asked for"
                );
                if self.stop_ms.is_some() {
                    self.sights.insert("fork in flight at the stop");
                }
            }
            Event::Ready { .. } | Event::Tick { .. } => {}
        }
        if let Some(stop_ms) = self.stop_ms {
            let bound_ms = stop_ms + self.config.drain_ms() + self.config.kill_margin_ms();
            if self.clock_ms >= bound_ms && !self.killing {
                self.killing = true;
                self.sights.insert("killed at the bound");
            }
            self.slots.iter_mut().for_each(|slot| slot.due_ms = None);
        }
    }

    fn starts(&mut self) {
        if !self.started && self.stop_ms.is_none() {
            self.started = true;
            self.slots.iter_mut().for_each(|slot| slot.due_ms = Some(0));
        }
    }

    fn asks(&mut self, signal: i32) {
        self.asked += 1;
        self.owed.push(Action::LogStopping {
            signal,
            again: self.asked > 1,
        });
        self.stop_ms.get_or_insert(self.clock_ms);
        if self.asked == 2 {
            self.killing = true;
            self.sights.insert("killed by a second stop");
        }
    }

    fn worsens(&mut self, code: i32) {
        let severity = |code| SEVERITY.iter().position(|other| *other == code);
        if severity(code) > severity(self.verdict) {
            self.verdict = code;
        }
    }

    /// Counts a death or a failed fork; the delay until the next try, or none for a crash loop.
    fn counts(&mut self, slot: usize, new_row: bool, fork: bool) -> Option<u64> {
        let history = &mut self.slots[slot];
        if new_row || history.deaths == 0 {
            *history = History {
                first_ms: self.clock_ms,
                marked: history.marked,
                ..History::default()
            };
        }
        history.deaths += 1;
        if history.deaths >= self.config.crash_limit() {
            return None;
        }
        // The first death costs nothing; each further one doubles. A failed fork costs as much as
        // the death after it would.
        let steps = history.deaths - u32::from(!fork);
        let mut delay_ms = 0;
        for step in 0..steps {
            delay_ms = if step == 0 {
                self.config.backoff_ms()
            } else {
                delay_ms * 2
            };
        }
        let delay_ms = delay_ms.min(self.config.backoff_max_ms());
        assert!(
            delay_ms >= history.last_delay_ms,
            "D2: within a row the delay never shrinks"
        );
        history.last_delay_ms = delay_ms;
        history.due_ms = Some(self.clock_ms + delay_ms);
        Some(delay_ms)
    }

    fn crash_loop(&mut self, slot: usize, code: i32) {
        let History {
            deaths, first_ms, ..
        } = self.slots[slot];
        let window_ms = self.clock_ms - first_ms;
        self.owed.push(Action::LogCrashLoop {
            slot,
            deaths,
            window_ms,
        });
        self.stop_ms = Some(self.clock_ms);
        self.worsens(code);
    }

    fn fork_failed(&mut self, slot: usize, errno: i32, nothing_lives: bool) {
        let retry_in_ms = if self.stop_ms.is_some() {
            None
        } else {
            self.counts(slot, false, true)
        };
        self.owed.push(Action::LogForkFailed {
            slot,
            errno,
            retry_in_ms,
        });
        if retry_in_ms.is_none() && self.stop_ms.is_none() {
            self.crash_loop(slot, if nothing_lives { 71 } else { 70 });
        }
    }

    fn reaped(&mut self, pid: u32, child: Child, how: Ending, children: &BTreeMap<u32, Child>) {
        use m0_policy::DeathReason as Reason;
        let slot = child.slot;
        let refused = how == Ending::Code(78);
        let mut respawn_in_ms = None;
        let mut crash_loop = false;
        let reason = if refused {
            self.worsens(78);
            Reason::Refused
        } else if self.stop_ms.is_some() {
            let by_stop_signal = matches!(how, Ending::Signal(2 | 15)) && child.ready_ms.is_none();
            match how {
                Ending::Code(0) => Reason::Drained,
                _ if by_stop_signal => Reason::StoppedBeforeReady,
                _ => {
                    self.worsens(1);
                    if child.killed {
                        Reason::Killed
                    } else {
                        Reason::DiedInDrain
                    }
                }
            }
        } else {
            let healthy = child
                .ready_ms
                .is_some_and(|ready_ms| self.clock_ms - ready_ms >= self.config.healthy_ms());
            if healthy && self.slots[slot].deaths > 0 {
                self.sights.insert("healthy run after a death");
            }
            respawn_in_ms = self.counts(slot, healthy, false);
            crash_loop = respawn_in_ms.is_none();
            if crash_loop {
                Reason::CrashLoop
            } else {
                Reason::Unasked
            }
        };
        let uptime_ms = self.clock_ms - child.forked_ms;
        self.owed.push(Action::Repair { slot, pid });
        self.owed.push(Action::LogDeath {
            slot,
            pid,
            how,
            uptime_ms,
            respawn_in_ms,
            reason,
        });
        self.slots[slot].marked = false;
        if crash_loop {
            self.crash_loop(slot, 70);
        }
        if refused {
            self.stop_ms.get_or_insert(self.clock_ms);
        }
        self.owes_nudge(pid, children);
    }

    fn freezes(&mut self, pid: u32, frozen: bool, children: &BTreeMap<u32, Child>) {
        let slot = children[&pid].slot;
        if self.slots[slot].marked == frozen {
            return;
        }
        self.slots[slot].marked = frozen;
        self.owed.push(if frozen {
            Action::MarkStopped { slot }
        } else {
            Action::MarkContinued { slot }
        });
        if frozen {
            self.owes_nudge(pid, children);
        }
    }

    /// After the death or stop of `pid` in a running host its awake siblings are rung.
    fn owes_nudge(&mut self, pid: u32, children: &BTreeMap<u32, Child>) {
        let awake = children
            .iter()
            .any(|(other, child)| *other != pid && !child.frozen);
        self.nudge = awake && self.stop_ms.is_none();
    }
}
