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
    /// Rooms of entries that became lines, for the next ones.
    #[expect(
        clippy::vec_box,
        reason = "they come in boxes, and move without a copy"
    )]
    spare: Vec<Box<Facts>>,
}

/// The most rooms that wait for a next request.
const SPARE: usize = 64;
/// The longest path whose room waits with it.
const SPARE_BYTES: usize = 256;

/// Opens the access log of this worker's loop.
pub(crate) fn open(share: Share<'static>) -> std::io::Result<()> {
    let sink = Sink::new(Some(Output::stdout()?));
    LOG.set(Some(AccessLog {
        sink,
        share,
        told_dropped: 0,
        clock: TimeOfDay::default(),
        line: Vec::new(),
        spare: Vec::new(),
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
pub(crate) struct Entry(Option<Box<Facts>>);

/// What is known of a request so far.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) method: Method,
    pub(crate) path: String,
    id: Option<HeaderValue>,
    status: u16,
    bytes: u64,
    pub(crate) moments: Moments,
    /// As JSON writes it: its connection's requests share it.
    peer_json: Rc<str>,
    slot: usize,
}

impl Entry {
    /// A request that the host takes up now; its head was whole at `head_ns`.
    pub(crate) fn new(
        method: Method,
        path: &str,
        peer_json: Rc<str>,
        slot: usize,
        head_ns: u64,
    ) -> Self {
        let spare = LOG.with_borrow_mut(|log| log.as_mut().and_then(|log| log.spare.pop()));
        let moments = Moments {
            head: head_ns,
            begun: monotonic_ns(),
            ..Moments::default()
        };
        let facts = |path| Facts {
            method,
            path,
            id: None,
            status: NO_ANSWER,
            bytes: 0,
            moments,
            peer_json,
            slot,
        };
        Entry(Some(match spare {
            Some(mut room) => {
                let mut text = std::mem::take(&mut room.path);
                text.clear();
                text.push_str(path);
                *room = facts(text);
                room
            }
            None => Box::new(facts(path.to_owned())),
        }))
    }
}

impl std::ops::Deref for Entry {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        self.0.as_ref().expect("it is taken when it is dropped")
    }
}

impl std::ops::DerefMut for Entry {
    fn deref_mut(&mut self) -> &mut Facts {
        self.0.as_mut().expect("it is taken when it is dropped")
    }
}

impl Facts {
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
            line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
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
        line.extend_from_slice(b",\"peer\":");
        line.extend_from_slice(self.peer_json.as_bytes());
        number(line, ",\"slot\":", self.slot as u64);
        if let Some(Ok(id)) = self.id.as_ref().map(HeaderValue::to_str) {
            text(line, ",\"id\":", id);
        }
        line.extend_from_slice(b"}\n");
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(mut facts) = self.0.take() else {
            return;
        };
        if facts.moments.last == 0 {
            facts.moments.last = monotonic_ns();
        }
        LOG.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.line.clear();
                facts.write(log.clock.now(), &mut log.line);
                log.sink.push(&log.line);
                if log.sink.pending_bytes() >= GATHER_BYTES {
                    log.sink.flush();
                }
                if log.spare.len() < SPARE && facts.path.capacity() <= SPARE_BYTES {
                    // It may be a part of what was read of its connection.
                    facts.id = None;
                    log.spare.push(facts);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
