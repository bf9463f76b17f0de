//! How one event changes the state, and what is to be done about it.
//!
//! Owns the order of things: what the event means, then what is due by the time that it tells.
//! Leaves to `respawn` how long to wait, and to `drain` how a stop goes. Invariant: a stop is
//! recorded before anybody is told of it, and nothing is forked after it.

use crate::EXIT_REFUSED;
use crate::action::{Action, DeathReason};
use crate::drain::{self, Stop, Verdict};
use crate::event::{Ending, Event};
use crate::respawn;
use crate::slot::{Phase, Slot, Worker};
use crate::state::{Course, State};

impl State {
    /// Applies one lawful event.
    pub(crate) fn take(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        if matches!(self.course, Course::Gone { .. }) {
            return actions;
        }
        self.now_ms = self.now_ms.max(event.now_ms().unwrap_or(0));
        let mut nudge = false;
        match event {
            Event::Start { .. } => self.start(&mut actions),
            Event::Forked { slot, pid, .. } => self.forked(slot, pid, &mut actions),
            Event::ForkFailed { slot, errno, .. } => self.fork_failed(slot, errno, &mut actions),
            Event::Ready { pid, .. } => self.ready(pid),
            Event::Exited { pid, code, .. } => {
                nudge = self.died(pid, Ending::Code(code), &mut actions);
            }
            Event::Signaled { pid, signal, .. } => {
                nudge = self.died(pid, Ending::Signal(signal), &mut actions);
            }
            Event::Stopped { pid, .. } => nudge = self.mark(pid, true, &mut actions),
            Event::Continued { pid, .. } => {
                self.mark(pid, false, &mut actions);
            }
            Event::StopRequested { signal, .. } => self.stop_requested(signal, &mut actions),
            Event::Tick { .. } => {}
            Event::JournalRequested => actions.push(Action::WriteJournal),
        }
        self.settle(nudge, &mut actions);
        actions
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        if self.course == Course::New {
            self.course = Course::Running;
            for (number, slot) in self.slots.iter_mut().enumerate() {
                slot.phase = Phase::Forking;
                actions.push(Action::Fork { slot: number });
            }
        }
    }

    /// A child exists. After a stop it is told to end at once; when the killing has begun, killed.
    fn forked(&mut self, number: usize, pid: u32, actions: &mut Vec<Action>) {
        let slot = &mut self.slots[number];
        slot.phase = Phase::Starting(Worker::new(pid, self.now_ms));
        if let Course::Stopping(stop) = self.course {
            if stop.killing {
                slot.phase = Phase::Draining(Worker::new(pid, self.now_ms));
                drain::kill(slot, actions);
            } else {
                drain::tell(slot, actions);
            }
        }
    }

    fn fork_failed(&mut self, number: usize, errno: i32, actions: &mut Vec<Action>) {
        let nothing_lives = self.live().next().is_none();
        let slot = &mut self.slots[number];
        slot.phase = Phase::Vacant {
            respawn_at_ms: None,
        };
        let mut retry_in_ms = None;
        if self.course == Course::Running {
            slot.row.count(self.now_ms, false);
            if !slot.row.is_crash_loop(&self.config) {
                let delay_ms = slot.row.delay_after_failed_fork_ms(&self.config);
                slot.phase = Phase::Vacant {
                    respawn_at_ms: Some(self.now_ms.saturating_add(delay_ms)),
                };
                retry_in_ms = Some(delay_ms);
            }
        }
        actions.push(Action::LogForkFailed {
            slot: number,
            errno,
            retry_in_ms,
        });
        if self.course == Course::Running && retry_in_ms.is_none() {
            let verdict = if nothing_lives {
                Verdict::OsRefused
            } else {
                Verdict::CrashLoop
            };
            self.crash_loop(number, verdict, actions);
        }
    }

    fn ready(&mut self, pid: u32) {
        let Some(number) = self.find(pid) else { return };
        let now_ms = self.now_ms;
        let slot = &mut self.slots[number];
        if let Some(worker) = slot.worker_mut() {
            worker.ready_ms.get_or_insert(now_ms);
        }
        if let Phase::Starting(worker) = slot.phase {
            slot.phase = Phase::Serving(worker);
        }
    }

