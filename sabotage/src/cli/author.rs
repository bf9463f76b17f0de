//! Commands that make rules or apply one: new, apply, schema.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::complain;
use crate::schema::{check, read};
use crate::session::{lint, select};
use crate::source::{item, tokens};
use crate::tree::git;
use crate::verdict::Exit;

pub(super) fn new(root: &Path, id: &str, from_diff: bool) -> Result<Exit> {
    let mut text =
        format!("- id: {id}\n  promise: WHAT IS PROMISED, one sentence.\n  rows: []\n  edits:\n");
    if from_diff {
        let diff = git(
            root,
            &[
                "diff",
                "--unified=0",
                "--no-color",
                "--no-ext-diff",
                "--",
                ".",
                ":!sabotage",
            ],
        )?;
        if diff.trim().is_empty() {
            bail!("there is no uncommitted change to make a rule from");
        }
        edits(root, &diff, &mut text);
    } else {
        text.push_str("    - file: PATH\n      in: fn NAME\n      find: |\n        THE TEXT\n      with: |\n        WHAT STANDS THERE INSTEAD\n");
    }
    text.push_str("  expect:\n    - {gate: tests, check: THE CHECK THAT SHOULD NOTICE}\n");
    anstream::print!("{text}");
    Ok(Exit::Declared)
}

/// An edit for each hunk.
fn edits(root: &Path, diff: &str, text: &mut String) {
    let mut file = String::new();
    let mut hunk: (String, String) = Default::default();
    let mut line = 0;
    for row in diff.lines().chain(["@@ end"]) {
        if let Some(path) = row.strip_prefix("+++ b/") {
            path.clone_into(&mut file);
        } else if row.starts_with("@@") || row.starts_with("diff ") {
            if !hunk.0.is_empty() || !hunk.1.is_empty() {
                edit(root, &file, line, &hunk, text);
            }
            hunk = Default::default();
            let old = row
                .split_whitespace()
                .nth(1)
                .unwrap_or_default()
                .trim_start_matches('-');
            line = old
                .split(',')
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or(0);
        } else if row.starts_with("--- ") {
        } else if let Some(old) = row.strip_prefix('-') {
            let _ = writeln!(hunk.0, "{old}");
        } else if let Some(new) = row.strip_prefix('+') {
            let _ = writeln!(hunk.1, "{new}");
        }
    }
}

fn edit(root: &Path, file: &str, line: usize, hunk: &(String, String), text: &mut String) {
    let _ = writeln!(text, "    - file: {file}");
    let original = git(root, &["show", &format!("HEAD:{file}")]).unwrap_or_default();
    let offset: usize = original
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let named = tokens::of(&original).and_then(|row| {
        let index = row.iter().position(|token| token.range.start >= offset)?;
        item::enclosing_fn(&row, index)
    });
    if let Some(named) = named.filter(|_| crate::source::edit::is_rust(Path::new(file))) {
        let _ = writeln!(text, "      in: {named}");
    }
    block(text, "find", &hunk.0);
    block(text, "with", &hunk.1);
}

/// A YAML block scalar.
pub(super) fn block(text: &mut String, key: &str, value: &str) {
    if value.is_empty() {
        let _ = writeln!(text, "      {key}: \"\"");
        return;
    }
    // The number keeps the first line's own indentation out of the parser's guess.
    let _ = writeln!(text, "      {key}: |2-");
    for line in value.lines() {
        let _ = writeln!(text, "        {line}");
    }
}

pub(super) fn apply(root: &Path, id: &str, dir: &Path) -> Result<Exit> {
    let (declared, findings) = read::declared(root)?;
    if !findings.is_empty() {
        return Ok(complain(&findings));
    }
    let there = dir
        .canonicalize()
        .with_context(|| format!("no directory {}", dir.display()))?;
    if there.starts_with(root.canonicalize()?) {
        bail!(
            "{} is your working tree; a rule is applied to a copy only",
            dir.display()
        );
    }
    let rows = check::rows(&declared)?;
    for rule in select::named(&declared, &[id.to_owned()])? {
        match lint(&declared, rule, rows.as_ref(), &there) {
            Ok(applied) => {
                for (path, changed) in &applied.files {
                    std::fs::write(there.join(path), &changed.after)?;
                    anstream::println!("changed {}", there.join(path).display());
                }
            }
            Err(record) => {
                anstream::println!("{}", crate::report::terminal::record(&record));
                return Ok(record.verdict.exit());
            }
        }
    }
    Ok(Exit::Declared)
}

pub(super) fn accept(root: &Path, selectors: &[String]) -> Result<Exit> {
    let (declared, findings) = read::declared(root)?;
    if !findings.is_empty() {
        return Ok(complain(&findings));
    }
    let rules = select::named(&declared, selectors)?;
    let changed = crate::pins::accept(root, &rules, &declared.rules)?;
    anstream::println!("{} rules pinned, {changed} of them anew", rules.len());
    Ok(Exit::Declared)
}

/// Files by name, and their JSON Schemas.
pub(super) const SCHEMAS: [(&str, &str); 5] = [
    ("rules", include_str!("../schema/rules.schema.json")),
    ("gates", include_str!("../schema/gates.schema.json")),
    ("results", include_str!("../schema/results.schema.json")),
    ("evidence", include_str!("../schema/evidence.schema.json")),
    ("events", include_str!("../schema/events.schema.json")),
];

/// The JSON Schema of one kind of file.
pub(super) fn schema(which: &str) -> Result<String> {
    let found = SCHEMAS.iter().find(|(name, _)| *name == which);
    let (_, text) = found.with_context(|| format!("there is no schema {which}"))?;
    let value: serde_json::Value =
        serde_json::from_str(text).context("the schema is part of this program")?;
    Ok(serde_json::to_string_pretty(&value)?)
}
