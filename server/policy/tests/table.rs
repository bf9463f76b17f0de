//! Every state of the supervisor meets every event; the outcome of each is a committed snapshot.
//!
//! A change of any rule shows here as a changed line. Whether a line is *right* is for the rules
//! and properties to say; this table is there so that no pair of state and event is forgotten.

use std::fmt::Write as _;

use m0_policy::{Config, Course, Event, Phase, State, step};
use m0_spec::row;

/// Pid of slot 0's first worker.
const A: u32 = 100;
/// Pid of slot 1's first worker.
const B: u32 = 101;
/// Pid of a worker forked later.
const C: u32 = 200;
/// Pid of a child that is no worker.
const STRANGER: u32 = 555;
/// When every event of the table happens, ms, unless it says otherwise.
const NOW_MS: u64 = 1_000;

const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGTERM: i32 = 15;
const EAGAIN: i32 = 11;

/// A host of two workers: three deaths are a crash loop, the drain takes 5 s and 250 ms.
fn config() -> Config {
    Config::new(2)
        .and_then(|config| config.with_crash_limit(3))
        .expect("in range")
}

/// The state after these events.
fn after(events: &[Event]) -> State {
    let mut state = State::new(config(), 0);
    for &event in events {
        assert_eq!(state.lawful(event), Ok(()), "{event}");
        step(&mut state, event);
    }
    state
}

const fn start() -> Event {
    Event::Start { now_ms: 0 }
}
const fn forked(slot: usize, pid: u32) -> Event {
    Event::Forked {
        slot,
        pid,
        now_ms: 10,
    }
}
const fn ready(pid: u32) -> Event {
    Event::Ready { pid, now_ms: 20 }
}
const fn crashed(pid: u32, now_ms: u64) -> Event {
    Event::Signaled {
        pid,
        signal: SIGSEGV,
        now_ms,
    }
}
const fn stop() -> Event {
    Event::StopRequested {
        signal: SIGTERM,
        now_ms: NOW_MS,
    }
}
const fn frozen(pid: u32) -> Event {
    Event::Stopped { pid, now_ms: 500 }
}
const BORN: [Event; 3] = [start(), forked(0, A), forked(1, B)];
const SERVING: [Event; 5] = [BORN[0], BORN[1], BORN[2], ready(A), ready(B)];

fn serving_then(events: &[Event]) -> State {
    after(&[&SERVING, events].concat())
}

/// Every kind of state, with the name of its snapshot.
fn states() -> Vec<(&'static str, State)> {
    let refused = Event::Exited {
        pid: A,
        code: 78,
        now_ms: NOW_MS,
    };
    // Slot 1 has died twice and waits for its respawn.
    let waiting = [crashed(B, 900), forked(1, C), crashed(C, 950)];
    let near_limit = [
        crashed(B, 800),
        forked(1, C),
        crashed(C, 850),
        Event::Tick { now_ms: 950 },
    ];
    let last_chance = [&near_limit[..], &[forked(1, B)]].concat();
    let worn = [
        &last_chance[..],
        &[Event::Ready {
            pid: B,
            now_ms: 960,
        }],
    ]
    .concat();
    vec![
        ("new", after(&[])),
        ("forking", after(&[start()])),
        ("one-forked", after(&[start(), forked(0, A)])),
        ("starting", after(&BORN)),
        ("one-serving", after(&[BORN[0], BORN[1], BORN[2], ready(A)])),
        ("serving", serving_then(&[])),
        ("serving-stopped", serving_then(&[frozen(A)])),
        ("respawning", serving_then(&[crashed(B, 900)])),
        ("waiting", serving_then(&waiting)),
        ("near-limit-forking", serving_then(&near_limit)),
        ("near-limit-starting", serving_then(&last_chance)),
        ("near-limit-serving", serving_then(&worn)),
        ("draining", serving_then(&[stop()])),
        ("draining-unready", after(&[&BORN[..], &[stop()]].concat())),
        ("draining-stopped", serving_then(&[frozen(A), stop()])),
        (
            "draining-in-flight",
            after(&[start(), forked(0, A), stop()]),
        ),
        (
            "draining-last",
            serving_then(&[
                stop(),
                Event::Exited {
                    pid: B,
                    code: 0,
                    now_ms: NOW_MS,
                },
            ]),
        ),
        (
            "draining-spoilt",
            serving_then(&[stop(), crashed(B, NOW_MS)]),
        ),
        ("killing", serving_then(&[stop(), stop()])),
        (
            "killing-in-flight",
            after(&[start(), forked(0, A), stop(), stop()]),
        ),
        ("refused", serving_then(&[refused])),
        (
            "crash-loop",
            serving_then(&[&last_chance[..], &[crashed(B, NOW_MS)]].concat()),
        ),
        ("gone", after(&[stop()])),
    ]
}

