//! The log against a model that keeps every frame in a list.
//!
//! Owns arbitrary sequences of appends, reads, replays, refusals and deaths' repairs; the model knows
//! which frames must be there still and which may be gone.

#![cfg(not(loom))]

use std::collections::VecDeque;

use m0_framelog::{
    AppendError, FrameId, FrameLog, Gone, Next, ParseIdError, Reader, Reason, Repair, Replay, plan,
    sync, words_needed,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Act {
    /// Append so many bytes (as a share of one and a quarter of the limit, so some are refused).
    Append { share: u8, salt: u8 },
    /// Reader number `who` reads up to `count` times.
    Read { who: usize, count: usize },
    /// Reader number `who` starts again after a sequence number near the tail.
    Restart { who: usize, back: u64 },
    /// A process without the lock died.
    Repair,
}

fn an_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (any::<u8>(), any::<u8>()).prop_map(|(share, salt)| Act::Append { share, salt }),
        4 => (0..3_usize, 1..6_usize).prop_map(|(who, count)| Act::Read { who, count }),
        1 => (0..3_usize, 0..20_u64).prop_map(|(who, back)| Act::Restart { who, back }),
        1 => Just(Act::Repair),
    ]
}

fn bytes_of(share: u8, salt: u8, limit: usize) -> Vec<u8> {
    // Many empty ones, many at the limit exactly, the others between 0 and five quarters of it.
    let length = match share {
        0..20 => 0,
        20..40 => limit,
        _ => limit * 5 / 4 * usize::from(share) / 255,
    };
    (0..length)
        .map(|place| (place as u8).wrapping_mul(31) ^ salt)
        .collect()
}

/// Every frame ever appended that the log could still hold; the first is number `first`.
struct Model {
    frames: VecDeque<Vec<u8>>,
    first: u64,
}

