//! The log in one thread: sizes, the wrap, refusals, panics, geometry, ids.
//!
//! Owns the cases a reader would think of; `properties.rs` has the ones nobody thinks of.

#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

use m0_framelog::{
    AppendError, AttachError, FrameId, FrameLog, Gone, MAX_FRAME_BYTES, Next, ParseIdError, Reader,
    Repair, sync, words_needed,
};

const PID: u32 = 77;

struct Memory {
    ids: sync::AtomicU64,
    words: Vec<sync::AtomicU64>,
}

impl Memory {
    fn of(capacity_bytes: usize) -> Self {
        Self {
            ids: sync::AtomicU64::new(0),
            words: sync::words(words_needed(capacity_bytes)),
        }
    }

    fn format(&self) -> FrameLog<'_> {
        FrameLog::format(&self.words, &self.ids, 0xe)
    }
}

fn append(log: FrameLog<'_>, bytes: &[u8]) -> Result<FrameId, AppendError> {
    log.append(PID, |_, frame| frame.extend_from_slice(bytes))
}

/// A frame whose every byte depends on its place.
fn pattern(bytes: usize, salt: u8) -> Vec<u8> {
    (0..bytes).map(|place| (place % 251) as u8 ^ salt).collect()
}

#[m0_spec::row(F9, F1)]
#[test]
fn a_frame_of_any_size_up_to_1_mib_comes_back_byte_for_byte() {
    let memory = Memory::of(4 * MAX_FRAME_BYTES);
    let log = memory.format();
    assert_eq!(log.frame_limit_bytes(), MAX_FRAME_BYTES);
    let mut reader = Reader::at_tail(log);
    let mut out = vec![1; 3];
    let sizes = (0..40).chain([
        63,
        64,
        65,
        4095,
        4096,
        4097,
        MAX_FRAME_BYTES - 1,
        MAX_FRAME_BYTES,
    ]);
    // Twice the ring in all, so the largest ones wrap.
    for (n, bytes) in sizes.chain([MAX_FRAME_BYTES; 6]).enumerate() {
        let frame = pattern(bytes, n as u8);
        let id = append(log, &frame).expect("within the limit");
        assert_eq!(
            id,
            FrameId {
                epoch: 0xe,
                seq: n as u64 + 1
            }
        );
        assert_eq!(reader.next(&mut out), Next::Frame(id));
        assert_eq!(out, frame, "{bytes} bytes");
        assert_eq!(reader.next(&mut out), Next::Empty);
        assert_eq!(out, b"", "a buffer without a frame is empty");
    }
}

#[m0_spec::row(F9)]
#[test]
fn a_frame_across_the_rings_end_comes_back_at_every_place() {
    let memory = Memory::of(512);
    let log = memory.format();
    let mut reader = Reader::at_tail(log);
    let mut out = Vec::new();
    // 9 words a frame in a ring of 64: the end falls at every place within a frame.
    for n in 0..200 {
        let frame = pattern(65 + n % 8, n as u8);
        let id = append(log, &frame).expect("within the limit");
        assert_eq!(reader.next(&mut out), Next::Frame(id));
        assert_eq!(out, frame, "frame {n}");
    }
}

#[m0_spec::row(F8)]
#[test]
fn a_frame_above_the_limit_is_refused_and_changes_nothing() {
    for capacity in [0, 512, 4096, 4 * MAX_FRAME_BYTES, 16 * MAX_FRAME_BYTES] {
        let memory = Memory::of(capacity);
        let log = memory.format();
        let limit = log.frame_limit_bytes();
        append(log, b"first").expect("within the limit");
        let before: Vec<u64> = memory.words.iter().map(|word| word.load(Relaxed)).collect();
        for bytes in [limit + 1, 2 * limit + 3] {
            let refused = append(log, &vec![7; bytes]);
            assert_eq!(refused, Err(AppendError::TooLarge { bytes, limit }));
        }
        let after: Vec<u64> = memory.words.iter().map(|word| word.load(Relaxed)).collect();
        assert_eq!(before, after);
        assert_eq!(
            append(log, &vec![7; limit]).map(|id| id.seq),
            Ok(2),
            "the id was not used up"
        );
    }
}

