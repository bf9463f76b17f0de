//! Deadlines: each one's moment and answer, and what moves it.

use m0_wire::{Deadlines, Expired, Phase, Progress};
use proptest::prelude::*;

const DEADLINES: Deadlines = Deadlines {
    first_byte: 100,
    head: 200,
    body: 300,
    idle: 400,
    write: 500,
};

fn check(phase: Phase, bound: u64, answer: Option<u16>, why: &'static str) {
    // Progress is told late on purpose: only a body's deadline may look at it.
    let (since, progress) = if phase == Phase::Body {
        (0, 1_000)
    } else {
        (1_000, 1_000 + bound - 1)
    };
    assert_eq!(
        DEADLINES.verdict(phase, since, progress, 1_000 + bound - 1),
        None,
        "{phase:?} before its time"
    );
    let expired = Some(Expired { answer, why });
    assert_eq!(
        DEADLINES.verdict(phase, since, progress, 1_000 + bound),
        expired,
        "{phase:?} at its time"
    );
    assert_eq!(
        DEADLINES.verdict(phase, since, progress, u64::MAX),
        expired,
        "{phase:?} much later"
    );
}

#[m0_spec::row(W11, W13)]
#[test]
fn each_deadline_has_its_moment_and_its_answer() {
    check(Phase::FirstByte, 100, None, "no first byte in time");
    check(Phase::Head, 200, Some(408), "head not complete in time");
    check(Phase::Body, 300, Some(408), "body stalled");
    check(Phase::Idle, 400, None, "idle too long");
    assert_eq!(
        DEADLINES.verdict(Phase::Complete, 0, 0, u64::MAX),
        None,
        "the peer owes nothing"
    );
    assert_eq!(DEADLINES.write_verdict(1_000, 1_499), None);
    let cut = Some(Expired {
        answer: None,
        why: "peer does not read its answer",
    });
    assert_eq!(DEADLINES.write_verdict(1_000, 1_500), cut);
}

#[m0_spec::row(W15)]
#[test]
fn a_deadline_with_an_answer_lingers_and_one_without_does_not() {
    for phase in [Phase::FirstByte, Phase::Head, Phase::Body, Phase::Idle] {
        let expired = DEADLINES
            .verdict(phase, 0, 0, 10_000)
            .expect("all have passed");
        assert_eq!(expired.lingers(), expired.answer.is_some(), "{phase:?}");
        assert_eq!(
            expired.answer.is_some(),
            matches!(phase, Phase::Head | Phase::Body),
            "{phase:?}"
        );
    }
    assert!(
        !DEADLINES
            .write_verdict(0, 10_000)
            .expect("passed")
            .lingers()
    );
}

#[m0_spec::row(W11)]
#[test]
fn zero_is_no_deadline_and_a_clock_that_goes_back_expires_nothing() {
    let none = Deadlines {
        first_byte: 0,
        head: 0,
        body: 0,
        idle: 0,
        write: 0,
    };
    for phase in [Phase::FirstByte, Phase::Head, Phase::Body, Phase::Idle] {
        assert_eq!(none.verdict(phase, 0, 0, u64::MAX), None);
        assert_eq!(DEADLINES.verdict(phase, 1_000_000, 1_000_000, 0), None);
    }
    assert_eq!(none.write_verdict(0, u64::MAX), None);
}

#[m0_spec::row(W36)]
#[test]
fn a_head_that_trickles_in_is_answered_in_time_all_the_same() {
    let mut progress = Progress::new(0);
    for now in (50..250).step_by(10) {
        assert_eq!(progress.expired(&DEADLINES, now), None);
        progress.received(Phase::Head, false, now);
        progress.waits(now);
    }
    assert_eq!(progress.expired(&DEADLINES, 249), None);
    let expired = progress
        .expired(&DEADLINES, 250)
        .expect("200 ms after its first byte at 50");
    assert_eq!(expired.answer, Some(408));
}

#[m0_spec::row(W11, W13)]
#[test]
fn a_body_that_moves_lives_and_one_that_stalls_is_answered() {
    let mut progress = Progress::new(0);
    for now in (0..3_000).step_by(299) {
        progress.received(Phase::Body, false, now);
        progress.waits(now);
        assert_eq!(progress.expired(&DEADLINES, now + 299), None);
    }
    let last = 2_990;
    assert_eq!(
        progress
            .expired(&DEADLINES, last + 300)
            .expect("it stalled")
            .answer,
        Some(408)
    );
}

#[m0_spec::row(W37)]
#[test]
fn a_body_that_nobody_asks_for_is_not_the_peers_fault() {
    let mut progress = Progress::new(0);
    progress.received(Phase::Body, true, 10);
    assert_eq!(
        progress.expired(&DEADLINES, 100_000),
        None,
        "the host did not ask"
    );
    progress.waits(100_000);
    progress.waits(100_200);
    assert_eq!(progress.expired(&DEADLINES, 100_299), None);
    assert!(
        progress.expired(&DEADLINES, 100_300).is_some(),
        "asking again moves nothing"
    );
}

