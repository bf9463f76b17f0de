//! Work that is the same for many things, shared among the processor's cores.
//!
//! Owns the threads and the order of the answers. Refuses to know the work. Invariant: the answers come in the order
//! of the things, whatever core was done first, and a panic of the work is the caller's.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Bytes of stack: as much as a program's first thread has, since the work may go as deep as a file is nested.
const STACK: usize = 8 * 1024 * 1024;

/// How many cores there are for this program.
pub(crate) fn all() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// What the work makes of each thing, on as many cores as are given, this thread's among them.
pub(crate) fn each<T: Sync, R: Send>(
    cores: usize,
    things: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(at) else {
                return done;
            };
            done.push((at, work(thing)));
        }
    };
    let mut done = thread::scope(|scope| {
        let others = 1..cores.min(things.len());
        // A thread that the system refuses is one that the others do the work of.
        let others: Vec<_> = others
            .filter_map(|_| {
                let thread = thread::Builder::new().stack_size(STACK);
                thread.spawn_scoped(scope, some).ok()
            })
            .collect();
        let mut done = some();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::{all, each};

    #[m0_spec::row(T28)]
    #[test]
    fn answers_come_in_the_order_of_the_things_whoever_is_done_first() {
        let things: Vec<usize> = (0..100).collect();
        let doubled: Vec<usize> = things.iter().map(|thing| thing * 2).collect();
        for cores in [0, 1, 2, 7, 1000, all()] {
            assert_eq!(each(cores, &things, |thing| thing * 2), doubled, "{cores}");
        }
        assert!(each(4, &[0; 0], |thing| *thing).is_empty());
        // Each of two threads takes one thing in every round, so neither has a run of them.
        let round = Barrier::new(2);
        let answers = each(2, &things, |thing| {
            round.wait();
            *thing
        });
        assert_eq!(answers, things);
    }

    #[m0_spec::row(T28)]
    #[test]
    #[should_panic(expected = "of the work")]
    fn a_panic_of_the_work_is_the_callers() {
        each(3, &[1, 2, 3, 4], |thing| {
            assert_ne!(*thing, 3, "a fault of the work");
        });
    }
}
