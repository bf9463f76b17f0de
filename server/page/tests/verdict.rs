//! Who takes the next connection: cases, fairness, and a model over arbitrary pages.
//!
//! Owns what a page at rest shows; `loom.rs` shows the choice against a repair.

#![cfg(not(loom))]

use m0_page::{AtomicU64, Page, Verdict, WorkerState, words, words_needed};
use proptest::prelude::*;

/// What a case says of one worker.
#[derive(Clone, Copy, Debug)]
struct Worker {
    state: WorkerState,
    held: u64,
    busy: bool,
    starved: bool,
    stopped: bool,
}

impl Worker {
    const fn serving(held: u64) -> Self {
        let state = WorkerState::Serving;
        Self {
            state,
            held,
            busy: false,
            starved: false,
            stopped: false,
        }
    }

    fn live(self) -> bool {
        self.state == WorkerState::Serving && !self.busy && !self.starved && !self.stopped
    }
}

fn with_page<R>(workers: &[Worker], look: impl FnOnce(Page<'_>) -> R) -> R {
    let memory: Vec<AtomicU64> = words(words_needed(workers.len()));
    let page = Page::format(&memory, workers.len(), 1);
    for (slot, worker) in workers.iter().enumerate() {
        let share = page.share(slot);
        if worker.state != WorkerState::Absent {
            share.begin(1000 + slot as u32);
        }
        match worker.state {
            WorkerState::Serving => share.serving(),
            WorkerState::Draining => share.draining(),
            WorkerState::Absent | WorkerState::Starting => {}
        }
        for _ in 0..worker.held {
            share.opened();
        }
        share.mark_busy(worker.busy);
        share.mark_starved(worker.starved);
        share.mark_stopped(worker.stopped);
    }
    look(page)
}

#[track_caller]
fn check(workers: &[Worker], slot: usize, verdict: Verdict, nudge: Option<usize>) {
    with_page(workers, |page| {
        assert_eq!(page.verdict(slot), verdict);
        assert_eq!(page.nudge_target(slot), nudge);
    });
}

#[m0_spec::row(F24)]
#[test]
fn a_worker_defers_exactly_when_it_holds_more_than_the_least_loaded_live_sibling() {
    let w = Worker::serving;
    check(&[w(0)], 0, Verdict::Take, None);
    check(&[w(9)], 0, Verdict::Take, None);
    check(&[w(0), w(0)], 0, Verdict::Take, Some(1));
    check(&[w(1), w(0)], 0, Verdict::Defer { to: 1 }, Some(1));
    check(&[w(1), w(0)], 1, Verdict::Take, Some(0));
    check(&[w(1), w(1)], 0, Verdict::Take, Some(1));
    check(
        &[w(5), w(4), w(3), w(4)],
        0,
        Verdict::Defer { to: 2 },
        Some(2),
    );
    check(&[w(5), w(4), w(3), w(4)], 2, Verdict::Take, Some(1));
}

#[m0_spec::row(F15)]
#[test]
fn a_sibling_that_cannot_take_is_never_named() {
    let idle = Worker::serving(0);
    let unable = [
        Worker {
            state: WorkerState::Absent,
            ..idle
        },
        Worker {
            state: WorkerState::Starting,
            ..idle
        },
        Worker {
            state: WorkerState::Draining,
            ..idle
        },
        Worker { busy: true, ..idle },
        Worker {
            starved: true,
            ..idle
        },
        Worker {
            stopped: true,
            ..idle
        },
    ];
    for worker in unable {
        check(&[Worker::serving(9), worker], 0, Verdict::Take, None);
        let three = [Worker::serving(9), worker, Worker::serving(8)];
        check(&three, 0, Verdict::Defer { to: 2 }, Some(2));
        with_page(&three, |page| {
            assert_eq!(page.live().collect::<Vec<_>>(), [0, 2]);
        });
    }
}

#[m0_spec::row(F24)]
#[test]
fn equal_siblings_take_turns() {
    for slot in 0..4 {
        let mut workers = [Worker::serving(0); 4];
        workers[slot] = Worker::serving(1);
        with_page(&workers, |page| {
            let mut rung = [0; 4];
            for _ in 0..300 {
                let Verdict::Defer { to } = page.verdict(slot) else {
                    panic!("it holds more than every sibling");
                };
                assert_eq!(page.nudge_target(slot), Some(to));
                page.share(slot).deferred();
                rung[to] += 1;
            }
            let mut expected = [100; 4];
            expected[slot] = 0;
            assert_eq!(rung, expected);
        });
    }
}

#[m0_spec::row(F24)]
#[test]
fn two_askers_do_not_start_with_the_same_sibling() {
    let workers = [1, 1, 0, 0].map(Worker::serving);
    with_page(&workers, |page| {
        assert_ne!(page.nudge_target(0), page.nudge_target(1));
    });
}

fn a_worker() -> impl Strategy<Value = Worker> {
    let state = prop_oneof![
        6 => Just(WorkerState::Serving),
        1 => Just(WorkerState::Absent),
        1 => Just(WorkerState::Starting),
        1 => Just(WorkerState::Draining),
    ];
    let flag = || prop::bool::weighted(0.15);
    (state, 0..6_u64, flag(), flag(), flag()).prop_map(|(state, held, busy, starved, stopped)| {
        Worker {
            state,
            held,
            busy,
            starved,
            stopped,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[m0_spec::row(F15, F24)]
    #[test]
    fn the_verdict_follows_the_model(
        workers in prop::collection::vec(a_worker(), 1..=64),
        asker in any::<prop::sample::Index>(),
        turns in 0..70_u64,
    ) {
        let slot = asker.index(workers.len());
        let siblings = || (0..workers.len()).filter(|&other| other != slot && workers[other].live());
        let least = siblings().map(|other| workers[other].held).min();
        let (verdict, nudge, live) = with_page(&workers, |page| {
            for _ in 0..turns {
                page.share(slot).deferred();
            }
            (page.verdict(slot), page.nudge_target(slot), page.live().collect::<Vec<_>>())
        });
        let all_live: Vec<_> = (0..workers.len()).filter(|&other| workers[other].live()).collect();
        prop_assert_eq!(live, all_live);
        match nudge {
            None => prop_assert_eq!(siblings().count(), 0),
            Some(to) => {
                prop_assert!(siblings().any(|other| other == to));
                prop_assert_eq!(Some(workers[to].held), least);
            }
        }
        let expected = match (nudge, least) {
            (Some(to), Some(least)) if workers[slot].held > least => Verdict::Defer { to },
            _ => Verdict::Take,
        };
        prop_assert_eq!(verdict, expected);
    }
}
