//! The Test Anything Protocol, versions 12 to 14.
//!
//! Owns: `ok` and `not ok` lines, their directives, the plans, and what is indented. A part of a test is a result of
//! its own, beside the test's own line, which comes after its parts. Refuses what stands in a block between `---` and
//! `...`, but for the failure's text. Invariant: a stream with fewer tests than planned, or that bailed out, is
//! unreadable: what is missing must not look like what passed.

use std::path::Path;

use super::{Held, Outcome, Verdict};
use crate::finding::{At, Finding};

/// One level of indentation: what it has told, what it planned and where.
struct Level {
    indent: usize,
    told: usize,
    planned: Option<(usize, usize)>,
}

impl Level {
    fn at(indent: usize) -> Self {
        Self {
            indent,
            told: 0,
            planned: None,
        }
    }

    fn whole(&self) -> Result<(), (usize, String)> {
        match self.planned {
            Some((planned, line)) if planned != self.told => {
                let told = self.told;
                let message = format!("{planned} tests are planned and {told} are told");
                Err((line, message))
            }
            _ => Ok(()),
        }
    }
}

/// Reads one stream.
pub(super) fn read(path: &Path, text: &str) -> Result<Held, Finding> {
    let mut held = Held::default();
    let mut levels = vec![Level::at(0)];
    // The indentation of a block that is open.
    let mut block: Option<usize> = None;
    let fault = |(line, message): (usize, String)| Finding {
        at: At::line(path, line),
        message,
    };
    for (index, line) in text.lines().enumerate() {
        let rest = line.trim_start();
        let indent = line.len() - rest.len();
        if let Some(own) = block {
            if rest == "..." && indent == own {
                block = None;
            } else if let Some(why) = rest.strip_prefix("error: ").filter(|_| indent == own) {
                let last = held.outcomes.last_mut();
                if let Some(last) = last.filter(|last| last.verdict == Verdict::Failed) {
                    last.message = Some(why.trim_matches(['\'', '"']).to_owned());
                }
            }
            continue;
        }
        if let Some(why) = rest.strip_prefix("Bail out!") {
            return Err(fault((index + 1, format!("the run bailed out:{why}"))));
        }
        if rest == "---" {
            block = Some(indent);
            continue;
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
        let plan = rest.strip_prefix("1..");
        let told = [("ok ", true), ("not ok ", false)]
            .into_iter()
            .find_map(|(mark, passed)| Some((passed, rest.strip_prefix(mark)?)));
        if plan.is_none() && told.is_none() {
            continue;
        }
        while levels.len() > 1 && levels.last().is_some_and(|level| level.indent > indent) {
            let done = levels.pop().expect("there are two");
            done.whole().map_err(fault)?;
        }
        if levels.last().is_some_and(|level| level.indent < indent) {
            levels.push(Level::at(indent));
        }
        let level = levels.last_mut().expect("the first is never taken");
        if let Some(count) = plan {
            let count = count.split_whitespace().next().unwrap_or_default();
            level.planned = count.parse().ok().map(|count| (count, index + 1));
        }
        if let Some((passed, rest)) = told {
            level.told += 1;
            held.outcomes.push(outcome(passed, rest));
        }
    }
    if levels[0].planned.is_none() {
        let message = "neither JSON, JUnit nor TAP with a plan".into();
        return Err(fault((1, message)));
    }
    for level in levels {
        level.whole().map_err(fault)?;
    }
    Ok(held)
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
        place: None,
        line: 0,
        file: 0,
    }
}