#[m0_spec::row(F21)]
#[test]
fn a_writer_that_panics_commits_nothing_and_releases_the_lock() {
    let memory = Memory::of(512);
    let log = memory.format();
    append(log, b"first").expect("nobody holds the lock");
    let mut reader = Reader::after(log, 0).expect("frame 1 is there");
    for _ in 0..3 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            log.append(PID, |id, frame| {
                assert_eq!(id.seq, 2);
                frame.extend_from_slice(b"half a fr");
                std::panic::resume_unwind(Box::new("a template's mistake"));
            })
        }));
        let what = panicked.expect_err("the panic is the caller's to see");
        assert_eq!(what.downcast_ref(), Some(&"a template's mistake"));
        assert_eq!(log.tail(), 2);
        assert_eq!(log.repair(PID), Repair::NotHeld, "the lock is free");
    }
    assert_eq!(append(log, b"second").map(|id| id.seq), Ok(2));
    let mut out = Vec::new();
    assert_eq!(reader.next(&mut out), Next::Frame(log.id(1)));
    assert_eq!(reader.next(&mut out), Next::Frame(log.id(2)));
    assert_eq!(out, b"second");
}

#[m0_spec::row(F22)]
#[test]
fn an_append_within_an_append_is_refused_within_the_bound() {
    let memory = Memory::of(512);
    let log = memory.format();
    let started = std::time::Instant::now();
    let id = log.append(PID, |_, frame| {
        assert_eq!(
            append(log, b"inner"),
            Err(AppendError::Busy { holder: PID })
        );
        frame.extend_from_slice(b"outer");
    });
    assert_eq!(id.map(|id| id.seq), Ok(1));
    let took = started.elapsed();
    assert!(
        took < std::time::Duration::from_secs(2),
        "the bound is 50 ms of waits: {took:?}"
    );
    let mut out = Vec::new();
    let mut reader = Reader::after(log, 0).expect("frame 1 is there");
    assert_eq!(reader.next(&mut out), Next::Frame(log.id(1)));
    assert_eq!(out, b"outer");
}

#[m0_spec::row(F4)]
#[test]
fn a_lapped_reader_is_told_how_many_frames_it_missed_and_goes_on() {
    let memory = Memory::of(512);
    let log = memory.format();
    let mut reader = Reader::at_tail(log);
    for n in 1..=20 {
        append(log, &pattern(100, n)).expect("within the limit");
    }
    let oldest = log.oldest();
    // 13 words a frame, 63 of 64 words used at most.
    assert_eq!(oldest, 17);
    let mut out = vec![9];
    let lapped = Next::Lapped {
        resumed_at: log.id(17),
        missed: 16,
    };
    assert_eq!(reader.next(&mut out), lapped);
    assert_eq!(out, b"");
    for n in 17..=20 {
        assert_eq!(reader.next(&mut out), Next::Frame(log.id(n)));
        assert_eq!(out, pattern(100, n as u8));
    }
    assert_eq!(reader.next(&mut out), Next::Empty);
}

#[m0_spec::row(F12, F4)]
#[test]
fn short_frames_are_bounded_by_the_index() {
    let memory = Memory::of(512);
    let log = memory.format();
    for _ in 0..100 {
        append(log, b"").expect("within the limit");
    }
    assert_eq!((log.oldest(), log.tail()), (93, 101), "8 entries: 8 frames");
}

#[m0_spec::row(F12)]
#[test]
fn the_memory_is_what_was_configured() {
    for (capacity, ring_bytes) in [
        (0, 64),
        (1, 64),
        (64, 64),
        (65, 72),
        (512, 512),
        (4 << 20, 4 << 20),
        (5_000_001, 5_000_008),
    ] {
        let memory = Memory::of(capacity);
        let log = memory.format();
        assert_eq!(log.capacity_bytes(), ring_bytes, "{capacity}");
        let bytes = memory.words.len() * 8;
        // Header, and one entry for 64 bytes of ring.
        assert!(
            bytes <= ring_bytes + ring_bytes / 8 + 24 * 8 + 16,
            "{capacity}: {bytes}"
        );
        let attached = FrameLog::attach(&memory.words, &memory.ids).expect("it was formatted");
        assert_eq!(attached.capacity_bytes(), ring_bytes);
    }
}

