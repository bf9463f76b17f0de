//! Forks that the system refuses.

use m0_policy::{Action, Phase, WorkerSignal};
use m0_spec::row;

use crate::desk::{Desk, EAGAIN, SIGSEGV, SIGTERM, config, exit, forks, respawn_in, sent};

/// Lets slot 0's fork fail, waiting for each to be due; the delays until the next try.
fn failures(desk: &mut Desk, count: usize) -> Vec<Option<u64>> {
    let mut delays = Vec::new();
    for _ in 0..count {
        while desk.phase(0) != Phase::Forking {
            desk.tick_at_deadline();
        }
        let actions = desk.fork_fails(0);
        let logged = actions.iter().find_map(|action| match action {
            Action::LogForkFailed {
                slot: 0,
                errno: EAGAIN,
                retry_in_ms,
            } => Some(*retry_in_ms),
            _ => None,
        });
        delays.push(logged.expect("a fork that failed is logged"));
    }
    delays
}

#[row(D16)]
#[test]
fn a_fork_that_fails_is_tried_again_after_a_growing_delay() {
    let mut desk = Desk::started(config(1));
    assert_eq!(
        failures(&mut desk, 4),
        [Some(100), Some(200), Some(400), Some(800)],
        "never at once"
    );
    assert_eq!(forks(&desk.pass(799).tick()), [0_usize; 0]);
    assert_eq!(forks(&desk.pass(1).tick()), [0]);
}

#[row(D16)]
#[test]
fn failed_forks_and_deaths_are_one_row() {
    let mut desk = Desk::serving(config(1));
    assert_eq!(respawn_in(&desk.dies(100, SIGSEGV)), Some(0));
    assert_eq!(failures(&mut desk, 2), [Some(200), Some(400)]);
    desk.tick_at_deadline();
    desk.fork(0, 200);
    assert_eq!(respawn_in(&desk.dies(200, SIGSEGV)), Some(400));
    assert_eq!(desk.state.slots()[0].row.deaths, 4);
}

#[row(D33)]
#[test]
fn forks_that_fail_to_the_limit_with_nothing_alive_end_with_71() {
    let mut desk = Desk::started(config(1));
    let delays = failures(&mut desk, 9);
    assert!(
        delays.iter().all(Option::is_some),
        "nine are below the limit: {delays:?}"
    );
    while desk.phase(0) != Phase::Forking {
        desk.tick_at_deadline();
    }
    let actions = desk.fork_fails(0);
    assert!(matches!(
        actions[0],
        Action::LogForkFailed {
            slot: 0,
            retry_in_ms: None,
            ..
        }
    ));
    assert!(matches!(
        actions[1],
        Action::LogCrashLoop {
            slot: 0,
            deaths: 10,
            ..
        }
    ));
    assert_eq!(exit(&actions), Some(71));
}

#[row(D4, D33)]
#[test]
fn forks_that_fail_to_the_limit_beside_a_live_sibling_end_with_70() {
    let mut desk = Desk::started(config(2).with_crash_limit(2).unwrap());
    desk.fork(1, 101);
    desk.ready(101);
    assert_eq!(failures(&mut desk, 1), [Some(100)]);
    desk.tick_at_deadline();
    let actions = desk.fork_fails(0);
    assert_eq!(sent(&actions, WorkerSignal::Term), [101]);
    assert_eq!(exit(&desk.exits(101, 0)), Some(70));
}

#[row(D16)]
#[test]
fn a_failed_fork_after_a_stop_counts_as_nothing() {
    let mut desk = Desk::started(config(2).with_crash_limit(1).unwrap());
    desk.fork(1, 101);
    desk.stop(SIGTERM);
    let actions = desk.fork_fails(0);
    assert_eq!(
        actions,
        [Action::LogForkFailed {
            slot: 0,
            errno: EAGAIN,
            retry_in_ms: None
        }]
    );
    assert_eq!(exit(&desk.exits(101, 0)), Some(0));
}
