//! Where a stream that comes back goes on, case by case; `properties.rs` has the general claim.

#![cfg(not(loom))]

use m0_framelog::{FrameLog, Gone, Next, Reader, Reason, Replay, plan, sync, words_needed};

/// A log in run 0xe with frames 17 to 20 still there.
fn with_log(look: impl FnOnce(FrameLog<'_>)) {
    let ids = sync::AtomicU64::new(0);
    let words = sync::words(words_needed(512));
    let log = FrameLog::format(&words, &ids, 0xe);
    for _ in 0..20 {
        log.append(1, |id, frame| frame.resize(100, id.seq as u8))
            .expect("nobody else appends");
    }
    assert_eq!((log.oldest(), log.tail()), (17, 21));
    look(log);
}

#[m0_spec::row(F10, F11)]
#[test]
fn each_last_event_id_has_its_answer() {
    let cases = [
        (None, Replay::LiveFrom(21)),
        (Some(""), Replay::LiveFrom(21)),
        (Some("e-20"), Replay::From(21)),
        (Some("e-19"), Replay::From(20)),
        (Some("e-17"), Replay::From(18)),
        (Some("e-16"), Replay::From(17)),
        (Some("e-15"), Replay::Reset(Reason::TooOld)),
        (Some("e-0"), Replay::Reset(Reason::TooOld)),
        (Some("e-21"), Replay::Reset(Reason::Future)),
        (
            Some("e-18446744073709551615"),
            Replay::Reset(Reason::Future),
        ),
        (Some("d-20"), Replay::Reset(Reason::Epoch)),
        (Some("ee-20"), Replay::Reset(Reason::Epoch)),
        (Some("f-99"), Replay::Reset(Reason::Epoch)),
        (Some("20"), Replay::Reset(Reason::Malformed)),
        (Some("e-20 "), Replay::Reset(Reason::Malformed)),
        (Some("e-+20"), Replay::Reset(Reason::Malformed)),
        (Some("E-20"), Replay::Reset(Reason::Malformed)),
    ];
    with_log(|log| {
        for (last, expected) in cases {
            assert_eq!(plan(last, log), expected, "{last:?}");
        }
    });
}

#[m0_spec::row(F10)]
#[test]
fn from_an_empty_log_nothing_is_replayed() {
    let ids = sync::AtomicU64::new(0);
    let words = sync::words(words_needed(512));
    let log = FrameLog::format(&words, &ids, 0xe);
    assert_eq!(plan(None, log), Replay::LiveFrom(1));
    assert_eq!(plan(Some("e-0"), log), Replay::From(1));
    assert_eq!(plan(Some("e-1"), log), Replay::Reset(Reason::Future));
}

#[m0_spec::row(F10)]
#[test]
fn a_replay_gives_the_frames_above_the_id_and_goes_over_to_live_ones() {
    with_log(|log| {
        let mut reader = Reader::after(log, 18).expect("19 is there");
        assert_eq!(reader.position(), 19);
        let mut out = Vec::new();
        for seq in 19..=22 {
            if seq == 21 {
                assert_eq!(reader.next(&mut out), Next::Empty);
                for _ in 0..2 {
                    log.append(1, |id, frame| frame.resize(100, id.seq as u8))
                        .expect("free");
                }
            }
            assert_eq!(reader.next(&mut out), Next::Frame(log.id(seq)));
            assert_eq!(out, [seq as u8; 100]);
        }
        assert_eq!(reader.next(&mut out), Next::Empty);
    });
}

#[m0_spec::row(F11)]
#[test]
fn a_reader_that_cannot_start_says_where_the_log_is() {
    with_log(|log| {
        assert_eq!(
            Reader::after(log, 15).err(),
            Some(Gone::TooOld { oldest: 17 })
        );
        assert_eq!(
            Reader::after(log, 21).err(),
            Some(Gone::Future { tail: 21 })
        );
        assert!(Reader::after(log, 16).is_ok() && Reader::after(log, 20).is_ok());
    });
}

#[m0_spec::row(F11)]
#[test]
fn each_reason_has_the_name_that_the_reset_event_carries() {
    let reasons = [
        Reason::TooOld,
        Reason::Future,
        Reason::Epoch,
        Reason::Malformed,
    ];
    assert_eq!(
        reasons.map(Reason::name),
        ["too-old", "future", "epoch", "malformed"]
    );
}

#[m0_spec::row(F11)]
#[test]
fn each_reason_has_a_name_of_its_own() {
    let reasons = [
        Reason::TooOld,
        Reason::Future,
        Reason::Epoch,
        Reason::Malformed,
    ];
    assert_eq!(
        reasons.map(Reason::name),
        ["too-old", "future", "epoch", "malformed"]
    );
}