    /// A child was reaped. True if its siblings should look for connections that it leaves.
    fn died(&mut self, pid: u32, how: Ending, actions: &mut Vec<Action>) -> bool {
        let Some(number) = self.find(pid) else {
            actions.push(Action::ReapedStranger { pid });
            return false;
        };
        let slot = &mut self.slots[number];
        let worker = *slot
            .worker()
            .expect("find names only slots that hold a worker");
        slot.phase = Phase::Vacant {
            respawn_at_ms: None,
        };
        let mut respawn_in_ms = None;
        let reason = match &mut self.course {
            Course::Stopping(stop) => {
                let (reason, verdict) = drain::judge(&worker, how);
                stop.worsen(verdict);
                reason
            }
            _ if how == Ending::Code(EXIT_REFUSED) => DeathReason::Refused,
            _ => {
                let healthy = respawn::was_healthy(&self.config, worker.ready_ms, self.now_ms);
                slot.row.count(self.now_ms, healthy);
                if slot.row.is_crash_loop(&self.config) {
                    DeathReason::CrashLoop
                } else {
                    let delay_ms = slot.row.delay_after_death_ms(&self.config);
                    let at_ms = self.now_ms.saturating_add(delay_ms);
                    slot.phase = Phase::Vacant {
                        respawn_at_ms: Some(at_ms),
                    };
                    respawn_in_ms = Some(delay_ms);
                    DeathReason::Unasked
                }
            }
        };
        actions.push(Action::Repair { slot: number, pid });
        actions.push(Action::LogDeath {
            slot: number,
            pid,
            how,
            uptime_ms: self.now_ms.saturating_sub(worker.forked_ms),
            respawn_in_ms,
            reason,
        });
        if self.course == Course::Running {
            match reason {
                DeathReason::Refused => self.begin_stop(Verdict::Refused, actions),
                DeathReason::CrashLoop => self.crash_loop(number, Verdict::CrashLoop, actions),
                _ => return true,
            }
        }
        false
    }

    /// A child was stopped or goes on. True if its siblings should look for connections that wait.
    fn mark(&mut self, pid: u32, stopped: bool, actions: &mut Vec<Action>) -> bool {
        let Some(number) = self.find(pid) else {
            return false;
        };
        let worker = self.slots[number]
            .worker_mut()
            .expect("find names only slots that hold a worker");
        if worker.stopped == stopped {
            return false;
        }
        worker.stopped = stopped;
        actions.push(if stopped {
            Action::MarkStopped { slot: number }
        } else {
            Action::MarkContinued { slot: number }
        });
        stopped && self.course == Course::Running
    }

    /// The first request of an operator records a stop (or joins one that a crash loop or a
    /// refusal began); the second kills.
    fn stop_requested(&mut self, signal: i32, actions: &mut Vec<Action>) {
        let again = matches!(self.course, Course::Stopping(stop) if stop.requested);
        actions.push(Action::LogStopping { signal, again });
        if !self.stopping() {
            self.begin_stop(Verdict::Clean, actions);
        }
        if let Course::Stopping(stop) = &mut self.course {
            stop.requested = true;
        }
        if again {
            self.kill_all(actions);
        }
    }

    fn crash_loop(&mut self, number: usize, verdict: Verdict, actions: &mut Vec<Action>) {
        let row = self.slots[number].row;
        actions.push(Action::LogCrashLoop {
            slot: number,
            deaths: row.deaths,
            window_ms: row.window_ms(self.now_ms),
        });
        self.begin_stop(verdict, actions);
    }

    /// Records the stop, then tells every worker, in this order: whoever dies of it is not
    /// respawned.
    fn begin_stop(&mut self, verdict: Verdict, actions: &mut Vec<Action>) {
        self.course = Course::Stopping(Stop::new(&self.config, self.now_ms, verdict));
        for slot in &mut self.slots {
            drain::tell(slot, actions);
        }
    }

    fn kill_all(&mut self, actions: &mut Vec<Action>) {
        if let Course::Stopping(stop) = &mut self.course {
            stop.killing = true;
        }
        for slot in &mut self.slots {
            drain::kill(slot, actions);
        }
    }

    /// What follows from the state and the time alone, whatever the event was.
    fn settle(&mut self, nudge: bool, actions: &mut Vec<Action>) {
        if matches!(self.course, Course::Stopping(stop) if stop.kill_is_due(self.now_ms)) {
            self.kill_all(actions);
        }
        let stand_in = self.course == Course::Running
            && self
                .slots
                .iter()
                .filter_map(Slot::worker)
                .any(|worker| worker.stopped);
        if stand_in != self.standing_in {
            self.standing_in = stand_in;
            actions.push(Action::StandIn(stand_in));
        }
        if nudge
            && self
                .slots
                .iter()
                .filter_map(Slot::worker)
                .any(|worker| !worker.stopped)
        {
            actions.push(Action::NudgeAll);
        }
        let all_serve = self
            .slots
            .iter()
            .all(|slot| matches!(slot.phase, Phase::Serving(_)));
        if all_serve && !self.announced {
            self.announced = true;
            actions.push(Action::Announce);
        }
        if self.course == Course::Running {
            for (number, slot) in self.slots.iter_mut().enumerate() {
                if slot
                    .respawn_at_ms()
                    .is_some_and(|at_ms| self.now_ms >= at_ms)
                {
                    slot.phase = Phase::Forking;
                    actions.push(Action::Fork { slot: number });
                }
            }
        }
        if let Course::Stopping(stop) = self.course
            && self.slots.iter().all(Slot::is_vacant)
        {
            let code = stop.verdict.code();
            self.course = Course::Gone { code };
            actions.push(Action::Exit { code });
        }
    }
}
