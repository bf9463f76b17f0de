//! The host's log: JSON lines on standard error, and the access log's on standard output.
//!
//! Owns the format of a line and what happens when nobody reads: lines wait in a bounded buffer, then
//! whole lines are dropped and counted, and service goes on. Refuses to know who reads. Invariant: no
//! call here waits for a reader, and a line is written whole or not at all.

use std::sync::{Mutex, OnceLock, PoisonError};

use m0_unix::clock::wall_ms;
use m0_unix::output::{Output, Written};
use serde_json::{Map, Value};

use crate::settings::Level;

/// Bytes of lines that wait for a slow reader before lines are dropped.
const PENDING_BYTES: usize = 256 * 1024;

/// Lines on their way to one descriptor.
#[derive(Debug)]
pub(crate) struct Sink {
    /// None where the descriptor cannot be written to at all: then every line is dropped.
    out: Option<Output>,
    pending: Vec<u8>,
    /// Lines dropped since the last note of it, and since the start.
    unreported: u64,
    dropped: u64,
}

impl Sink {
    pub(crate) fn new(out: Option<Output>) -> Self {
        Sink {
            out,
            pending: Vec::new(),
            unreported: 0,
            dropped: 0,
        }
    }

    /// Takes one line (with its line feed) or drops it whole.
    pub(crate) fn push(&mut self, line: &[u8]) {
        if self.pending.len() + line.len() > PENDING_BYTES {
            self.unreported += 1;
            self.dropped += 1;
        } else {
            self.pending.extend_from_slice(line);
        }
    }

    /// Writes what the descriptor takes now.
    pub(crate) fn flush(&mut self) {
        let mut done = 0;
        while done < self.pending.len() {
            let written = match &self.out {
                Some(out) => out.try_write(&self.pending[done..]),
                None => Ok(Written::Closed),
            };
            match written {
                Ok(Written::Bytes(n)) if n > 0 => done += n,
                Ok(Written::Closed) => {
                    // Nobody will ever read: the lines are gone, and counted.
                    self.dropped += self.pending[done..]
                        .split_inclusive(|b| *b == b'\n')
                        .count() as u64;
                    done = self.pending.len();
                }
                // Full, or an error of the device: the rest waits for the next flush.
                Ok(_) | Err(_) => break,
            }
        }
        self.pending.drain(..done);
    }

    /// Bytes that wait.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Lines dropped since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Lines dropped that no line of the log has told of yet.
    fn take_unreported(&mut self) -> u64 {
        if self.pending.is_empty() {
            std::mem::take(&mut self.unreported)
        } else {
            0
        }
    }
}

struct Logger {
    level: Level,
    slot: Option<usize>,
    sink: Sink,
}

static LOGGER: OnceLock<Mutex<Logger>> = OnceLock::new();

fn with<R>(act: impl FnOnce(&mut Logger) -> R) -> R {
    let logger = LOGGER.get_or_init(|| {
        Mutex::new(Logger {
            level: Level::Info,
            slot: None,
            sink: Sink::new(Output::stderr().ok()),
        })
    });
    // A panic while formatting leaves the buffer with whole lines only.
    let mut guard = logger.lock().unwrap_or_else(PoisonError::into_inner);
    act(&mut guard)
}

/// Sets the least serious level that is written.
pub(crate) fn set_level(level: Level) {
    with(|logger| logger.level = level);
}

/// Names the worker whose lines follow.
pub(crate) fn set_slot(slot: usize) {
    with(|logger| logger.slot = Some(slot));
}

/// Writes one event. `fields` is a JSON object; its members follow the common ones.
pub(crate) fn event(level: Level, name: &str, fields: Value) {
    with(|logger| {
        if level > logger.level {
            return;
        }
        let line = format_event(level, name, logger.slot, fields);
        logger.sink.push(&line);
        logger.sink.flush();
        let lost = logger.sink.take_unreported();
        if lost > 0 {
            let note = format_event(
                Level::Warn,
                "log-dropped",
                logger.slot,
                serde_json::json!({ "lines": lost }),
            );
            logger.sink.push(&note);
            logger.sink.flush();
        }
    });
}

/// Writes what waits, as far as the reader lets it.
pub(crate) fn flush() {
    with(|logger| logger.sink.flush());
}

fn format_event(level: Level, name: &str, slot: Option<usize>, fields: Value) -> Vec<u8> {
    let mut object = Map::new();
    object.insert("time".into(), now().into());
    object.insert("level".into(), level.name().into());
    object.insert("event".into(), name.into());
    object.insert("pid".into(), std::process::id().into());
    if let Some(slot) = slot {
        object.insert("slot".into(), slot.into());
    }
    if let Value::Object(more) = fields {
        object.extend(more);
    }
    let mut line = Value::Object(object).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The time of day in UTC to the millisecond, as RFC 3339 writes it.
pub(crate) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The same text as [`now`], for many lines: the second is written anew only when it is another.
#[derive(Debug, Default)]
pub(crate) struct TimeOfDay {
    ms: i64,
    second: i64,
    text: String,
}

impl TimeOfDay {
    /// The time of day, up to one timer tick behind what [`now`] gives.
    pub(crate) fn now(&mut self) -> &str {
        self.at(wall_ms())
    }

    pub(crate) fn at(&mut self, ms: i64) -> &str {
        // The clock stands still from tick to tick.
        if ms == self.ms && !self.text.is_empty() {
            return &self.text;
        }
        self.ms = ms;
        // Towards minus infinity, as the text has it; hosts do not serve before 1970 on purpose.
        let (second, rest) = (ms.div_euclid(1_000), ms.rem_euclid(1_000) as u16);
        if second == self.second && !self.text.is_empty() {
            self.text.truncate(self.text.len() - "123Z".len());
            for place in [100, 10, 1] {
                self.text.push(char::from(b'0' + (rest / place % 10) as u8));
            }
            self.text.push('Z');
        } else {
            self.second = second;
            let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
            self.text = format!("{time:.3}");
        }
        &self.text
    }
}

/// Sends panics of any thread to the log instead of a descriptor that might block.
pub(crate) fn take_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info
            .payload_as_str()
            .unwrap_or("a panic whose payload is not text")
            .to_owned();
        let location = info.location().map(ToString::to_string);
        let thread = std::thread::current().name().map(ToOwned::to_owned);
        event(
            Level::Error,
            "panic",
            serde_json::json!({ "message": message, "location": location, "thread": thread }),
        );
    }));
}
