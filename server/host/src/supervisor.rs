//! The supervisor: wait for one event, let the policy decide, perform its actions.
//!
//! Owns the process that forks, its signals and its log lines. Refuses to decide anything: `m0_policy`
//! does. Invariant: one thread, no runtime, no wait without a wake-up: signals, reports and the
//! policy's own deadline all end it.

mod tell;

pub(crate) use tell::announce;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use m0_framelog::Repair;
use m0_page::SupervisorCounter;
use m0_policy::{Action, Event, Journal, State, WorkerSignal, step};
use m0_unix::Pid;
use m0_unix::clock::monotonic_ms;
use m0_unix::fds::{ByteRead, read_byte};
use m0_unix::fork::{ForkError, Forked, fork};
use m0_unix::poll::{Interest, Poller};
use m0_unix::process;
use m0_unix::reap::{self, What};
use m0_unix::signals::{Signal, SignalFd, kill};
use serde_json::json;

use crate::listen::Listeners;
use crate::log;
use crate::publisher::Bus;
use crate::refusal::EXIT_OS;
use crate::settings::{Level, Settings};

/// Signals that the supervisor reads; blocked before the first fork.
pub(crate) const SIGNALS: &[Signal] = &[
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGCHLD,
    Signal::SIGUSR1,
];

/// Time after the drain's bound at which a worker is killed: later than its watch thread would have
/// ended it with a word in the log.
const KILL_MARGIN: Duration = Duration::from_millis(600);

const SIGNAL: u64 = 0;
const REPORT: u64 = 1;
/// The first of the listeners; the others follow.
const LISTENER: u64 = 2;

/// What the supervisor shares with the workers that it forks.
pub(crate) struct Ties {
    /// Workers write their slot here when they serve.
    pub(crate) report: (OwnedFd, OwnedFd),
    /// Ends for the workers when the supervisor is gone: it alone holds the second half.
    pub(crate) life: (OwnedFd, OwnedFd),
}

/// Which process returns.
pub(crate) enum Role {
    /// The supervisor is done and leaves with this code.
    Done(u8),
    /// This is a forked worker, with the ties that a worker keeps.
    Worker {
        slot: usize,
        report: OwnedFd,
        life: OwnedFd,
    },
}

/// Supervises until everything has ended, or returns as a worker.
pub(crate) fn run(settings: &Settings, bus: &Arc<Bus>, listeners: &Listeners, ties: Ties) -> Role {
    match Supervisor::new(settings, bus, listeners, ties) {
        Ok(supervisor) => supervisor.supervise(),
        Err(error) => {
            log::event(
                Level::Error,
                "os-refused",
                json!({ "what": "supervising", "message": error.to_string() }),
            );
            Role::Done(EXIT_OS)
        }
    }
}

struct Supervisor<'a> {
    settings: &'a Settings,
    bus: &'a Arc<Bus>,
    listeners: &'a Listeners,
    ties: Ties,
    signals: SignalFd,
    poller: Poller,
    state: State,
    journal: Journal,
    own: Pid,
    /// SIGCHLD came and not every wait status has been taken since.
    reap_due: bool,
    ready: Vec<u64>,
}

/// What performing the actions led to.
enum Performed {
    GoOn,
    Done(u8),
    /// This process is the child of a fork.
    Child {
        slot: usize,
    },
}

impl<'a> Supervisor<'a> {
    fn new(
        settings: &'a Settings,
        bus: &'a Arc<Bus>,
        listeners: &'a Listeners,
        ties: Ties,
    ) -> io::Result<Self> {
        let config = policy_config(settings)?;
        let signals = SignalFd::new(SIGNALS)?;
        let poller = Poller::new()?;
        poller.add(&signals, SIGNAL, Interest::Level)?;
        poller.add(&ties.report.0, REPORT, Interest::Level)?;
        let state = State::new(config, monotonic_ms());
        let journal = Journal::new(&state);
        Ok(Supervisor {
            settings,
            bus,
            listeners,
            ties,
            signals,
            poller,
            state,
            journal,
            own: process::pid(),
            reap_due: false,
            ready: Vec::new(),
        })
    }