#[m0_spec::row(F12)]
#[test]
fn any_number_of_words_makes_a_log_that_works() {
    for count in words_needed(0)..words_needed(0) + 200 {
        let memory = Memory {
            ids: sync::AtomicU64::new(0),
            words: sync::words(count),
        };
        let log = memory.format();
        let mut reader = Reader::at_tail(log);
        let mut out = Vec::new();
        for n in 0..60 {
            let frame = pattern(n % (log.frame_limit_bytes() + 1), n as u8);
            let id = append(log, &frame).expect("within the limit");
            assert_eq!(reader.next(&mut out), Next::Frame(id), "{count} words");
            assert_eq!(out, frame);
        }
    }
}

#[m0_spec::row(F2)]
#[test]
fn a_log_goes_on_from_the_id_word_it_is_given() {
    let memory = Memory::of(512);
    memory.ids.store(41, Relaxed);
    let log = memory.format();
    assert_eq!((log.oldest(), log.tail()), (42, 42));
    for seq in 42..100 {
        assert_eq!(append(log, &pattern(50, 1)).map(|id| id.seq), Ok(seq));
        assert_eq!(
            memory.ids.load(Relaxed),
            seq,
            "the id word is the last id handed out"
        );
    }
    assert_eq!(
        Reader::after(log, 40).err(),
        Some(Gone::TooOld {
            oldest: log.oldest()
        })
    );
}

#[m0_spec::row(F13)]
#[test]
fn words_that_are_no_log_are_refused_and_the_refusal_says_why() {
    #[track_caller]
    fn check(spoil: impl FnOnce(&Memory), expected: AttachError, says: &str) {
        let memory = Memory::of(512);
        memory.format();
        spoil(&memory);
        let Err(error) = FrameLog::attach(&memory.words, &memory.ids) else {
            panic!("attached, not {expected:?}");
        };
        assert_eq!(error, expected);
        assert!(error.to_string().contains(says), "{error}");
    }
    let set =
        |index: usize, value: u64| move |memory: &Memory| memory.words[index].store(value, Relaxed);
    check(set(0, 0), AttachError::Unformatted, "never formatted");
    check(
        set(0, 5),
        AttachError::NotALog { found: 5 },
        "0x0000000000000005",
    );
    check(
        set(1, 9),
        AttachError::Version {
            found: 9,
            expected: 1,
        },
        "version 9",
    );
    let words = words_needed(512);
    check(
        set(3, 9),
        AttachError::Length { words, made: 9 },
        "made of 9 words",
    );

    let memory = Memory::of(512);
    memory.format();
    let needed = words_needed(0);
    for words in [0, 1, needed - 1] {
        let error = FrameLog::attach(&memory.words[..words], &memory.ids).err();
        assert_eq!(error, Some(AttachError::TooSmall { words, needed }));
    }
    let cut = FrameLog::attach(&memory.words[..words - 1], &memory.ids).err();
    assert_eq!(
        cut,
        Some(AttachError::Length {
            words: words - 1,
            made: words as u64
        })
    );
}

#[m0_spec::row(F20)]
#[test]
fn an_id_has_one_text_and_no_other_text_is_an_id() {
    for (epoch, seq, text) in [
        (0, 0, "0-0"),
        (0x5eed, 7, "5eed-7"),
        (u64::MAX, u64::MAX, "ffffffffffffffff-18446744073709551615"),
    ] {
        let id = FrameId { epoch, seq };
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id));
    }
    for text in [
        "",
        "-",
        "1",
        "1-",
        "-1",
        "1-2-3",
        "1--2",
        "+1-2",
        "1-+2",
        "-1-2",
        " 1-2",
        "1-2 ",
        "1 -2",
        "1- 2",
        "\t1-2",
        "1-2\n",
        "0x1-2",
        "01-2",
        "1-02",
        "00-0",
        "0-00",
        "A-1",
        "1-a",
        "g-1",
        "1_0-1",
        "1-1_0",
        "\u{661}-1",
        "1-\u{661}",
        "1\u{2013}2",
        "1-2\0",
        "10000000000000000-1",
        "1-18446744073709551616",
        "1-99999999999999999999",
        "ffffffffffffffff-184467440737095516150",
    ] {
        assert_eq!(text.parse::<FrameId>(), Err(ParseIdError), "{text:?}");
    }
    assert_eq!("1-2".repeat(100_000).parse::<FrameId>(), Err(ParseIdError));
}