/// Every kind of event, towards each slot, with endings of every meaning.
fn events() -> Vec<Event> {
    let now_ms = NOW_MS;
    let mut events = vec![Event::Start { now_ms }];
    for (slot, pid) in [(0, 300), (1, 301)] {
        events.push(Event::Forked { slot, pid, now_ms });
        events.push(Event::ForkFailed {
            slot,
            errno: EAGAIN,
            now_ms,
        });
    }
    for pid in [A, B] {
        events.push(Event::Ready { pid, now_ms });
        for code in [0, 1, 78] {
            events.push(Event::Exited { pid, code, now_ms });
        }
        for signal in [SIGSEGV, SIGKILL, SIGTERM] {
            events.push(Event::Signaled {
                pid,
                signal,
                now_ms,
            });
        }
        events.push(Event::Stopped { pid, now_ms });
        events.push(Event::Continued { pid, now_ms });
    }
    // Long after: a worker that was ready until now was healthy.
    events.push(Event::Signaled {
        pid: B,
        signal: SIGSEGV,
        now_ms: 20_000,
    });
    let pid = STRANGER;
    events.push(Event::Ready { pid, now_ms });
    events.push(Event::Exited {
        pid,
        code: 78,
        now_ms,
    });
    events.push(Event::Signaled {
        pid,
        signal: SIGKILL,
        now_ms,
    });
    events.push(Event::Stopped { pid, now_ms });
    events.push(Event::Continued { pid, now_ms });
    events.push(Event::StopRequested {
        signal: SIGTERM,
        now_ms,
    });
    for now_ms in [0, NOW_MS, 1_050, 6_249, 6_250, 600_000] {
        events.push(Event::Tick { now_ms });
    }
    events.push(Event::JournalRequested);
    events
}

/// A state in a few words: each slot, then the host.
fn brief(state: &State) -> String {
    let mut text = String::new();
    for slot in state.slots() {
        match slot.phase {
            Phase::Vacant {
                respawn_at_ms: None,
            } => text.push_str("vacant"),
            Phase::Vacant {
                respawn_at_ms: Some(at_ms),
            } => {
                write!(text, "vacant@{at_ms}").expect("into a string");
            }
            Phase::Forking => text.push_str("forking"),
            Phase::Starting(_) => text.push_str("starting"),
            Phase::Serving(_) => text.push_str("serving"),
            Phase::Draining(_) => text.push_str("draining"),
        }
        if let Some(worker) = slot.worker() {
            let marks = [(worker.stopped, "+stopped"), (worker.killed, "+killed")];
            marks
                .iter()
                .filter(|(set, _)| *set)
                .for_each(|(_, mark)| text.push_str(mark));
        }
        if slot.row.deaths > 0 {
            write!(text, "+{}dead", slot.row.deaths).expect("into a string");
        }
        text.push_str(", ");
    }
    match state.course() {
        Course::New => text.push_str("new"),
        Course::Running => text.push_str("running"),
        Course::Stopping(stop) => {
            write!(
                text,
                "stopping ({}) until {}",
                stop.verdict, stop.kill_at_ms
            )
            .expect("into a string");
        }
        Course::Gone { code } => write!(text, "gone {code}").expect("into a string"),
    }
    text
}

/// What an event does to a state, on one line.
fn line(state: &State, event: Event) -> String {
    if let Err(unlawful) = state.lawful(event) {
        return format!("{event}: unlawful, {unlawful}");
    }
    let mut next = state.clone();
    let actions: Vec<String> = step(&mut next, event)
        .iter()
        .map(ToString::to_string)
        .collect();
    let mut line = format!(
        "{event}: {}",
        if actions.is_empty() {
            "-".to_owned()
        } else {
            actions.join("; ")
        }
    );
    let (was, is) = (brief(state), brief(&next));
    if was != is {
        write!(line, " => {is}").expect("into a string");
    }
    line
}

#[row(D25)]
#[test]
fn every_state_meets_every_event_as_committed() {
    let states = states();
    assert!(
        states.len() >= 20 && events().len() >= 35,
        "the table is whole"
    );
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, state) in &states {
            let mut table = format!("{}\n\n", brief(state));
            for event in events() {
                writeln!(table, "{}", line(state, event)).expect("into a string");
            }
            insta::assert_snapshot!(*name, table);
        }
    });
}

#[row(D25)]
#[test]
fn the_table_reaches_every_phase_and_every_course() {
    let states = states();
    let any = |wanted: fn(&Phase) -> bool| {
        states
            .iter()
            .any(|(_, state)| state.slots().iter().any(|slot| wanted(&slot.phase)))
    };
    assert!(any(|phase| matches!(
        phase,
        Phase::Vacant {
            respawn_at_ms: None
        }
    )));
    assert!(any(|phase| matches!(
        phase,
        Phase::Vacant {
            respawn_at_ms: Some(_)
        }
    )));
    assert!(any(|phase| matches!(phase, Phase::Forking)));
    assert!(any(|phase| matches!(phase, Phase::Starting(_))));
    assert!(any(
        |phase| matches!(phase, Phase::Serving(worker) if !worker.stopped)
    ));
    assert!(any(
        |phase| matches!(phase, Phase::Serving(worker) if worker.stopped)
    ));
    assert!(any(
        |phase| matches!(phase, Phase::Draining(worker) if !worker.killed)
    ));
    assert!(any(
        |phase| matches!(phase, Phase::Draining(worker) if worker.killed)
    ));
    let course =
        |wanted: fn(&Course) -> bool| states.iter().any(|(_, state)| wanted(&state.course()));
    assert!(course(|course| matches!(course, Course::New)));
    assert!(course(|course| matches!(course, Course::Running)));
    assert!(course(
        |course| matches!(course, Course::Stopping(stop) if !stop.killing)
    ));
    assert!(course(
        |course| matches!(course, Course::Stopping(stop) if stop.killing)
    ));
    assert!(course(|course| matches!(course, Course::Gone { .. })));
}
