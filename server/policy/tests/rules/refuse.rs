//! Exit 78: a worker of ours refuses its configuration.

use m0_policy::{Action, DeathReason, WorkerSignal};
use m0_spec::row;

use crate::desk::{
    Desk, SIGKILL, SIGSEGV, SIGTERM, config, death, exit, forks, kill, respawn_in, sent, term,
};

#[row(D6)]
#[test]
fn a_refusal_is_not_respawned_and_drains_the_siblings() {
    let mut desk = Desk::serving(config(3));
    let actions = desk.exits(101, 78);
    assert_eq!(death(&actions).4, DeathReason::Refused);
    assert_eq!((respawn_in(&actions), forks(&actions)), (None, vec![]));
    assert_eq!(sent(&actions, WorkerSignal::Term), [100, 102]);
    assert_eq!(exit(&desk.exits(100, 0)), None);
    assert_eq!(exit(&desk.exits(102, 0)), Some(78));
}

#[row(D6)]
#[test]
fn every_worker_that_refuses_ends_the_host_once() {
    let mut desk = Desk::forked(config(2));
    assert_eq!(exit(&desk.exits(100, 78)), None);
    assert_eq!(exit(&desk.exits(101, 78)), Some(78));
}

#[row(D6)]
#[test]
fn a_refusal_is_bounded_like_any_drain() {
    let mut desk = Desk::serving(config(2));
    desk.exits(100, 78);
    assert_eq!(desk.state.deadline(), Some(desk.now_ms + 5_250));
    assert_eq!(desk.tick_at_deadline(), [kill(101)]);
    assert_eq!(
        exit(&desk.dies(101, SIGKILL)),
        Some(78),
        "the refusal outweighs the kill"
    );
}

#[row(D7, D15)]
#[test]
fn a_strangers_end_means_nothing() {
    let mut desk = Desk::serving(config(2));
    let before = desk.state.clone();
    for actions in [
        desk.exits(555, 78),
        desk.exits(555, 0),
        desk.dies(555, SIGSEGV),
    ] {
        assert_eq!(actions, [Action::ReapedStranger { pid: 555 }]);
    }
    assert_eq!(desk.is_stopped(555), []);
    assert_eq!(desk.goes_on(555), []);
    assert_eq!(desk.ready(555), []);
    assert_eq!(desk.state, before);
}

#[row(D7)]
#[test]
fn a_strangers_78_in_a_drain_spoils_no_code() {
    let mut desk = Desk::serving(config(1));
    desk.stop(SIGTERM);
    desk.exits(555, 78);
    desk.exits(556, 1);
    assert_eq!(exit(&desk.exits(100, 0)), Some(0));
}

#[row(D7)]
#[test]
fn the_pid_of_a_dead_worker_is_a_strangers() {
    let mut desk = Desk::serving(config(2));
    desk.dies(100, SIGSEGV);
    assert_eq!(desk.exits(100, 78), [Action::ReapedStranger { pid: 100 }]);
    assert!(!desk.state.stopping());
}

#[row(D35)]
#[test]
fn a_refusal_before_or_after_the_stop_ends_with_78() {
    let mut desk = Desk::forked(config(2));
    desk.exits(100, 78);
    desk.stop(SIGTERM);
    assert_eq!(exit(&desk.exits(101, 0)), Some(78), "refusal first");
    let mut desk = Desk::forked(config(2));
    desk.stop(SIGTERM);
    desk.exits(100, 78);
    assert_eq!(exit(&desk.exits(101, 0)), Some(78), "stop first");
}

#[row(D43)]
#[test]
fn the_first_stop_during_a_refusals_drain_kills_nobody_and_the_second_does() {
    let mut desk = Desk::serving(config(2));
    desk.exits(100, 78);
    let bound = desk.state.deadline();
    assert_eq!(
        desk.pass(100).stop(SIGTERM),
        [Action::LogStopping {
            signal: SIGTERM,
            again: false
        }],
        "101 was told before"
    );
    assert_eq!(desk.state.deadline(), bound, "the bound stays where it was");
    assert_eq!(
        desk.stop(SIGTERM),
        [
            Action::LogStopping {
                signal: SIGTERM,
                again: true
            },
            kill(101)
        ]
    );
    assert_eq!(exit(&desk.dies(101, SIGKILL)), Some(78));
}

#[row(D43)]
#[test]
fn the_first_stop_during_a_crash_loops_drain_kills_nobody_and_the_second_does() {
    let mut desk = Desk::serving(config(2).with_crash_limit(1).unwrap());
    assert_eq!(sent(&desk.dies(100, SIGSEGV), WorkerSignal::Term), [101]);
    assert_eq!(sent(&desk.stop(SIGTERM), WorkerSignal::Kill), [0_u32; 0]);
    assert_eq!(sent(&desk.stop(SIGTERM), WorkerSignal::Kill), [101]);
    assert_eq!(exit(&desk.dies(101, SIGKILL)), Some(70));
}

#[row(D6, D30)]
#[test]
fn a_fork_in_flight_at_a_refusal_is_told_to_end() {
    let mut desk = Desk::started(config(2));
    desk.fork(0, 100);
    assert_eq!(exit(&desk.exits(100, 78)), None);
    assert_eq!(desk.fork(1, 101), [term(101)]);
    assert_eq!(exit(&desk.exits(101, 0)), Some(78));
}
