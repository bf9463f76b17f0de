//! A simulated operating system around the supervisor, for the properties.
//!
//! Owns processes, forks in flight, pids (reused once reaped) and two clocks: the true one, and
//! the one that the supervisor is told. Performs every action and lets `ledger` judge it. Knows no
//! rule of supervision itself. Invariant: an event is fed only if it is true of this world.

use std::collections::BTreeMap;

use m0_policy::{Action, Config, Ending, Event, Journal, State, WorkerSignal, step};

use crate::ledger::Ledger;
use crate::script::{Move, Script};

pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGSEGV: i32 = 11;
pub(crate) const SIGTERM: i32 = 15;
const EAGAIN: i32 = 11;

/// A worker process that was not reaped yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    pub(crate) slot: usize,
    /// When the supervisor was told of it, by its clock.
    pub(crate) forked_ms: u64,
    /// When it reported itself ready, by the supervisor's clock.
    pub(crate) ready_ms: Option<u64>,
    pub(crate) frozen: bool,
    pub(crate) termed: bool,
    pub(crate) killed: bool,
    /// How it ended, if it has.
    pub(crate) ended: Option<Ending>,
}

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) journal: Journal,
    pub(crate) ledger: Ledger,
    pub(crate) children: BTreeMap<u32, Child>,
    /// Slots whose fork was asked for and has no outcome yet, oldest first.
    pub(crate) in_flight: Vec<usize>,
    /// The true time, ms.
    now_ms: u64,
    /// What the supervisor is told instead, while its clock stands.
    stands_at_ms: Option<u64>,
    next_pid: u32,
    reaped_pids: Vec<u32>,
}

impl World {
    pub(crate) fn new(config: Config, journal_entries: usize) -> Self {
        let state = State::new(config, 0);
        Self {
            journal: Journal::bounded(&state, journal_entries),
            ledger: Ledger::new(config),
            state,
            children: BTreeMap::new(),
            in_flight: Vec::new(),
            now_ms: 0,
            stands_at_ms: None,
            next_pid: 100,
            reaped_pids: Vec::new(),
        }
    }

    /// A world in which everything of the script has happened, and was judged.
    pub(crate) fn after(script: &Script) -> Self {
        let mut world = Self::new(script.config, script.journal_entries);
        for &step in &script.moves {
            world.play(step);
        }
        world
    }

    /// What the supervisor's clock shows, ms.
    pub(crate) fn told_ms(&self) -> u64 {
        self.stands_at_ms.unwrap_or(self.now_ms)
    }

    /// Feeds one event, and performs and judges what comes of it.
    pub(crate) fn feed(&mut self, event: Event) {
        let before = self.state.clone();
        let actions = step(&mut self.state, event);
        self.journal.record(event, &actions);
        self.ledger.sees(
            event,
            &before,
            &self.state,
            &actions,
            &self.children,
            &self.in_flight,
        );
        self.happened(event);
        for action in &actions {
            self.ledger.allows(action, &self.children, &self.in_flight);
            self.perform(action);
        }
        self.ledger.demands(&self.children, &self.in_flight);
    }

    /// What an event means to the world's own books, before the actions are performed.
    fn happened(&mut self, event: Event) {
        match event {
            Event::Forked { slot, pid, now_ms } => {
                self.in_flight.retain(|other| *other != slot);
                let child = Child {
                    slot,
                    forked_ms: now_ms,
                    ready_ms: None,
                    frozen: false,
                    termed: false,
                    killed: false,
                    ended: None,
                };
                self.children.insert(pid, child);
            }
            Event::ForkFailed { slot, .. } => self.in_flight.retain(|other| *other != slot),
            Event::Exited { pid, .. } | Event::Signaled { pid, .. } => {
                let worker = self.children.remove(&pid);
                self.reaped_pids.extend(worker.map(|_| pid));
            }
            Event::Ready { pid, now_ms } => {
                if let Some(child) = self.children.get_mut(&pid) {
                    child.ready_ms.get_or_insert(now_ms);
                }
            }
            Event::Stopped { pid, .. } | Event::Continued { pid, .. } => {
                if let Some(child) = self.children.get_mut(&pid) {
                    child.frozen = matches!(event, Event::Stopped { .. });
                }
            }
            _ => {}
        }
    }

    fn perform(&mut self, action: &Action) {
        match *action {
            Action::Fork { slot } => self.in_flight.push(slot),
            Action::Signal { pid, signal } => {
                let child = self.children.get_mut(&pid).expect("the ledger allowed it");
                match signal {
                    WorkerSignal::Term => child.termed = true,
                    WorkerSignal::Kill => {
                        child.killed = true;
                        child.ended.get_or_insert(Ending::Signal(SIGKILL));
                    }
                }
            }
            _ => {}
        }
    }

