//! What can happen in a world, and how proptest makes stories of it.
//!
//! Owns the moves and their weights. Invariant: any list of moves is a story; a move that is not
//! possible when its turn comes does nothing.

use std::time::Duration;

use m0_policy::{Config, Ending};
use proptest::prelude::*;

use crate::world::{SIGKILL, SIGSEGV, SIGTERM};

/// One thing that can happen. `nth` picks in a circle among those to whom it can.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Starts,
    /// The oldest fork in flight has its outcome.
    ForkEnds {
        well: bool,
        reuse: bool,
    },
    Ready(usize),
    /// A report of a worker that was reaped meanwhile.
    ReportsLate(usize),
    /// A worker ends and is a zombie until it is reaped.
    Dies(usize, Ending),
    /// A worker that was told to end does so with 0.
    Drains(usize),
    Reaped(usize),
    Freezes(usize),
    Thaws(usize),
    StrangerDies {
        how: Ending,
        reuse: bool,
    },
    StrangerFreezes,
    Asks {
        signal: i32,
    },
    Passes {
        ms: u64,
    },
    Ticks,
    TicksInThePast {
        ms: u64,
    },
    ClockStands(bool),
    JournalAsked,
}

/// A host and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) config: Config,
    pub(crate) journal_entries: usize,
    pub(crate) moves: Vec<Move>,
}

fn configs() -> impl Strategy<Value = Config> {
    let bounds = (0..60_u64, 0..10_u64, 1..20_u64, 0..100_u64, 1..80_u64);
    (1..5_usize, bounds, 1..7_u32).prop_map(|(workers, bounds, limit)| {
        let (drain, margin, backoff, above, healthy) = bounds;
        let ms = Duration::from_millis;
        Config::new(workers)
            .and_then(|config| config.with_drain(ms(drain)))
            .and_then(|config| config.with_kill_margin(ms(margin)))
            .and_then(|config| config.with_backoff(ms(backoff), ms(backoff + above)))
            .and_then(|config| config.with_healthy(ms(healthy)))
            .and_then(|config| config.with_crash_limit(limit))
            .expect("the strategy stays in range")
    })
}

fn endings(refusals: bool) -> impl Strategy<Value = Ending> {
    prop_oneof![
        2 => Just(Ending::Code(0)),
        3 => Just(Ending::Code(1)),
        1 => Just(Ending::Code(if refusals { 78 } else { 1 })),
        3 => Just(Ending::Signal(SIGSEGV)),
        1 => Just(Ending::Signal(SIGTERM)),
        1 => Just(Ending::Signal(SIGKILL)),
    ]
}

fn moves(stops: bool, refusals: bool) -> impl Strategy<Value = Move> {
    let nth = 0..8_usize;
    prop_oneof![
        24 => (prop::bool::weighted(0.85), any::<bool>())
            .prop_map(|(well, reuse)| Move::ForkEnds { well, reuse }),
        16 => nth.clone().prop_map(Move::Ready),
        1 => nth.clone().prop_map(Move::ReportsLate),
        12 => (nth.clone(), endings(refusals)).prop_map(|(nth, how)| Move::Dies(nth, how)),
        6 => nth.clone().prop_map(Move::Drains),
        16 => nth.clone().prop_map(Move::Reaped),
        3 => nth.clone().prop_map(Move::Freezes),
        3 => nth.prop_map(Move::Thaws),
        2 => (endings(true), any::<bool>())
            .prop_map(|(how, reuse)| Move::StrangerDies { how, reuse }),
        1 => Just(Move::StrangerFreezes),
        3 => prop_oneof![Just(2), Just(15)]
            .prop_map(move |signal| if stops { Move::Asks { signal } } else { Move::Ticks }),
        12 => (0..40_u64).prop_map(|ms| Move::Passes { ms }),
        8 => Just(Move::Ticks),
        1 => (0..40_u64).prop_map(|ms| Move::TicksInThePast { ms }),
        2 => any::<bool>().prop_map(Move::ClockStands),
        1 => Just(Move::JournalAsked),
    ]
}

/// Hosts that run, are asked to stop, refuse or crash, with up to `longest` moves.
pub(crate) fn scripts(longest: usize) -> impl Strategy<Value = Script> {
    let moods = (
        prop::bool::weighted(0.6),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.05),
    );
    (configs(), 1..40_usize, moods).prop_flat_map(
        move |(config, journal_entries, (stops, refusals, stop_first))| {
            prop::collection::vec(moves(stops, refusals), 0..longest).prop_map(move |mut moves| {
                moves.insert(0, Move::Starts);
                if stop_first {
                    moves.insert(0, Move::Asks { signal: SIGTERM });
                }
                Script {
                    config,
                    journal_entries,
                    moves,
                }
            })
        },
    )
}
