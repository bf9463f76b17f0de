//! The producer's line: who is the one producer, and what it has done.
//!
//! Owns the claim that makes a second producer impossible. Knows nothing of steps or schedules.
//!
//! Invariant: the owner word is 0 or names the one worker whose producer may run; it changes from
//! one owner to another only through 0.

use crate::layout::PRODUCER;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::{AtomicU64, Counter, Page};

/// The line of the producer.
#[derive(Clone, Copy)]
pub struct ProducerLine<'a> {
    page: Page<'a>,
}

/// What the producer counts. It alone writes these; they go on over a respawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ProducerCounter {
    /// Steps that ran to their end.
    Steps = 1,
    /// Scheduled steps that were left out after an overrun.
    Missed,
    /// Frames that a worker or the log did not take.
    RefusedPublishes,
    /// Frames published.
    Published,
    /// Steps that failed; each ended a producer.
    Failures,
    /// Producers left behind inside a step at the end of the drain.
    Abandoned,
}

impl<'a> Page<'a> {
    /// The producer's line.
    pub fn producer(&self) -> ProducerLine<'a> {
        ProducerLine { page: *self }
    }
}

impl<'a> ProducerLine<'a> {
    /// Makes `pid` in `slot` the one producer. `false` when another one is registered: then this
    /// process must not run its own. `pid` is a process id, never 0.
    #[must_use]
    pub fn claim(&self, pid: u32, slot: usize) -> bool {
        assert!(pid != 0, "a producer without a pid");
        self.owner_word()
            .compare_exchange(0, pack(pid, slot), AcqRel, Acquire)
            .is_ok()
    }

    /// Gives up the claim of `pid`, because its producer has ended. `false` when it had none.
    pub fn release(&self, pid: u32) -> bool {
        let owner = self.owner_word().load(Acquire);
        owner as u32 == pid
            && self
                .owner_word()
                .compare_exchange(owner, 0, AcqRel, Acquire)
                .is_ok()
    }

    /// Gives up the claim of a dead worker. For the supervisor, after it has reaped `pid` and
    /// before it forks a successor. `true` when the dead worker ran the producer.
    pub fn repair(&self, pid: u32) -> bool {
        self.release(pid)
    }

    /// Process id and slot of the producer, when there is one.
    pub fn owner(&self) -> Option<(u32, usize)> {
        let owner = self.owner_word().load(Acquire);
        (owner != 0).then_some((owner as u32, (owner >> 32) as usize))
    }

    /// A counter of the producer.
    pub fn counter(&self, counter: ProducerCounter) -> Counter<'a> {
        Counter {
            word: self.page.word(PRODUCER + counter as usize),
        }
    }

    /// The figure of `counter` now.
    pub(crate) fn figure(&self, counter: ProducerCounter) -> u64 {
        self.page.word(PRODUCER + counter as usize).load(Relaxed)
    }

    fn owner_word(&self) -> &'a AtomicU64 {
        self.page.word(PRODUCER)
    }
}

fn pack(pid: u32, slot: usize) -> u64 {
    (slot as u64) << 32 | u64::from(pid)
}
