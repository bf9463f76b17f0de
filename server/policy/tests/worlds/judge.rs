//! The judge: what every action must, may and must not be, by the ledger and the world's books.
//!
//! Invariant: each assertion begins with the row of spec/D.yaml that it stands for.

use std::collections::BTreeMap;

use m0_policy::{Action, WorkerSignal};

use crate::ledger::{History, Ledger};
use crate::world::Child;

impl Ledger {
    /// Judges one action at its turn, by the world's books.
    pub(crate) fn allows(
        &mut self,
        action: &Action,
        children: &BTreeMap<u32, Child>,
        in_flight: &[usize],
    ) {
        assert_eq!(self.exit, None, "D32: an action after the exit: {action}");
        match *action {
            Action::Fork { slot } => {
                assert_eq!(
                    self.stop_ms, None,
                    "D10: nobody is forked after a recorded stop"
                );
                assert!(
                    !in_flight.contains(&slot),
                    "D14: slot {slot} has a fork in flight"
                );
                let holder = children.values().find(|child| child.slot == slot);
                assert!(holder.is_none(), "D14: slot {slot} is held by {holder:?}");
                let due_ms = self.slots[slot]
                    .due_ms
                    .take()
                    .expect("D14: one fork a vacancy");
                assert!(
                    due_ms <= self.clock_ms,
                    "D2: slot {slot} is due at {due_ms}"
                );
                assert!(self.owed.is_empty(), "D21: a fork before {:?}", self.owed);
            }
            Action::Signal { pid, signal } => {
                let child = children
                    .get(&pid)
                    .expect("D44: a signal to a reaped process");
                assert!(
                    self.stop_ms.is_some(),
                    "D9: a signal before the stop is recorded"
                );
                assert!(!child.killed, "D11: a signal after the kill");
                match signal {
                    WorkerSignal::Term => assert!(!child.termed, "D31: TERM was sent twice"),
                    WorkerSignal::Kill => {
                        assert!(self.killing, "D12: killed before the bound");
                        if child.frozen {
                            self.sights.insert("killed while stopped");
                        }
                    }
                }
            }
            Action::Announce => {
                assert!(!self.announced, "D19: announced twice");
                assert!(
                    self.all_serve(children),
                    "D19: announced while a slot does not serve"
                );
                self.announced = true;
            }
            Action::StandIn(on) => {
                assert_ne!(on, self.standing_in, "D24: only a change is told");
                self.standing_in = on;
                self.sights.insert("stood in");
            }
            Action::NudgeAll => {
                assert!(self.nudge, "D29: rung without a death or a stop");
                self.nudge = false;
            }
            Action::Exit { code } => {
                assert!(children.is_empty(), "D13: left while {children:?} live");
                assert!(
                    in_flight.is_empty(),
                    "D13: left while {in_flight:?} are being forked"
                );
                assert!(self.stop_ms.is_some(), "D13: left without a stop");
                assert_eq!(
                    code, self.verdict,
                    "D26: the code is the worst that happened"
                );
                self.exit = Some(code);
                self.sights.insert(match code {
                    0 => "exit 0",
                    1 => "exit 1",
                    70 => "exit 70",
                    71 => "exit 71",
                    _ => "exit 78",
                });
            }
            Action::Repair { .. }
            | Action::LogDeath { .. }
            | Action::LogForkFailed { .. }
            | Action::ReapedStranger { .. }
            | Action::MarkStopped { .. }
            | Action::MarkContinued { .. }
            | Action::LogCrashLoop { .. }
            | Action::LogStopping { .. }
            | Action::WriteJournal => {
                assert!(!self.owed.is_empty(), "nothing is owed, but: {action}");
                assert_eq!(
                    *action,
                    self.owed.remove(0),
                    "what the event is owed, in order"
                );
            }
        }
    }

    fn all_serve(&self, children: &BTreeMap<u32, Child>) -> bool {
        self.stop_ms.is_none()
            && children.len() == self.config.workers()
            && children.values().all(|child| child.ready_ms.is_some())
    }

    /// What has to be true when an event's actions are performed: nothing owed was left out.
    pub(crate) fn demands(&mut self, children: &BTreeMap<u32, Child>, in_flight: &[usize]) {
        if self.exit.is_some() {
            return;
        }
        assert!(self.owed.is_empty(), "D20: left out: {:?}", self.owed);
        assert!(!self.nudge, "D29: the siblings were not rung");
        assert!(
            self.announced || !self.all_serve(children),
            "D19: the banner was left out"
        );
        let frozen = children.values().any(|child| child.frozen);
        assert_eq!(
            self.standing_in,
            frozen && self.stop_ms.is_none(),
            "D24: standing in"
        );
        let overdue = |slot: &History| slot.due_ms.is_some_and(|due_ms| due_ms <= self.clock_ms);
        assert!(
            !self.slots.iter().any(overdue),
            "D47: what was due was not done"
        );
        if self.stop_ms.is_some() {
            for (pid, child) in children {
                assert!(
                    child.termed || child.killed,
                    "D31: {pid} was not told to end"
                );
                assert_eq!(child.killed, self.killing, "D12: {pid} in the killing");
            }
            assert!(
                !children.is_empty() || !in_flight.is_empty(),
                "D13: nobody is left, and the host stays"
            );
        }
    }
}
