//! The judgement as one JSON object.
//!
//! Owns its shape: `exit`, `tree`, `grades`, `findings`, `rows`, `results`. Keys are only added.

use serde_json::{Value, json};

use super::stale::Changes;
use super::{by_grade, row};
use crate::judge::Judged;
use crate::workspace::Workspace;

/// What `trace check --json` prints.
pub fn check(workspace: &Workspace, judged: &Judged) -> Value {
    let findings = judged.found.iter().map(|(severity, fault)| {
        let at = &fault.finding.at;
        json!({
            "code": fault.code, "severity": severity, "file": at.file, "line": at.line,
            "column": at.column, "message": fault.finding.message,
        })
    });
    let grades: serde_json::Map<String, Value> = by_grade(workspace)
        .into_iter()
        .map(|(grade, count)| (grade.word().to_owned(), json!(count)))
        .collect();
    json!({
        "exit": judged.exit(),
        "tree": workspace.now.provenance,
        "grades": grades,
        "open": judged.open,
        "results": workspace.results.files,
        "findings": findings.collect::<Vec<_>>(),
        "rows": rows(workspace),
    })
}

/// All rows with their evidence.
pub fn rows(workspace: &Workspace) -> Value {
    let all = workspace.rows.all();
    // The words that changed are for people: `explain` and the report look back for them.
    let none = Changes::default();
    let rows = all.map(|(area, row)| json!(row::explain(workspace, area, row, &none)));
    Value::Array(rows.collect())
}
