//! Reads a journal's text and plays it again: a field report becomes a policy test.
//!
//! Owns the parser. Trusts nothing in the text: a bad line is an error that names it, never a
//! panic. Invariant: a text that a `Journal` wrote replays to the state that the journal's
//! supervisor was in.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::config::Config;
use crate::drain::{Stop, Verdict};
use crate::event::Event;
use crate::invariants;
use crate::journal::TITLE;
use crate::respawn::Row;
use crate::slot::{Phase, Slot, Worker};
use crate::state::{Course, State};
use crate::step;

/// Steps through a journal's events from its first state, compares the actions of each with those
/// that the text records, and returns the last state.
///
/// # Errors
///
/// A line that cannot be read, an event that cannot happen in its place, or actions that this
/// policy would not have taken; each with the line's number, counted from 1.
pub fn replay(text: &str) -> Result<State, ParseError> {
    let mut lines = Lines {
        rest: text.lines(),
        number: 0,
        peeked: None,
    };
    if lines.next() != Some(TITLE) {
        return Err(lines.error("not a supervisor journal of this version"));
    }
    let config = lines.tagged("config", config)?;
    lines.tagged("dropped", |fields| fields.take::<u64>("entries"))?;
    let mut state = lines.tagged("state", |fields| host(fields, config))?;
    for number in 0..config.workers() {
        let slot = lines.tagged("slot", |fields| slot(fields, number))?;
        state.slots.push(slot);
    }
    invariants::holds(&state).map_err(|sentence| lines.error(sentence))?;
    while lines.peek().is_some() {
        let event = lines.tagged("event", event)?;
        state
            .lawful(event)
            .map_err(|unlawful| lines.error(unlawful))?;
        for action in step(&mut state, event) {
            let expected = format!("action {action}");
            if lines.next() != Some(expected.as_str()) {
                return Err(lines.error(format_args!("this policy says: {expected}")));
            }
        }
        if lines.peek().is_some_and(|line| line.starts_with("action ")) {
            lines.next();
            return Err(lines.error("this policy takes no such action here"));
        }
    }
    Ok(state)
}

/// Why a journal's text does not replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    line: usize,
    message: String,
}

impl ParseError {
    /// The line, counted from 1; one past the last where the text ends too early.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "journal line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// The text's lines and the number of the one read last.
struct Lines<'a> {
    rest: std::str::Lines<'a>,
    number: usize,
    peeked: Option<&'a str>,
}

impl<'a> Lines<'a> {
    fn peek(&mut self) -> Option<&'a str> {
        if self.peeked.is_none() {
            self.peeked = self.rest.next();
        }
        self.peeked
    }

    fn next(&mut self) -> Option<&'a str> {
        self.number += 1;
        self.peeked.take().or_else(|| self.rest.next())
    }

    fn error(&self, message: impl fmt::Display) -> ParseError {
        ParseError {
            line: self.number,
            message: message.to_string(),
        }
    }

    /// The next line, which begins with this word, read by `parse` to its end.
    fn tagged<T>(
        &mut self,
        tag: &str,
        parse: impl FnOnce(&mut Fields<'a>) -> Result<T, String>,
    ) -> Result<T, ParseError> {
        let line = self.next().unwrap_or("");
        let Some(rest) = line
            .strip_prefix(tag)
            .and_then(|rest| rest.strip_prefix(' '))
        else {
            return Err(self.error(format_args!("expected a line `{tag} …`")));
        };
        let mut fields = Fields {
            rest: rest.split(' '),
        };
        parse(&mut fields)
            .and_then(|value| match fields.rest.next() {
                None => Ok(value),
                Some(word) => Err(format!("unexpected `{word}`")),
            })
            .map_err(|message| self.error(message))
    }
}

/// The words of one line, `key=value` in a fixed order.
struct Fields<'a> {
    rest: std::str::Split<'a, char>,
}

impl<'a> Fields<'a> {
    fn word(&mut self) -> Result<&'a str, String> {
        self.rest
            .next()
            .ok_or_else(|| "the line ends too early".to_owned())
    }

    fn text(&mut self, key: &str) -> Result<&'a str, String> {
        self.word()?
            .strip_prefix(key)
            .and_then(|rest| rest.strip_prefix('='))
            .ok_or_else(|| format!("expected `{key}=…`"))
    }

    fn take<T: FromStr>(&mut self, key: &str) -> Result<T, String> {
        let text = self.text(key)?;
        text.parse().map_err(|_| format!("`{text}` is no {key}"))
    }

    fn optional(&mut self, key: &str) -> Result<Option<u64>, String> {
        match self.text(key)? {
            "-" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| format!("`{text}` is no {key}")),
        }
    }

    fn flag(&mut self, key: &str) -> Result<bool, String> {
        match self.text(key)? {
            "0" => Ok(false),
            "1" => Ok(true),
            text => Err(format!("`{text}` is no {key}: 0 or 1")),
        }
    }

    fn millis(&mut self, key: &str) -> Result<Duration, String> {
        self.take(key).map(Duration::from_millis)
    }
}

