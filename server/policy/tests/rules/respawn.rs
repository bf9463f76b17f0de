//! Crash, backoff, healthy runs, crash loops.

use m0_policy::{Action, DeathReason, Ending, Phase, Row};
use m0_spec::row;

use crate::desk::{Desk, SIGSEGV, config, death, exit, forks, ms, patient, respawn_in, term};

/// Lets slot 0's worker be born, ready, serve for `served_ms` and crash; its delay until the
/// respawn.
fn life(desk: &mut Desk, pid: u32, served_ms: u64) -> Option<u64> {
    while desk.phase(0) != Phase::Forking {
        assert_ne!(
            desk.state.deadline(),
            None,
            "an empty slot waits for a moment"
        );
        desk.tick_at_deadline();
    }
    desk.fork(0, pid);
    desk.ready(pid);
    desk.pass(served_ms);
    respawn_in(&desk.dies(pid, SIGSEGV))
}

#[row(D1)]
#[test]
fn the_first_respawn_is_at_once() {
    let mut desk = Desk::serving(config(2));
    let actions = desk.pass(50).dies(101, SIGSEGV);
    assert_eq!(respawn_in(&actions), Some(0));
    assert_eq!(forks(&actions), [1]);
}

#[row(D2)]
#[test]
fn the_delay_doubles_from_the_backoff_to_its_maximum() {
    let mut desk = Desk::started(patient(1));
    let delays: Vec<_> = (0..12)
        .map(|n| life(&mut desk, 200 + n, 5))
        .map(Option::unwrap)
        .collect();
    assert_eq!(
        delays,
        [
            0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000, 10_000
        ]
    );
}

#[row(D2)]
#[test]
fn a_slot_is_filled_when_its_delay_is_over_and_not_before() {
    let mut desk = Desk::serving(config(2));
    desk.dies(101, SIGSEGV);
    desk.fork(1, 201);
    assert_eq!(respawn_in(&desk.dies(201, SIGSEGV)), Some(100));
    assert_eq!(forks(&desk.pass(99).tick()), [0_usize; 0]);
    assert_eq!(forks(&desk.pass(1).tick()), [1]);
    assert_eq!(forks(&desk.tick()), [0_usize; 0], "one fork a vacancy");
}

#[row(D2)]
#[test]
fn the_delay_stays_at_its_maximum_however_often_it_doubles() {
    let config = patient(1).with_backoff(ms(1), ms(3)).unwrap();
    let mut desk = Desk::started(config);
    let last = (0..200)
        .map(|n| life(&mut desk, 200 + n, 0))
        .last()
        .unwrap();
    assert_eq!(last, Some(3));
}

#[row(D14)]
#[test]
fn a_slot_is_filled_once_however_often_it_is_looked_at() {
    let mut desk = Desk::serving(config(2));
    assert_eq!(forks(&desk.dies(101, SIGSEGV)), [1]);
    for _ in 0..3 {
        let looks = forks(&desk.pass(60_000).tick());
        assert_eq!(looks, [0_usize; 0], "the fork in flight is the only one");
    }
    desk.fork(1, 201);
    assert_eq!(forks(&desk.ready(201)), [0_usize; 0]);
    assert_eq!(forks(&desk.pass(60_000).tick()), [0_usize; 0]);
    let again = desk.dies(101, SIGSEGV);
    assert_eq!(forks(&again), [0_usize; 0], "the dead one holds no slot");
    assert_eq!(desk.state.live().collect::<Vec<_>>(), [(0, 100), (1, 201)]);
}

#[row(D3)]
#[test]
fn a_healthy_run_starts_again_from_a_respawn_at_once() {
    let mut desk = Desk::started(config(1));
    for pid in 200..205 {
        life(&mut desk, pid, 5);
    }
    assert_eq!(life(&mut desk, 205, 10_000), Some(0));
    assert_eq!(
        desk.state.slots()[0].row,
        Row {
            deaths: 1,
            since_ms: desk.now_ms
        }
    );
    assert_eq!(
        life(&mut desk, 206, 9_999),
        Some(100),
        "a run that is just too short resets nothing"
    );
}

#[row(D3, D4)]
#[test]
fn a_slot_that_is_healthy_between_its_deaths_never_ends_the_host() {
    let mut desk = Desk::started(config(1));
    for pid in 200..240 {
        assert_eq!(life(&mut desk, pid, 10_000), Some(0));
    }
    assert!(!desk.state.stopping());
}

#[row(D37)]
#[test]
fn a_worker_that_never_was_ready_has_not_been_healthy() {
    let mut desk = Desk::started(config(1));
    for (pid, delay_ms) in [(200, 0), (201, 100), (202, 200)] {
        while desk.phase(0) != Phase::Forking {
            desk.tick_at_deadline();
        }
        desk.fork(0, pid);
        let actions = desk.pass(60_000).exits(pid, 1);
        assert_eq!(
            respawn_in(&actions),
            Some(delay_ms),
            "after a start that took a minute"
        );
    }
}