    fn supervise(mut self) -> Role {
        let mut event = Event::Start {
            now_ms: monotonic_ms(),
        };
        loop {
            match self.take(event) {
                Performed::GoOn => {}
                Performed::Done(code) => return Role::Done(code),
                Performed::Child { slot } => return self.become_worker(slot),
            }
            event = match self.next_event() {
                Ok(event) => event,
                Err(error) => {
                    log::event(
                        Level::Error,
                        "os-refused",
                        json!({ "what": "waiting for events", "message": error.to_string() }),
                    );
                    return Role::Done(EXIT_OS);
                }
            };
        }
    }

    /// The child's way out of the supervisor: it keeps what a worker keeps.
    fn become_worker(self, slot: usize) -> Role {
        let Ties { report, life } = self.ties;
        Role::Worker {
            slot,
            report: report.1,
            life: life.0,
        }
    }

    /// Waits for the next event. One at a time: a wait status is taken from the kernel only after the
    /// one before it was acted on, so no pid that the policy still believes alive is free to be reused.
    fn next_event(&mut self) -> io::Result<Event> {
        loop {
            // Ready before dead: a worker that reported and died is not taken for one that never served.
            if let Some(event) = self.report()? {
                return Ok(event);
            }
            if self.reap_due {
                if let Some(change) = reap::next_change()? {
                    return Ok(event_of(change, monotonic_ms()));
                }
                self.reap_due = false;
            }
            match self.signals.read()?.map(|received| received.signal) {
                None => {}
                Some(Signal::SIGCHLD) => {
                    self.reap_due = true;
                    continue;
                }
                Some(Signal::SIGUSR1) => return Ok(Event::JournalRequested),
                Some(signal) => {
                    return Ok(Event::StopRequested {
                        signal: signal.number(),
                        now_ms: monotonic_ms(),
                    });
                }
            }
            let timeout = self
                .state
                .deadline()
                .map(|at| Duration::from_millis(at.saturating_sub(monotonic_ms())));
            self.poller.wait(timeout, &mut self.ready)?;
            if self.ready.iter().any(|&token| token >= LISTENER) {
                self.stand_in();
            }
            if self.ready.is_empty() {
                return Ok(Event::Tick {
                    now_ms: monotonic_ms(),
                });
            }
        }
    }

    /// The next worker that says that it serves.
    fn report(&self) -> io::Result<Option<Event>> {
        while let ByteRead::Byte(slot) = read_byte(&self.ties.report.0)? {
            let slot = usize::from(slot);
            if slot < self.settings.workers {
                // The page names the pid: it was written before the report.
                let pid = self.bus.page.share(slot).pid();
                return Ok(Some(Event::Ready {
                    pid,
                    now_ms: monotonic_ms(),
                }));
            }
        }
        Ok(None)
    }

    /// One event through the policy, and its actions in order. A fork's own event is taken as it comes.
    fn take(&mut self, event: Event) -> Performed {
        let actions = step(&mut self.state, event);
        self.journal.record(event, &actions);
        for action in actions {
            match self.perform(action) {
                Performed::GoOn => {}
                ended => return ended,
            }
        }
        Performed::GoOn
    }

    fn perform(&mut self, action: Action) -> Performed {
        match action {
            Action::Fork { slot } => return self.fork(slot),
            Action::Signal { pid, signal } => self.signal(pid, signal),
            Action::Repair { slot, pid } => self.repair(slot, pid),
            Action::ReapedStranger { .. } => self.count(SupervisorCounter::Strangers),
            Action::MarkStopped { slot } => {
                self.count(SupervisorCounter::Stops);
                self.bus.page.share(slot).mark_stopped(true);
            }
            Action::MarkContinued { slot } => self.bus.page.share(slot).mark_stopped(false),
            Action::StandIn(on) => self.watch_listeners(on),
            Action::NudgeAll => self.nudge_all(),
            Action::WriteJournal => self.write_journal(),
            Action::Exit { code } => {
                let code = u8::try_from(code).unwrap_or(EXIT_OS);
                log::event(Level::Info, "stopped", json!({ "code": code }));
                return Performed::Done(code);
            }
            Action::Announce => announce(self.listeners, self.settings),
            told => self.tell(&told),
        }
        Performed::GoOn
    }

