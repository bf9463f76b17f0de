//! JUnit XML: a case a rule, red when the rule asks for an eye.
//!
//! Owns the escaping.

use std::fmt::Write as _;

use crate::session::Summary;
use crate::verdict::Verdict;

/// The report.
pub fn report(summary: &Summary) -> String {
    let failures = summary
        .records
        .iter()
        .filter(|record| !record.verdict.is_fine())
        .count()
        + summary.bad.len();
    let total = summary.records.len() + summary.bad.len();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"sabotage\" tests=\"{total}\" failures=\"{failures}\">\n"
    );
    for bad in &summary.bad {
        let _ = writeln!(
            text,
            "<testcase classname=\"gate\" name=\"{}\"><failure message=\"GATE {}: {}\"/></testcase>",
            escape(&bad.gate),
            bad.word,
            escape(&bad.why)
        );
    }
    for record in &summary.records {
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