#[m0_spec::row(W13)]
#[test]
fn the_idle_time_begins_with_the_answer() {
    let mut progress = Progress::new(0);
    progress.received(Phase::Complete, true, 10);
    assert_eq!(
        progress.expired(&DEADLINES, 50_000),
        None,
        "the handler may take its time"
    );
    progress.answered(Phase::Idle, 50_000);
    progress.received(Phase::Idle, false, 50_300);
    assert_eq!(progress.expired(&DEADLINES, 50_399), None);
    let expired = progress
        .expired(&DEADLINES, 50_400)
        .expect("an empty line moves nothing");
    assert_eq!(
        expired,
        Expired {
            answer: None,
            why: "idle too long"
        }
    );
}

#[m0_spec::row(W14)]
#[test]
fn only_a_reader_that_takes_nothing_is_cut() {
    let mut progress = Progress::new(0);
    progress.received(Phase::Complete, true, 0);
    for now in (1_000..10_000).step_by(499) {
        progress.wrote(1, true, now);
        progress.wrote(0, true, now + 100);
        assert_eq!(
            progress.expired(&DEADLINES, now + 499),
            None,
            "it took a byte at {now}"
        );
    }
    // Trying again is not progress.
    progress.wrote(1, true, 20_000);
    for now in (20_100..20_500).step_by(100) {
        progress.wrote(0, true, now);
    }
    assert_eq!(progress.expired(&DEADLINES, 20_499), None);
    assert!(
        progress.expired(&DEADLINES, 20_500).is_some(),
        "nothing since the last byte at 20 000"
    );
    progress.wrote(1, false, 20_990);
    assert_eq!(
        progress.expired(&DEADLINES, 1_000_000),
        None,
        "the socket takes everything"
    );
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Received(Phase, bool),
    Waits,
    Answered(Phase),
    Wrote(usize, bool),
}

fn phase() -> impl Strategy<Value = Phase> {
    proptest::sample::select(vec![
        Phase::FirstByte,
        Phase::Idle,
        Phase::Head,
        Phase::Body,
        Phase::Complete,
    ])
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (phase(), any::<bool>()).prop_map(|(phase, anew)| Event::Received(phase, anew)),
        Just(Event::Waits),
        phase().prop_map(Event::Answered),
        (0..2_usize, any::<bool>()).prop_map(|(bytes, blocked)| Event::Wrote(bytes, blocked)),
    ]
}

proptest! {
    /// Against the whole history, looked at from its end.
    #[m0_spec::row(W11, W12, W36)]
    #[test]
    fn the_record_expires_when_the_history_says_so(
        history in proptest::collection::vec((0..150_u64, event()), 1..30), later in 0..700_u64
    ) {
        let mut progress = Progress::new(0);
        let mut at = 0;
        let mut timed = Vec::new();
        for (pause, event) in history {
            at += pause;
            match event {
                Event::Received(phase, anew) => progress.received(phase, anew, at),
                Event::Waits => progress.waits(at),
                Event::Answered(phase) => progress.answered(phase, at),
                Event::Wrote(bytes, blocked) => progress.wrote(bytes, blocked, at),
            }
            timed.push((at, event));
        }
        let now = at + later;
        let expected = from_history(&timed, now);
        prop_assert_eq!(progress.expired(&DEADLINES, now).map(|expired| expired.why), expected);
    }
}

/// The deadline that has passed, worked out from all that happened.
fn from_history(timed: &[(u64, Event)], now: u64) -> Option<&'static str> {
    let mut phase = Phase::FirstByte;
    let mut since = 0;
    for &(at, event) in timed {
        let (next, anew) = match event {
            Event::Received(next, anew) => (next, anew),
            Event::Answered(next) => (next, true),
            Event::Waits | Event::Wrote(..) => continue,
        };
        if anew || next != phase {
            (phase, since) = (next, at);
        }
    }
    let mut blocked = None;
    for &(at, event) in timed {
        match event {
            Event::Wrote(_, false) => blocked = None,
            Event::Wrote(0, true) if blocked.is_some() => {}
            Event::Wrote(_, true) => blocked = Some(at),
            _ => {}
        }
    }
    if blocked.is_some_and(|from| now - from >= 500) {
        return Some("peer does not read its answer");
    }
    // The first time that the host asked after the last bytes; a fresh connection is asked at once.
    let last_received = timed
        .iter()
        .rposition(|(_, event)| matches!(event, Event::Received(..)));
    let after = last_received.map_or(0, |index| index + 1);
    let asked = timed[after..]
        .iter()
        .find(|(_, event)| matches!(event, Event::Waits))
        .map(|(at, _)| *at);
    let asked = if last_received.is_none() {
        Some(0)
    } else {
        asked
    };
    let (from, bound, why) = match phase {
        Phase::FirstByte => (Some(since), 100, "no first byte in time"),
        Phase::Head => (Some(since), 200, "head not complete in time"),
        Phase::Body => (asked, 300, "body stalled"),
        Phase::Idle => (Some(since), 400, "idle too long"),
        Phase::Complete => return None,
    };
    from.is_some_and(|from| now - from >= bound).then_some(why)
}
