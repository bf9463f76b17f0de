//! A run as it is told: `results.json` as a value.
//!
//! Owns the shape that every report is made from, whether the run has just ended, is read back or was merged
//! from shards. Invariant: what is written can be read back, and says the same.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::finding::At;
use crate::session::Summary;
use crate::session::pace::Pace;
use crate::source::patch::Patch;
use crate::verdict::{Exit, Record, Verdict};

/// The number of the present shape of `results.json`.
pub const SCHEMA: u32 = 1;

/// Everything about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What the verdicts come to.
    pub exit: Exit,
    /// Hash of the tree.
    pub tree: String,
    /// The commit, where there was one.
    pub commit: Option<String>,
    /// Wall time.
    pub seconds: f64,
    /// Seconds a rule, by how rules were built.
    pub seconds_a_rule: BTreeMap<String, f64>,
    /// Time of the gates that one build served, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Rules selected before they were divided into shards.
    #[serde(default)]
    pub selected: usize,
    /// Which part of the selected rules this is, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Gates that are not green on the clean tree; then there are no rules.
    pub gates: Vec<Gate>,
    /// What needs an eye beside the verdicts.
    pub notes: Vec<String>,
    /// A record a rule.
    pub rules: Vec<Record>,
}

/// Part `part` of `parts`, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which.
    pub part: usize,
    /// Of how many.
    pub parts: usize,
}

/// A gate that is not green on the clean tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Its name.
    pub gate: String,
    /// `red`, `flaky` or `empty`.
    pub is: String,
    /// Why.
    pub why: String,
}

impl Told {
    /// A run that has ended.
    pub fn of(summary: &Summary) -> Self {
        Self {
            schema: SCHEMA,
            exit: summary.exit,
            tree: summary.tree.clone(),
            commit: summary.commit.clone(),
            seconds: summary.wall.as_secs_f64(),
            seconds_a_rule: summary.per_rule.clone(),
            pace: Some(summary.pace).filter(|pace| pace.rules > 0),
            selected: summary.selected,
            shard: summary.shard.map(|(part, parts)| Shard { part, parts }),
            gates: summary
                .bad
                .iter()
                .map(|bad| Gate {
                    gate: bad.gate.clone(),
                    is: bad.word.to_owned(),
                    why: bad.why.clone(),
                })
                .collect(),
            notes: summary.notes.clone(),
            rules: summary.records.clone(),
        }
    }

    /// Reads a `results.json`, or the one in a directory.
    pub fn read(path: &Path) -> Result<Self> {
        let file = if path.is_dir() {
            path.join("results.json")
        } else {
            path.to_owned()
        };
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let told: Self = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is no results.json (sabotage schema results)",
                file.display()
            )
        })?;
        ensure!(
            told.schema == SCHEMA,
            "{} has schema {}, and this program reads {SCHEMA}",
            file.display(),
            told.schema
        );
        Ok(told)
    }

    /// The last run of the repository whose cache is `home`.
    pub fn last(home: &Path) -> Result<Self> {
        let Ok(dir) = std::fs::read_to_string(home.join("last")) else {
            bail!("no run has ended yet: sabotage run");
        };
        Self::read(Path::new(&dir))
    }

    /// Records that need an eye, worst first; gates come before all of them and are not here.
    pub fn wanting(&self) -> Vec<&Record> {
        let mut wanting: Vec<&Record> = self
            .rules
            .iter()
            .filter(|record| !record.verdict.is_fine())
            .collect();
        wanting.sort_by_key(|record| severity(record.verdict));
        wanting
    }
}

/// The order in which verdicts ask for an eye: by exit code, and what no check at all notices first.
pub fn severity(verdict: Verdict) -> (Exit, bool, Verdict) {
    let elsewhere = verdict == Verdict::CaughtElsewhere;
    (verdict.exit(), elsewhere, verdict)
}

/// Where a reader looks first: the source that a rule breaks, or the rule when it is the rule that is wrong.
pub fn place(record: &Record) -> At {
    match record.patches.first() {
        Some(Patch {
            file, line, column, ..
        }) if !record.verdict.is_broken() => At {
            file: file.into(),
            line: *line,
            column: *column,
        },
        _ => stands(record),
    }
}

/// Where the rule stands.
pub fn stands(record: &Record) -> At {
    let mut words = record.at.rsplitn(3, ':');
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    let (column, line) = (number(), number());
    At {
        file: words.next().unwrap_or(&record.at).into(),
        line,
        column,
    }
}

/// Why, in one paragraph: the reason and the first lines of the message.
pub fn reason(record: &Record) -> String {
    let message = record.message.as_deref().unwrap_or_default();
    let lines = message.lines().filter(|line| !line.trim().is_empty());
    let mut parts: Vec<&str> = vec![record.promise.as_str()];
    parts.extend(Some(record.why.as_str()).filter(|why| !why.is_empty()));
    parts.extend(lines.take(4));
    parts.join("\n")
}
