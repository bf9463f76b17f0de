//! What the supervisor remembers between two events, and how one event changes it.
//!
//! Owns the slots and the course of the whole host (new, running, stopping, gone). Leaves to
//! `respawn` how long to wait, and to `drain` how a stop goes. Invariant: `invariants::check`.

use std::fmt;

use crate::EXIT_REFUSED;
use crate::action::{Action, DeathReason};
use crate::config::Config;
use crate::drain::{self, Stop, Verdict};
use crate::event::{Ending, Event, Unlawful};
use crate::respawn;
use crate::slot::{Phase, Slot, Worker};

/// Everything that the supervisor remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub(crate) config: Config,
    pub(crate) slots: Vec<Slot>,
    pub(crate) course: Course,
    pub(crate) now_ms: u64,
    pub(crate) announced: bool,
    pub(crate) standing_in: bool,
}

/// Where the host is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Nothing was forked yet.
    New,
    /// Every slot is to be filled.
    Running,
    /// A stop was recorded: no slot is filled again.
    Stopping(Stop),
    /// The exit was ordered; every event is ignored.
    Gone {
        /// The exit code.
        code: i32,
    },
}

impl State {
    /// A supervisor that has not started, at this moment (ms, monotonic).
    pub fn new(config: Config, now_ms: u64) -> Self {
        Self {
            config,
            slots: vec![Slot::new(); config.workers()],
            course: Course::New,
            now_ms,
            announced: false,
            standing_in: false,
        }
    }

    /// The bounds it keeps.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The slots, in order of their numbers.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Where the host is in its life.
    pub fn course(&self) -> Course {
        self.course
    }

    /// The latest time that any event has told, ms.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Whether a stop is recorded (an operator's, a crash loop's or a refusal's), or the host gone.
    pub fn stopping(&self) -> bool {
        matches!(self.course, Course::Stopping(_) | Course::Gone { .. })
    }

    /// The live workers: slot and pid.
    pub fn live(&self) -> impl Iterator<Item = (usize, u32)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, place)| place.worker().map(|worker| (slot, worker.pid)))
    }

    /// The next moment (ms) at which an [`Event::Tick`] is wanted; always later than
    /// [`State::now_ms`]. `None`: wait for something else.
    pub fn deadline(&self) -> Option<u64> {
        match self.course {
            Course::Running => self.slots.iter().filter_map(Slot::respawn_at_ms).min(),
            Course::Stopping(stop) if !stop.killing => Some(stop.kill_at_ms),
            Course::New | Course::Stopping(_) | Course::Gone { .. } => None,
        }
    }

    /// Whether this event can happen now, by the protocol of [`step`](crate::step): the outcome of
    /// a fork comes once for each fork asked for, with a pid that fork(2) can return and that no
    /// live worker has. Everything else may come at any time, from anyone.
    pub fn lawful(&self, event: Event) -> Result<(), Unlawful> {
        let (slot, pid) = match event {
            _ if matches!(self.course, Course::Gone { .. }) => return Ok(()),
            Event::Forked { slot, pid, .. } => (slot, Some(pid)),
            Event::ForkFailed { slot, .. } => (slot, None),
            _ => return Ok(()),
        };
        let place = self.slots.get(slot).ok_or(Unlawful::NoSuchSlot { slot })?;
        if place.phase != Phase::Forking {
            return Err(Unlawful::NoForkInFlight { slot });
        }
        match pid {
            Some(pid) if !is_child_pid(pid) => Err(Unlawful::BadPid { pid }),
            Some(pid) if self.find(pid).is_some() => Err(Unlawful::PidInUse { pid }),
            _ => Ok(()),
        }
    }

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

    /// The slot of a live worker with this pid.
    fn find(&self, pid: u32) -> Option<usize> {
        self.slots
            .iter()
            .position(|slot| slot.worker().is_some_and(|worker| worker.pid == pid))
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

/// Whether fork(2) can return it to a parent and kill(2) takes it as one process: not 0 (the own
/// group), not 1 (init, or the supervisor itself), not negative as a `pid_t` (a group, or all).
pub(crate) fn is_child_pid(pid: u32) -> bool {
    pid >= 2 && i32::try_from(pid).is_ok()
}

impl fmt::Display for State {
    /// One line for the host, one for each slot: the journal's text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state course=")?;
        match self.course {
            Course::New => f.write_str("new")?,
            Course::Running => f.write_str("running")?,
            Course::Stopping(Stop {
                kill_at_ms,
                requested,
                killing,
                verdict,
            }) => {
                let (requested, killing) = (u8::from(requested), u8::from(killing));
                write!(
                    f,
                    "stopping kill_at={kill_at_ms} requested={requested} killing={killing} "
                )?;
                write!(f, "verdict={verdict}")?;
            }
            Course::Gone { code } => write!(f, "gone code={code}")?,
        }
        let (announced, standing_in) = (u8::from(self.announced), u8::from(self.standing_in));
        writeln!(
            f,
            " now={} announced={announced} standing_in={standing_in}",
            self.now_ms
        )?;
        for (number, slot) in self.slots.iter().enumerate() {
            writeln!(f, "slot number={number} phase={slot}")?;
        }
        Ok(())
    }
}
