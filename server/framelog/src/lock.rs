//! The lock of the appenders: one word with the holder's pid.
//!
//! Owns taking and releasing it. Knows nothing of frames.
//!
//! Invariant: the word is 0 or the pid of a process that is inside `append`, or was when it died.
//! A dead holder's pid stays until the supervisor's `repair`; nobody else takes it away, because no
//! worker can know that another is dead.

use crate::FrameLog;
use crate::points;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::wait;

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
        points::stored(pid);
        Some(Self { log, pid })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if points::dead(self.pid) {
            return;
        }
        self.log.in_flight_word().store(0, Relaxed);
        points::stored(self.pid);
        self.log.lock_word().store(0, Release);
        points::stored(self.pid);
    }
}
