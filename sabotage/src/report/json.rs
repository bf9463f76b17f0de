//! `results.json` and `evidence.json`.
//!
//! Owns how both are written; `evidence.json` is the contract with whoever joins rules with a specification.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::told::Told;
use crate::verdict::Verdict;

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
}

/// What each rule proves: one object a rule.
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
