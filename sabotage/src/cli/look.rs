//! Commands that look and change nothing: lint, list, show, evidence.

use std::path::Path;

use anyhow::{Context, Result};

use super::complain;
use crate::schema::{check, read};
use crate::session::{lint as applied, select};
use crate::source::edit::Changed;
use crate::verdict::{Exit, Record, exit_of};

pub(super) fn lint(root: &Path) -> Result<Exit> {
    let (declared, mut findings) = read::declared(root)?;
    findings.extend(check::shared(&declared));
    if !findings.is_empty() {
        return Ok(complain(&findings));
    }
    let rows = check::rows(&declared)?;
    let broken: Vec<Record> = declared
        .rules
        .iter()
        .filter_map(|rule| applied(&declared, rule, rows.as_ref(), root).err())
        .collect();
    for record in &broken {
        anstream::println!("{}", crate::report::terminal::record(record));
    }
    anstream::println!(
        "{} rules, {} gates: {} broken",
        declared.rules.len(),
        declared.gates.gates.len(),
        broken.len()
    );
    for drift in crate::pins::drifted(&crate::pins::read(root)?, declared.rules.iter(), root) {
        anstream::println!("{drift}");
    }
    let exit = exit_of(broken.iter().map(|record| record.verdict));
    Ok(match exit {
        // No broken rule is what lint is asked about; no rule at all is nothing.
        Exit::Nothing if !declared.rules.is_empty() => Exit::Declared,
        exit => exit,
    })
}

pub(super) fn list(root: &Path, selectors: &[String], json: bool) -> Result<Exit> {
    let (declared, findings) = read::declared(root)?;
    if !findings.is_empty() {
        return Ok(complain(&findings));
    }
    let rules = select::named(&declared, selectors)?;
    for rule in &rules {
        let rows: Vec<&str> = rule.rows.iter().map(|row| row.value.as_str()).collect();
        let checks: Vec<String> = rule
            .expect
            .checks
            .iter()
            .map(|check| format!("{}: {}", check.gate.value, check.check.value))
            .collect();
        if json {
            let line = serde_json::json!({
                "rule": rule.id.value, "promise": rule.promise, "rows": rows, "expect": checks, "tags": rule.tags,
                "file": rule.file,
            });
            anstream::println!("{line}");
        } else {
            anstream::println!(
                "{:<44} [{}] {}",
                rule.id.value,
                rows.join(" "),
                checks.join(", ")
            );
        }
    }
    Ok(if rules.is_empty() {
        Exit::Nothing
    } else {
        Exit::Declared
    })
}

pub(super) fn show(root: &Path, id: &str) -> Result<Exit> {
    let (declared, findings) = read::declared(root)?;
    if !findings.is_empty() {
        return Ok(complain(&findings));
    }
    for rule in select::named(&declared, &[id.to_owned()])? {
        anstream::println!("# {}: {}", rule.id.value, rule.promise);
        match applied(&declared, rule, check::rows(&declared)?.as_ref(), root) {
            Ok(applied) => {
                for (path, changed) in &applied.files {
                    anstream::print!("{}", diff(path, changed));
                }
            }
            Err(record) => anstream::println!("{}", crate::report::terminal::record(&record)),
        }
        if let Some(record) = last(root, &rule.id.value)? {
            anstream::println!(
                "last verdict:\n{}",
                crate::report::terminal::record(&record)
            );
        }
    }
    Ok(Exit::Declared)
}

/// The rule's lines as a diff without context.
fn diff(path: &Path, changed: &Changed) -> String {
    use std::fmt::Write as _;
    let mut text = format!("--- a/{0}\n+++ b/{0}\n", path.display());
    for splice in &changed.splices {
        let start = changed.before[..splice.range.start]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let end = changed.before[splice.range.end..]
            .find('\n')
            .map_or(changed.before.len(), |at| splice.range.end + at);
        let line = changed.before[..start].matches('\n').count() + 1;
        let old = &changed.before[start..end];
        let new = [
            &changed.before[start..splice.range.start],
            &splice.with,
            &changed.before[splice.range.end..end],
        ]
        .concat();
        let _ = writeln!(
            text,
            "@@ -{line},{} +{line},{} @@",
            old.lines().count(),
            new.lines().count()
        );
        for line in old.lines() {
            let _ = writeln!(text, "-{line}");
        }
        for line in new.lines() {
            let _ = writeln!(text, "+{line}");
        }
    }
    text
}

/// The rule's record in the last run that ended.
fn last(root: &Path, id: &str) -> Result<Option<Record>> {
    let Ok(dir) = std::fs::read_to_string(crate::slot::home(root)?.join("last")) else {
        return Ok(None);
    };
    let Ok(text) = std::fs::read_to_string(Path::new(&dir).join("results.json")) else {
        return Ok(None);
    };
    let value: serde_json::Value = serde_json::from_str(&text)?;
    let records: Vec<Record> = serde_json::from_value(value["rules"].clone())?;
    Ok(records.into_iter().find(|record| record.rule == id))
}

pub(super) fn evidence(root: &Path) -> Result<Exit> {
    let last = crate::slot::home(root)?.join("last");
    let dir = std::fs::read_to_string(last).context("no run has ended yet: sabotage run")?;
    let text = std::fs::read_to_string(Path::new(&dir).join("evidence.json"))
        .with_context(|| format!("no evidence in {dir}"))?;
    anstream::print!("{text}");
    Ok(Exit::Declared)
}
