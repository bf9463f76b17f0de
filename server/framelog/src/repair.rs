//! What the supervisor does to the log after a worker has died.
//!
//! Owns giving back a dead holder's lock. Knows nothing of how the death was noticed.
//!
//! Invariant: repair never touches frames: an append is committed by one store, so what a dead
//! appender left is either a whole frame or words that no reader looks at. Only a lock held by the
//! given process is released, so a survivor that is appending is not disturbed.

use crate::FrameLog;
use crate::points::stored;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// What a dead process had left in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It did not hold the lock.
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
    /// Repairs what process `dead_pid` left. For the supervisor alone, once the process has been reaped
    /// (so it can store nothing more) and before its successor is forked. Safe to call again, also
    /// after the supervisor was interrupted in the middle.
    pub fn repair(&self, dead_pid: u32) -> Repair {
        if dead_pid == 0 || self.lock_word().load(Acquire) != u64::from(dead_pid) {
            return Repair::NotHeld;
        }
        let in_flight = self.in_flight_word().load(Relaxed);
        let committed = self.ids.load(Relaxed);
        self.in_flight_word().store(0, Relaxed);
        stored(dead_pid);
        self.lock_word().store(0, Release);
        stored(dead_pid);
        if in_flight > committed {
            Repair::RolledBack { seq: in_flight }
        } else {
            Repair::Released
        }
    }
}
