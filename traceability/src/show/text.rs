//! Findings and figures for people, and as annotations of a forge.
//!
//! Owns the words. Colour is `anstream`'s business. Invariant: the last line of `check` says whether the promises
//! are kept.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::code::{Fault, Severity};
use crate::judge::Judged;
use crate::rows::read::{Grade, Need, State};
use crate::show::by_grade;
use crate::workspace::Workspace;

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error | Severity::Unreadable => AnsiColor::Red.on_default().bold(),
        Severity::Inconclusive => AnsiColor::Magenta.on_default(),
        Severity::Warning | Severity::Off => AnsiColor::Yellow.on_default(),
    }
}

/// One finding: place, severity, code, message.
pub fn finding(severity: Severity, fault: &Fault) -> String {
    let style = style(severity);
    format!(
        "{}: {style}{}{style:#}[{}]: {}",
        fault.finding.at,
        severity.word(),
        fault.code,
        fault.finding.message
    )
}

/// One finding as an annotation of GitHub.
pub fn annotation(severity: Severity, fault: &Fault) -> String {
    let word = match severity {
        Severity::Error | Severity::Unreadable => "error",
        _ => "warning",
    };
    let at = &fault.finding.at;
    let escaped = |text: &str| {
        text.replace('%', "%25")
            .replace('\r', "%0D")
            .replace('\n', "%0A")
    };
    format!(
        "::{word} file={},line={},col={},title={}::{}",
        escaped(&at.file.to_string_lossy())
            .replace(',', "%2C")
            .replace(':', "%3A"),
        at.line,
        at.column,
        fault.code,
        escaped(&fault.finding.message)
    )
}

/// The closing lines of `check`.
pub fn summary(workspace: &Workspace, judged: &Judged) -> String {
    let mut out = String::new();
    let rows = workspace.rows.all().count();
    let active = workspace.rows.all();
    let active = active.filter(|(_, row)| row.state == State::Active).count();
    let shown = &workspace.graph.shown;
    let naming = shown.iter().filter(|shown| !shown.test.rows.is_empty());
    let _ = writeln!(
        out,
        "{rows} rows ({active} active), {} tests that name them, {} edges, {} results joined, {} sabotages",
        naming.count(),
        workspace.graph.edges.len(),
        workspace.graph.joined,
        workspace.rules.len()
    );
    let grades: Vec<String> = by_grade(workspace)
        .into_iter()
        .filter(|(grade, count)| *count > 0 || matches!(grade, Grade::Proven | Grade::Passed))
        .map(|(grade, count)| format!("{} {count}", grade.word()))
        .collect();
    let _ = writeln!(out, "active rows by grade: {}", grades.join(", "));
    if judged.open > 0 {
        let _ = writeln!(
            out,
            "{} rows are left open until the missing results are there",
            judged.open
        );
    }
    let count = |wanted: Severity| {
        judged
            .found
            .iter()
            .filter(|(got, _)| *got == wanted)
            .count()
    };
    let _ = writeln!(
        out,
        "trace: {} error(s), {} inconclusive, {} warning(s): {}",
        count(Severity::Error) + count(Severity::Unreadable),
        count(Severity::Inconclusive),
        count(Severity::Warning),
        match judged.exit() {
            0 => "kept",
            2 => "the input cannot be read",
            3 => "inconclusive",
            _ => "falls short",
        }
    );
    out
}

/// Findings counted by code, the most frequent first.
pub fn by_code(judged: &Judged) -> String {
    let mut counts: Vec<(usize, &str)> = Vec::new();
    for (_, fault) in &judged.found {
        let word = fault.code.word();
        match counts.iter_mut().find(|(_, other)| *other == word) {
            Some(entry) => entry.0 += 1,
            None => counts.push((1, word)),
        }
    }
    counts.sort_by(|a, b| b.cmp(a));
    counts.iter().fold(String::new(), |mut out, (count, word)| {
        let _ = writeln!(out, "{count:>6} {word}");
        out
    })
}

/// Rows by kinds of evidence; a dot where a kind is neither needed nor there.
pub fn matrix(workspace: &Workspace) -> String {
    let mut out = format!("{:<6} {:<9}", "row", "reached");
    for need in Need::ALL {
        let _ = write!(out, " {:<9}", need.word());
    }
    out.push_str(" sabotages  claim\n");
    for (_, row) in workspace.rows.all() {
        let id = &row.id.value;
        let standing = workspace.graph.standing(row);
        let reached = match row.state {
            State::Active => standing.reached().word(),
            other => other.word(),
        };
        let _ = write!(out, "{id:<6} {reached:<9}");
        for need in Need::ALL {
            let edges = workspace.graph.edges_of(id);
            let shown = &workspace.graph.shown;
            let best = edges
                .filter(|edge| shown[edge.test].test.kind == need)
                .map(|edge| edge.grade)
                .max();
            let needed = row.needs.value.contains(&need);
            let word = match (best, needed) {
                (Some(grade), _) => grade.word(),
                (None, true) => "MISSING",
                (None, false) => ".",
            };
            let _ = write!(out, " {word:<9}");
        }
        let breaks = workspace.rules.breaking(id).count();
        let _ = writeln!(out, " {breaks:<10} {}", row.claim.value);
    }
    out
}