#[row(D4)]
#[test]
fn as_many_deaths_in_a_row_as_the_limit_end_the_host_with_70() {
    let mut desk = Desk::started(config(2));
    desk.fork(1, 101);
    desk.ready(101);
    let first_ms = desk.now_ms + 5;
    for pid in 200..209 {
        assert!(
            life(&mut desk, pid, 5).is_some(),
            "nine deaths are below the limit"
        );
        assert!(!desk.state.stopping());
    }
    while desk.phase(0) != Phase::Forking {
        desk.tick_at_deadline();
    }
    desk.fork(0, 209);
    let actions = desk.dies(209, SIGSEGV);
    assert_eq!(respawn_in(&actions), None);
    assert_eq!(death(&actions).4, DeathReason::CrashLoop);
    let window_ms = desk.now_ms - first_ms;
    assert!(actions.contains(&Action::LogCrashLoop {
        slot: 0,
        deaths: 10,
        window_ms
    }));
    assert!(
        actions.contains(&term(101)),
        "the sibling is drained: {actions:?}"
    );
    assert_eq!(exit(&actions), None, "the sibling still lives");
    assert_eq!(exit(&desk.exits(101, 0)), Some(70));
}

#[row(D4)]
#[test]
fn deaths_of_several_slots_make_no_crash_loop() {
    let mut desk = Desk::serving(config(4));
    for round in 0..3_u32 {
        for slot in 0..4_usize {
            while desk.is_vacant(slot) {
                desk.tick_at_deadline();
            }
            if desk.phase(slot) == Phase::Forking {
                desk.fork(slot, 1_000 + round * 10 + slot as u32);
            }
            let pid = desk.state.slots()[slot].worker().unwrap().pid;
            desk.dies(pid, SIGSEGV);
        }
    }
    assert!(!desk.state.stopping(), "twelve deaths, but three a slot");
}

#[row(D5)]
#[test]
fn the_backoff_of_one_slot_delays_no_other() {
    let mut desk = Desk::serving(config(2));
    for pid in 200..205 {
        if let Some(worker) = desk.state.slots()[0].worker().copied() {
            desk.dies(worker.pid, SIGSEGV);
        }
        while desk.phase(0) != Phase::Forking {
            desk.tick_at_deadline();
        }
        desk.fork(0, pid);
    }
    assert!(respawn_in(&desk.dies(204, SIGSEGV)) >= Some(800));
    let actions = desk.dies(101, SIGSEGV);
    assert_eq!((respawn_in(&actions), forks(&actions)), (Some(0), vec![1]));
}

#[row(D38)]
#[test]
fn an_unasked_exit_with_0_is_a_death_like_any_other() {
    let mut desk = Desk::serving(config(1));
    let actions = desk.pass(5).exits(100, 0);
    assert_eq!(
        death(&actions),
        (0, 100, Ending::Code(0), 5, DeathReason::Unasked)
    );
    assert_eq!((respawn_in(&actions), forks(&actions)), (Some(0), vec![0]));
    desk.fork(0, 200);
    assert_eq!(respawn_in(&desk.exits(200, 0)), Some(100));
}

#[row(D20)]
#[test]
fn one_line_tells_slot_pid_ending_uptime_and_delay() {
    let mut desk = Desk::serving(config(2));
    let actions = desk.pass(1_234).dies(101, SIGSEGV);
    let logged: Vec<_> = actions
        .iter()
        .filter(|action| matches!(action, Action::LogDeath { .. }))
        .collect();
    assert_eq!(
        logged,
        [&Action::LogDeath {
            slot: 1,
            pid: 101,
            how: Ending::Signal(SIGSEGV),
            uptime_ms: 1_234,
            respawn_in_ms: Some(0),
            reason: DeathReason::Unasked,
        }]
    );
}

#[row(D21)]
#[test]
fn a_dead_workers_words_are_repaired_before_anything_else_is_done() {
    let mut desk = Desk::serving(config(2));
    let actions = desk.dies(101, SIGSEGV);
    assert_eq!(actions.first(), Some(&Action::Repair { slot: 1, pid: 101 }));
    assert_eq!(actions.last(), Some(&Action::Fork { slot: 1 }));
    desk.stop(15);
    let actions = desk.exits(100, 0);
    assert_eq!(
        actions.first(),
        Some(&Action::Repair { slot: 0, pid: 100 }),
        "in a drain too"
    );
}

#[row(D19)]
#[test]
fn the_banner_comes_once_when_every_slot_serves() {
    let mut desk = Desk::forked(config(2));
    assert_eq!(desk.ready(101), []);
    assert_eq!(
        desk.ready(101),
        [],
        "the same worker twice is not two workers"
    );
    assert_eq!(desk.ready(100), [Action::Announce]);
    desk.dies(100, SIGSEGV);
    desk.fork(0, 200);
    assert_eq!(desk.ready(200), [], "a respawned worker is not news");
}

#[row(D18, D19)]
#[test]
fn a_worker_that_died_is_not_ready_for_the_banner() {
    let mut desk = Desk::forked(config(2));
    desk.ready(100);
    desk.dies(100, SIGSEGV);
    desk.fork(0, 200);
    assert_eq!(desk.ready(101), []);
    assert!(matches!(desk.phase(0), Phase::Starting(_)));
    assert_eq!(desk.ready(100), [], "a late report of the dead one");
    assert_eq!(desk.ready(200), [Action::Announce]);
}
