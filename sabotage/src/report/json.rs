//! `results.json` and `evidence.json`.
//!
//! Owns their shape; `evidence.json` is the contract with whoever joins rules with a specification.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::session::Summary;

/// Everything about a run.
pub fn results(summary: &Summary) -> Value {
    json!({
        "schema": 1,
        "exit": summary.exit.code(),
        "tree": summary.tree,
        "commit": summary.commit,
        "seconds": summary.wall.as_secs_f64(),
        "seconds_a_rule": summary.per_rule,
        "gates": summary.bad.iter().map(|bad| json!({"gate": bad.gate, "is": bad.word, "why": bad.why})).collect::<Vec<_>>(),
        "notes": summary.notes,
        "rules": summary.records,
    })
}

/// What each rule proves: one object a rule.
pub fn evidence(summary: &Summary) -> Value {
    let one = |record: &crate::verdict::Record| {
        json!({
            "rule": record.rule, "rows": record.rows, "gate": record.gate, "check": record.check,
            "verdict": record.verdict, "message": record.message,
            "commit": summary.commit, "tree": summary.tree,
        })
    };
    Value::Array(summary.records.iter().map(one).collect())
}

/// Writes both into the run's directory.
pub fn write(summary: &Summary) -> Result<()> {
    for (name, value) in [
        ("results.json", results(summary)),
        ("evidence.json", evidence(summary)),
    ] {
        let path = summary.dir.join(name);
        let text = serde_json::to_string_pretty(&value)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
