//! What changed between two states of a repository: rows, what names them, sabotages.
//!
//! Owns the comparison, and which rows a change touches. Refuses to judge, and to know results: what passed then is
//! not what was promised then. Invariant: nothing is touched by white space, comments or reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::config::Config;
use crate::files::{self, Open};
use crate::rows::read::{Grade, Row};
use crate::rows::{Rows, floor};
use crate::sabotage::{self, Rules};
use crate::source::{self, Test};

/// What a repository promises and how, without results.
#[derive(Debug)]
pub struct Snapshot {
    /// The rows.
    pub rows: Rows,
    /// The tests of the source.
    pub tests: Vec<Test>,
    /// The sabotages.
    pub rules: Rules,
}

impl Snapshot {
    /// Reads what lies in a directory. What does not parse is not there: `trace check` tells it.
    ///
    /// # Errors
    ///
    /// When `trace.yaml` does not parse or a directory cannot be listed.
    pub fn of(root: &Path) -> Result<Self> {
        let config = Config::read(root)?;
        let rows = if root.join(&config.spec).is_dir() {
            Rows::read(root, &config.spec)?.0
        } else {
            // Before the first row there is no directory.
            Rows {
                dir: config.spec.clone(),
                areas: Vec::new(),
                ledger: Vec::new(),
            }
        };
        let listed = files::list(root)?;
        let source = source::read(root, &config, &listed, &Open::new());
        let (rules, _) = sabotage::read(root, &config, &Open::new())?;
        Ok(Self {
            rows,
            tests: source.tests,
            rules,
        })
    }

    /// The tests by their ids: rows and tokens. Several of one id count together.
    fn by_test(&self) -> BTreeMap<String, (BTreeSet<&str>, Vec<&str>)> {
        let mut tests: BTreeMap<String, (BTreeSet<&str>, Vec<&str>)> = BTreeMap::new();
        for test in &self.tests {
            let entry = tests.entry(test.id()).or_default();
            entry
                .0
                .extend(test.rows.iter().map(|named| named.id.as_str()));
            entry.1.push(&test.hash);
        }
        tests
    }
}

/// How a thing differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is another.
    Changed,
}

/// A row that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowChange {
    /// Its id.
    pub id: String,
    /// How.
    pub change: Change,
    /// Name, old and new of each part that differs; of a row that is new or gone its claim.
    pub parts: Vec<(&'static str, String, String)>,
}

/// A test or a sabotage that differs, and the rows that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The test's id, or the sabotage's.
    pub name: String,
    /// How.
    pub change: Change,
    /// Rows that it names now, or named when it is gone.
    pub rows: Vec<String>,
}

/// All differences, each list by name.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Rows.
    pub rows: Vec<RowChange>,
    /// Row and test of each edge that is new.
    pub gained: Vec<(String, String)>,
    /// Row and test of each edge that is gone.
    pub lost: Vec<(String, String)>,
    /// Tests whose tokens changed.
    pub tests: Vec<Named>,
    /// Sabotages.
    pub sabotages: Vec<Named>,
}

impl Diff {
    /// Compares.
    pub fn of(old: &Snapshot, new: &Snapshot) -> Self {
        let mut diff = Self::default();
        diff.rows(old, new);
        let (before, after) = (old.by_test(), new.by_test());
        let edges = |tests: &BTreeMap<String, (BTreeSet<&str>, Vec<&str>)>| {
            let mut edges = BTreeSet::new();
            for (test, (rows, _)) in tests {
                edges.extend(rows.iter().map(|row| ((*row).to_owned(), test.clone())));
            }
            edges
        };
        let (had, has) = (edges(&before), edges(&after));
        diff.gained = has.difference(&had).cloned().collect();
        diff.lost = had.difference(&has).cloned().collect();
        for (name, (rows, tokens)) in &after {
            if before.get(name).is_some_and(|(_, old)| old != tokens) {
                diff.tests.push(Named {
                    name: name.clone(),
                    change: Change::Changed,
                    rows: rows.iter().map(|row| (*row).to_owned()).collect(),
                });
            }
        }
        diff.sabotages(old, new);
        diff
    }

    fn rows(&mut self, old: &Snapshot, new: &Snapshot) {
        let (before, after) = (old.rows.by_id(), new.rows.by_id());
        let ids: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        for id in ids {
            let parts_of = |area, row: &Row| {
                let needs: Vec<&str> = row.needs.value.iter().map(|need| need.word()).collect();
                let floor: Grade = floor(area, row);
                [
                    ("claim", row.claim.value.clone()),
                    ("state", row.state.word().to_owned()),
                    ("needs", needs.join(", ")),
                    ("floor", floor.word().to_owned()),
                ]
            };
            let (change, parts) = match (before.get(id), after.get(id)) {
                (None, Some((_, row))) => {
                    let claim = row.claim.value.clone();
                    (Change::Added, vec![("claim", String::new(), claim)])
                }
                (Some((_, row)), None) => {
                    let claim = row.claim.value.clone();
                    (Change::Removed, vec![("claim", claim, String::new())])
                }
                (Some((area, row)), Some((now, is))) => {
                    let pairs = parts_of(area, row).into_iter().zip(parts_of(now, is));
                    let parts = pairs.filter(|(old, new)| old != new);
                    let parts = parts.map(|((name, old), (_, new))| (name, old, new));
                    (Change::Changed, parts.collect())
                }
                (None, None) => continue,
            };
            if !parts.is_empty() {
                let id = id.to_owned();
                self.rows.push(RowChange { id, change, parts });
            }
        }
    }

    fn sabotages(&mut self, old: &Snapshot, new: &Snapshot) {
        let of = |rules: &Rules| -> BTreeMap<String, (String, Vec<String>)> {
            let rows =
                |rule: &sabotage::Rule| rule.rows.iter().map(|(row, _)| row.clone()).collect();
            let each = rules.iter();
            each.map(|rule| (rule.id.clone(), (rule.hash.clone(), rows(rule))))
                .collect()
        };
        let (before, after) = (of(&old.rules), of(&new.rules));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (change, rows) = match (before.get(name), after.get(name)) {
                (None, Some((_, rows))) => (Change::Added, rows),
                (Some((_, rows)), None) => (Change::Removed, rows),
                (Some((old, _)), Some((new, rows))) if old != new => (Change::Changed, rows),
                _ => continue,
            };
            self.sabotages.push(Named {
                name: name.clone(),
                change,
                rows: rows.clone(),
            });
        }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rows that something of this concerns.
    pub fn touched(&self) -> BTreeSet<String> {
        let rows = self.rows.iter().map(|row| &row.id);
        let edges = self.gained.iter().chain(&self.lost).map(|(row, _)| row);
        let named = self.tests.iter().chain(&self.sabotages);
        let named = named.flat_map(|named| &named.rows);
        rows.chain(edges).chain(named).cloned().collect()
    }
}
