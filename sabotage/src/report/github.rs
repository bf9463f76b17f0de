//! Annotations of a GitHub Actions step.
//!
//! Owns the escaping and the bound: the runner shows ten annotations of a kind and drops the rest without a
//! word, so nine are printed, worst first, and the tenth says how many more the summary holds.

use super::told::{Gate, Told, place, reason};
use crate::schema::read::GATES;
use crate::verdict::{Exit, Record, Verdict};

/// How many annotations of one kind are printed before the one that counts the rest.
pub const MOST: usize = 9;

/// The lines to print: errors, then warnings, then notices.
pub fn annotations(told: &Told) -> Vec<String> {
    let mut kinds: [(&str, Vec<String>); 3] =
        [("error", vec![]), ("warning", vec![]), ("notice", vec![])];
    for gate in &told.gates {
        kinds[0].1.push(bad(gate));
    }
    for record in told.wanting() {
        let kind = usize::from(!is_error(record.verdict));
        kinds[kind].1.push(wanting(record));
    }
    kinds[2]
        .1
        .extend(told.notes.iter().map(|note| format!("::{}", data(note))));
    let mut lines = Vec::new();
    for (kind, found) in kinds {
        let more = found.len().saturating_sub(MOST);
        let shown = found.into_iter().take(MOST);
        lines.extend(shown.map(|rest| {
            let space = if rest.starts_with("::") { "" } else { " " };
            format!("::{kind}{space}{rest}")
        }));
        if more > 0 {
            lines.push(format!(
                "::{kind} title=sabotage::{more} more of this kind stand in the summary of this job"
            ));
        }
    }
    lines
}

/// Whether a verdict says that something is wrong, and not only that nothing is known.
pub fn is_error(verdict: Verdict) -> bool {
    matches!(verdict.exit(), Exit::Rule | Exit::Tests)
}

fn bad(gate: &Gate) -> String {
    let title = property(&format!("GATE {} {}", gate.is, gate.gate));
    format!("file={GATES},line=1,title={title}::{}", data(&gate.why))
}

fn wanting(record: &Record) -> String {
    let at = place(record);
    let title = format!("{} {}", record.verdict.word(), record.rule);
    format!(
        "file={},line={},col={},title={}::{}",
        property(&at.file.display().to_string()),
        at.line,
        at.column,
        property(&title),
        data(&reason(record))
    )
}

/// What follows `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
