//! Which survivors are findings, and which entries of the list are.
//!
//! Pure. Owns the comparison of what survived with what is listed. Invariant: a survivor is either explained by
//! an entry or a finding, and an entry that explains less than it says is a finding; of a mutant that
//! another shard tries nothing is said.

use std::collections::BTreeMap;

use super::ledger::Entry;
use super::sweep::{Fate, Mutant, Sweep};
use crate::finding::{At, Finding};

/// What came of a comparison.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Judged {
    /// Survivors with the reason of their entry.
    pub(super) explained: Vec<(Mutant, String)>,
    pub(super) findings: Vec<Finding>,
}

/// A mutant without its place.
type Key<'a> = (&'a str, &'a str);

/// How often a mutant exists, was tried, and survived.
#[derive(Default)]
struct Tally<'a> {
    known: usize,
    noticed: usize,
    survived: Vec<&'a Mutant>,
}

/// Compares.
pub(super) fn judge(sweeps: &[Sweep], entries: &[Entry]) -> Judged {
    let mut tallies: BTreeMap<Key, Tally> = BTreeMap::new();
    for sweep in sweeps {
        for mutant in &sweep.known {
            tallies.entry(mutant.key()).or_default().known += 1;
        }
        for (mutant, fate) in &sweep.mutants {
            let tally = tallies.entry(mutant.key()).or_default();
            match fate {
                Fate::Survived => tally.survived.push(mutant),
                Fate::Caught | Fate::TimedOut | Fate::Unviable => tally.noticed += 1,
            }
        }
    }
    let mut judged = Judged::default();
    for (key, tally) in &tallies {
        let entry = entries.iter().find(|entry| entry.key() == *key);
        let allowed = entry.map_or(0, |entry| entry.times);
        // Which of several with the same words an entry means is not told by the words: all of them are shown.
        if tally.survived.len() > allowed {
            for mutant in &tally.survived {
                judged
                    .findings
                    .push(survivor(mutant, tally.survived.len(), entry));
            }
        } else if let Some(entry) = entry {
            let explained = tally.survived.iter();
            judged
                .explained
                .extend(explained.map(|mutant| ((*mutant).clone(), entry.why.clone())));
        }
    }
    for entry in entries.iter().filter(|entry| swept(sweeps, entry)) {
        let tally = tallies.get(&entry.key());
        let (known, noticed) = tally.map_or((0, 0), |tally| (tally.known, tally.noticed));
        let message = if known < entry.times {
            format!(
                "{known} such mutants exist in {}, {} are listed",
                entry.file, entry.times
            )
        } else if noticed > known - entry.times {
            format!(
                "`{}` in {} is noticed now: take the entry out, or lower `times`",
                entry.mutant, entry.file
            )
        } else {
            continue;
        };
        judged.findings.push(Finding {
            at: entry.at.clone(),
            message,
        });
    }
    judged
}

/// Whether the entry's file belongs to a package that was swept.
fn swept(sweeps: &[Sweep], entry: &Entry) -> bool {
    sweeps
        .iter()
        .any(|sweep| entry.file.starts_with(&format!("{}/", sweep.dir)))
}

fn survivor(mutant: &Mutant, count: usize, entry: Option<&Entry>) -> Finding {
    let known = match entry {
        None => "write the test, or list it with the reason".to_owned(),
        Some(entry) => format!("{count} such survive and {} says {}", entry.at, entry.times),
    };
    Finding {
        at: At::place(mutant.file.as_ref(), mutant.line, mutant.column),
        message: format!("no test notices `{}`: {known}", mutant.what),
    }
}

impl Mutant {
    fn key(&self) -> Key<'_> {
        (&self.file, &self.what)
    }
}
