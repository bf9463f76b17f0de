//! What changed on edges that are stale: the words that were accepted beside those of now.
//!
//! Owns the way from a line of trace.lock to the texts that it was written for: the commit that wrote the line holds them.
//! Refuses to guess: a text whose hash is not the one of the line is not shown. Invariant: git is asked only where an
//! edge is stale.

use std::collections::BTreeMap;
use std::path::Path;

use super::words::{Side, compare};
use crate::compare::Snapshot;
use crate::files::{self, Open};
use crate::history::{Checkout, Origin, origins};
use crate::lock::{claim_hash, short};
use crate::source::Test;
use crate::workspace::Workspace;

/// What changed, and its words.
pub type Changed = (&'static str, Vec<(Side, String)>);

/// The changes of stale edges, by row and test.
#[derive(Debug, Default)]
pub struct Changes {
    found: BTreeMap<(String, String), Vec<Changed>>,
    origins: BTreeMap<usize, Origin>,
}

impl Changes {
    /// Looks back for each stale edge of a row, or of all rows.
    pub fn of(workspace: &Workspace, only: Option<&str>) -> Self {
        let lock = &workspace.lock;
        let graph = &workspace.graph;
        let mut changes = Self::default();
        if lock.lines.is_empty() {
            return changes;
        }
        changes.origins = origins(&workspace.root, &lock.path);
        // A commit often wrote many lines.
        let mut before: BTreeMap<&str, Option<(Checkout, Snapshot)>> = BTreeMap::new();
        for edge in graph.edges.iter().filter(|edge| edge.stale.is_some()) {
            let test = &graph.shown[edge.test].test;
            let key = (edge.row.clone(), test.id());
            let wanted = only.is_none_or(|row| row == edge.row);
            let Some((line, number)) = lock.lines.get(&key).filter(|_| wanted) else {
                continue;
            };
            let Some(origin) = changes.origins.get(number) else {
                continue;
            };
            let past = before.entry(&origin.commit).or_insert_with(|| {
                let checkout = Checkout::of(&workspace.root, &origin.commit).ok()?;
                let snapshot = Snapshot::of(&checkout.root).ok()?;
                Some((checkout, snapshot))
            });
            let Some((checkout, snapshot)) = past else {
                continue;
            };
            let mut found = Vec::new();
            let rows = (
                snapshot.rows.find(&edge.row),
                workspace.rows.find(&edge.row),
            );
            if let (Some((_, old)), Some((_, new))) = rows {
                let (old, new) = (&old.claim.value, &new.claim.value);
                if claim_hash(old) == line.claim && old != new {
                    found.push(("the claim", compare(old, new)));
                }
            }
            let same = |old: &&Test| old.id() == key.1 && short(&old.hash) == line.tokens;
            let old = snapshot.tests.iter().find(same);
            if let Some(old) = old.filter(|old| old.hash != test.hash) {
                let (old, new) = (code(&checkout.root, old), code(&workspace.root, test));
                found.push(("the test", compare(&old, &new)));
            }
            changes.found.insert(key, found);
        }
        changes
    }

    /// The changes of an edge.
    pub fn get(&self, row: &str, test: &str) -> Vec<Changed> {
        let key = (row.to_owned(), test.to_owned());
        self.found.get(&key).cloned().unwrap_or_default()
    }

    /// The commit that wrote the line of an edge.
    pub fn origin(&self, workspace: &Workspace, row: &str, test: &str) -> Option<&Origin> {
        let key = (row.to_owned(), test.to_owned());
        let (_, number) = workspace.lock.lines.get(&key)?;
        self.origins.get(number)
    }
}

/// The text of a test, without the indentation that all its lines have.
pub fn code(root: &Path, test: &Test) -> String {
    let text = files::text(root, &Open::new(), &test.at.file).unwrap_or_default();
    let (first, last) = (test.at.line as usize, test.last as usize);
    let lines: Vec<&str> = text
        .lines()
        .skip(first.saturating_sub(1))
        .take((last + 1).saturating_sub(first))
        .collect();
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let common = filled.map(indent).min().unwrap_or(0);
    let cut = lines
        .iter()
        .map(|line| line.get(common..).unwrap_or_default());
    cut.fold(String::new(), |text, line| text + line + "\n")
}