fn config(fields: &mut Fields<'_>) -> Result<Config, String> {
    let refused = |error: crate::ConfigError| error.to_string();
    let config = Config::new(fields.take("workers")?).map_err(refused)?;
    let config = config
        .with_drain(fields.millis("drain")?)
        .map_err(refused)?;
    let config = config
        .with_kill_margin(fields.millis("kill_margin")?)
        .map_err(refused)?;
    let (first, max) = (fields.millis("backoff")?, fields.millis("backoff_max")?);
    let config = config.with_backoff(first, max).map_err(refused)?;
    let config = config
        .with_healthy(fields.millis("healthy")?)
        .map_err(refused)?;
    config
        .with_crash_limit(fields.take("crash_limit")?)
        .map_err(refused)
}

/// The host's line; its slots follow on lines of their own.
fn host(fields: &mut Fields<'_>, config: Config) -> Result<State, String> {
    let course = match fields.text("course")? {
        "new" => Course::New,
        "running" => Course::Running,
        "stopping" => Course::Stopping(Stop {
            kill_at_ms: fields.take("kill_at")?,
            requested: fields.flag("requested")?,
            killing: fields.flag("killing")?,
            verdict: verdict(fields.text("verdict")?)?,
        }),
        "gone" => Course::Gone {
            code: fields.take("code")?,
        },
        other => return Err(format!("`{other}` is no course")),
    };
    Ok(State {
        config,
        slots: Vec::with_capacity(config.workers()),
        course,
        now_ms: fields.take("now")?,
        announced: fields.flag("announced")?,
        standing_in: fields.flag("standing_in")?,
    })
}

fn verdict(text: &str) -> Result<Verdict, String> {
    use Verdict::{Clean, CrashLoop, OsRefused, Refused, Unclean};
    [Clean, Unclean, OsRefused, CrashLoop, Refused]
        .into_iter()
        .find(|verdict| verdict.to_string() == text)
        .ok_or_else(|| format!("`{text}` is no verdict"))
}

fn slot(fields: &mut Fields<'_>, number: usize) -> Result<Slot, String> {
    if fields.take::<usize>("number")? != number {
        return Err(format!("expected slot {number}"));
    }
    let phase = match fields.text("phase")? {
        "vacant" => Phase::Vacant {
            respawn_at_ms: fields.optional("respawn_at")?,
        },
        "forking" => Phase::Forking,
        "starting" => Phase::Starting(worker(fields)?),
        "serving" => Phase::Serving(worker(fields)?),
        "draining" => Phase::Draining(worker(fields)?),
        other => return Err(format!("`{other}` is no phase")),
    };
    let row = Row {
        deaths: fields.take("deaths")?,
        since_ms: fields.take("since")?,
    };
    Ok(Slot { phase, row })
}

fn worker(fields: &mut Fields<'_>) -> Result<Worker, String> {
    Ok(Worker {
        pid: fields.take("pid")?,
        forked_ms: fields.take("forked")?,
        ready_ms: fields.optional("ready")?,
        stopped: fields.flag("stopped")?,
        killed: fields.flag("killed")?,
    })
}

fn event(fields: &mut Fields<'_>) -> Result<Event, String> {
    Ok(match fields.word()? {
        "start" => Event::Start {
            now_ms: fields.take("now")?,
        },
        "forked" => Event::Forked {
            slot: fields.take("slot")?,
            pid: fields.take("pid")?,
            now_ms: fields.take("now")?,
        },
        "fork-failed" => Event::ForkFailed {
            slot: fields.take("slot")?,
            errno: fields.take("errno")?,
            now_ms: fields.take("now")?,
        },
        "ready" => Event::Ready {
            pid: fields.take("pid")?,
            now_ms: fields.take("now")?,
        },
        "exited" => Event::Exited {
            pid: fields.take("pid")?,
            code: fields.take("code")?,
            now_ms: fields.take("now")?,
        },
        "signaled" => Event::Signaled {
            pid: fields.take("pid")?,
            signal: fields.take("signal")?,
            now_ms: fields.take("now")?,
        },
        "stopped" => Event::Stopped {
            pid: fields.take("pid")?,
            now_ms: fields.take("now")?,
        },
        "continued" => Event::Continued {
            pid: fields.take("pid")?,
            now_ms: fields.take("now")?,
        },
        "stop-requested" => Event::StopRequested {
            signal: fields.take("signal")?,
            now_ms: fields.take("now")?,
        },
        "tick" => Event::Tick {
            now_ms: fields.take("now")?,
        },
        "journal-requested" => Event::JournalRequested,
        other => return Err(format!("`{other}` is no event")),
    })
}
