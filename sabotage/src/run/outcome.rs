//! What a gate's processes came to, and what that says of one check.
//!
//! Owns the meaning of an exit beside the results. Pure but for reading what was printed.
//! Invariant: a check is red only when it is reported failed and the exit code says failed.

use std::time::Duration;

use super::process::Ended;
use crate::results::{Checks, Status};

/// What an exit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// In the gate's `pass` class.
    Pass,
    /// In its `fail` class.
    Fail,
    /// In its `empty` class.
    Empty,
    /// In none.
    Unknown(i32),
    /// A death nobody asked for.
    Signal(i32),
    /// Our deadline.
    TimedOut,
    /// No word from the jail, or results that cannot be read.
    Lost(String),
}

/// One process of a gate's run.
#[derive(Debug, Clone)]
pub struct One {
    /// The checks it was asked for; none means all.
    pub covers: Vec<String>,
    /// How it ended.
    pub class: Class,
    /// What it reported.
    pub checks: Checks,
    /// Its process, time and leaks.
    pub ended: Ended,
}

/// A gate's run.
#[derive(Debug, Clone, Default)]
pub struct Ran {
    /// Its processes.
    pub all: Vec<One>,
}

/// What became of one check in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Green.
    Passed,
    /// Red, with the message.
    Failed(String),
    /// Reported as not run.
    Skipped,
    /// The process died by a signal.
    Crashed(i32),
    /// The deadline passed.
    TimedOut,
    /// Nothing can be concluded, and why.
    Infra(String),
}

impl Ran {
    /// Everything reported, by name.
    pub fn checks(&self) -> Checks {
        self.all.iter().flat_map(|one| one.checks.clone()).collect()
    }

    /// Time spent waiting, and on the processor.
    pub fn times(&self) -> (Duration, Duration) {
        (
            self.all.iter().map(|one| one.ended.wall).sum(),
            self.all.iter().map(|one| one.ended.cpu).sum(),
        )
    }

    /// Everything printed.
    pub fn text(&self) -> String {
        let texts = self
            .all
            .iter()
            .map(|one| format!("{}\n{}", one.ended.stdout(), one.ended.stderr()));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// What became of a check.
    pub fn outcome(&self, check: &str) -> Outcome {
        let covering =
            |one: &&One| one.covers.is_empty() || one.covers.iter().any(|covered| covered == check);
        let Some(one) = self
            .all
            .iter()
            .filter(covering)
            .max_by_key(|one| one.checks.contains_key(check))
        else {
            return Outcome::Infra("the check was not run".into());
        };
        match (&one.class, one.checks.get(check)) {
            (Class::TimedOut, _) => Outcome::TimedOut,
            (Class::Signal(signal), _) => Outcome::Crashed(*signal),
            (Class::Lost(why), _) => Outcome::Infra(why.clone()),
            (Class::Unknown(code), _) => Outcome::Infra(format!(
                "the gate exited with {code}, which it does not declare{}",
                tail(&one.ended)
            )),
            (Class::Empty, _) => Outcome::Infra("the gate ran no check".into()),
            (Class::Pass | Class::Fail, Some(Status::Passed)) => Outcome::Passed,
            (_, Some(Status::Skipped)) => Outcome::Skipped,
            (Class::Fail, Some(Status::Failed(message))) => environment(message, &one.ended),
            (Class::Pass, Some(Status::Failed(_))) => Outcome::Infra(
                "the check is reported failed, and the gate's exit code says passed".into(),
            ),
            (_, None) => Outcome::Infra(format!(
                "the check is not among the results{}",
                tail(&one.ended)
            )),
        }
    }
}

/// A failure whose reason is the machine, not the rule.
fn environment(message: &str, ended: &Ended) -> Outcome {
    let words = [
        "Address already in use",
        "AddrInUse",
        "No space left on device",
        "Too many open files in system",
    ];
    let blamed = words.iter().find(|word| message.contains(*word));
    match blamed {
        Some(word) => Outcome::Infra(format!("the machine is to blame: {word}")),
        None if message.is_empty() => Outcome::Failed(last_lines(&format!(
            "{}\n{}",
            ended.stdout(),
            ended.stderr()
        ))),
        None => Outcome::Failed(message.to_owned()),
    }
}

pub(super) fn tail(ended: &Ended) -> String {
    let text = last_lines(&ended.stderr());
    if text.is_empty() {
        String::new()
    } else {
        format!("; it said: {text}")
    }
}

/// The last few lines that say something.
pub fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}
