//! Commands that look and change nothing: lint, list, show.

use std::path::Path;

use anyhow::Result;

use super::complain;
use crate::pins;
use crate::report::told::Told;
use crate::schema::{check, read};
use crate::session::{lint as applied, select};
use crate::source::patch::Patch;
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
    let pins = pins::read(root)?;
    let mut ledger = pins::drifted(&pins, declared.rules.iter(), root);
    ledger.extend(pins::unpinned(&pins, declared.rules.iter(), root));
    ledger.extend(pins::left_over(&pins, &declared.rules));
    for line in &ledger {
        anstream::println!("{line}");
    }
    let exit = match exit_of(broken.iter().map(|record| record.verdict)) {
        // No broken rule is what lint is asked about; no rule at all is nothing.
        Exit::Nothing if !declared.rules.is_empty() => Exit::Declared,
        exit => exit,
    };
    Ok(if ledger.is_empty() {
        exit
    } else {
        exit.min(Exit::Ledger)
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
                    anstream::print!("--- a/{0}\n+++ b/{0}\n", path.display());
                    for patch in Patch::of(path, changed) {
                        anstream::print!("{patch}");
                    }
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

/// The rule's record in the last run that ended.
fn last(root: &Path, id: &str) -> Result<Option<Record>> {
    let home = crate::slot::home(root)?;
    if !home.join("last").exists() {
        return Ok(None);
    }
    // A run of another version of this program may not be readable; it is no verdict then.
    let told = Told::last(&home).ok();
    Ok(told.and_then(|told| told.rules.into_iter().find(|record| record.rule == id)))
}
