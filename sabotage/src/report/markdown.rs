//! Markdown: the closing line and a table, worst first.

use std::fmt::Write as _;

use super::told::{Told, severity};

/// The report.
pub fn report(told: &Told) -> String {
    let mut text = format!(
        "## Sabotage\n\n{}\n",
        anstream::adapter::strip_str(&super::terminal::closing(told))
    );
    if told.rules.is_empty() {
        return text;
    }
    text.push_str("\n| rule | rows | verdict | check | why |\n|---|---|---|---|---|\n");
    let mut records: Vec<_> = told.rules.iter().collect();
    records.sort_by_key(|record| (severity(record.verdict), record.rule.clone()));
    for record in records {
        let check = match (&record.gate, &record.check) {
            (Some(gate), Some(check)) => format!("{gate}: {check}"),
            _ => String::new(),
        };
        let why = if record.why.is_empty() {
            record.message.clone().unwrap_or_default()
        } else {
            record.why.clone()
        };
        let why: String = why
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(160)
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            record.rule,
            record.rows.join(" "),
            record.verdict.word(),
            cell(&check),
            cell(&why)
        );
    }
    matrix(told, &mut text);
    text
}

/// With `--matrix`: the checks that notice each rule.
fn matrix(told: &Told, text: &mut String) {
    let rules = told.rules.iter();
    let mut noticed = rules
        .filter_map(|record| Some((&record.rule, record.noticed.as_ref()?)))
        .peekable();
    if noticed.peek().is_some() {
        text.push_str("\n| rule | noticed by | checks |\n|---|---:|---|\n");
    }
    for (rule, checks) in noticed {
        let _ = writeln!(
            text,
            "| {rule} | {} | {} |",
            checks.len(),
            cell(&checks.join(", "))
        );
    }
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
