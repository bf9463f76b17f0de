//! Stopped workers and queued connections.

use m0_policy::Action;
use m0_spec::row;

use crate::desk::{Desk, SIGKILL, SIGSEGV, SIGTERM, config, forks};

#[row(D24, D28, D29)]
#[test]
fn a_stopped_worker_is_marked_and_stood_in_for_until_it_goes_on() {
    let mut desk = Desk::serving(config(2));
    assert_eq!(
        desk.is_stopped(100),
        [
            Action::MarkStopped { slot: 0 },
            Action::StandIn(true),
            Action::NudgeAll
        ]
    );
    assert_eq!(desk.is_stopped(100), [], "stopped twice is stopped once");
    assert_eq!(
        desk.goes_on(100),
        [Action::MarkContinued { slot: 0 }, Action::StandIn(false)]
    );
    assert_eq!(desk.goes_on(100), []);
}

#[row(D24)]
#[test]
fn the_supervisor_stands_in_until_the_last_stopped_worker_goes_on() {
    let mut desk = Desk::serving(config(3));
    assert!(desk.is_stopped(100).contains(&Action::StandIn(true)));
    assert_eq!(
        desk.is_stopped(101),
        [Action::MarkStopped { slot: 1 }, Action::NudgeAll]
    );
    assert_eq!(desk.goes_on(100), [Action::MarkContinued { slot: 0 }]);
    assert!(desk.goes_on(101).contains(&Action::StandIn(false)));
}

#[row(D24)]
#[test]
fn the_death_of_a_stopped_worker_ends_the_standing_in() {
    let mut desk = Desk::serving(config(2));
    desk.is_stopped(100);
    let actions = desk.dies(100, SIGKILL);
    assert!(actions.contains(&Action::StandIn(false)), "{actions:?}");
    desk.fork(0, 200);
    assert_eq!(
        desk.state.slots()[0].worker().map(|worker| worker.stopped),
        Some(false)
    );
}

#[row(D24)]
#[test]
fn a_drain_takes_no_connections_so_nobody_stands_in() {
    let mut desk = Desk::serving(config(2));
    desk.is_stopped(100);
    assert!(desk.stop(SIGTERM).contains(&Action::StandIn(false)));
    assert_eq!(desk.is_stopped(101), [Action::MarkStopped { slot: 1 }]);
}

#[row(D29)]
#[test]
fn a_death_rings_every_sibling_before_the_slot_is_filled() {
    let mut desk = Desk::serving(config(2));
    let actions = desk.dies(100, SIGSEGV);
    let nudge = actions
        .iter()
        .position(|action| *action == Action::NudgeAll);
    let fork = actions
        .iter()
        .position(|action| *action == Action::Fork { slot: 0 });
    assert!(nudge.is_some() && nudge < fork, "{actions:?}");
}

#[row(D29)]
#[test]
fn nobody_is_rung_when_nobody_can_answer() {
    let mut desk = Desk::serving(config(1));
    let actions = desk.dies(100, SIGSEGV);
    assert!(!actions.contains(&Action::NudgeAll));
    assert_eq!(forks(&actions), [0]);
    let mut desk = Desk::serving(config(2));
    desk.is_stopped(101);
    assert!(
        !desk.dies(100, SIGSEGV).contains(&Action::NudgeAll),
        "101 is stopped"
    );
    let mut desk = Desk::serving(config(2));
    desk.stop(SIGTERM);
    assert!(
        !desk.exits(100, 0).contains(&Action::NudgeAll),
        "101 drains"
    );
}