    /// Lets one thing happen, if the world allows it.
    pub(crate) fn play(&mut self, wanted: Move) {
        let now_ms = self.told_ms();
        match wanted {
            Move::Starts => self.feed(Event::Start { now_ms }),
            Move::ForkEnds { well: true, reuse } => {
                if let Some(&slot) = self.in_flight.first() {
                    let pid = self.new_pid(reuse);
                    self.feed(Event::Forked { slot, pid, now_ms });
                }
            }
            Move::ForkEnds { well: false, .. } => {
                if let Some(&slot) = self.in_flight.first() {
                    self.feed(Event::ForkFailed {
                        slot,
                        errno: EAGAIN,
                        now_ms,
                    });
                }
            }
            Move::Ready(nth) => {
                if let Some(pid) = self.nth(nth, |child| child.ended.is_none() && !child.frozen) {
                    self.feed(Event::Ready { pid, now_ms });
                }
            }
            Move::ReportsLate(nth) => {
                let gone: Vec<u32> = self.gone_pids().collect();
                if let Some(pid) = pick(&gone, nth) {
                    self.feed(Event::Ready { pid, now_ms });
                }
            }
            Move::Dies(nth, how) => {
                let can = |child: &Child| child.ended.is_none() && !child.frozen;
                if let Some(pid) = self.nth(nth, can) {
                    self.end(pid, how);
                }
            }
            Move::Drains(nth) => {
                let can = |child: &Child| child.ended.is_none() && !child.frozen && child.termed;
                if let Some(pid) = self.nth(nth, can) {
                    self.end(pid, Ending::Code(0));
                }
            }
            Move::Reaped(nth) => {
                if let Some(pid) = self.nth(nth, |child| child.ended.is_some()) {
                    self.reap(pid);
                }
            }
            Move::Freezes(nth) => {
                if let Some(pid) = self.nth(nth, |child| child.ended.is_none()) {
                    self.feed(Event::Stopped { pid, now_ms });
                }
            }
            Move::Thaws(nth) => {
                if let Some(pid) = self.nth(nth, |child| child.ended.is_none()) {
                    self.feed(Event::Continued { pid, now_ms });
                }
            }
            Move::StrangerDies { how, reuse } => {
                let pid = self.new_pid(reuse);
                self.feed(reaped(pid, how, now_ms));
                self.reaped_pids.push(pid);
            }
            Move::StrangerFreezes => {
                let pid = self.new_pid(true);
                self.feed(Event::Stopped { pid, now_ms });
                self.feed(Event::Continued { pid, now_ms });
                self.reaped_pids.push(pid);
            }
            Move::Asks { signal } => self.feed(Event::StopRequested { signal, now_ms }),
            Move::Passes { ms } => self.now_ms += ms,
            Move::Ticks => self.feed(Event::Tick { now_ms }),
            Move::TicksInThePast { ms } => {
                self.feed(Event::Tick {
                    now_ms: now_ms.saturating_sub(ms),
                });
            }
            Move::ClockStands(stands) => self.stands_at_ms = stands.then_some(now_ms),
            Move::JournalAsked => self.feed(Event::JournalRequested),
        }
    }

    /// Everything that happens by itself in a world without faults, until nothing more does
    /// without time: forks succeed, workers become ready, go on, drain, and are reaped. Workers
    /// that are `stubborn` do not drain, and frozen ones stay so.
    pub(crate) fn rest(&mut self, stubborn: bool) {
        self.stands_at_ms = None;
        for _ in 0..self.state.config().workers() * 8 {
            for _ in 0..self.in_flight.len() {
                self.play(Move::ForkEnds {
                    well: true,
                    reuse: true,
                });
            }
            let pids: Vec<u32> = self.children.keys().copied().collect();
            for pid in pids {
                let now_ms = self.told_ms();
                let child = self.children[&pid];
                if child.ended.is_some() {
                    self.reap(pid);
                } else if child.frozen && !stubborn {
                    self.feed(Event::Continued { pid, now_ms });
                } else if child.termed && !stubborn {
                    self.end(pid, Ending::Code(0));
                } else if child.ready_ms.is_none() && !child.frozen {
                    self.feed(Event::Ready { pid, now_ms });
                }
            }
        }
    }

    /// Moves the true time to the moment that the supervisor asked for, and ticks. Returns how
    /// long that took, ms; `None` if it waits for no moment.
    pub(crate) fn tick_at_deadline(&mut self) -> Option<u64> {
        self.stands_at_ms = None;
        let before_ms = self.now_ms;
        self.now_ms = self.now_ms.max(self.state.deadline()?);
        self.play(Move::Ticks);
        Some(self.now_ms - before_ms)
    }

    /// Whether every slot's worker is ready, by the world's own books.
    pub(crate) fn all_serve(&self) -> bool {
        self.children.len() == self.state.config().workers()
            && self
                .children
                .values()
                .all(|child| child.ended.is_none() && child.ready_ms.is_some())
    }

    fn end(&mut self, pid: u32, how: Ending) {
        let child = self
            .children
            .get_mut(&pid)
            .expect("picked from the children");
        child.ended = Some(how);
    }

    fn reap(&mut self, pid: u32) {
        let how = self.children[&pid].ended.expect("picked because it ended");
        self.feed(reaped(pid, how, self.told_ms()));
    }

    /// The nth (in a circle) of the children of whom this is true.
    fn nth(&self, nth: usize, can: impl Fn(&Child) -> bool) -> Option<u32> {
        let pids: Vec<u32> = self
            .children
            .iter()
            .filter(|(_, child)| can(child))
            .map(|(pid, _)| *pid)
            .collect();
        pick(&pids, nth)
    }

    fn gone_pids(&self) -> impl Iterator<Item = u32> {
        self.reaped_pids
            .iter()
            .copied()
            .filter(|pid| !self.children.contains_key(pid))
    }

    /// A pid that no unreaped process has: one used before, or one that never was.
    fn new_pid(&mut self, reuse: bool) -> u32 {
        let old = if reuse { self.gone_pids().last() } else { None };
        old.unwrap_or_else(|| {
            self.next_pid += 1;
            self.next_pid
        })
    }
}

fn reaped(pid: u32, how: Ending, now_ms: u64) -> Event {
    match how {
        Ending::Code(code) => Event::Exited { pid, code, now_ms },
        Ending::Signal(signal) => Event::Signaled {
            pid,
            signal,
            now_ms,
        },
    }
}

fn pick(from: &[u32], nth: usize) -> Option<u32> {
    from.get(nth % from.len().max(1)).copied()
}
