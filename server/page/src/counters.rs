//! Figures that only grow.
//!
//! Owns the names of the supervisor's and the workers' counters. Knows nothing of who reads them.
//!
//! Invariant: a counter is never set back while the host runs, not even by a repair, so a rate
//! computed from two readings is never negative.

use crate::layout::{SUPERVISOR, line};
use crate::sync::Ordering::Relaxed;
use crate::{AtomicU64, Page, Share};

/// One figure in shared memory. Adding is one atomic addition, from any thread.
#[derive(Clone, Copy)]
pub struct Counter<'a> {
    pub(crate) word: &'a AtomicU64,
}

impl Counter<'_> {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.word.fetch_add(amount, Relaxed);
    }

    /// The figure now.
    pub fn get(&self) -> u64 {
        self.word.load(Relaxed)
    }
}

/// What the supervisor counts. It alone writes these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum SupervisorCounter {
    /// Workers started in place of dead ones.
    Respawns,
    /// Workers that ended without being asked.
    Crashes,
    /// Forks that the operating system refused.
    ForkFailures,
    /// Processes reaped that were no workers.
    Strangers,
    /// Times a worker was seen stopped by a signal.
    Stops,
    /// Log locks taken back from dead workers.
    LockRepairs,
    /// Doorbells rung in place of a stopped worker.
    StandIns,
    /// Workers ended by SIGKILL because the drain's bound had passed.
    Kills,
}

/// What a worker counts. It alone writes these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum WorkerCounter {
    /// Requests whose head was read whole.
    Requests,
    /// Frames written to streams: one for each frame and stream.
    FramesDelivered,
    /// Streams opened.
    StreamsOpened,
    /// Streams cut by the host: slow readers, reset connections, the drain's bound.
    StreamsCut,
    /// Access-log lines dropped because nobody read the pipe.
    LogDropped,
    /// Panics caught in handlers.
    Panics,
    /// Bytes written to sockets.
    BytesSent,
    /// Connections or streams answered 503 because a limit was reached.
    Refused,
    /// Connections of proxies closed because their header was missing, broken or late.
    ProxyRefused,
    /// Handshakes of TLS that failed or took too long.
    TlsFailed,
}

impl<'a> Page<'a> {
    /// A counter of the supervisor.
    pub fn supervisor(&self, counter: SupervisorCounter) -> Counter<'a> {
        Counter {
            word: self.word(SUPERVISOR + counter as usize),
        }
    }
}

impl<'a> Share<'a> {
    /// A counter of this worker.
    pub fn counter(&self, counter: WorkerCounter) -> Counter<'a> {
        Counter {
            word: self.word(line::COUNTERS + counter as usize),
        }
    }
}
