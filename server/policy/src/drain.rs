//! The way out: TERM, grace, KILL, and the exit code.
//!
//! Owns what a stop is, when it kills and what the host says of itself at the end. Knows no
//! respawn: a stop that exists is the reason that there is none. Invariant: a stop's bound is set
//! once, when it is recorded, and its verdict only gets worse.

use std::fmt;

use crate::action::{Action, DeathReason, WorkerSignal};
use crate::config::Config;
use crate::event::Ending;
use crate::slot::{Phase, Slot, Worker};
use crate::{EXIT_CLEAN, EXIT_CRASH_LOOP, EXIT_OS_REFUSED, EXIT_REFUSED, EXIT_UNCLEAN};

/// SIGINT of signal(7), the same number on every platform.
const SIGINT: i32 = 2;
/// SIGTERM of signal(7), the same number on every platform.
const SIGTERM: i32 = 15;

/// A recorded stop: from here on nobody is respawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// When what is left is killed, ms.
    pub kill_at_ms: u64,
    /// Whether an operator asked for it (a crash loop and a refusal stop the host too).
    pub requested: bool,
    /// Whether the workers are being killed: the bound has passed, or a second request came.
    pub killing: bool,
    /// The worst that is known of how the host ends.
    pub verdict: Verdict,
}

/// How the host ends, from the best to the worst. The worse one wins in whatever order they come,
/// so a race between an operator's stop and a worker's refusal does not change the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every worker ended with 0.
    Clean,
    /// A worker crashed in the drain or had to be killed.
    Unclean,
    /// The system refused to fork until the limit, and nothing lived.
    OsRefused,
    /// A slot died too often without a healthy run.
    CrashLoop,
    /// A worker refused its configuration.
    Refused,
}

impl Verdict {
    /// The host's exit code.
    pub fn code(self) -> i32 {
        match self {
            Self::Clean => EXIT_CLEAN,
            Self::Unclean => EXIT_UNCLEAN,
            Self::OsRefused => EXIT_OS_REFUSED,
            Self::CrashLoop => EXIT_CRASH_LOOP,
            Self::Refused => EXIT_REFUSED,
        }
    }
}

impl Stop {
    /// A stop recorded now.
    pub(crate) fn new(config: &Config, now_ms: u64, verdict: Verdict) -> Self {
        let grace_ms = config.drain_ms() + config.kill_margin_ms();
        Self {
            kill_at_ms: now_ms.saturating_add(grace_ms),
            requested: false,
            killing: false,
            verdict,
        }
    }

    /// Takes a worse verdict.
    pub(crate) fn worsen(&mut self, verdict: Verdict) {
        self.verdict = self.verdict.max(verdict);
    }

    /// Whether the kill is due and has not been given.
    pub(crate) fn kill_is_due(&self, now_ms: u64) -> bool {
        !self.killing && now_ms >= self.kill_at_ms
    }
}

/// Cancels what is pending in a slot and tells its worker to end. A fork in flight is told when it
/// is known.
pub(crate) fn tell(slot: &mut Slot, actions: &mut Vec<Action>) {
    match slot.phase {
        Phase::Vacant { .. } => {
            slot.phase = Phase::Vacant {
                respawn_at_ms: None,
            }
        }
        Phase::Forking | Phase::Draining(_) => {}
        Phase::Starting(worker) | Phase::Serving(worker) => {
            slot.phase = Phase::Draining(worker);
            actions.push(Action::Signal {
                pid: worker.pid,
                signal: WorkerSignal::Term,
            });
        }
    }
}

/// Kills a slot's worker, once.
pub(crate) fn kill(slot: &mut Slot, actions: &mut Vec<Action>) {
    if let Phase::Draining(worker) = &mut slot.phase
        && !worker.killed
    {
        worker.killed = true;
        actions.push(Action::Signal {
            pid: worker.pid,
            signal: WorkerSignal::Kill,
        });
    }
}

/// What the end of a worker that was told to end says of the drain.
pub(crate) fn judge(worker: &Worker, how: Ending) -> (DeathReason, Verdict) {
    match how {
        Ending::Code(0) => (DeathReason::Drained, Verdict::Clean),
        Ending::Code(EXIT_REFUSED) => (DeathReason::Refused, Verdict::Refused),
        Ending::Signal(SIGTERM | SIGINT) if worker.ready_ms.is_none() => {
            (DeathReason::StoppedBeforeReady, Verdict::Clean)
        }
        _ if worker.killed => (DeathReason::Killed, Verdict::Unclean),
        _ => (DeathReason::DiedInDrain, Verdict::Unclean),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Unclean => "unclean",
            Self::OsRefused => "os-refused",
            Self::CrashLoop => "crash-loop",
            Self::Refused => "refused",
        })
    }
}
