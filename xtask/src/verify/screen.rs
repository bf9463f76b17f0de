//! The one screen at the end of `verify`: rows by grade, what falls short, where the report lies.
//!
//! Pure. Owns the words and how much fits. Refuses to judge again: grades and findings are those of `trace check
//! --json`. Invariant: it fits a terminal of 24 lines, and what does not fit is counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::screen;

/// Findings that are shown in full.
const SHOWN: usize = 8;
/// The best grade first.
const GRADES: [&str; 6] = ["proven", "passed", "ran", "declared", "none", "hollow"];

/// What `trace check --json` says.
#[derive(Debug, Deserialize)]
pub(super) struct Judgement {
    exit: u8,
    /// Active rows by grade.
    grades: BTreeMap<String, usize>,
    /// Rows that are left open because results are missing.
    #[serde(default)]
    open: usize,
    findings: Vec<Found>,
}

#[derive(Debug, Deserialize)]
struct Found {
    code: String,
    severity: String,
    file: String,
    line: u64,
    column: u64,
    message: String,
}

impl Judgement {
    /// Reads it; an error when it says nothing of any row.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let judgement: Self = serde_json::from_str(text).context("no JSON of trace check")?;
        let rows: usize = judgement.grades.values().sum();
        anyhow::ensure!(rows > 0, "no row was judged");
        Ok(judgement)
    }

    fn rows(&self) -> usize {
        self.grades.values().sum()
    }

    fn verdict(&self) -> &'static str {
        match self.exit {
            0 => "kept",
            3 => "inconclusive: results are missing or of another tree",
            2 => "the input cannot be read",
            _ => "falls short",
        }
    }

    /// Grades that have a row, the best first; one that is not known here comes last.
    fn graded(&self) -> Vec<(&str, usize)> {
        let rank = |word: &str| {
            GRADES
                .iter()
                .position(|grade| *grade == word)
                .unwrap_or(GRADES.len())
        };
        let mut graded: Vec<(&str, usize)> = self
            .grades
            .iter()
            .map(|(word, count)| (word.as_str(), *count))
            .filter(|(_, count)| *count > 0)
            .collect();
        graded.sort_by_key(|(word, _)| rank(word));
        graded
    }

    /// How many findings there are of each code, the worst and then the most frequent first.
    fn codes(&self) -> Vec<(&str, &str, usize)> {
        let mut codes: Vec<(&str, &str, usize)> = Vec::new();
        for found in &self.findings {
            match codes.iter_mut().find(|(_, code, _)| *code == found.code) {
                Some(entry) => entry.2 += 1,
                None => codes.push((&found.severity, &found.code, 1)),
            }
        }
        let rank = |severity: &str| {
            ["unreadable", "error", "inconclusive"]
                .iter()
                .position(|word| *word == severity)
        };
        codes.sort_by_key(|(severity, _, count)| {
            (rank(severity).unwrap_or(9), std::cmp::Reverse(*count))
        });
        codes
    }

    /// For a terminal.
    pub(super) fn screen(&self, floor: &str, report: &Path) -> String {
        let mut out = String::new();
        let rows = self.rows();
        let _ = writeln!(out, "\n{rows} active rows by grade, floor {floor}");
        for (grade, count) in self.graded() {
            let bar = "#".repeat((count * 40).div_ceil(rows));
            let _ = writeln!(out, "  {grade:<9} {count:>4}  {bar}");
        }
        if self.open > 0 {
            let _ = writeln!(
                out,
                "  {} of them wait for results that are missing",
                self.open
            );
        }
        if !self.findings.is_empty() {
            let codes = self
                .codes()
                .into_iter()
                .map(|(_, code, count)| format!("{code} {count}"));
            let codes: Vec<String> = codes.take(5).collect();
            let _ = writeln!(out, "what falls short: {}", codes.join(", "));
            for found in self.findings.iter().take(SHOWN) {
                let Found {
                    file,
                    line,
                    column,
                    code,
                    message,
                    ..
                } = found;
                let whole = format!("{file}:{line}:{column}: {code}: {message}");
                let _ = writeln!(out, "  {}", cut(&whole, 150));
            }
            if let Some(more) = self
                .findings
                .len()
                .checked_sub(SHOWN)
                .filter(|more| *more > 0)
            {
                let _ = writeln!(out, "  and {more} more: cargo xtask trace --floor {floor}");
            }
        }
        let verdict = if self.exit == 0 {
            screen::good(self.verdict())
        } else {
            screen::bad(self.verdict())
        };
        let _ = writeln!(out, "report: {}\nverdict: {verdict}", report.display());
        out
    }

    /// For the summary of a run on GitHub.
    pub(super) fn markdown(&self, floor: &str) -> String {
        let mut out = format!(
            "### Rows: {}\n\nFloor {floor}.\n\n| grade | rows |\n|---|---:|\n",
            self.verdict()
        );
        for (grade, count) in self.graded() {
            let _ = writeln!(out, "| {grade} | {count} |");
        }
        if !self.findings.is_empty() {
            out.push_str("\n| finding | severity | times |\n|---|---|---:|\n");
            for (severity, code, count) in self.codes() {
                let _ = writeln!(out, "| {code} | {severity} | {count} |");
            }
        }
        out + "\n"
    }
}

