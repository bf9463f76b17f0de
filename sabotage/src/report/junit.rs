//! JUnit XML: a case a rule, red when the rule asks for an eye.
//!
//! Owns the escaping.

use std::fmt::Write as _;

use super::told::Told;
use crate::verdict::Verdict;

/// The report.
pub fn report(told: &Told) -> String {
    let failures = told
        .rules
        .iter()
        .filter(|record| !record.verdict.is_fine())
        .count()
        + told.gates.len();
    let total = told.rules.len() + told.gates.len();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"sabotage\" tests=\"{total}\" failures=\"{failures}\">\n"
    );
    for bad in &told.gates {
        let _ = writeln!(
            text,
            "<testcase classname=\"gate\" name=\"{}\"><failure message=\"GATE {}: {}\"/></testcase>",
            escape(&bad.gate),
            bad.is,
            escape(&bad.why)
        );
    }
    for record in &told.rules {
        let _ = write!(
            text,
            "<testcase classname=\"sabotage\" name=\"{}\" time=\"{:.3}\"",
            escape(&record.rule),
            record.seconds
        );
        let _ = match record.verdict {
            Verdict::Skipped | Verdict::KnownGap => {
                writeln!(
                    text,
                    "><skipped message=\"{}\"/></testcase>",
                    escape(&record.why)
                )
            }
            verdict if verdict.is_fine() => writeln!(text, "/>"),
            verdict => writeln!(
                text,
                "><failure message=\"{}: {}\"/></testcase>",
                verdict.word(),
                escape(&record.why)
            ),
        };
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Text inside an attribute; control characters that XML 1.0 has no place for become `?`.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c if c.is_control() && c != '\t' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
