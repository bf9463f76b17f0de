//! Each sentence of the list is noticed when it alone is not true, at its boundary.

use m0_spec::row;

use super::{check, holds};
use crate::config::Config;
use crate::drain::{Stop, Verdict};
use crate::slot::{Phase, Worker};
use crate::state::{Course, State};

const NOW_MS: u64 = 1000;
const LIMIT: u32 = 3;

/// A running host whose two workers serve.
fn serving() -> State {
    let config = Config::new(2).and_then(|config| config.with_crash_limit(LIMIT));
    let mut state = State::new(config.expect("both are in range"), NOW_MS);
    state.course = Course::Running;
    state.announced = true;
    for (slot, pid) in state.slots.iter_mut().zip([10, 11]) {
        let mut worker = Worker::new(pid, 500);
        worker.ready_ms = Some(600);
        slot.phase = Phase::Serving(worker);
    }
    state
}

/// The same host, told to stop.
fn draining() -> State {
    let mut state = serving();
    state.course = Course::Stopping(Stop::new(&state.config, NOW_MS, Verdict::Clean));
    for slot in &mut state.slots {
        if let Phase::Serving(worker) = slot.phase {
            slot.phase = Phase::Draining(worker);
        }
    }
    state
}

fn vacant(respawn_at_ms: Option<u64>) -> Phase {
    Phase::Vacant { respawn_at_ms }
}

fn worker(state: &mut State) -> &mut Worker {
    state.slots[0].worker_mut().expect("slot 0 has one")
}

/// Sentence, state and the change that makes it untrue.
type Case = (&'static str, fn() -> State, fn(&mut State));

const CASES: [Case; 26] = [
    ("one slot for each worker", serving, |state| {
        state.slots.pop();
    }),
    ("no two slots hold the same process", serving, |state| {
        worker(state).pid = 11;
    }),
    ("one process that is not init", serving, |state| {
        worker(state).pid = 1;
    }),
    ("a worker was forked in the past", serving, |state| {
        worker(state).ready_ms = None;
        worker(state).forked_ms = NOW_MS + 1;
    }),
    ("ready after its fork and in the past", serving, |state| {
        worker(state).ready_ms = Some(499);
    }),
    ("ready after its fork and in the past", serving, |state| {
        worker(state).ready_ms = Some(NOW_MS + 1);
    }),
    ("a row of deaths began in the past", serving, |state| {
        state.slots[0].row.since_ms = NOW_MS + 1;
    }),
    ("before the start nobody has died", serving, |state| {
        *state = State::new(state.config, NOW_MS);
        state.slots[0].row.deaths = 1;
    }),
    (
        "before the start and after the exit there is no worker",
        serving,
        |state| state.course = Course::New,
    ),
    (
        "before the start and after the exit there is no worker",
        draining,
        |state| {
            state.course = Course::Gone { code: 0 };
        },
    ),
    ("no slot in a crash loop", serving, |state| {
        state.slots[0].row.deaths = LIMIT;
    }),
    ("due within the largest backoff", serving, |state| {
        state.slots[0].phase = vacant(None);
        state.slots[0].row.deaths = 1;
    }),
    ("due within the largest backoff", serving, |state| {
        state.slots[0].phase = vacant(Some(NOW_MS + state.config.backoff_max_ms() + 1));
        state.slots[0].row.deaths = 1;
    }),
    (
        "a vacant slot of a running host has died",
        serving,
        |state| {
            state.slots[0].phase = vacant(Some(NOW_MS + 1));
        },
    ),
    ("a worker that starts is not ready", serving, |state| {
        state.slots[0].phase = Phase::Starting(*worker(state));
    }),
    ("a worker that starts was not killed", serving, |state| {
        worker(state).ready_ms = None;
        worker(state).killed = true;
        state.slots[0].phase = Phase::Starting(*worker(state));
    }),
    ("a worker that serves is ready", serving, |state| {
        worker(state).ready_ms = None;
    }),
    ("a worker that serves was not killed", serving, |state| {
        worker(state).killed = true;
    }),
    ("a worker drains only in a stop", serving, |state| {
        state.slots[0].phase = Phase::Draining(*worker(state));
    }),
    (
        "nobody is respawned after a recorded stop",
        draining,
        |state| {
            state.slots[0].phase = vacant(Some(NOW_MS + 1));
        },
    ),
    ("a stop has told every worker to end", draining, |state| {
        state.slots[0].phase = Phase::Serving(*worker(state));
    }),
    (
        "killed together, when the killing begins",
        draining,
        |state| worker(state).killed = true,
    ),
    ("a stop with nobody left is over", draining, |state| {
        state
            .slots
            .iter_mut()
            .for_each(|slot| slot.phase = vacant(None));
    }),
    ("stands in while a worker is stopped", serving, |state| {
        worker(state).stopped = true;
    }),
    (
        "a host whose slots all serve has been announced",
        serving,
        |state| state.announced = false,
    ),
    ("what was due has been done", serving, |state| {
        state.slots[0].phase = vacant(Some(NOW_MS));
        state.slots[0].row.deaths = 1;
    }),
];

#[row(D50)]
#[test]
fn each_sentence_is_noticed_when_it_alone_is_untrue() {
    for (sentence, sound, change) in CASES {
        assert_eq!(holds(&sound()), Ok(()), "{sentence}: before the change");
        let mut state = sound();
        change(&mut state);
        let broken = holds(&state).expect_err(sentence);
        assert!(broken.contains(sentence), "{sentence}: {broken}\n{state}");
    }
}

#[row(D50)]
#[test]
fn what_is_just_within_a_sentence_is_sound() {
    let changes: [fn(&mut State); 4] = [
        |state| worker(state).ready_ms = Some(500),
        |state| worker(state).ready_ms = Some(NOW_MS),
        |state| state.slots[0].row.deaths = LIMIT - 1,
        |state| {
            state.slots[0].phase = vacant(Some(NOW_MS + state.config.backoff_max_ms()));
            state.slots[0].row.deaths = 1;
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut state = serving();
        change(&mut state);
        assert_eq!(holds(&state), Ok(()), "change {number}\n{state}");
    }
}

#[row(D50)]
#[test]
#[should_panic(
    expected = "supervisor invariant broken: a host that runs has no slot in a crash loop"
)]
fn a_state_that_cannot_be_stops_the_supervisor_by_assertion() {
    let mut state = serving();
    state.slots[0].row.deaths = LIMIT;
    check(&state);
}
