//! A journal replays to the state that its supervisor was in, and a broken one says where it is.
//!
//! On one hand-written story; stories of every kind are in `worlds/journals.rs`.

use m0_policy::{Action, Config, Event, JOURNAL_ENTRIES, Journal, State, replay, step};
use m0_spec::row;

/// A supervisor of two workers that lived through this, and its journal.
fn recorded(entries: usize, events: &[Event]) -> (State, Journal) {
    let mut state = State::new(Config::new(2).expect("two workers are in range"), 5);
    let mut journal = Journal::bounded(&state, entries);
    for &event in events {
        let actions = step(&mut state, event);
        journal.record(event, &actions);
    }
    (state, journal)
}

const STORY: [Event; 9] = [
    Event::Start { now_ms: 10 },
    Event::Forked {
        slot: 0,
        pid: 100,
        now_ms: 11,
    },
    Event::ForkFailed {
        slot: 1,
        errno: 11,
        now_ms: 12,
    },
    Event::Ready {
        pid: 100,
        now_ms: 20,
    },
    Event::Tick { now_ms: 112 },
    Event::Forked {
        slot: 1,
        pid: 101,
        now_ms: 113,
    },
    Event::Stopped {
        pid: 101,
        now_ms: 114,
    },
    Event::StopRequested {
        signal: 15,
        now_ms: 120,
    },
    Event::Exited {
        pid: 100,
        code: 0,
        now_ms: 130,
    },
];

#[row(D22)]
#[test]
fn the_text_is_as_committed() {
    let (state, journal) = recorded(JOURNAL_ENTRIES, &STORY);
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("journal-text", journal.text()));
    assert_eq!(replay(&journal.text()), Ok(state));
}

#[row(D22, D23)]
#[test]
fn a_journal_that_dropped_entries_still_replays() {
    for entries in 1..STORY.len() {
        let (state, journal) = recorded(entries, &STORY);
        let text = journal.text();
        assert_eq!(journal.len(), entries);
        assert!(
            text.contains(&format!("dropped entries={}\n", STORY.len() - entries)),
            "{text}"
        );
        assert_eq!(replay(&text), Ok(state), "{entries} entries of\n{text}");
    }
}

#[row(D23)]
#[test]
fn the_journal_keeps_its_bound_and_the_newest() {
    let mut state = State::new(Config::new(1).expect("one worker is in range"), 0);
    let mut journal = Journal::new(&state);
    assert!(journal.is_empty());
    let count = JOURNAL_ENTRIES as u64 * 2 + 7;
    for now_ms in 1..=count {
        let event = Event::Tick { now_ms };
        let actions = step(&mut state, event);
        journal.record(event, &actions);
    }
    assert_eq!(
        (journal.len(), journal.is_empty()),
        (JOURNAL_ENTRIES, false)
    );
    let text = journal.text();
    assert!(text.ends_with(&format!("event tick now={count}\n")));
    assert!(!text.contains(&format!(
        "event tick now={}\n",
        count - JOURNAL_ENTRIES as u64
    )));
    assert_eq!(replay(&text), Ok(state));
}

#[row(D46)]
#[test]
fn the_request_itself_stands_in_the_journal_that_it_writes() {
    let (mut state, mut journal) = recorded(JOURNAL_ENTRIES, &STORY);
    let actions = step(&mut state, Event::JournalRequested);
    assert_eq!(actions, [Action::WriteJournal]);
    journal.record(Event::JournalRequested, &actions);
    assert!(
        journal
            .text()
            .ends_with("event journal-requested\naction write-journal\n")
    );
}

/// The line of the error that the text gets, and its message.
fn refusal(text: &str) -> (usize, String) {
    let error = replay(text).expect_err("the text is broken");
    (error.line(), error.to_string())
}

#[row(D41)]
#[test]
fn a_broken_line_is_named() {
    let text = recorded(JOURNAL_ENTRIES, &STORY).1.text();
    let broken = |from: &str, to: &str| {
        assert!(text.contains(from), "`{from}` is in\n{text}");
        refusal(&text.replacen(from, to, 1))
    };
    for (from, to, line, message) in [
        (
            "m0 supervisor journal 1",
            "m0 supervisor journal 2",
            1,
            "of this version",
        ),
        (
            "workers=2",
            "workers=0",
            2,
            "0 workers: not within 1 and 64",
        ),
        (
            "workers=2",
            "workers=65",
            2,
            "65 workers: not within 1 and 64",
        ),
        ("workers=2", "workers=two", 2, "`two` is no workers"),
        ("workers=2", "workers=3", 7, "expected a line `slot …`"),
        (
            "backoff=100",
            "backoff=0",
            2,
            "backoff of 0ns: out of range",
        ),
        (
            "crash_limit=10",
            "crash_limit=10 more",
            2,
            "unexpected `more`",
        ),
        ("dropped", "lost", 3, "expected a line `dropped …`"),
        ("course=new", "course=old", 4, "`old` is no course"),
        (
            "announced=0",
            "announced=2",
            4,
            "`2` is no announced: 0 or 1",
        ),
        (
            "standing_in=0",
            "standing_in=1",
            6,
            "the supervisor stands in while a worker",
        ),
        ("slot number=0", "slot number=1", 5, "expected slot 0"),
        (
            "deaths=0",
            "deaths=1",
            6,
            "before the start nobody has died",
        ),
        ("phase=vacant", "phase=empty", 5, "`empty` is no phase"),
        (
            "respawn_at=-",
            "respawn_at=soon",
            5,
            "`soon` is no respawn_at",
        ),
        (
            "event start now=10",
            "event begin now=10",
            7,
            "`begin` is no event",
        ),
        (
            "event start now=10",
            "event start",
            7,
            "the line ends too early",
        ),
        (
            "pid=100 now=11",
            "pid=0 now=11",
            10,
            "0 is no process id of a child",
        ),
        (
            "forked slot=0",
            "forked slot=7",
            10,
            "slot 7 does not exist",
        ),
    ] {
        let (number, text) = broken(from, to);
        assert_eq!(number, line, "`{from}` to `{to}`: {text}");
        assert!(text.contains(message), "`{from}` to `{to}`: {text}");
    }
    assert_eq!(refusal("").0, 1);
}

#[row(D41)]
#[test]
fn actions_that_this_policy_would_not_take_are_named() {
    let text = recorded(JOURNAL_ENTRIES, &STORY).1.text();
    let other = text.replacen("action fork slot=1", "action fork slot=0", 1);
    let (line, message) = refusal(&other);
    assert_eq!(
        (line, message.as_str()),
        (9, "journal line 9: this policy says: action fork slot=1")
    );
    let missing = text.replacen("action fork slot=1\n", "", 1);
    assert_eq!(refusal(&missing).0, 9);
    let more = text.replacen(
        "action fork slot=1\n",
        "action fork slot=1\naction announce\n",
        1,
    );
    assert_eq!(refusal(&more).0, 10);
}
