//! What the supervisor's loop is to do: the output of `step`.
//!
//! Owns the vocabulary and its one-line text (the journal's). Knows nothing of how an action is
//! performed. Invariant: performing one action needs no further decision.

use std::fmt;

use crate::event::Ending;

/// One thing to do. A list of them is performed in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Fork a worker for this slot and answer with `Forked` or `ForkFailed`.
    Fork {
        /// The slot to fill.
        slot: usize,
    },
    /// Send a signal to a worker. "No such process" is no error: its death is on its way.
    Signal {
        /// The worker.
        pid: u32,
        /// What to send.
        signal: WorkerSignal,
    },
    /// Put a dead worker's words on the page right (its counts, its stopped mark), and the frame
    /// log's lock if it held it.
    Repair {
        /// The slot whose words to repair.
        slot: usize,
        /// The dead worker.
        pid: u32,
    },
    /// Write the one line of a worker's death.
    LogDeath {
        /// The slot that it held.
        slot: usize,
        /// The dead worker.
        pid: u32,
        /// How it ended.
        how: Ending,
        /// Time from its fork to its death, ms.
        uptime_ms: u64,
        /// Delay until its successor is forked, ms; `None` where there will be none.
        respawn_in_ms: Option<u64>,
        /// What the death means.
        reason: DeathReason,
    },
    /// Write that a fork was refused by the system.
    LogForkFailed {
        /// The slot that stays empty.
        slot: usize,
        /// The error number of fork(2).
        errno: i32,
        /// Delay until the next try, ms; `None` where there will be none.
        retry_in_ms: Option<u64>,
    },
    /// A child that is no worker was reaped: nothing to do and nothing to log (as PID 1 the
    /// supervisor is everyone's parent).
    ReapedStranger {
        /// The stranger.
        pid: u32,
    },
    /// Every slot serves for the first time: print the banner. At most once.
    Announce,
    /// Mark the slot's worker as stopped on the page, so that no sibling waits for it.
    MarkStopped {
        /// The stopped worker's slot.
        slot: usize,
    },
    /// Take that mark away again.
    MarkContinued {
        /// The slot of the worker that goes on.
        slot: usize,
    },
    /// Begin (true) or end (false) to watch the listener in place of stopped workers.
    StandIn(bool),
    /// Ring the accept doorbell of every live worker, so that no queued connection waits for a
    /// worker that cannot take it.
    NudgeAll,
    /// Write that one slot died too often and the host ends.
    LogCrashLoop {
        /// The slot.
        slot: usize,
        /// Deaths and failed forks in a row without a healthy run.
        deaths: u32,
        /// Time from the first of them to the last, ms.
        window_ms: u64,
    },
    /// Write that an operator's stop was recorded.
    LogStopping {
        /// The signal that asked for it.
        signal: i32,
        /// Whether it was asked for before, so that the workers are killed now.
        again: bool,
    },
    /// Write the journal to where the operator wants it.
    WriteJournal,
    /// Leave with this code. The last action there is.
    Exit {
        /// The process's exit code.
        code: i32,
    },
}

/// A signal that the supervisor sends to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerSignal {
    /// SIGTERM: drain and exit.
    Term,
    /// SIGKILL: works on a stopped worker too.
    Kill,
}

/// What a worker's death means to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeathReason {
    /// Nobody asked for it, whatever its code: the slot is filled again.
    Unasked,
    /// Nobody asked for it, and it was one too many in a row: the host ends.
    CrashLoop,
    /// It refused its configuration (exit 78): the host ends.
    Refused,
    /// It was asked to stop and exited with 0.
    Drained,
    /// It was asked to stop and SIGTERM or SIGINT killed it before its handlers stood.
    StoppedBeforeReady,
    /// It was asked to stop and ended badly.
    DiedInDrain,
    /// It was asked to stop, and the supervisor's SIGKILL ended it.
    Killed,
}

impl DeathReason {
    /// The word for the log, kebab-case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unasked => "unasked",
            Self::CrashLoop => "crash-loop",
            Self::Refused => "refused",
            Self::Drained => "drained",
            Self::StoppedBeforeReady => "stopped-before-ready",
            Self::DiedInDrain => "died-in-drain",
            Self::Killed => "killed",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fork { slot } => write!(f, "fork slot={slot}"),
            Self::Signal { pid, signal } => {
                let signal = match signal {
                    WorkerSignal::Term => "term",
                    WorkerSignal::Kill => "kill",
                };
                write!(f, "signal pid={pid} signal={signal}")
            }
            Self::Repair { slot, pid } => write!(f, "repair slot={slot} pid={pid}"),
            Self::LogDeath {
                slot,
                pid,
                how,
                uptime_ms,
                respawn_in_ms,
                reason,
            } => {
                write!(
                    f,
                    "log-death slot={slot} pid={pid} {how} uptime={uptime_ms} respawn="
                )?;
                optional(f, *respawn_in_ms)?;
                write!(f, " reason={}", reason.as_str())
            }
            Self::LogForkFailed {
                slot,
                errno,
                retry_in_ms,
            } => {
                write!(f, "log-fork-failed slot={slot} errno={errno} retry=")?;
                optional(f, *retry_in_ms)
            }
            Self::ReapedStranger { pid } => write!(f, "reaped-stranger pid={pid}"),
            Self::Announce => f.write_str("announce"),
            Self::MarkStopped { slot } => write!(f, "mark-stopped slot={slot}"),
            Self::MarkContinued { slot } => write!(f, "mark-continued slot={slot}"),
            Self::StandIn(on) => write!(f, "stand-in {}", if *on { "on" } else { "off" }),
            Self::NudgeAll => f.write_str("nudge-all"),
            Self::LogCrashLoop {
                slot,
                deaths,
                window_ms,
            } => {
                write!(
                    f,
                    "log-crash-loop slot={slot} deaths={deaths} window={window_ms}"
                )
            }
            Self::LogStopping { signal, again } => {
                write!(
                    f,
                    "log-stopping signal={signal}{}",
                    if *again { " again" } else { "" }
                )
            }
            Self::WriteJournal => f.write_str("write-journal"),
            Self::Exit { code } => write!(f, "exit code={code}"),
        }
    }
}

/// A number, or `-` where there is none.
pub(crate) fn optional(f: &mut fmt::Formatter<'_>, value: Option<u64>) -> fmt::Result {
    match value {
        Some(value) => write!(f, "{value}"),
        None => f.write_str("-"),
    }
}
