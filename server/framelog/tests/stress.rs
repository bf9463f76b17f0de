//! The log under real threads for a bounded number of frames: what loom cannot reach, sizes and time.

#![cfg(not(loom))]

use std::thread;
use std::time::{Duration, Instant};

use m0_framelog::{AppendError, FrameLog, Next, Reader, sync, words_needed};

const FRAMES_EACH: u64 = 20_000;
/// No thread waits for another for longer.
const BOUND: Duration = Duration::from_secs(30);

/// A frame that says of every byte which frame it belongs to.
fn write(seq: u64, frame: &mut Vec<u8>) {
    let length = (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize;
    frame.resize(length, seq as u8);
}

fn check(seq: u64, frame: &[u8]) {
    let mut expected = Vec::new();
    write(seq, &mut expected);
    assert_eq!(frame, expected, "frame {seq} is torn");
}

/// Reads until frame `last`, and returns how many frames were read and how many were missed.
fn read_to(mut reader: Reader<'_>, last: u64) -> (u64, u64) {
    let mut out = Vec::new();
    let (mut read, mut missed_in_all) = (0, 0);
    let deadline = Instant::now() + BOUND;
    while reader.position() <= last {
        let expected = reader.position();
        match reader.next(&mut out) {
            Next::Frame(id) => {
                assert_eq!(id.seq, expected);
                check(id.seq, &out);
                read += 1;
            }
            Next::Lapped { resumed_at, missed } => {
                assert!(missed > 0);
                assert_eq!(resumed_at.seq, expected + missed);
                missed_in_all += missed;
            }
            Next::Empty => {
                assert!(Instant::now() < deadline, "frame {expected} never came");
                thread::yield_now();
            }
        }
    }
    (read, missed_in_all)
}

/// Four appenders and two readers over a ring of so many bytes.
fn run(capacity: usize) -> [(u64, u64); 2] {
    let ids = sync::AtomicU64::new(0);
    let words = sync::words(words_needed(capacity));
    let log = FrameLog::format(&words, &ids, 1);
    thread::scope(|scope| {
        let readers = [Reader::at_tail(log); 2]
            .map(|reader| scope.spawn(move || read_to(reader, 4 * FRAMES_EACH)));
        let appenders = [1, 2, 3, 4].map(|pid| {
            scope.spawn(move || {
                let mut before = 0;
                let deadline = Instant::now() + BOUND;
                for _ in 0..FRAMES_EACH {
                    let id = loop {
                        match log.append(pid, |id, frame| write(id.seq, frame)) {
                            Ok(id) => break id,
                            // The machine is loaded, and the holder has not run for 50 ms.
                            Err(AppendError::Busy { holder }) => {
                                assert!(Instant::now() < deadline, "{holder} keeps the lock");
                            }
                            Err(error) => panic!("{error}"),
                        }
                    };
                    assert!(id.seq > before, "an appender's own ids rise");
                    before = id.seq;
                }
            })
        });
        for appender in appenders {
            appender.join().expect("no appender panicked");
        }
        readers.map(|reader| reader.join().expect("no reader panicked"))
    })
}

#[m0_spec::row(F1, F2, F4)]
#[test]
fn readers_of_a_small_ring_get_whole_frames_or_are_told() {
    for (read, missed) in run(2048) {
        assert_eq!(read + missed, 4 * FRAMES_EACH);
        assert!(read > 0);
    }
}

#[m0_spec::row(F1, F2, F3)]
#[test]
fn readers_of_a_ring_that_holds_everything_miss_nothing() {
    for (read, missed) in run(64 << 20) {
        assert_eq!((read, missed), (4 * FRAMES_EACH, 0));
    }
}
