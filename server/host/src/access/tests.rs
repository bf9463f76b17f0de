//! Lines of the access log: their phases, their numbers, and how they are gathered.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::rc::Rc;

use http::{HeaderValue, Method, StatusCode};
use m0_spec::row;
use proptest::prelude::*;

use super::{AccessLog, Entry, GATHER_BYTES, LOG, Moments, Phases};
use crate::log::{Sink, TimeOfDay};

#[row(E114)]
#[test]
fn each_phase_has_its_own_time_and_what_was_not_reached_has_none() {
    let phases = |wait, app, first, body| Phases {
        wait,
        app,
        first,
        body,
        whole: wait + app + first + body,
    };
    let whole = Moments {
        head: 1_000_000,
        begun: 1_002_000,
        answered: 1_052_000,
        first: 1_055_000,
        last: 1_955_000,
    };
    assert_eq!(whole.phases(), phases(2, 50, 3, 900));
    let cut_before_a_byte = Moments { first: 0, ..whole };
    assert_eq!(cut_before_a_byte.phases(), phases(2, 50, 903, 0));
    let left = Moments {
        answered: 0,
        ..cut_before_a_byte
    };
    assert_eq!(left.phases(), phases(2, 953, 0, 0));
}

#[row(E115)]
#[test]
fn lines_are_gathered_before_they_are_written() {
    let (reader, writer) = m0_unix::fds::pipe().expect("a pipe");
    let output = m0_unix::output::Output::of(writer.as_fd()).expect("an output");
    let words = Box::leak(Box::new(m0_page::sync::words(m0_page::words_needed(1))));
    LOG.set(Some(AccessLog {
        sink: Sink::new(Some(output)),
        share: m0_page::Page::format(words, 1, 1).share(0),
        told_dropped: 0,
        clock: TimeOfDay::default(),
        line: Vec::new(),
        spare: Vec::new(),
    }));
    let mut file = std::fs::File::from(reader);
    let mut written = || {
        let mut bytes = vec![0; 2 * GATHER_BYTES];
        // Nothing to read is an error of a pipe that does not wait.
        file.read(&mut bytes).unwrap_or(0)
    };
    let one = || {
        drop(Entry::new(Method::GET, "/", Rc::from("\"unix\""), 0, 1));
    };
    let mut lines = 0;
    let first = loop {
        one();
        lines += 1;
        let bytes = written();
        if bytes > 0 {
            break bytes;
        }
    };
    assert!(
        lines >= 50 && first >= GATHER_BYTES,
        "{first} bytes after {lines} lines"
    );
    one();
    assert_eq!(written(), 0);
    super::flush();
    assert!(written() > 0, "the sweep writes what is left");
}

#[row(E74)]
#[test]
fn a_room_that_is_used_again_holds_nothing_of_its_last_request() {
    LOG.set(Some(AccessLog {
        sink: Sink::new(None),
        share: m0_page::Page::format(
            Box::leak(Box::new(m0_page::sync::words(m0_page::words_needed(1)))),
            1,
            1,
        )
        .share(0),
        told_dropped: 0,
        clock: TimeOfDay::default(),
        line: Vec::new(),
        spare: Vec::new(),
    }));
    let entry = |path| Entry::new(Method::GET, path, Rc::from("\"unix\""), 0, 1);
    let mut first = entry("/first");
    first.identified(HeaderValue::from_static("abc"));
    first.sent(7);
    let room = std::ptr::from_ref(&*first);
    drop(first);
    let next = entry("/next");
    assert!(
        std::ptr::eq(room, &raw const *next),
        "the room is used again"
    );
    let fresh = (next.path.as_str(), &next.id, next.bytes, next.status);
    assert_eq!(fresh, ("/next", &None, 0, super::NO_ANSWER));
}

proptest! {
    #[row(E114)]
    #[test]
    fn the_phases_add_up_whatever_the_moments(
        head in 0_u64..1 << 40, begun in 0_u64..1 << 40, answered in 0_u64..1 << 40,
        first in 0_u64..1 << 40, last in 0_u64..1 << 40,
    ) {
        let moments = Moments { head, begun, answered, first, last };
        let phases = moments.phases();
        prop_assert_eq!(phases.wait + phases.app + phases.first + phases.body, phases.whole);
        prop_assert_eq!(phases.whole, last.saturating_sub(head) / 1_000);
    }

    #[row(E74)]
    #[test]
    fn numbers_are_whole_whatever_their_size(number: u64) {
        let mut entry = Entry::new(Method::GET, "/", Rc::from("\"unix\""), 3, 1);
        entry.sent(number);
        let mut line = Vec::new();
        entry.write("2026-01-01T00:00:00.000Z", &mut line);
        let read: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
        prop_assert_eq!(read["bytes"].as_u64(), Some(number));
    }

    #[row(E74)]
    #[test]
    fn any_path_makes_a_line_of_json(path: String) {
        let mut entry = Entry::new(Method::GET, &path, Rc::from("\"192.0.2.1:80\""), 3, 1);
        entry.answered(StatusCode::NOT_FOUND);
        entry.sent(70);
        entry.identified(HeaderValue::from_static("abc"));
        let mut line = Vec::new();
        entry.write("2026-01-01T00:00:00.000Z", &mut line);
        prop_assert_eq!(line.pop(), Some(b'\n'));
        prop_assert!(!line.contains(&b'\n'));
        let read: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
        prop_assert_eq!(read["path"].as_str(), Some(path.as_str()));
        prop_assert_eq!(read["status"].as_u64(), Some(404));
        prop_assert_eq!(read["bytes"].as_u64(), Some(70));
        prop_assert_eq!(read["slot"].as_u64(), Some(3));
        prop_assert_eq!(read["id"].as_str(), Some("abc"));
    }
}
