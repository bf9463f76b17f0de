//! The page under every interleaving of two or three threads and every value that the memory model
//! lets a load return.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p m0-page --test loom`. Threads stand for
//! processes.

#![cfg(loom)]

use loom::thread;
use m0_page::{AtomicU64, AttachError, Page, Verdict, WorkerState, words, words_needed};

fn memory(workers: usize) -> &'static [AtomicU64] {
    Box::leak(words(words_needed(workers)).into_boxed_slice())
}

/// A page whose workers all serve and hold `held[slot]` connections.
fn page(held: &[u64]) -> Page<'static> {
    let page = Page::format(memory(held.len()), held.len(), 1);
    for (slot, count) in held.iter().enumerate() {
        page.share(slot).begin(100 + slot as u32);
        page.share(slot).serving();
        for _ in 0..*count {
            page.share(slot).opened();
        }
    }
    page
}

/// Explores `model`, and fails when there was next to nothing to explore: then loom saw no race, and
/// the model shows nothing.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    let executions = executions.load(std::sync::atomic::Ordering::Relaxed);
    println!("{executions} executions");
    assert!(executions >= 20, "only {executions} executions");
}

#[m0_spec::row(F27, F15)]
#[test]
fn a_dead_worker_is_not_taken_for_an_idle_one_while_it_is_repaired() {
    explore(|| {
        // Worker 1 has just died with two connections; worker 0 holds one, worker 2 holds one.
        let page = page(&[1, 2, 1]);
        let supervisor = thread::spawn(move || page.share(1).repair());
        // At no moment is the dead worker the better choice: it held more, then it was Absent.
        assert_eq!(page.verdict(0), Verdict::Take);
        assert_eq!(page.nudge_target(0), Some(2));
        supervisor.join().expect("repair did not panic");
        assert_eq!(page.verdict(0), Verdict::Take);
        assert_eq!(
            (page.share(1).held(), page.share(1).state()),
            (0, WorkerState::Absent)
        );
    });
}

#[m0_spec::row(F27, F15)]
#[test]
fn a_flag_of_a_dead_worker_is_not_cleared_before_its_state() {
    explore(|| {
        // Worker 1 holds nothing but is stopped, and is killed: it never becomes a target.
        let page = page(&[1, 0]);
        page.share(1).mark_stopped(true);
        let supervisor = thread::spawn(move || page.share(1).repair());
        assert_eq!(page.verdict(0), Verdict::Take);
        assert_eq!(page.nudge_target(0), None);
        supervisor.join().expect("repair did not panic");
    });
}

#[m0_spec::row(F27)]
#[test]
fn a_successor_is_named_only_once_it_serves() {
    explore(|| {
        let page = page(&[1, 2]);
        let served = std::sync::Arc::new(AtomicU64::new(0));
        let successor = {
            let served = served.clone();
            thread::spawn(move || {
                page.share(1).repair();
                page.share(1).begin(300);
                served.store(1, m0_page::sync::Ordering::Relaxed);
                page.share(1).serving();
            })
        };
        if page.verdict(0) == (Verdict::Defer { to: 1 }) {
            let served = served.load(m0_page::sync::Ordering::Relaxed);
            assert_eq!(served, 1, "a worker that was still starting was named");
        }
        successor.join().expect("the successor did not panic");
        assert_eq!(page.verdict(0), Verdict::Defer { to: 1 });
    });
}

#[m0_spec::row(F14)]
#[test]
fn no_opening_or_closing_is_lost_and_nothing_held_is_ever_below_zero() {
    explore(|| {
        let page = page(&[1, 0]);
        let other = thread::spawn(move || {
            page.share(0).opened();
            page.share(0).closed();
        });
        page.share(0).closed();
        page.share(0).opened();
        assert!(page.share(0).held() <= 2);
        other.join().expect("no count went below zero");
        assert_eq!(page.share(0).held(), 1);
        assert_eq!(page.share(0).snapshot().accepted, 3);
    });
}

#[m0_spec::row(F14)]
#[test]
fn three_writers_of_flags_do_not_undo_each_other() {
    explore(|| {
        let page = page(&[0]);
        let share = page.share(0);
        share.mark_busy(true);
        let watch = thread::spawn(move || page.share(0).mark_busy(false));
        let supervisor = thread::spawn(move || page.share(0).mark_stopped(true));
        share.mark_starved(true);
        watch.join().expect("marking did not panic");
        supervisor.join().expect("marking did not panic");
        assert_eq!(
            (share.busy(), share.starved(), share.stopped()),
            (false, true, true)
        );
    });
}

#[m0_spec::row(F23)]
#[test]
fn of_two_producers_one_is_registered_also_around_a_repair() {
    explore(|| {
        let page = page(&[0, 0]);
        assert!(page.producer().claim(100, 0));
        // The dead producer's claim is repaired while two would follow it.
        let claims = [201, 202].map(|pid| thread::spawn(move || page.producer().claim(pid, 0)));
        let dead = page.producer().repair(100);
        let claims = claims.map(|claim| claim.join().expect("claiming did not panic"));
        assert!(dead, "the dead one's claim was there");
        assert!(!(claims[0] && claims[1]), "two producers at once");
        match page.producer().owner() {
            None => assert_eq!(claims, [false, false]),
            Some((pid, _)) => assert_eq!(claims, [pid == 201, pid == 202]),
        }
    });
}

#[m0_spec::row(F25)]
#[test]
fn a_page_whose_magic_word_is_seen_is_whole() {
    explore(|| {
        let memory = memory(1);
        // What an earlier use left behind.
        memory[24].store(9, m0_page::sync::Ordering::Relaxed);
        let maker = thread::spawn(move || {
            Page::format(memory, 1, 5);
        });
        match Page::attach(memory) {
            Ok(page) => {
                assert_eq!(
                    (page.workers(), page.epoch(), page.share(0).held()),
                    (1, 5, 0)
                );
            }
            Err(error) => assert_eq!(error, AttachError::Unformatted),
        }
        maker.join().expect("format did not panic");
    });
}
