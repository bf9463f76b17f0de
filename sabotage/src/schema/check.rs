//! What must hold among rules and gates, without a build: names exist, ids are unique, patterns compile.
//!
//! Owns every such complaint. Refuses to look at the source files that rules change: that is `source`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use regex::Regex;
use serde_saphyr::Spanned;

use super::Declared;
use super::gate::{Format, Gate};
use super::read::{GATES, spanned_duration};
use super::rule::{Check, Edit, Rule};
use crate::finding::{At, Finding, hint};
use crate::glob;
use crate::run::make::by_cargo;

/// A complaint about a value of a file.
fn at(file: &Path, value: &Spanned<String>, message: String) -> Finding {
    Finding {
        at: At::location(file, &value.referenced),
        message,
    }
}

/// Complaints about gates and about rules among each other; each rule's own are in [`rule`].
pub fn shared(declared: &Declared) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, gate) in &declared.gates.gates {
        gate_findings(name, gate, &mut findings);
    }
    for pattern in &declared.gates.tests {
        let files = glob::files(&declared.root, &pattern.value);
        if files.is_ok_and(|files| files.is_empty()) {
            let message = format!("`tests`: no file is `{}`", pattern.value);
            findings.push(at(Path::new(GATES), pattern, message));
        }
    }
    let mut seen: BTreeMap<&str, At> = BTreeMap::new();
    for rule in &declared.rules {
        let place = At::location(&rule.file, &rule.id.referenced);
        if let Some(first) = seen.get(rule.id.value.as_str()) {
            findings.push(at(
                &rule.file,
                &rule.id,
                format!("the id `{}` stands at {first} already", rule.id.value),
            ));
        }
        seen.entry(&rule.id.value).or_insert(place);
    }
    findings
}

fn gate_findings(name: &str, gate: &Gate, findings: &mut Vec<Finding>) {
    let file = Path::new(GATES);
    let here = gate.cargo_test.as_ref().or(gate.run.as_ref());
    let place = here.map_or_else(
        || At::file(file),
        |text| At::location(file, &text.referenced),
    );
    let mut say = |message: String| {
        findings.push(Finding {
            at: place.clone(),
            message: format!("gate `{name}`: {message}"),
        });
    };
    match (&gate.cargo_test, &gate.run) {
        (None, None) => say("has neither `run` nor `cargo_test`".into()),
        (Some(_), Some(_)) => say("has both `run` and `cargo_test`; one of them decides".into()),
        _ => {}
    }
    if gate.results == Format::Regex && gate.pattern.is_none() {
        say("`results: regex` needs `pattern: {pass, fail}`".into());
    }
    if let Some(only) = &gate.only
        && !only.value.contains("{check}")
    {
        findings.push(at(
            file,
            only,
            format!("gate `{name}`: `only` does not name {{check}}"),
        ));
    }
    if let Some(patterns) = &gate.pattern {
        for pattern in [&patterns.pass, &patterns.fail] {
            match Regex::new(&pattern.value) {
                Ok(regex)
                    if regex
                        .capture_names()
                        .flatten()
                        .any(|group| group == "check") => {}
                Ok(_) => findings.push(at(
                    file,
                    pattern,
                    "the pattern has no group `(?P<check>…)`".into(),
                )),
                Err(error) => findings.push(at(file, pattern, first_line(&error))),
            }
        }
    }
    if let Some(timeout) = &gate.timeout {
        findings.extend(spanned_duration(file, timeout).err());
    }
}

/// The last line of the regex parser's drawing holds the reason.
fn first_line(error: &regex::Error) -> String {
    let text = error.to_string();
    format!(
        "no pattern: {}",
        text.lines().last().unwrap_or_default().trim()
    )
}

