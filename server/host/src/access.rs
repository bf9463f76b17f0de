//! The access log: one JSON line a request, on standard output.
//!
//! Owns the format of an entry, its phases, and the buffer of a worker's loop. Refuses to know who reads. Invariant:
//! an entry is written once, when it is dropped: its answer is with the socket, or was cut, or there was
//! none. It never waits for a reader: lines beyond the buffer are dropped and counted on the page.

use std::cell::RefCell;
use std::rc::Rc;

use http::{HeaderValue, Method, StatusCode};
use m0_page::{Share, WorkerCounter};
use m0_unix::clock::monotonic_ns;
use m0_unix::output::Output;

use crate::log::{Sink, TimeOfDay};

/// Bytes that are gathered before a write; the sweep writes what is left every tick.
const GATHER_BYTES: usize = 16 * 1024;

thread_local! {
    static LOG: RefCell<Option<AccessLog>> = const { RefCell::new(None) };
}

struct AccessLog {
    sink: Sink,
    share: Share<'static>,
    told_dropped: u64,
    clock: TimeOfDay,
    /// Of the entry that is being written: its room is used again.
    line: Vec<u8>,
}

/// Opens the access log of this worker's loop.
pub(crate) fn open(share: Share<'static>) -> std::io::Result<()> {
    let sink = Sink::new(Some(Output::stdout()?));
    LOG.set(Some(AccessLog {
        sink,
        share,
        told_dropped: 0,
        clock: TimeOfDay::default(),
        line: Vec::new(),
    }));
    Ok(())
}

/// Writes what was gathered, as far as the reader lets it.
pub(crate) fn flush() {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.sink.flush();
            let dropped = log.sink.dropped();
            log.share
                .counter(WorkerCounter::LogDropped)
                .add(dropped - log.told_dropped);
            log.told_dropped = dropped;
        }
    });
}

/// Status of a request whose peer left, or was cut, before there was an answer; nginx's word for it.
const NO_ANSWER: u16 = 499;

/// The moments of one request, in nanoseconds of the monotonic clock; 0 where one did not come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moments {
    /// The last byte of the head was read.
    pub(crate) head: u64,
    /// The host took the request up: those before it on its connection were done with.
    pub(crate) begun: u64,
    /// There was an answer.
    pub(crate) answered: u64,
    /// The socket took the first byte of it.
    pub(crate) first: u64,
    /// The socket took the last byte of it, or the request was given up.
    pub(crate) last: u64,
}

/// How long the phases of a request took, in whole microseconds that add up to `whole`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phases {
    pub(crate) wait: u64,
    pub(crate) app: u64,
    pub(crate) first: u64,
    pub(crate) body: u64,
    pub(crate) whole: u64,
}

impl Moments {
    /// A phase that was not reached takes no time; one in which the request ended has the rest of it.
    pub(crate) fn phases(&self) -> Phases {
        let mut from = 0;
        let mut phase = |until: u64| {
            let reached = if until == 0 {
                self.last
            } else {
                until.min(self.last)
            };
            // Each moment is cut to microseconds, and not each difference: so they add up.
            let at = (reached.saturating_sub(self.head) / 1_000).max(from);
            at - std::mem::replace(&mut from, at)
        };
        let (wait, app, first, body) = (
            phase(self.begun),
            phase(self.answered),
            phase(self.first),
            phase(self.last),
        );
        Phases {
            wait,
            app,
            first,
            body,
            whole: from,
        }
    }
}

/// One request on its way to becoming a line.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) method: Method,
    pub(crate) path: String,
    id: Option<HeaderValue>,
    status: u16,
    bytes: u64,
    pub(crate) moments: Moments,
    peer: Rc<str>,
    slot: usize,
}

impl Entry {
    /// A request that the host takes up now; its head was whole at `head_ns`.
    pub(crate) fn new(
        method: Method,
        path: String,
        peer: Rc<str>,
        slot: usize,
        head_ns: u64,
    ) -> Self {
        Entry {
            method,
            path,
            id: None,
            status: NO_ANSWER,
            bytes: 0,
            moments: Moments {
                head: head_ns,
                begun: monotonic_ns(),
                ..Moments::default()
            },
            peer,
            slot,
        }
    }

    /// The request has this id.
    pub(crate) fn identified(&mut self, id: HeaderValue) {
        self.id = Some(id);
    }

    /// There is an answer.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = status.as_u16();
        self.moments.answered = monotonic_ns();
    }

    /// So many bytes more of the answer's body went out.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Appends the line, its line feed included.
    fn write(&self, time: &str, line: &mut Vec<u8>) {
        let number = |line: &mut Vec<u8>, name: &str, value| {
            line.extend_from_slice(name.as_bytes());
            digits(line, value);
        };
        let text = |line: &mut Vec<u8>, name: &str, value: &str| {
            line.extend_from_slice(name.as_bytes());
            // A vector takes every write.
            let _ = serde_json::to_writer(line, value);
        };
        let phases = self.moments.phases();
        line.extend_from_slice(b"{\"time\":\"");
        line.extend_from_slice(time.as_bytes());
        // A token holds nothing that JSON writes in another way (RFC 9110, 5.6.2).
        line.extend_from_slice(b"\",\"method\":\"");
        line.extend_from_slice(self.method.as_str().as_bytes());
        text(line, "\",\"path\":", &self.path);
        number(line, ",\"status\":", u64::from(self.status));
        number(line, ",\"bytes\":", self.bytes);
        number(line, ",\"us\":", phases.whole);
        number(line, ",\"wait_us\":", phases.wait);
        number(line, ",\"app_us\":", phases.app);
        number(line, ",\"first_us\":", phases.first);
        number(line, ",\"body_us\":", phases.body);
        text(line, ",\"peer\":", &self.peer);
        number(line, ",\"slot\":", self.slot as u64);
        if let Some(Ok(id)) = self.id.as_ref().map(HeaderValue::to_str) {
            text(line, ",\"id\":", id);
        }
        line.extend_from_slice(b"}\n");
    }
}

/// Appends a number in decimal; the formatter of the library costs three times as much.
fn digits(line: &mut Vec<u8>, mut number: u64) {
    let mut text = [0; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&text[at..]);
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.moments.last == 0 {
            self.moments.last = monotonic_ns();
        }
        LOG.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.line.clear();
                self.write(log.clock.now(), &mut log.line);
                log.sink.push(&log.line);
                if log.sink.pending_bytes() >= GATHER_BYTES {
                    log.sink.flush();
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    use std::rc::Rc;

    use http::{HeaderValue, Method, StatusCode};
    use m0_spec::row;
    use proptest::prelude::*;

    use super::{AccessLog, Entry, GATHER_BYTES, LOG, Moments, Phases, digits};
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
        }));
        let mut file = std::fs::File::from(reader);
        let mut written = || {
            let mut bytes = vec![0; 2 * GATHER_BYTES];
            // Nothing to read is an error of a pipe that does not wait.
            file.read(&mut bytes).unwrap_or(0)
        };
        let one = || {
            drop(Entry::new(
                Method::GET,
                "/".to_owned(),
                Rc::from("unix"),
                0,
                1,
            ));
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
        fn numbers_are_written_as_the_library_writes_them(number: u64) {
            let mut line = Vec::new();
            digits(&mut line, number);
            prop_assert_eq!(line, number.to_string().into_bytes());
        }

        #[row(E74)]
        #[test]
        fn any_path_makes_a_line_of_json(path: String) {
            let mut entry = Entry::new(Method::GET, path.clone(), Rc::from("192.0.2.1:80"), 3, 1);
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
}