/// At most so many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Judgement;

    fn judged(exit: u8, findings: usize) -> Judgement {
        let finding = |index: usize| {
            let (code, severity) = if index == 0 {
                ("results-missing", "inconclusive")
            } else {
                ("row-below-floor", "error")
            };
            format!(
                r#"{{"code":"{code}","severity":"{severity}","file":"spec/E.yaml","line":{index},"column":9,"message":"{}"}}"#,
                "long ".repeat(60)
            )
        };
        let findings: Vec<String> = (0..findings).map(finding).collect();
        let text = format!(
            r#"{{"exit":{exit},"tree":{{}},"grades":{{"none":0,"passed":30,"proven":9,"hollow":1}},"open":2,"findings":[{}]}}"#,
            findings.join(",")
        );
        Judgement::parse(&text).expect("it is right")
    }

    #[m0_spec::row(H49)]
    #[test]
    fn the_screen_tells_grades_what_falls_short_and_where_the_report_lies() {
        let text = judged(1, 20).screen("passed", Path::new("t/report/index.html"));
        let at = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("no {part} in {text}"))
        };
        assert!(
            at("proven       9") < at("passed      30")
                && at("passed      30") < at("hollow       1")
        );
        assert!(!text.contains("none "), "{text}");
        assert!(
            at("what falls short: row-below-floor 19, results-missing 1") < at("spec/E.yaml:0:9: ")
        );
        assert!(
            text.contains("and 12 more: cargo xtask trace --floor passed"),
            "{text}"
        );
        assert!(
            text.contains("report: t/report/index.html") && text.contains("falls short"),
            "{text}"
        );
        assert!(text.lines().count() <= 24, "{} lines", text.lines().count());
        assert!(
            text.lines().all(|line| line.chars().count() <= 160),
            "{text}"
        );
    }

    #[m0_spec::row(H49)]
    #[test]
    fn a_green_judgement_is_short_and_one_of_nothing_is_none() {
        let text = judged(0, 0).screen("proven", Path::new("i.html"));
        assert!(
            text.contains("kept") && !text.contains("falls short"),
            "{text}"
        );
        let missing = judged(3, 1).screen("proven", Path::new("i.html"));
        assert!(missing.contains("inconclusive"), "{missing}");
        Judgement::parse(r#"{"exit":0,"grades":{},"findings":[]}"#).expect_err("no row was judged");
        Judgement::parse("").expect_err("nothing was said");
    }

    #[m0_spec::row(H49)]
    #[test]
    fn the_summary_of_a_forge_has_the_same_figures() {
        let text = judged(1, 3).markdown("passed");
        for part in [
            "### Rows: falls short",
            "| proven | 9 |",
            "| row-below-floor | error | 2 |",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
