//! Verdicts in the form of mutation-testing-elements (report schema 2), which dashboards and viewers read.
//!
//! Owns the mapping: a rule is a mutant at the first place that it changes; a check is a test. The form counts
//! a time-out as detected and we do not, so TIMEOUT is a `RuntimeError` there, as all that proves nothing.
//! Invariant: lines and columns are those of the tree that was run, also where its text is not at hand any more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::told::{Told, place, reason};
use crate::tree::git;
use crate::verdict::{Record, Verdict};

/// The report; texts of files are looked for below `root`, then in the run's commit.
pub fn report(told: &Told, root: &Path) -> Value {
    let mut by_file: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in &told.rules {
        let file = place(record).file.display().to_string();
        by_file.entry(file).or_default().push(record);
    }
    let files: serde_json::Map<String, Value> = by_file
        .iter()
        .map(|(file, records)| {
            let mutants: Vec<Value> = records.iter().map(|record| mutant(record)).collect();
            let text = source(told, root, file, records);
            let value = json!({"language": language(file), "source": text, "mutants": mutants});
            (file.clone(), value)
        })
        .collect();
    json!({
        "$schema": "http://stryker-mutator.io/report.schema.json",
        "schemaVersion": "2",
        "thresholds": {"high": 100, "low": 80},
        "framework": {"name": "sabotage", "version": env!("CARGO_PKG_VERSION")},
        "files": files,
        "testFiles": tests(told),
    })
}

fn mutant(record: &Record) -> Value {
    let at = place(record);
    let first = record
        .patches
        .first()
        .filter(|_| !record.verdict.is_broken());
    let (end_line, end_column) = match first {
        // An end at the start is no place that a viewer could show.
        Some(patch) if (patch.end_line, patch.end_column) > (patch.line, patch.column) => {
            (patch.end_line, patch.end_column)
        }
        _ => (at.line, at.column + 1),
    };
    let test = test(record);
    let killed = matches!(record.verdict, Verdict::Caught | Verdict::CaughtElsewhere);
    let mut value = json!({
        "id": record.rule,
        "mutatorName": record.rule,
        "description": record.promise,
        "location": {
            "start": {"line": at.line, "column": at.column},
            "end": {"line": end_line, "column": end_column},
        },
        "status": status(record),
        "statusReason": reason(record),
        "duration": (record.seconds * 1000.0).round(),
        "coveredBy": test.iter().collect::<Vec<_>>(),
        "killedBy": test.iter().filter(|_| killed).collect::<Vec<_>>(),
    });
    if let Some(patch) = first {
        value["replacement"] = json!(patch.with);
    }
    value
}

fn status(record: &Record) -> &'static str {
    match record.verdict {
        Verdict::Caught | Verdict::CaughtElsewhere | Verdict::GapClosed => "Killed",
        Verdict::Missed if record.why.starts_with("unreached") => "NoCoverage",
        Verdict::Missed => "Survived",
        Verdict::BrokenUncompilable => "CompileError",
        Verdict::Skipped | Verdict::KnownGap => "Ignored",
        Verdict::Pending => "Pending",
        _ => "RuntimeError",
    }
}

/// The id of the check that decided.
fn test(record: &Record) -> Option<String> {
    Some(format!(
        "{}: {}",
        record.gate.as_ref()?,
        record.check.as_ref()?
    ))
}

/// Gates as files of tests.
fn tests(told: &Told) -> Value {
    let mut gates: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in &told.rules {
        if let (Some(gate), Some(check)) = (&record.gate, &record.check) {
            gates.entry(gate).or_default().insert(check);
        }
    }
    let file = |(gate, checks): (&&str, &BTreeSet<&str>)| {
        let tests: Vec<Value> = checks
            .iter()
            .map(|check| json!({"id": format!("{gate}: {check}"), "name": check}))
            .collect();
        ((*gate).to_owned(), json!({ "tests": tests }))
    };
    Value::Object(gates.iter().map(file).collect())
}

/// The file as it was run: in the tree, in the commit, or at least the lines that the rules touch.
fn source(told: &Told, root: &Path, file: &str, records: &[&Record]) -> String {
    let patches: Vec<_> = records
        .iter()
        .flat_map(|record| &record.patches)
        .filter(|patch| patch.file == file)
        .collect();
    let fits = |text: &String| patches.iter().all(|patch| patch.fits(text));
    let committed = || {
        let commit = told.commit.as_ref()?;
        git(root, &["show", &format!("{commit}:{file}")]).ok()
    };
    let found = std::fs::read_to_string(root.join(file)).ok().filter(fits);
    if let Some(text) = found.or_else(committed).filter(fits) {
        return text;
    }
    let mut lines: BTreeMap<usize, &str> = BTreeMap::new();
    for patch in patches {
        lines.extend((patch.line..).zip(patch.old.lines()));
    }
    // Every mutant has a line to stand on, also where nothing is known of it.
    let places = records.iter().map(|record| place(record).line);
    let last = places.chain(lines.keys().copied()).max().unwrap_or(0);
    let line = |number: usize| lines.get(&number).copied().unwrap_or_default();
    (1..=last)
        .map(|number| line(number).to_owned() + "\n")
        .collect()
}

/// What a highlighter calls the language of a file.
fn language(file: &str) -> &str {
    let ext = file.rsplit('.').next().unwrap_or_default();
    match ext {
        "rs" => "rust",
        "py" => "python",
        "sh" => "bash",
        "js" | "mjs" => "javascript",
        "ts" => "typescript",
        "rb" => "ruby",
        "yml" => "yaml",
        "h" => "c",
        "hpp" | "cc" => "cpp",
        other => other,
    }
}
