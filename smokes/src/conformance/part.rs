//! What came of a part of the tier: its cases by group, or why it did not run.
//!
//! Owns the words and the JSON. Refuses to run anything. Invariant: a part that did not run is never a pass,
//! and one that ran fewer cases than it has, has failed.

use std::collections::BTreeMap;

use serde::Serialize;

/// A case that came out otherwise.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// The group it stands in.
    pub group: String,
    /// Its name.
    pub case: String,
    /// The document and section that decide.
    pub section: String,
    /// What must come.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// How many cases of a group passed and failed.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Count {
    /// Came out as they must.
    pub passed: usize,
    /// Did not.
    pub failed: usize,
}

/// What came of a part.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Its name.
    pub part: &'static str,
    /// How many cases it has, at least: fewer means that some were lost on the way.
    pub least: usize,
    /// Why it did not run, where it did not.
    pub not_run: Option<String>,
    /// Counts by group.
    pub groups: BTreeMap<String, Count>,
    /// Every case that failed.
    pub failures: Vec<Failure>,
}

impl Part {
    /// A part that is about to run so many cases, or more.
    pub fn new(part: &'static str, least: usize) -> Self {
        Self {
            part,
            least,
            not_run: None,
            groups: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// A part that cannot run, and what would let it.
    pub fn not_run(part: &'static str, why: String) -> Self {
        Self {
            not_run: Some(why),
            ..Self::new(part, 0)
        }
    }

    /// One more case of a group that passed.
    pub fn passed(&mut self, group: &str) {
        self.groups.entry(group.to_owned()).or_default().passed += 1;
    }

    /// One more case that failed.
    pub fn failed(&mut self, failure: Failure) {
        let count = self.groups.entry(failure.group.clone()).or_default();
        count.failed += 1;
        self.failures.push(failure);
    }

    /// One more case whose own error says what came.
    pub fn judge(&mut self, group: &str, case: &str, section: &str, outcome: anyhow::Result<()>) {
        match outcome {
            Ok(()) => self.passed(group),
            Err(error) => self.failed(Failure {
                group: group.to_owned(),
                case: case.to_owned(),
                section: section.to_owned(),
                expected: case.to_owned(),
                got: format!("{error:#}"),
            }),
        }
    }

    /// Cases that passed and failed.
    pub fn count(&self) -> Count {
        self.groups
            .values()
            .fold(Count::default(), |sum, one| Count {
                passed: sum.passed + one.passed,
                failed: sum.failed + one.failed,
            })
    }

    /// Whether it ran, and all of it came out as it must.
    pub fn is_green(&self) -> bool {
        let count = self.count();
        self.not_run.is_none() && count.failed == 0 && count.passed >= self.least.max(1)
    }

    /// The part for people.
    pub fn text(&self) -> String {
        use std::fmt::Write as _;
        // A String takes every write.
        let mut text = format!("{}\n", self.part);
        if let Some(why) = &self.not_run {
            let _ = writeln!(text, "  not run: {why}");
        }
        let count = self.count();
        let ran = count.passed + count.failed;
        if self.not_run.is_none() && ran < self.least {
            let _ = writeln!(text, "  {ran} cases of at least {}", self.least);
        }
        for (group, count) in &self.groups {
            let _ = writeln!(
                text,
                "  {group:<24} {:>4} passed {:>4} failed",
                count.passed, count.failed
            );
        }
        for failure in &self.failures {
            let _ = writeln!(
                text,
                "failed: {} / {} ({})\n  expected {}\n  got      {}",
                failure.group, failure.case, failure.section, failure.expected, failure.got
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Part};

    #[m0_spec::row(H55)]
    #[test]
    fn only_a_part_that_ran_and_failed_nothing_is_green() {
        assert!(!Part::not_run("ws", "no tool".into()).is_green());
        let mut half = Part::not_run("sse", "no node".into());
        half.passed("curl");
        assert!(!half.is_green(), "of its clients one is missing");
        for least in [0, 1, 2] {
            let part = Part::new("table", least);
            assert!(!part.is_green(), "it ran no case");
        }
        let mut part = Part::new("table", 2);
        part.passed("host");
        assert!(!part.is_green(), "it ran one of two cases");
        assert!(part.text().contains("1 cases of at least 2"));
        part.passed("host");
        assert!(part.is_green() && !part.text().contains("at least"));
        part.failed(Failure {
            group: "host".into(),
            case: "two".into(),
            section: "RFC 9112 3.2".into(),
            expected: "[400 length] and close".into(),
            got: "status 200".into(),
        });
        assert!(!part.is_green());
        let text = part.text();
        assert!(text.contains("2 passed    1 failed"), "{text}");
        for word in ["host / two (RFC 9112 3.2)", "[400 length]", "status 200"] {
            assert!(text.contains(word), "{text}");
        }
        assert!(
            Part::not_run("ws", "no tool".into())
                .text()
                .contains("not run: no tool")
        );
    }
}
