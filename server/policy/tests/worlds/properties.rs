//! Safety of supervision under faults, then convergence when the faults stop.
//!
//! The worlds judge every action (see `judge.rs`); here stands what whole stories must
//! come to.

use std::collections::BTreeSet;

use m0_policy::{Action, Config, Course, Event, State, step};
use m0_spec::row;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::cases;
use crate::script::{Move, scripts};
use crate::world::{SIGTERM, World};

/// Longest story, in moves.
const MOVES: usize = 100;

proptest! {
    #![proptest_config(cases(500))]

    #[row(
        D2, D3, D5, D9, D10, D12, D13, D14, D15, D16, D18, D20, D26, D28, D29, D30, D31, D32, D33,
        D35, D36, D37, D38, D39, D44, D45, D46, D47
    )]
    #[test]
    fn no_story_breaks_a_rule(script in scripts(MOVES)) {
        World::after(&script);
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[row(D17)]
    #[test]
    fn when_the_faults_stop_every_slot_serves_or_the_host_has_ended(script in scripts(MOVES)) {
        let mut world = World::after(&script);
        let longest_ms = script.config.backoff_max_ms();
        let mut waited_ms = 0;
        world.rest(false);
        world.play(Move::Ticks);
        world.rest(false);
        for _ in 0..script.config.workers() {
            if world.all_serve() || world.ledger.exit().is_some() {
                break;
            }
            let waits = world.tick_at_deadline();
            prop_assert!(waits.is_some(), "waits for nothing:\n{}", world.state);
            waited_ms += waits.unwrap_or(0);
            world.rest(false);
        }
        prop_assert!(waited_ms <= longest_ms, "waited {waited_ms} ms of {longest_ms}");
        let ended = world.ledger.exit().is_some();
        prop_assert!(ended || world.all_serve(), "{}", world.state);
        prop_assert_eq!(ended, world.ledger.stop_ms().is_some(), "ended only after a stop");
    }

    #[row(D12, D27, D34)]
    #[test]
    fn a_stop_ends_within_the_drain_and_its_margin_however_stubborn_the_workers(
        script in scripts(MOVES),
        asks in 1..4_usize,
    ) {
        let mut world = World::after(&script);
        world.play(Move::ClockStands(false));
        world.play(Move::Ticks);
        for _ in 0..asks {
            world.play(Move::Asks { signal: SIGTERM });
        }
        let stop_ms = world.ledger.stop_ms();
        let grace_ms = script.config.drain_ms() + script.config.kill_margin_ms();
        let bound_ms = stop_ms.map_or(0, |stop_ms| stop_ms + grace_ms).max(world.told_ms());
        world.rest(true);
        if world.ledger.exit().is_none() {
            world.tick_at_deadline();
            world.rest(true);
        }
        prop_assert!(world.ledger.exit().is_some(), "{}", world.state);
        prop_assert!(world.told_ms() <= bound_ms, "{} > {bound_ms}", world.told_ms());
    }
}

/// Any event at all, about few pids and slots, so that they meet.
fn events() -> impl Strategy<Value = Event> {
    let (pid, slot, now_ms) = (98..106_u32, 0..3_usize, 0..400_u64);
    prop_oneof![
        1 => now_ms.clone().prop_map(|now_ms| Event::Start { now_ms }),
        8 => (slot.clone(), pid.clone(), now_ms.clone())
            .prop_map(|(slot, pid, now_ms)| Event::Forked { slot, pid, now_ms }),
        2 => (slot, now_ms.clone())
            .prop_map(|(slot, now_ms)| Event::ForkFailed { slot, errno: 12, now_ms }),
        4 => (pid.clone(), now_ms.clone()).prop_map(|(pid, now_ms)| Event::Ready { pid, now_ms }),
        4 => (pid.clone(), prop_oneof![Just(0), Just(1), Just(78), any::<i32>()], now_ms.clone())
            .prop_map(|(pid, code, now_ms)| Event::Exited { pid, code, now_ms }),
        3 => (pid.clone(), 0..65_i32, now_ms.clone())
            .prop_map(|(pid, signal, now_ms)| Event::Signaled { pid, signal, now_ms }),
        1 => (pid.clone(), now_ms.clone()).prop_map(|(pid, now_ms)| Event::Stopped { pid, now_ms }),
        1 => (pid, now_ms.clone()).prop_map(|(pid, now_ms)| Event::Continued { pid, now_ms }),
        1 => (any::<i32>(), now_ms.clone())
            .prop_map(|(signal, now_ms)| Event::StopRequested { signal, now_ms }),
        2 => prop_oneof![now_ms, any::<u64>()].prop_map(|now_ms| Event::Tick { now_ms }),
        1 => Just(Event::JournalRequested),
    ]
}

proptest! {
    #![proptest_config(cases(200))]

    #[row(D25, D32, D39)]
    #[test]
    fn no_lawful_event_whatever_breaks_an_invariant(
        events in prop::collection::vec(events(), 0..150),
        limit in 1..20_u32,
    ) {
        let config = Config::new(3).and_then(|config| config.with_crash_limit(limit)).unwrap();
        let mut state = State::new(config, 0);
        step(&mut state, Event::Start { now_ms: 0 });
        let mut exits = 0;
        for event in events {
            let gone = matches!(state.course(), Course::Gone { .. });
            if state.lawful(event).is_ok() {
                let actions = step(&mut state, event);
                prop_assert!(!gone || actions.is_empty());
                exits += actions.iter().filter(|action| matches!(action, Action::Exit { .. })).count();
            }
        }
        prop_assert_eq!(exits, usize::from(matches!(state.course(), Course::Gone { .. })));
    }
}

#[row(D17)]
#[test]
fn the_stories_meet_every_kind_of_fault() {
    let mut runner = TestRunner::deterministic();
    let mut sights = BTreeSet::new();
    for _ in 0..400 {
        let script = scripts(MOVES)
            .new_tree(&mut runner)
            .expect("a story")
            .current();
        sights.extend(World::after(&script).ledger.sights);
    }
    let wanted = BTreeSet::from([
        "event after the exit",
        "exit 0",
        "exit 1",
        "exit 70",
        "exit 71",
        "exit 78",
        "fork in flight at the stop",
        "healthy run after a death",
        "killed at the bound",
        "killed by a second stop",
        "killed while stopped",
        "stood in",
        "stranger reaped",
    ]);
    let missing: Vec<_> = wanted.difference(&sights).collect();
    assert!(
        missing.is_empty(),
        "the stories are too tame, they never saw: {missing:?}"
    );
}
