//! `results.json` and `evidence.json`.
//!
//! Owns how both are written; `evidence.json` is the contract with whoever joins rules with a specification.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::told::Told;
use crate::verdict::{Obtained, Verdict};

/// What a rule proves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// The rule.
    pub rule: String,
    /// Rows of the specification.
    pub rows: Vec<String>,
    /// The gate that decided.
    pub gate: Option<String>,
    /// The check that decided.
    pub check: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// The failure's message.
    pub message: Option<String>,
    /// The commit, where there was one.
    pub commit: Option<String>,
    /// Hash of the tree.
    pub tree: String,
    /// Where it was obtained, when that was an earlier run, of which all that it rests on is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Obtained>,
}

/// What each rule proves, one object a rule; `commit` and `tree` are those that the verdict is told of.
pub fn evidence(told: &Told) -> Vec<Proof> {
    let one = |record: &crate::verdict::Record| Proof {
        rule: record.rule.clone(),
        rows: record.rows.clone(),
        gate: record.gate.clone(),
        check: record.check.clone(),
        verdict: record.verdict,
        message: record.message.clone(),
        commit: told.commit.clone(),
        tree: told.tree.clone(),
        cached: record.cached.clone(),
    };
    told.rules.iter().map(one).collect()
}

/// Writes both into a directory.
pub fn write(told: &Told, dir: &Path) -> Result<()> {
    for (name, text) in [
        ("results.json", pretty(told)?),
        ("evidence.json", pretty(&evidence(told))?),
    ] {
        let path = dir.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// JSON for people's eyes, with a last newline.
pub fn pretty(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