/// The rows that the repository declares, or none when it does not say where.
pub fn rows(declared: &Declared) -> Result<Option<BTreeSet<String>>> {
    let Some(rows) = &declared.gates.rows else {
        return Ok(None);
    };
    let pattern = Regex::new(&rows.pattern.value)
        .with_context(|| format!("{GATES}: the pattern of `rows`"))?;
    let mut found = BTreeSet::new();
    for file in glob::files(&declared.root, &rows.files.value)? {
        let text = std::fs::read_to_string(declared.root.join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        found.extend(
            text.lines()
                .filter_map(|line| Some(pattern.captures(line)?.get(1)?.as_str().to_owned())),
        );
    }
    Ok(Some(found))
}

/// Complaints about one rule: BROKEN: expectation.
pub fn rule(declared: &Declared, rule: &Rule, rows: Option<&BTreeSet<String>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let id = &rule.id.value;
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || !id.chars().all(fine) {
        findings.push(at(
            &rule.file,
            &rule.id,
            format!("the id `{id}` is not lower-case words joined by `-`"),
        ));
    }
    for row in &rule.rows {
        if let Some(rows) = rows.filter(|rows| !rows.contains(&row.value)) {
            let hint = hint(&row.value, rows.iter().map(String::as_str));
            findings.push(at(&rule.file, row, format!("no row `{}`{hint}", row.value)));
        }
    }
    if rule.expect.checks.is_empty() {
        findings.push(at(
            &rule.file,
            &rule.id,
            format!("`{id}` expects no check to notice"),
        ));
    }
    for check in rule.expect.checks.iter().chain(&rule.must_pass) {
        check_findings(declared, rule, check, &mut findings);
    }
    if rule.edits.is_empty() && rule.activate.is_none() && rule.revert.is_none() {
        findings.push(at(
            &rule.file,
            &rule.id,
            format!("`{id}` changes nothing: neither `edits` nor `revert` nor `activate`"),
        ));
    }
    for feature in rule.activate.iter().flat_map(|activate| &activate.features) {
        feature_findings(declared, rule, feature, &mut findings);
    }
    for edit in &rule.edits {
        edit_findings(rule, edit, &mut findings);
    }
    if let Some(timeout) = &rule.timeout {
        findings.extend(spanned_duration(&rule.file, timeout).err());
    }
    for waiver in rule.known_gap.iter().chain(&rule.skip) {
        let until = &waiver.until;
        match until.value.parse::<jiff::civil::Date>() {
            Err(_) => findings.push(at(
                &rule.file,
                until,
                format!("`{}` is no day such as `2027-01-31`", until.value),
            )),
            Ok(day) if day < today() => {
                findings.push(at(
                    &rule.file,
                    until,
                    format!("the waiver ended on {day}: {}", waiver.why),
                ));
            }
            Ok(_) => {}
        }
    }
    findings
}

fn check_findings(declared: &Declared, rule: &Rule, check: &Check, findings: &mut Vec<Finding>) {
    let name = &check.gate.value;
    if !declared.gates.gates.contains_key(name) {
        let hint = hint(name, declared.gates.gates.keys().map(String::as_str));
        findings.push(at(
            &rule.file,
            &check.gate,
            format!("no gate `{name}` in {GATES}{hint}"),
        ));
    }
    if let Some(message) = &check.message
        && let Err(error) = Regex::new(&message.value)
    {
        findings.push(at(&rule.file, message, first_line(&error)));
    }
}

/// A feature has the name of one, and something that cargo builds.
fn feature_findings(
    declared: &Declared,
    rule: &Rule,
    feature: &Spanned<String>,
    findings: &mut Vec<Finding>,
) {
    let name = &feature.value;
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.' | '/');
    if name.is_empty() || !name.chars().all(fine) {
        let message = format!("`{name}` is no feature's name");
        findings.push(at(&rule.file, feature, message));
    }
    for check in rule.expect.checks.iter().chain(&rule.must_pass) {
        let gate = &check.gate.value;
        if let Some(declares) = declared.gates.gates.get(gate)
            && !by_cargo(declares)
        {
            let message = format!("features need a gate that cargo builds, and `{gate}` is none");
            findings.push(at(&rule.file, feature, message));
        }
    }
}

fn edit_findings(rule: &Rule, edit: &Edit, findings: &mut Vec<Finding>) {
    let ways = [
        edit.find.is_some(),
        edit.delete.is_some(),
        edit.patch.is_some(),
    ];
    let message = match ways.iter().filter(|way| **way).count() {
        0 => Some("the edit has no `find`, `delete` or `patch`"),
        1 if edit.find.is_some() && edit.with.is_none() => {
            Some("`find` needs `with` (or use `delete`)")
        }
        1 if edit.find.is_none() && edit.with.is_some() => Some("`with` needs `find`"),
        1 => None,
        _ => Some("the edit has more than one of `find`, `delete` and `patch`"),
    };
    if let Some(message) = message {
        findings.push(at(&rule.file, &edit.file, message.into()));
    }
    let path = Path::new(&edit.file.value);
    let inside = path.is_relative()
        && path
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
    if !inside {
        findings.push(at(
            &rule.file,
            &edit.file,
            format!("`{}` is no path inside the repository", edit.file.value),
        ));
    }
}

/// The day in UTC.
fn today() -> jiff::civil::Date {
    jiff::tz::Offset::UTC
        .to_datetime(jiff::Timestamp::now())
        .date()
}
