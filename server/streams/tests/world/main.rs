//! A model world: workers, a log that overwrites itself, sockets that take what they like, clients that
//! come back with the last id they got.
//!
//! Everything but the sockets is the product. Each connection is judged by what its client read:
//! consecutive frames from where it was to begin, or it was told. Over a client's whole life, across
//! all its connections, the frames are consecutive but for resets.
//!
//! Invariant: the world itself makes no promise that the streams do not need: workers lag, are
//! replaced in the middle of a chunk, sockets block at any byte.

#[path = "../reader/mod.rs"]
mod reader;

mod client;
mod model;

use model::{Last, Step, World};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;

fn step() -> impl Strategy<Value = Step> {
    let last = prop_oneof![
        6 => Just(Last::Own),
        1 => Just(Last::None),
        1 => (0..200_u64).prop_map(Last::Seq),
        1 => proptest::sample::select(vec!["", "x", "5eed-", "1-1", "5eed-01", "5eed-18446744073709551616"])
            .prop_map(Last::Text),
    ];
    prop_oneof![
        8 => (1..4_usize, 0..150_usize).prop_map(|(count, length)| Step::Publish { count, length }),
        8 => (any::<u8>(), 1..12_usize).prop_map(|(worker, frames)| Step::Deliver { worker, frames }),
        5 => (any::<u8>(), any::<u8>(), last).prop_map(|(client, worker, last)| Step::Join { client, worker, last }),
        12 => (any::<u8>(), prop_oneof![1..60_usize, 60..4_000_usize])
            .prop_map(|(client, bytes)| Step::Read { client, bytes }),
        1 => any::<u8>().prop_map(|client| Step::Leave { client }),
        1 => any::<u8>().prop_map(|worker| Step::Respawn { worker }),
        1 => any::<u8>().prop_map(|worker| Step::Drain { worker }),
        1 => (any::<u8>(), 0..200_u64).prop_map(|(worker, pause_ms)| Step::Heartbeat { worker, pause_ms }),
    ]
}

/// A property over generated stories; run by hand, because the counts of all of them are judged too.
mod properties {
    use super::{RefCell, TestRunner, World, model, step};
    use proptest::prelude::ProptestConfig;

    #[m0_spec::row(S3, S4, S5, S6, S7, S8, S16, S24, S26)]
    #[test]
    fn every_client_sees_consecutive_frames_or_is_told() {
        let seen = RefCell::new(model::Counts::default());
        let mut runner = TestRunner::new(ProptestConfig {
            source_file: Some(file!()),
            ..ProptestConfig::default()
        });
        let steps = proptest::collection::vec(step(), 1..150);
        let verdict = runner.run(&(steps, 1..400_usize), |(steps, budget)| {
            let mut world = World::new(budget);
            for step in steps {
                world.step(step);
            }
            world.settle();
            *seen.borrow_mut() += world.counts();
            Ok(())
        });
        if let Err(failure) = verdict {
            panic!("{failure}");
        }
        // A world in which nothing happened shows nothing.
        let seen = seen.into_inner();
        assert!(seen.each_happened(), "vacuous: {seen:?}");
    }
}
