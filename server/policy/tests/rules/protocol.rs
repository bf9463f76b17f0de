//! What the loop around the policy owes it, and what time may do.

use m0_policy::{Action, Course, Event, Phase, Unlawful};
use m0_spec::row;

use crate::desk::{Desk, SIGSEGV, SIGTERM, config, forks, kill};

#[row(D42)]
#[test]
fn an_outcome_that_no_fork_has_is_told() {
    let desk = Desk::forked(config(2));
    let now_ms = desk.now_ms;
    let failed = |slot| {
        desk.state.lawful(Event::ForkFailed {
            slot,
            errno: 11,
            now_ms,
        })
    };
    assert_eq!(failed(0), Err(Unlawful::NoForkInFlight { slot: 0 }));
    assert_eq!(failed(2), Err(Unlawful::NoSuchSlot { slot: 2 }));
    let forked = |slot, pid| desk.state.lawful(Event::Forked { slot, pid, now_ms });
    assert_eq!(forked(1, 200), Err(Unlawful::NoForkInFlight { slot: 1 }));
    assert_eq!(
        forked(usize::MAX, 200),
        Err(Unlawful::NoSuchSlot { slot: usize::MAX })
    );
}

#[row(D42)]
#[test]
fn an_empty_slot_has_no_fork_in_flight_before_its_time() {
    let mut desk = Desk::new(config(1));
    let refused = Err(Unlawful::NoForkInFlight { slot: 0 });
    let forked = |desk: &Desk| {
        desk.state.lawful(Event::Forked {
            slot: 0,
            pid: 200,
            now_ms: desk.now_ms,
        })
    };
    assert_eq!(forked(&desk), refused, "before the start");
    desk.start();
    assert_eq!(forked(&desk), Ok(()));
    desk.fork_fails(0);
    assert!(desk.is_vacant(0));
    assert_eq!(forked(&desk), refused, "while it waits for its respawn");
}

#[row(D42)]
#[test]
fn a_pid_that_no_child_has_is_told() {
    let mut desk = Desk::started(config(2));
    desk.fork(0, 100);
    let forked = |pid| {
        desk.state.lawful(Event::Forked {
            slot: 1,
            pid,
            now_ms: 0,
        })
    };
    for pid in [0, 1, i32::MAX as u32 + 1, u32::MAX] {
        assert_eq!(forked(pid), Err(Unlawful::BadPid { pid }));
    }
    assert_eq!(forked(100), Err(Unlawful::PidInUse { pid: 100 }));
    assert_eq!(forked(2), Ok(()));
    assert_eq!(forked(i32::MAX as u32), Ok(()));
}

#[row(D42)]
#[test]
#[should_panic(expected = "slot 0 has no fork in flight")]
fn a_step_asserts_that_its_event_is_lawful() {
    Desk::serving(config(1)).fork(0, 200);
}

#[row(D47)]
#[test]
fn the_deadline_is_the_next_due_moment() {
    let mut desk = Desk::serving(config(2));
    assert_eq!(
        desk.state.deadline(),
        None,
        "nothing is due while all serve"
    );
    for slot in [0, 1] {
        desk.dies(100 + slot as u32, SIGSEGV);
        desk.fork(slot, 200 + slot as u32);
    }
    desk.dies(200, SIGSEGV);
    assert_eq!(desk.state.deadline(), Some(desk.now_ms + 100));
    desk.pass(30).dies(201, SIGSEGV);
    assert_eq!(
        desk.state.deadline(),
        Some(desk.now_ms + 70),
        "the earlier of two"
    );
}

#[row(D47)]
#[test]
fn what_is_due_is_done_on_any_event() {
    let mut desk = Desk::serving(config(2));
    desk.dies(101, SIGSEGV);
    desk.fork(1, 201);
    desk.dies(201, SIGSEGV);
    let actions = desk.pass(100).exits(555, 0);
    assert_eq!(
        actions,
        [
            Action::ReapedStranger { pid: 555 },
            Action::Fork { slot: 1 }
        ]
    );
    desk.fork(1, 202);
    desk.stop(SIGTERM);
    assert_eq!(desk.pass(5_250).ready(202), [kill(100), kill(202)]);
}

#[row(D39)]
#[test]
fn a_clock_that_runs_backwards_is_a_clock_that_stands() {
    let mut desk = Desk::serving(config(1));
    desk.pass(500).dies(100, SIGSEGV);
    desk.fork(0, 200);
    desk.dies(200, SIGSEGV);
    let due_ms = desk.state.deadline();
    assert_eq!(desk.event(Event::Tick { now_ms: 0 }), []);
    assert_eq!(
        (desk.state.now_ms(), desk.state.deadline()),
        (desk.now_ms, due_ms)
    );
}

#[row(D39)]
#[test]
fn a_clock_at_its_end_overflows_nothing() {
    let mut desk = Desk::serving(config(2));
    desk.now_ms = u64::MAX;
    desk.dies(100, SIGSEGV);
    desk.fork(0, 200);
    assert_eq!(
        forks(&desk.dies(200, SIGSEGV)),
        [0],
        "due at once, there is no later"
    );
    desk.fork(0, 201);
    assert!(desk.stop(SIGTERM).contains(&kill(201)));
}

#[row(D46)]
#[test]
fn the_journal_is_written_on_request_and_nothing_else_happens() {
    let mut draining = Desk::serving(config(2));
    draining.stop(SIGTERM);
    for mut desk in [
        Desk::new(config(2)),
        Desk::started(config(2)),
        Desk::forked(config(2)),
        Desk::serving(config(2)),
        draining,
    ] {
        let before = desk.state.clone();
        assert_eq!(desk.event(Event::JournalRequested), [Action::WriteJournal]);
        assert_eq!(desk.state, before);
    }
}

#[row(D18)]
#[test]
fn a_second_start_starts_nothing() {
    let mut desk = Desk::forked(config(2));
    assert_eq!(desk.start(), []);
    assert_eq!(desk.state.course(), Course::Running);
    assert!(
        desk.state
            .slots()
            .iter()
            .all(|slot| matches!(slot.phase, Phase::Starting(_)))
    );
}
