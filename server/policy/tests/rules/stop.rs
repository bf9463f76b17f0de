//! An operator's stop: record, forward, wait, kill, and the code at the end.

use m0_policy::{Action, Course, DeathReason, Phase, WorkerSignal};
use m0_spec::row;

use crate::desk::{
    Desk, SIGINT, SIGKILL, SIGSEGV, SIGTERM, config, death, exit, forks, kill, ms, patient,
    respawn_in, sent, term,
};

#[row(D9, D31)]
#[test]
fn a_stop_is_recorded_and_then_forwarded() {
    for signal in [SIGTERM, SIGINT] {
        let mut desk = Desk::serving(config(3));
        assert_eq!(
            desk.stop(signal),
            [
                Action::LogStopping {
                    signal,
                    again: false
                },
                term(100),
                term(101),
                term(102)
            ]
        );
        let Course::Stopping(stop) = desk.state.course() else {
            panic!("the stop is recorded: {}", desk.state)
        };
        assert!(stop.requested);
        assert_eq!(stop.kill_at_ms, desk.now_ms + 5_250);
    }
}

#[row(D10)]
#[test]
fn after_a_stop_nobody_is_respawned_however_a_worker_ends() {
    let endings: [fn(&mut Desk) -> Vec<Action>; 5] = [
        |desk| desk.exits(100, 0),
        |desk| desk.exits(100, 1),
        |desk| desk.exits(100, 78),
        |desk| desk.dies(100, SIGSEGV),
        |desk| desk.dies(100, SIGTERM),
    ];
    for end in endings {
        let mut desk = Desk::serving(config(2));
        desk.stop(SIGTERM);
        let actions = end(&mut desk);
        assert_eq!((respawn_in(&actions), forks(&actions)), (None, vec![]));
        assert_eq!(
            forks(&desk.pass(60_000).tick()),
            [0_usize; 0],
            "not later either"
        );
        assert!(desk.is_vacant(0));
    }
}

#[row(D10)]
#[test]
fn a_stop_cancels_the_respawns_that_wait() {
    let mut desk = Desk::serving(config(2));
    desk.dies(100, SIGSEGV);
    desk.fork(0, 200);
    assert_eq!(respawn_in(&desk.dies(200, SIGSEGV)), Some(100));
    desk.stop(SIGTERM);
    assert_eq!(
        desk.phase(0),
        Phase::Vacant {
            respawn_at_ms: None
        }
    );
    assert_eq!(forks(&desk.pass(1_000).tick()), [0_usize; 0]);
}

#[row(D8)]
#[test]
fn a_planned_exit_counts_as_no_crash() {
    let mut desk = Desk::serving(config(2).with_crash_limit(1).unwrap());
    desk.stop(SIGTERM);
    let actions = desk.exits(100, 0);
    assert_eq!(death(&actions).4, DeathReason::Drained);
    let actions = desk.exits(101, 0);
    assert_eq!(
        exit(&actions),
        Some(0),
        "one death would have been a crash loop: {actions:?}"
    );
    assert!(desk.state.slots().iter().all(|slot| slot.row.deaths == 0));
}

#[row(D30)]
#[test]
fn a_fork_in_flight_is_told_to_end_when_it_is_known() {
    let mut desk = Desk::started(config(2));
    desk.fork(0, 100);
    assert_eq!(sent(&desk.stop(SIGTERM), WorkerSignal::Term), [100]);
    assert_eq!(exit(&desk.exits(100, 0)), None, "a fork is in flight");
    assert_eq!(desk.fork(1, 101), [term(101)]);
    assert_eq!(exit(&desk.exits(101, 0)), Some(0));
}

#[row(D30)]
#[test]
fn a_fork_in_flight_that_fails_after_the_stop_is_not_tried_again() {
    let mut desk = Desk::started(config(1));
    desk.stop(SIGTERM);
    let actions = desk.fork_fails(0);
    assert_eq!(forks(&actions), [0_usize; 0]);
    assert_eq!(
        exit(&actions),
        Some(0),
        "a fork that failed is no worker that ended badly"
    );
}

