//! The Test Anything Protocol, versions 12 to 14.
//!
//! Owns: `ok` and `not ok` lines, their directives, the plan. Lines that are indented belong to a subtest,
//! whose own line counts. Invariant: a stream with fewer tests than planned, or that bailed out, is
//! unreadable: what is missing must not look like what passed.

use std::path::Path;

use super::{Held, Outcome, Verdict};
use crate::finding::{At, Finding};

/// Reads one stream.
pub(super) fn read(path: &Path, text: &str) -> Result<Held, Finding> {
    let mut held = Held::default();
    let mut planned = None;
    let fault = |line: usize, message: String| Finding {
        at: At::line(path, line),
        message,
    };
    for (index, line) in text.lines().enumerate() {
        if let Some(why) = line.strip_prefix("Bail out!") {
            return Err(fault(index + 1, format!("the run bailed out:{why}")));
        }
        if let Some(count) = line.strip_prefix("1..") {
            let count = count.split_whitespace().next().unwrap_or_default();
            planned = count.parse::<usize>().ok().map(|count| (count, index + 1));
        }
        // `# tree: HASH` says which tree it is of.
        if let Some((key, value)) = line
            .strip_prefix("# ")
            .and_then(|rest| rest.split_once(": "))
        {
            match key {
                "tree" => held.provenance.tree = Some(value.trim().to_owned()),
                "commit" => held.provenance.commit = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let (passed, rest) = if let Some(rest) = line.strip_prefix("ok ") {
            (true, rest)
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            (false, rest)
        } else {
            continue;
        };
        held.outcomes.push(outcome(passed, rest));
    }
    match planned {
        None => Err(fault(1, "neither JSON, JUnit nor TAP with a plan".into())),
        Some((planned, line)) if planned != held.outcomes.len() => {
            let told = held.outcomes.len();
            Err(fault(
                line,
                format!("{planned} tests are planned and {told} are told"),
            ))
        }
        Some(_) => Ok(held),
    }
}

fn outcome(passed: bool, rest: &str) -> Outcome {
    let (text, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit()).trim();
    let text = text.strip_prefix('-').unwrap_or(text).trim();
    let directive = directive.to_ascii_uppercase();
    let skipped = ["SKIP", concat!("TO", "DO")]
        .iter()
        .any(|word| directive.starts_with(word));
    let verdict = match (skipped, passed) {
        (true, _) => Verdict::Skipped,
        (false, true) => Verdict::Passed,
        (false, false) => Verdict::Failed,
    };
    Outcome {
        suite: String::new(),
        test: text.to_owned(),
        verdict,
        seconds: None,
        message: None,
        kind: None,
        rows: Vec::new(),
        file: 0,
    }
}
