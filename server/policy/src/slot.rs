//! One slot: a worker's place, and the worker in it.
//!
//! Owns the phases and what is remembered of a worker. Decides nothing. Invariant: a slot holds at
//! most one process: it is vacant, or a fork is in flight, or there is one worker.
//!
//! ```text
//!             due              Forked               Ready
//!   Vacant ---------> Forking ---------> Starting ---------> Serving
//!    ^  ^                |                  |                   |
//!    |  +---ForkFailed---+                  +--- a stop: TERM --+
//!    |                                                |
//!    +--- reaped (from Starting, Serving, Draining)   +----> Draining
//! ```

use std::fmt;

use crate::action::optional;
use crate::respawn::Row;

/// A worker's place. A respawned worker takes its predecessor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What is in it.
    pub phase: Phase,
    /// How often it died without a healthy run.
    pub row: Row,
}

/// What is in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nobody; a worker is forked at `respawn_at_ms`, or never.
    Vacant {
        /// When the next fork is due, ms; `None` before the start and after a stop.
        respawn_at_ms: Option<u64>,
    },
    /// A fork was asked for, its outcome is not known yet.
    Forking,
    /// A worker that is not ready yet.
    Starting(Worker),
    /// A worker that has reported itself ready.
    Serving(Worker),
    /// A worker that was told to end.
    Draining(Worker),
}

/// What is remembered of a live worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its process id.
    pub pid: u32,
    /// When it was forked, ms.
    pub forked_ms: u64,
    /// When it was ready, ms.
    pub ready_ms: Option<u64>,
    /// Whether it is stopped by SIGSTOP or its kin.
    pub stopped: bool,
    /// Whether the supervisor has sent it SIGKILL.
    pub killed: bool,
}

impl Slot {
    /// A place for a worker that nobody has asked for yet.
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Vacant {
                respawn_at_ms: None,
            },
            row: Row::default(),
        }
    }

    /// The live worker in it.
    pub fn worker(&self) -> Option<&Worker> {
        match &self.phase {
            Phase::Starting(worker) | Phase::Serving(worker) | Phase::Draining(worker) => {
                Some(worker)
            }
            Phase::Vacant { .. } | Phase::Forking => None,
        }
    }

    /// When its next fork is due, ms.
    pub(crate) fn respawn_at_ms(&self) -> Option<u64> {
        match self.phase {
            Phase::Vacant { respawn_at_ms } => respawn_at_ms,
            _ => None,
        }
    }

    /// Whether it holds no process and no fork is in flight.
    pub(crate) fn is_vacant(&self) -> bool {
        matches!(self.phase, Phase::Vacant { .. })
    }

    /// The live worker in it, to be changed.
    pub(crate) fn worker_mut(&mut self) -> Option<&mut Worker> {
        match &mut self.phase {
            Phase::Starting(worker) | Phase::Serving(worker) | Phase::Draining(worker) => {
                Some(worker)
            }
            Phase::Vacant { .. } | Phase::Forking => None,
        }
    }
}

impl Worker {
    /// A worker just forked.
    pub(crate) fn new(pid: u32, forked_ms: u64) -> Self {
        Self {
            pid,
            forked_ms,
            ready_ms: None,
            stopped: false,
            killed: false,
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, worker) = match &self.phase {
            Phase::Vacant { respawn_at_ms } => {
                f.write_str("vacant respawn_at=")?;
                optional(f, *respawn_at_ms)?;
                return write!(f, " {}", self.row);
            }
            Phase::Forking => return write!(f, "forking {}", self.row),
            Phase::Starting(worker) => ("starting", worker),
            Phase::Serving(worker) => ("serving", worker),
            Phase::Draining(worker) => ("draining", worker),
        };
        write!(
            f,
            "{name} pid={} forked={} ready=",
            worker.pid, worker.forked_ms
        )?;
        optional(f, worker.ready_ms)?;
        let (stopped, killed) = (u8::from(worker.stopped), u8::from(worker.killed));
        write!(f, " stopped={stopped} killed={killed} {}", self.row)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deaths={} since={}", self.deaths, self.since_ms)
    }
}
