//! A rule on the files of a tree: what it changes, or why it is BROKEN.
//!
//! Owns everything that can be said of a rule without a build. Refuses to write files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::schema::rule::Rule;
use crate::schema::{Declared, check};
use crate::source::edit::{self, Broken, Changed};
use crate::source::patch::Patch;
use crate::verdict::{Record, Verdict};

/// A rule that can be applied.
pub(crate) struct Applied<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) files: BTreeMap<PathBuf, Changed>,
}

/// A rule's edits on the files under `tree`, or the BROKEN record.
#[expect(
    clippy::result_large_err,
    reason = "both are records of about one size, made once a rule"
)]
pub(crate) fn lint<'a>(
    declared: &Declared,
    rule: &'a Rule,
    rows: Option<&BTreeSet<String>>,
    tree: &Path,
) -> Result<Applied<'a>, Record> {
    if let Some(finding) = check::rule(declared, rule, rows).first() {
        return Err(Record::new(rule, Verdict::BrokenExpectation).because(finding.to_string()));
    }
    match edit::apply(&declared.root, rule, |path| {
        std::fs::read_to_string(tree.join(path)).ok()
    }) {
        Ok(files) => Ok(Applied { rule, files }),
        Err(broken) => {
            let verdict = match broken {
                Broken::Stale(_) => Verdict::BrokenStale,
                Broken::Inert(_) => Verdict::BrokenInert,
            };
            Err(Record::new(rule, verdict).because(broken.finding().to_string()))
        }
    }
}

/// What a rule changes, where it applies to the files under `tree`.
pub(super) fn patches(declared: &Declared, rule: &Rule, tree: &Path) -> Vec<Patch> {
    let files =
        lint(declared, rule, None, tree).map_or_else(|_| BTreeMap::new(), |applied| applied.files);
    files
        .iter()
        .flat_map(|(path, changed)| Patch::of(path, changed))
        .collect()
}
