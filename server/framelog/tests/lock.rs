//! The log's lock as one thread sees it: how long it is waited for, and what a dead holder had begun.

#![cfg(not(loom))]

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use m0_framelog::{AppendError, FrameLog, Repair, sync, words_needed};

/// The word of the lock.
const LOCK: usize = 8;

#[m0_spec::row(F22)]
#[test]
fn a_lock_that_is_held_is_waited_for_until_the_bound() {
    let ids = sync::AtomicU64::new(0);
    let words = sync::words(words_needed(512));
    let log = FrameLog::format(&words, &ids, 0xe);
    let mut inner = None;
    let outer = log.append(7, |_, _| {
        let began = Instant::now();
        let refused = log.append(8, |_, _| ());
        inner = Some((refused, began.elapsed()));
    });
    let (refused, waited) = inner.expect("the frame was written");
    assert_eq!(refused, Err(AppendError::Busy { holder: 7 }));
    // Its last 277 looks are 160 us apart.
    assert!(waited >= Duration::from_millis(44), "{waited:?}");
    assert_eq!(outer.map(|id| id.seq), Ok(1), "the holder goes on");
    assert_eq!(log.append(8, |_, _| ()).map(|id| id.seq), Ok(2));
}

#[m0_spec::row(F7)]
#[test]
fn a_holder_that_died_before_it_began_rolled_nothing_back_whatever_the_number() {
    // Of a number the lock keeps the lowest 31 bits: those of the first are all zero.
    for next in [1 << 31, 1 << 40, (1 << 31) + 1, 1, u64::from(u32::MAX)] {
        let ids = sync::AtomicU64::new(next - 1);
        let words = sync::words(words_needed(512));
        let log = FrameLog::format(&words, &ids, 0xe);
        words[LOCK].store(77, Relaxed);
        assert_eq!(log.repair(77), Repair::Released, "before frame {next}");
        assert_eq!(log.repair(77), Repair::NotHeld);
    }
}