#[row(D11, D30)]
#[test]
fn a_fork_in_flight_when_the_killing_began_is_killed() {
    let mut desk = Desk::started(config(1));
    desk.stop(SIGTERM);
    desk.stop(SIGTERM);
    assert_eq!(desk.fork(0, 100), [kill(100)]);
    assert_eq!(exit(&desk.dies(100, SIGKILL)), Some(1));
}

#[row(D11)]
#[test]
fn a_second_stop_kills_at_once() {
    let mut desk = Desk::serving(config(2));
    desk.is_stopped(101);
    desk.stop(SIGTERM);
    desk.exits(100, 0);
    assert_eq!(
        desk.pass(10).stop(SIGINT),
        [
            Action::LogStopping {
                signal: SIGINT,
                again: true
            },
            kill(101)
        ]
    );
    assert_eq!(
        sent(&desk.stop(SIGTERM), WorkerSignal::Kill),
        [0_u32; 0],
        "killed once"
    );
    let actions = desk.dies(101, SIGKILL);
    assert_eq!(death(&actions).4, DeathReason::Killed);
    assert_eq!(exit(&actions), Some(1));
}

#[row(D12, D34)]
#[test]
fn what_is_left_at_the_bound_is_killed() {
    let config = config(2)
        .with_drain(ms(300))
        .unwrap()
        .with_kill_margin(ms(20))
        .unwrap();
    let mut desk = Desk::serving(config);
    desk.stop(SIGTERM);
    assert_eq!(desk.state.deadline(), Some(desk.now_ms + 320));
    desk.exits(100, 0);
    assert_eq!(desk.pass(319).tick(), []);
    assert_eq!(desk.pass(1).tick(), [kill(101)]);
    assert_eq!(desk.pass(1).tick(), [], "killed once");
    assert_eq!(desk.state.deadline(), None);
    assert_eq!(exit(&desk.dies(101, SIGKILL)), Some(1));
}

#[row(D27)]
#[test]
fn a_stopped_worker_is_killed_at_the_bound() {
    let mut desk = Desk::serving(config(2));
    desk.is_stopped(101);
    assert_eq!(sent(&desk.stop(SIGTERM), WorkerSignal::Term), [100, 101]);
    desk.exits(100, 0);
    assert_eq!(desk.tick_at_deadline(), [kill(101)]);
    assert_eq!(
        sent(&desk.stop(SIGTERM), WorkerSignal::Kill),
        [0_u32; 0],
        "killed once"
    );
    assert_eq!(exit(&desk.dies(101, SIGKILL)), Some(1));
}

#[row(D31)]
#[test]
fn each_worker_is_told_once() {
    let mut desk = Desk::serving(config(2));
    let mut told = sent(&desk.stop(SIGTERM), WorkerSignal::Term);
    for actions in [
        desk.tick(),
        desk.exits(100, 1),
        desk.is_stopped(101),
        desk.goes_on(101),
    ] {
        told.extend(sent(&actions, WorkerSignal::Term));
    }
    told.extend(sent(&desk.stop(SIGTERM), WorkerSignal::Term));
    assert_eq!(told, [100, 101]);
}

#[row(D13)]
#[test]
fn the_host_leaves_only_when_no_worker_is_left() {
    let mut desk = Desk::serving(config(3));
    desk.stop(SIGTERM);
    assert_eq!(exit(&desk.exits(102, 0)), None);
    assert_eq!(exit(&desk.exits(100, 0)), None);
    assert_eq!(exit(&desk.exits(101, 0)), Some(0));
}

#[row(D32)]
#[test]
fn after_the_exit_nothing_happens() {
    let mut desk = Desk::serving(config(1));
    desk.stop(SIGTERM);
    assert_eq!(exit(&desk.exits(100, 0)), Some(0));
    let before = desk.state.clone();
    desk.pass(10_000);
    for actions in [
        desk.start(),
        desk.tick(),
        desk.stop(SIGTERM),
        desk.exits(100, 0),
        desk.dies(555, SIGKILL),
        desk.ready(100),
        desk.event(m0_policy::Event::JournalRequested),
        desk.fork(0, 200),
    ] {
        assert_eq!(actions, []);
    }
    assert_eq!(desk.state, before);
    assert_eq!(desk.state.course(), Course::Gone { code: 0 });
}