impl Model {
    fn tail(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    fn frame(&self, seq: u64) -> &[u8] {
        &self.frames[(seq - self.first) as usize]
    }

    /// The first frame still there: the longest suffix that leaves a word of the ring free and has an
    /// index entry for each frame.
    fn oldest(&self, ring: usize, index: usize) -> u64 {
        let mut words = 0;
        let mut kept = 0;
        for frame in self.frames.iter().rev() {
            words += frame.len().div_ceil(8).max(1);
            if words >= ring || kept + 1 > index {
                break;
            }
            kept += 1;
        }
        self.tail() - kept as u64
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[m0_spec::row(F2, F3, F4, F8, F9)]
    #[test]
    fn the_log_behaves_as_a_list_that_forgets_its_beginning(
        capacity in 0..3000_usize,
        acts in prop::collection::vec(an_act(), 1..120),
    ) {
        let ids = sync::AtomicU64::new(0);
        let words = sync::words(words_needed(capacity));
        let log = FrameLog::format(&words, &ids, 3);
        let limit = log.frame_limit_bytes();
        let ring = log.capacity_bytes() / 8;
        let index = words.len() - 24 - ring;
        let mut model = Model { frames: VecDeque::new(), first: 1 };
        let mut readers = [Reader::at_tail(log); 3];
        let mut out = Vec::new();
        for act in acts {
            match act {
                Act::Append { share, salt } => {
                    let frame = bytes_of(share, salt, limit);
                    let result = log.append(1, |_, out| out.extend_from_slice(&frame));
                    if frame.len() > limit {
                        prop_assert_eq!(result, Err(AppendError::TooLarge { bytes: frame.len(), limit }));
                    } else {
                        prop_assert_eq!(result, Ok(FrameId { epoch: 3, seq: model.tail() }));
                        model.frames.push_back(frame);
                    }
                }
                Act::Read { who, count } => {
                    for _ in 0..count {
                        let expected = readers[who].position();
                        match readers[who].next(&mut out) {
                            Next::Frame(id) => {
                                prop_assert_eq!(id, FrameId { epoch: 3, seq: expected });
                                prop_assert_eq!(&out[..], model.frame(expected));
                            }
                            Next::Lapped { resumed_at, missed } => {
                                prop_assert!(expected < log.oldest());
                                prop_assert_eq!(resumed_at.seq, log.oldest());
                                prop_assert_eq!(missed, log.oldest() - expected);
                            }
                            Next::Empty => prop_assert_eq!(expected, model.tail()),
                        }
                    }
                }
                Act::Restart { who, back } => {
                    let seq = model.tail().saturating_sub(back);
                    match Reader::after(log, seq) {
                        Ok(reader) => {
                            prop_assert_eq!(reader.position(), seq + 1);
                            readers[who] = reader;
                        }
                        Err(Gone::Future { tail }) => prop_assert!(tail == model.tail() && seq >= tail),
                        Err(Gone::TooOld { oldest }) => {
                            prop_assert!(oldest == log.oldest() && seq + 1 < oldest);
                        }
                    }
                }
                Act::Repair => prop_assert_eq!(log.repair(99), Repair::NotHeld),
            }
            prop_assert_eq!(log.tail(), model.tail());
            // Exactly what fits is kept: a frame goes when a new one needs its place, and not before.
            prop_assert_eq!(log.oldest(), model.oldest(ring, index));
        }
    }

    #[m0_spec::row(F10, F11)]
    #[test]
    fn a_replay_yields_exactly_the_frames_above_the_id_that_are_still_there(
        capacity in 0..2000_usize,
        frames in prop::collection::vec((any::<u8>(), any::<u8>()), 0..60),
        back in -5..70_i64,
    ) {
        let ids = sync::AtomicU64::new(0);
        let words = sync::words(words_needed(capacity));
        let log = FrameLog::format(&words, &ids, 3);
        let limit = log.frame_limit_bytes();
        let frames: Vec<_> = frames.into_iter()
            .map(|(share, salt)| bytes_of(share, salt, limit))
            .filter(|frame| frame.len() <= limit)
            .collect();
        for frame in &frames {
            log.append(1, |_, out| out.extend_from_slice(frame)).expect("within the limit");
        }
        let last = (frames.len() as i64 - back).max(0) as u64;
        let answer = plan(Some(&format!("3-{last}")), log);
        if last > frames.len() as u64 {
            prop_assert_eq!(answer, Replay::Reset(Reason::Future));
        } else if last + 1 < log.oldest() {
            prop_assert_eq!(answer, Replay::Reset(Reason::TooOld));
        } else {
            prop_assert_eq!(answer, Replay::From(last + 1));
            let mut reader = Reader::after(log, last).expect("the plan says so");
            let mut out = Vec::new();
            for (place, frame) in frames.iter().enumerate().skip(last as usize) {
                prop_assert_eq!(reader.next(&mut out), Next::Frame(log.id(place as u64 + 1)));
                prop_assert_eq!(&out, frame);
            }
            prop_assert_eq!(reader.next(&mut out), Next::Empty);
        }
    }

    #[m0_spec::row(F20)]
    #[test]
    fn every_id_comes_back_from_its_text(epoch in any::<u64>(), seq in any::<u64>()) {
        let id = FrameId { epoch, seq };
        prop_assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[m0_spec::row(F20)]
    #[test]
    fn what_is_read_as_an_id_is_an_ids_text(text in "[ +0-9a-fA-F-]{0,12}|[0-9a-f]{14,18}-[0-9]{18,22}|\\PC{0,8}") {
        let parsed = text.parse::<FrameId>();
        if let Ok(id) = parsed {
            prop_assert_eq!(id.to_string(), &text[..]);
        }
        // And a refused text is no id's: whatever numbers it holds print otherwise.
        let numbers = text.split_once('-').and_then(|(epoch, seq)| {
            Some((u64::from_str_radix(epoch, 16).ok()?, seq.parse().ok()?))
        });
        if let (Err(ParseIdError), Some((epoch, seq))) = (parsed, numbers) {
            prop_assert_ne!(FrameId { epoch, seq }.to_string(), text);
        }
    }
}
