//! The log under every interleaving of two or three threads and every value that the memory model
//! lets a load return.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p m0-framelog --test loom`. Threads stand
//! for processes: loom explores threads; deaths at each store of real processes are `death.rs`.
//! Invariant: each model is bounded by a number of preemptions, so the file takes seconds.

#![cfg(loom)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use loom::thread;
use m0_framelog::sync::{AtomicU64, words};
use m0_framelog::{
    AppendError, AttachError, FrameId, FrameLog, Next, Reader, Repair, points, words_needed,
};

const EPOCH: u64 = 7;

/// A log with a ring of 8 words and 2 index entries: every third frame displaces one.
fn small_log() -> FrameLog<'static> {
    let memory: &'static [AtomicU64] = Box::leak(words(words_needed(0)).into_boxed_slice());
    let ids: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    FrameLog::format(memory, ids, EPOCH)
}

/// Explores `model` and returns how many executions that took.
fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) -> usize {
    let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    executions.load(std::sync::atomic::Ordering::Relaxed)
}

/// Fails when there was next to nothing to explore: then loom saw no race, and the model shows nothing.
#[track_caller]
fn check(executions: usize) {
    println!("{executions} executions");
    assert!(executions >= 20, "only {executions} executions");
}

/// Two words that both name the frame, so that a word of another frame shows.
fn body(seq: u64) -> [u8; 16] {
    let mut body = [0; 16];
    body[..8].copy_from_slice(&seq.to_ne_bytes());
    body[8..].copy_from_slice(&(!seq).to_ne_bytes());
    body
}

fn append(log: FrameLog<'_>, pid: u32) -> Result<FrameId, AppendError> {
    log.append(pid, |id, frame| frame.extend_from_slice(&body(id.seq)))
}

/// Reads once, checks what it got, and returns how many sequence numbers the reader went over (read or
/// told as missed); `None` for `Empty`.
fn read(reader: &mut Reader<'_>) -> Option<u64> {
    let mut out = Vec::new();
    let expected = reader.position();
    match reader.next(&mut out) {
        Next::Frame(id) => {
            assert_eq!(
                id,
                FrameId {
                    epoch: EPOCH,
                    seq: expected
                }
            );
            assert_eq!(out, body(id.seq), "a torn frame");
            Some(1)
        }
        Next::Lapped { resumed_at, missed } => {
            assert_eq!(resumed_at.seq, expected + missed);
            assert!(missed > 0);
            Some(missed)
        }
        Next::Empty => None,
    }
}

/// Reads until the reader says `Empty`.
fn drain(reader: &mut Reader<'_>) -> u64 {
    std::iter::from_fn(|| read(reader)).sum()
}

/// Appends as process `pid` and dies right after store number `after` (from 1): nothing runs then, not
/// even the release of the lock. Returns the number it was given (0 when it died before), or `None` when
/// the append ended without a death.
fn append_and_die(log: FrameLog<'_>, pid: u32, after: u32) -> Option<u64> {
    thread_local! {
        static VICTIM: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    }
    VICTIM.set((pid, after));
    points::set(Some(|pid| {
        let (victim, left) = VICTIM.get();
        if pid == victim {
            VICTIM.set((victim, left - 1));
            if left == 1 {
                points::kill(pid);
                resume_unwind(Box::new("killed"));
            }
        }
    }));
    let given = Cell::new(0);
    let died = catch_unwind(AssertUnwindSafe(|| {
        log.append(pid, |id, frame| {
            given.set(id.seq);
            frame.extend_from_slice(&body(id.seq));
        })
    }));
    points::set(None);
    points::kill(0);
    died.is_err().then_some(given.get())
}

/// A log that is full: the next frame displaces the first of two.
fn full_log() -> FrameLog<'static> {
    let log = small_log();
    for _ in 0..2 {
        append(log, 1).expect("nobody else appends");
    }
    log
}

/// How many stores an append to a full log makes; found by running it.
fn stores_of_an_append() -> u32 {
    let stores = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let found = stores.clone();
    loom::model(move || {
        let log = full_log();
        let mut after = 1;
        while append_and_die(log, 9, after).is_some() {
            log.repair(9);
            after += 1;
            assert!(after < 100, "an append that never ends");
        }
        found.store(after - 1, std::sync::atomic::Ordering::Relaxed);
    });
    let stores = stores.load(std::sync::atomic::Ordering::Relaxed);
    assert!(stores >= 8, "only {stores} stores: the hook is not called");
    stores
}