#[row(D26)]
#[test]
fn the_code_is_0_when_all_drained_and_1_when_one_did_not() {
    for (last, code) in [(0, 0), (1, 1), (143, 1), (255, 1)] {
        let mut desk = Desk::serving(config(2));
        desk.stop(SIGTERM);
        desk.exits(101, last);
        assert_eq!(
            exit(&desk.exits(100, 0)),
            Some(code),
            "a worker exited with {last}"
        );
    }
    let mut desk = Desk::serving(config(2));
    desk.stop(SIGTERM);
    assert_eq!(death(&desk.dies(100, SIGSEGV)).4, DeathReason::DiedInDrain);
    assert_eq!(exit(&desk.exits(101, 0)), Some(1));
}

#[row(D26)]
#[test]
fn a_crash_before_the_stop_does_not_spoil_its_code() {
    let mut desk = Desk::serving(patient(1));
    desk.dies(100, SIGSEGV);
    desk.fork(0, 200);
    desk.stop(SIGTERM);
    assert_eq!(exit(&desk.exits(200, 0)), Some(0));
}

#[row(D26)]
#[test]
fn a_worker_that_drained_before_the_kill_reached_it_is_clean() {
    let mut desk = Desk::serving(config(1));
    desk.stop(SIGTERM);
    assert_eq!(desk.tick_at_deadline(), [kill(100)]);
    assert_eq!(
        exit(&desk.exits(100, 0)),
        Some(0),
        "how it ended is the truth"
    );
}

#[row(D36)]
#[test]
fn a_stop_signal_that_ends_a_worker_before_it_is_ready_is_clean() {
    for signal in [SIGTERM, SIGINT] {
        let mut desk = Desk::forked(config(1));
        desk.stop(signal);
        let actions = desk.dies(100, signal);
        assert_eq!(death(&actions).4, DeathReason::StoppedBeforeReady);
        assert_eq!(exit(&actions), Some(0));
    }
}

#[row(D36)]
#[test]
fn a_stop_signal_that_ends_a_ready_worker_is_not_clean() {
    let mut desk = Desk::serving(config(1));
    desk.stop(SIGTERM);
    assert_eq!(
        exit(&desk.dies(100, SIGTERM)),
        Some(1),
        "its handlers had stood"
    );
    let mut desk = Desk::forked(config(1));
    desk.stop(SIGTERM);
    desk.ready(100);
    assert_eq!(
        exit(&desk.dies(100, SIGTERM)),
        Some(1),
        "a report that came during the drain"
    );
}

#[row(D45)]
#[test]
fn a_stop_before_the_start_forks_nobody() {
    let mut desk = Desk::new(config(2));
    assert_eq!(
        desk.stop(SIGTERM),
        [
            Action::LogStopping {
                signal: SIGTERM,
                again: false
            },
            Action::Exit { code: 0 }
        ]
    );
    assert_eq!(desk.start(), []);
}

#[row(D10)]
#[test]
fn a_start_after_the_stop_starts_nothing() {
    let mut desk = Desk::serving(config(2));
    desk.stop(SIGTERM);
    desk.exits(101, 0);
    assert_eq!(desk.start(), []);
    assert!(desk.is_vacant(1));
}

#[row(D9, D10)]
#[test]
fn a_stop_while_every_slot_waits_leaves_at_once() {
    let mut desk = Desk::serving(config(1));
    desk.dies(100, SIGSEGV);
    desk.fork(0, 200);
    desk.dies(200, SIGSEGV);
    assert_eq!(exit(&desk.stop(SIGTERM)), Some(0));
}

#[row(D12)]
#[test]
fn a_drain_of_zero_tells_and_kills_in_one_breath() {
    let config = config(1)
        .with_drain(ms(0))
        .unwrap()
        .with_kill_margin(ms(0))
        .unwrap();
    let mut desk = Desk::serving(config);
    assert_eq!(
        desk.stop(SIGTERM),
        [
            Action::LogStopping {
                signal: SIGTERM,
                again: false
            },
            term(100),
            kill(100)
        ]
    );
}
