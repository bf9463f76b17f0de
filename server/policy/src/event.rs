//! What can happen to a supervisor: the input of `step`.
//!
//! Owns the vocabulary and its one-line text (the journal's). Knows nothing of what follows from
//! an event. Invariant: an event says what was seen, never what it means.

use std::fmt;

/// One thing that the supervisor saw. `now_ms` is monotonic time in milliseconds since any fixed
/// moment; it may stand still between events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The listener stands, the signals are blocked: fork the workers.
    Start {
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// A fork that an [`Action::Fork`](crate::Action::Fork) asked for has succeeded.
    Forked {
        /// The slot that asked.
        slot: usize,
        /// The child.
        pid: u32,
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// A fork that an [`Action::Fork`](crate::Action::Fork) asked for has failed.
    ForkFailed {
        /// The slot that asked.
        slot: usize,
        /// The error number of fork(2): EAGAIN or ENOMEM.
        errno: i32,
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// A worker reports that its handlers stand and it serves.
    Ready {
        /// The worker.
        pid: u32,
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// A child has exited and is reaped (WIFEXITED of wait(2)).
    Exited {
        /// The child, ours or a stranger.
        pid: u32,
        /// Its exit status, 0..=255.
        code: i32,
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// A child was killed by a signal and is reaped (WIFSIGNALED of wait(2)).
    Signaled {
        /// The child, ours or a stranger.
        pid: u32,
        /// The signal's number.
        signal: i32,
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// A child was stopped by SIGSTOP or its kin (WIFSTOPPED of wait(2)); it still lives.
    Stopped {
        /// The child, ours or a stranger.
        pid: u32,
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// A stopped child goes on (WIFCONTINUED of wait(2)).
    Continued {
        /// The child, ours or a stranger.
        pid: u32,
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// An operator asked for a stop: SIGTERM or SIGINT to the supervisor.
    StopRequested {
        /// The signal's number.
        signal: i32,
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// Time has passed; see [`State::deadline`](crate::State::deadline).
    Tick {
        /// Time of the event, ms.
        now_ms: u64,
    },
    /// An operator asked for the journal (SIGUSR1 to the supervisor).
    JournalRequested,
}

impl Event {
    /// When it happened, ms; `None` for an event to which time means nothing.
    pub fn now_ms(&self) -> Option<u64> {
        match *self {
            Self::Start { now_ms }
            | Self::Forked { now_ms, .. }
            | Self::ForkFailed { now_ms, .. }
            | Self::Ready { now_ms, .. }
            | Self::Exited { now_ms, .. }
            | Self::Signaled { now_ms, .. }
            | Self::Stopped { now_ms, .. }
            | Self::Continued { now_ms, .. }
            | Self::StopRequested { now_ms, .. }
            | Self::Tick { now_ms } => Some(now_ms),
            Self::JournalRequested => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Start { now_ms } => write!(f, "start now={now_ms}"),
            Self::Forked { slot, pid, now_ms } => {
                write!(f, "forked slot={slot} pid={pid} now={now_ms}")
            }
            Self::ForkFailed {
                slot,
                errno,
                now_ms,
            } => {
                write!(f, "fork-failed slot={slot} errno={errno} now={now_ms}")
            }
            Self::Ready { pid, now_ms } => write!(f, "ready pid={pid} now={now_ms}"),
            Self::Exited { pid, code, now_ms } => {
                write!(f, "exited pid={pid} code={code} now={now_ms}")
            }
            Self::Signaled {
                pid,
                signal,
                now_ms,
            } => {
                write!(f, "signaled pid={pid} signal={signal} now={now_ms}")
            }
            Self::Stopped { pid, now_ms } => write!(f, "stopped pid={pid} now={now_ms}"),
            Self::Continued { pid, now_ms } => write!(f, "continued pid={pid} now={now_ms}"),
            Self::StopRequested { signal, now_ms } => {
                write!(f, "stop-requested signal={signal} now={now_ms}")
            }
            Self::Tick { now_ms } => write!(f, "tick now={now_ms}"),
            Self::JournalRequested => f.write_str("journal-requested"),
        }
    }
}

/// How a process ended, in the words of wait(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status, 0..=255.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "code={code}"),
            Self::Signal(signal) => write!(f, "signal={signal}"),
        }
    }
}

/// Why an event cannot have happened: the supervisor's loop broke the protocol of `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlawful {
    /// The slot's number is not below the number of workers.
    NoSuchSlot {
        /// The slot named.
        slot: usize,
    },
    /// The outcome of a fork that no action asked for, or that was reported before.
    NoForkInFlight {
        /// The slot named.
        slot: usize,
    },
    /// A process id that fork(2) cannot return, or that kill(2) reads as a group.
    BadPid {
        /// The process id named.
        pid: u32,
    },
    /// A new child with the process id of a worker that was never reaped.
    PidInUse {
        /// The process id named.
        pid: u32,
    },
}

impl fmt::Display for Unlawful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchSlot { slot } => write!(f, "slot {slot} does not exist"),
            Self::NoForkInFlight { slot } => write!(f, "slot {slot} has no fork in flight"),
            Self::BadPid { pid } => write!(f, "{pid} is no process id of a child"),
            Self::PidInUse { pid } => write!(f, "pid {pid} is a worker that was never reaped"),
        }
    }
}

impl std::error::Error for Unlawful {}
