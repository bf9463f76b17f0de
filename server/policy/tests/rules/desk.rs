//! A supervisor on a desk: its state, its clock, and short words for what happens to it.
//!
//! Knows no rule. Invariant: the clock moves only when a test says so.

use std::time::Duration;

use m0_policy::{Action, Config, Ending, Event, Phase, State, WorkerSignal, step};

pub(crate) const SIGINT: i32 = 2;
pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGSEGV: i32 = 11;
pub(crate) const SIGTERM: i32 = 15;
pub(crate) const EAGAIN: i32 = 11;

pub(crate) struct Desk {
    pub(crate) state: State,
    pub(crate) now_ms: u64,
}

/// Defaults of the product: drain 5 s + 250 ms, backoff 100 ms to 10 s, healthy 10 s, 10 deaths.
pub(crate) fn config(workers: usize) -> Config {
    Config::new(workers).expect("the tests ask for a few workers")
}

/// The same with a limit out of the way.
pub(crate) fn patient(workers: usize) -> Config {
    config(workers)
        .with_crash_limit(1000)
        .expect("a high limit is in range")
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Desk {
    /// A supervisor that has not started.
    pub(crate) fn new(config: Config) -> Self {
        Self {
            state: State::new(config, 1_000),
            now_ms: 1_000,
        }
    }

    /// A supervisor that asked for its first forks.
    pub(crate) fn started(config: Config) -> Self {
        let mut desk = Self::new(config);
        let forks = desk.start();
        assert_eq!(forks.len(), config.workers(), "one fork a slot: {forks:?}");
        desk
    }

    /// A supervisor whose workers exist; the worker of slot N has pid 100 + N.
    pub(crate) fn forked(config: Config) -> Self {
        let mut desk = Self::started(config);
        for slot in 0..config.workers() {
            assert_eq!(desk.fork(slot, 100 + slot as u32), []);
        }
        desk
    }

    /// A supervisor whose workers all serve.
    pub(crate) fn serving(config: Config) -> Self {
        let mut desk = Self::forked(config);
        for slot in 0..config.workers() {
            desk.ready(100 + slot as u32);
        }
        desk
    }

    pub(crate) fn event(&mut self, event: Event) -> Vec<Action> {
        step(&mut self.state, event)
    }

    /// Moves the clock; the supervisor learns of it with the next event.
    pub(crate) fn pass(&mut self, ms: u64) -> &mut Self {
        self.now_ms += ms;
        self
    }

    pub(crate) fn start(&mut self) -> Vec<Action> {
        self.event(Event::Start {
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn fork(&mut self, slot: usize, pid: u32) -> Vec<Action> {
        self.event(Event::Forked {
            slot,
            pid,
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn fork_fails(&mut self, slot: usize) -> Vec<Action> {
        self.event(Event::ForkFailed {
            slot,
            errno: EAGAIN,
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn ready(&mut self, pid: u32) -> Vec<Action> {
        self.event(Event::Ready {
            pid,
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn exits(&mut self, pid: u32, code: i32) -> Vec<Action> {
        self.event(Event::Exited {
            pid,
            code,
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn dies(&mut self, pid: u32, signal: i32) -> Vec<Action> {
        self.event(Event::Signaled {
            pid,
            signal,
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn is_stopped(&mut self, pid: u32) -> Vec<Action> {
        self.event(Event::Stopped {
            pid,
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn goes_on(&mut self, pid: u32) -> Vec<Action> {
        self.event(Event::Continued {
            pid,
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn stop(&mut self, signal: i32) -> Vec<Action> {
        self.event(Event::StopRequested {
            signal,
            now_ms: self.now_ms,
        })
    }

    pub(crate) fn tick(&mut self) -> Vec<Action> {
        self.event(Event::Tick {
            now_ms: self.now_ms,
        })
    }

    /// Moves the clock to the moment that the supervisor asked for, and ticks.
    pub(crate) fn tick_at_deadline(&mut self) -> Vec<Action> {
        self.now_ms = self
            .state
            .deadline()
            .expect("the supervisor waits for a moment");
        self.tick()
    }

    pub(crate) fn phase(&self, slot: usize) -> Phase {
        self.state.slots()[slot].phase
    }

    pub(crate) fn is_vacant(&self, slot: usize) -> bool {
        matches!(self.phase(slot), Phase::Vacant { .. })
    }
}

pub(crate) fn term(pid: u32) -> Action {
    Action::Signal {
        pid,
        signal: WorkerSignal::Term,
    }
}

pub(crate) fn kill(pid: u32) -> Action {
    Action::Signal {
        pid,
        signal: WorkerSignal::Kill,
    }
}

/// The delay until the respawn, from the one death that the actions log.
pub(crate) fn respawn_in(actions: &[Action]) -> Option<u64> {
    let mut deaths = actions.iter().filter_map(|action| match action {
        Action::LogDeath { respawn_in_ms, .. } => Some(*respawn_in_ms),
        _ => None,
    });
    let delay = deaths.next().expect("the actions log a death");
    assert_eq!(
        deaths.next(),
        None,
        "one event is one death at most: {actions:?}"
    );
    delay
}

/// The pids that are sent this signal.
pub(crate) fn sent(actions: &[Action], wanted: WorkerSignal) -> Vec<u32> {
    let signal = |action: &Action| match action {
        Action::Signal { pid, signal } if *signal == wanted => Some(*pid),
        _ => None,
    };
    actions.iter().filter_map(signal).collect()
}

/// The code of the exit, if these actions order it.
pub(crate) fn exit(actions: &[Action]) -> Option<i32> {
    actions.iter().find_map(|action| match action {
        Action::Exit { code } => Some(*code),
        _ => None,
    })
}

pub(crate) fn forks(actions: &[Action]) -> Vec<usize> {
    let fork = |action: &Action| match action {
        Action::Fork { slot } => Some(*slot),
        _ => None,
    };
    actions.iter().filter_map(fork).collect()
}

/// How the one death that the actions log is described.
pub(crate) fn death(actions: &[Action]) -> (usize, u32, Ending, u64, m0_policy::DeathReason) {
    actions
        .iter()
        .find_map(|action| match action {
            Action::LogDeath {
                slot,
                pid,
                how,
                uptime_ms,
                reason,
                ..
            } => Some((*slot, *pid, *how, *uptime_ms, *reason)),
            _ => None,
        })
        .expect("the actions log a death")
}
