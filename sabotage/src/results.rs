//! What a gate reported: checks by name, each passed, failed or skipped, with the failure's message.
//!
//! Owns the formats. Refuses to trust an exit code: that is judged beside it.
//! Invariant: a check that is reported twice and failed once has failed.

mod junit;
mod libtest;
mod lines;
mod tap;

use std::collections::BTreeMap;

use crate::schema::gate::{Format, Gate};

/// What was reported of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It passed.
    Passed,
    /// It failed, with its message.
    Failed(String),
    /// It did not run.
    Skipped,
}

/// Checks by name.
pub type Checks = BTreeMap<String, Status>;

/// The name of the one check that an `exit` gate has.
pub const EXIT: &str = "exit";

/// Reads results in the gate's format; the error says why they cannot be read.
pub fn read(gate: &Gate, text: &str) -> Result<Checks, String> {
    match gate.results {
        Format::Libtest => Ok(libtest::read(text)),
        Format::Junit => junit::read(text, false),
        Format::Nextest => junit::read(text, true),
        Format::Tap => tap::read(text),
        Format::JsonLines => lines::json(text, &gate.fields),
        Format::Regex => {
            let patterns = gate.pattern.as_ref().ok_or("the gate has no `pattern`")?;
            lines::pattern(text, patterns)
        }
        Format::Exit => Ok(Checks::new()),
    }
}

/// Adds one report.
fn add(checks: &mut Checks, name: &str, status: Status) {
    let worst = match (checks.remove(name), status) {
        (Some(Status::Failed(message)), _) | (_, Status::Failed(message)) => {
            Status::Failed(message)
        }
        (Some(Status::Passed), _) | (_, Status::Passed) => Status::Passed,
        _ => Status::Skipped,
    };
    checks.insert(name.to_owned(), worst);
}

/// The one check of `checks` that a name means: its whole name, or its end behind `::`, `$` or a blank.
pub fn resolve<'a>(
    names: impl Iterator<Item = &'a str>,
    wanted: &str,
) -> Result<&'a str, Vec<&'a str>> {
    let mut ends = Vec::new();
    for name in names {
        if name == wanted {
            return Ok(name);
        }
        let rest = name.strip_suffix(wanted);
        if rest
            .is_some_and(|rest| rest.ends_with("::") || rest.ends_with('$') || rest.ends_with(' '))
        {
            ends.push(name);
        }
    }
    match ends[..] {
        [one] => Ok(one),
        _ => Err(ends),
    }
}
