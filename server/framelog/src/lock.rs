//! The lock of the appenders: one word that says who is inside and how far.
//!
//! Owns taking the lock, noting the frame that is begun, releasing it, and taking it from the dead.
//! Knows nothing of where frames lie.
//!
//! Invariant: the word is 0, or it carries the pid of a process that is inside `append`, or was
//! when it died. A dead holder's word stays until the supervisor's `repair`: no worker can know
//! that another is dead. Only the holder stores over its own word, and a repair exchanges exactly the
//! word that it has looked at, so of two repairs one wins and a survivor's lock is never released.

use crate::FrameLog;
use crate::points::{dead, stored};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::wait;

/// What the lock word says: the pid in the low half; in the high half, once the holder has begun a
/// frame, one bit and the low 31 bits of the frame's number.
#[derive(Clone, Copy)]
pub(crate) struct Word(u64);

const BEGUN: u64 = 1 << 32;
const NUMBER_SHIFT: u32 = 33;

impl Word {
    pub(crate) fn holder(self) -> u32 {
        self.0 as u32
    }

    /// Whether the holder has begun frame `seq`.
    pub(crate) fn has_begun(self, seq: u64) -> bool {
        self.0 >> 32 == Self::begun(0, seq).0 >> 32
    }

    fn begun(pid: u32, seq: u64) -> Self {
        Self(u64::from(pid) | BEGUN | seq << NUMBER_SHIFT)
    }
}

/// The lock, held. Dropping it releases the lock, also when the frame's writer panics.
pub(crate) struct Held<'a> {
    log: FrameLog<'a>,
    pid: u32,
}

impl<'a> Held<'a> {
    /// Takes the lock for `pid`. `None` when it was not free within the bound: another appender is
    /// stopped or dead inside, or the caller appends from within an append.
    pub(crate) fn take(log: FrameLog<'a>, pid: u32) -> Option<Self> {
        assert!(pid != 0, "an appender without a pid");
        let word = log.lock_word();
        let mut attempt = 0;
        while word
            .compare_exchange(0, u64::from(pid), Acquire, Relaxed)
            .is_err()
        {
            if !wait(attempt) {
                return None;
            }
            attempt += 1;
        }
        stored(pid);
        Some(Self { log, pid })
    }

    /// Notes that frame `seq` is begun.
    pub(crate) fn begin(&self, seq: u64) {
        let word = Word::begun(self.pid, seq);
        self.log.lock_word().store(word.0, Relaxed);
        stored(self.pid);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if dead(self.pid) {
            return;
        }
        self.log.lock_word().store(0, Release);
        stored(self.pid);
    }
}

impl FrameLog<'_> {
    /// What the lock word says now.
    pub(crate) fn lock(&self) -> Word {
        Word(self.lock_word().load(Relaxed))
    }

    /// Releases the lock that a dead process held with `word`. `false` when it holds it no more.
    pub(crate) fn release_dead(&self, word: Word) -> bool {
        self.lock_word()
            .compare_exchange(word.0, 0, Release, Relaxed)
            .is_ok()
    }
}
