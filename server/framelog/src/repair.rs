//! What the supervisor does to the log after a worker has died.
//!
//! Owns giving back a dead holder's lock. Knows nothing of how the death was noticed.
//!
//! Invariant: repair never touches frames: an append is committed by one store, so what a dead
//! appender left is either a whole frame or words that no reader looks at. Repair is itself one
//! store, so a supervisor that dies in it leaves either nothing done or all of it.

use crate::FrameLog;
use crate::points::stored;
use crate::sync::Ordering::Relaxed;

/// What a dead process had left in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It did not hold the lock, or another repair has released it.
    NotHeld,
    /// It held the lock with no frame half written: before it began one, or after it committed.
    Released,
    /// It held the lock with frame `seq` begun and not committed: nobody saw the frame, and the next
    /// append gets the number.
    RolledBack {
        /// The number that was not used.
        seq: u64,
    },
}

impl FrameLog<'_> {
    /// Repairs what process `dead_pid` left. For the supervisor, once the process has been reaped (so it
    /// stores nothing more) and before its successor is forked. Safe to call again.
    pub fn repair(&self, dead_pid: u32) -> Repair {
        let word = self.lock();
        if dead_pid == 0 || word.holder() != dead_pid {
            return Repair::NotHeld;
        }
        // Read before the release: afterwards a survivor may commit.
        let next = self.ids.load(Relaxed) + 1;
        if !self.release_dead(word) {
            return Repair::NotHeld;
        }
        stored(dead_pid);
        if word.has_begun(next) {
            Repair::RolledBack { seq: next }
        } else {
            Repair::Released
        }
    }
}