    fn fork(&mut self, slot: usize) -> Performed {
        match fork() {
            Ok(Forked::Child) => {
                // Where the system refuses a death signal, the pipe alone tells of the supervisor's end.
                let _ = process::die_with(self.own, Signal::SIGKILL);
                Performed::Child { slot }
            }
            Ok(Forked::Parent(pid)) => self.take(Event::Forked {
                slot,
                pid: pid.as_raw().unsigned_abs(),
                now_ms: monotonic_ms(),
            }),
            Err(error) => {
                self.count(SupervisorCounter::ForkFailures);
                let errno = match error {
                    ForkError::Fork(error) | ForkError::Count(error) => {
                        error.raw_os_error().unwrap_or(0)
                    }
                    ForkError::Threads(_) => 0,
                };
                self.take(Event::ForkFailed {
                    slot,
                    errno,
                    now_ms: monotonic_ms(),
                })
            }
        }
    }

    fn signal(&self, pid: u32, signal: WorkerSignal) {
        let signal = match signal {
            WorkerSignal::Term => Signal::SIGTERM,
            WorkerSignal::Kill => {
                self.count(SupervisorCounter::Kills);
                Signal::SIGKILL
            }
        };
        // A worker that is gone already: its death is on its way to us.
        let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
    }

    /// Puts a dead worker's words to rest, before its successor is forked.
    fn repair(&self, slot: usize, pid: u32) {
        if self.bus.log.repair(pid) != Repair::NotHeld {
            self.count(SupervisorCounter::LockRepairs);
        }
        self.bus.page.producer().repair(pid);
        self.bus.page.share(slot).repair();
    }

    fn count(&self, counter: SupervisorCounter) {
        self.bus.page.supervisor(counter).add(1);
    }

    fn watch_listeners(&self, on: bool) {
        let changed = (LISTENER..)
            .zip(self.listeners.sockets())
            .try_for_each(|(token, socket)| {
                if on {
                    self.poller.add(socket, token, Interest::Edge)
                } else {
                    self.poller.remove(socket)
                }
            });
        if let Err(error) = changed {
            log::event(
                Level::Warn,
                "os-refused",
                json!({ "what": "watching the listeners for a stopped worker", "message": error.to_string() }),
            );
        }
    }

    /// A connection came while a worker is stopped: make sure that one that runs looks.
    fn stand_in(&self) {
        self.count(SupervisorCounter::StandIns);
        self.nudge_all();
    }

    fn nudge_all(&self) {
        for slot in self.bus.page.live() {
            // A doorbell that cannot be rung has rung already.
            let _ = self.bus.accept_bells[slot].ring();
        }
    }

    fn write_journal(&self) {
        let Some(path) = &self.settings.journal else {
            log::event(
                Level::Warn,
                "journal-refused",
                json!({ "message": "M0_JOURNAL names no file; set it to a path before the start" }),
            );
            return;
        };
        let fields = match std::fs::write(path, self.journal.text()) {
            Ok(()) => json!({ "path": path }),
            Err(error) => json!({ "path": path, "message": error.to_string() }),
        };
        log::event(Level::Info, "journal", fields);
    }
}

fn policy_config(settings: &Settings) -> io::Result<m0_policy::Config> {
    m0_policy::Config::new(settings.workers)
        .and_then(|config| config.with_drain(settings.drain))
        .and_then(|config| config.with_kill_margin(KILL_MARGIN))
        .and_then(|config| config.with_backoff(settings.backoff, settings.backoff_max))
        .and_then(|config| config.with_healthy(settings.healthy))
        .and_then(|config| config.with_crash_limit(settings.crash_limit))
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
}

fn event_of(change: reap::Change, now_ms: u64) -> Event {
    let pid = change.pid.as_raw().unsigned_abs();
    match change.what {
        What::Exited(code) => Event::Exited { pid, code, now_ms },
        What::Signaled { signal, .. } => Event::Signaled {
            pid,
            signal: signal.number(),
            now_ms,
        },
        What::Stopped(_) => Event::Stopped { pid, now_ms },
        What::Continued => Event::Continued { pid, now_ms },
    }
}