#[m0_spec::row(F1, F2, F18)]
#[test]
fn two_appenders_and_a_reader_see_whole_frames_whose_ids_rise_by_one() {
    check(explore(3, || {
        let log = small_log();
        let mut reader = Reader::at_tail(log);
        let writers = [1, 2].map(|pid| thread::spawn(move || append(log, pid)));
        let mut passed = drain(&mut reader);
        let results = writers.map(|writer| writer.join().expect("the appender did not panic"));
        passed += drain(&mut reader);
        let committed = results.iter().flatten().count() as u64;
        assert_eq!(log.tail(), committed + 1);
        assert_eq!(passed, committed);
        if let [Ok(one), Ok(other)] = results {
            assert_eq!(one.seq + other.seq, 3, "ids 1 and 2, in some order");
        }
    }));
}

#[m0_spec::row(F1, F4)]
#[test]
fn a_lapped_reader_is_told_and_never_gets_a_torn_frame() {
    check(explore(2, || {
        // Frames 3 and 4 are there. Frame 5 takes the index entry of frame 3, frame 7 its body.
        let log = small_log();
        for _ in 0..4 {
            append(log, 1).expect("nobody else appends");
        }
        let mut reader = Reader::after(log, 2).expect("frame 3 is there");
        let writer = thread::spawn(move || {
            for _ in 0..3 {
                append(log, 1).expect("nobody else appends");
            }
        });
        let mut passed = read(&mut reader).unwrap_or(0);
        writer.join().expect("the appender did not panic");
        passed += drain(&mut reader);
        assert_eq!(passed, 5, "read and missed together are frames 3 to 7");
    }));
}

#[m0_spec::row(F5)]
#[test]
fn a_reader_goes_on_while_a_dead_writer_holds_the_lock() {
    let mut executions = 0;
    for after in 1..=stores_of_an_append() {
        executions += explore(3, move || {
            let log = full_log();
            let mut reader = Reader::after(log, 0).expect("the first frame is there");
            let writer = thread::spawn(move || append_and_die(log, 2, after));
            // No wait and no lock in here: loom would report a reader that spins for ever.
            let mut passed = drain(&mut reader);
            let died = writer.join().expect("its death was caught");
            assert!(died.is_some());
            passed += drain(&mut reader);
            assert_eq!(passed, log.tail() - 1);
        });
    }
    check(executions);
}

#[m0_spec::row(F6, F7)]
#[test]
fn a_repair_and_a_survivors_append_do_not_disturb_each_other() {
    let mut executions = 0;
    for after in 1..=stores_of_an_append() {
        executions += explore(2, move || {
            let log = full_log();
            let survivor = thread::spawn(move || append(log, 1));
            let given = append_and_die(log, 9, after).unwrap_or(0);
            // Nobody else commits while the dead one holds the lock.
            let committed = given != 0 && log.tail() > given;
            log.repair(9);
            let appended = survivor.join().expect("the survivor did not panic");
            let before = log.tail() - 1;
            // Whoever was first, the log works on and the numbers have no gap.
            let id = append(log, 1).expect("the lock was repaired");
            assert_eq!(id.seq, before + 1);
            if let Ok(id) = appended {
                assert!(id.seq <= before, "an id that was given is committed");
                assert!(
                    !committed || id.seq != given,
                    "the dead one's frame was overwritten"
                );
            }
            let first = log.oldest();
            let mut reader = Reader::after(log, first - 1).expect("the oldest frame is there");
            assert_eq!(drain(&mut reader), log.tail() - first);
        });
    }
    check(executions);
}

#[m0_spec::row(F7)]
#[test]
fn of_two_repairs_one_takes_the_lock_and_a_survivor_keeps_its_own() {
    check(explore(2, || {
        let log = small_log();
        assert!(
            append_and_die(log, 9, 2).is_some(),
            "dies with frame 1 begun"
        );
        let repairs = [(); 2].map(|()| thread::spawn(move || log.repair(9)));
        let survivor = append(log, 1);
        let repairs = repairs.map(|repair| repair.join().expect("repair did not panic"));
        let done = repairs.iter().filter(|repair| **repair != Repair::NotHeld);
        assert_eq!(done.count(), 1, "{repairs:?}");
        assert!(repairs.contains(&Repair::RolledBack { seq: 1 }));
        assert_eq!(log.tail(), 1 + u64::from(survivor.is_ok()));
        append(log, 1).expect("the lock is free");
    }));
}

#[m0_spec::row(F13)]
#[test]
fn a_log_whose_magic_word_is_seen_is_whole() {
    check(explore(3, || {
        let memory: &'static [AtomicU64] = Box::leak(words(words_needed(0)).into_boxed_slice());
        let ids: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        let maker = thread::spawn(move || {
            FrameLog::format(memory, ids, EPOCH);
        });
        match FrameLog::attach(memory, ids) {
            Ok(log) => assert_eq!((log.epoch(), log.oldest()), (EPOCH, 1)),
            Err(error) => assert_eq!(error, AttachError::Unformatted),
        }
        maker.join().expect("format did not panic");
    }));
}
