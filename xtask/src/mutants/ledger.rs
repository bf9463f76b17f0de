//! The list of survivors: mutants that no test notices, and why that is right.
//!
//! Owns the list's form. Refuses to know what survives today. Invariant: each entry has a reason, and no two
//! entries are of the same mutant.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::finding::{At, Finding};
use traceability::rows::read::explain;

/// One entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The file that is changed.
    pub(super) file: String,
    /// The change in cargo-mutants' words, without the place: lines move.
    pub(super) mutant: String,
    /// How many such changes of this file survive; two in one function have the same words.
    pub(super) times: usize,
    pub(super) why: String,
    pub(super) at: At,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    file: String,
    mutants: Vec<Spanned<String>>,
    #[serde(default = "one")]
    times: usize,
    why: String,
}

fn one() -> usize {
    1
}

impl Entry {
    /// A mutant without its place: file and words.
    pub(super) fn key(&self) -> (&str, &str) {
        (&self.file, &self.mutant)
    }
}

/// Reads the list; a file that is not there is an empty one.
pub(super) fn read(root: &Path, path: &Path) -> Result<Vec<Entry>> {
    match std::fs::read_to_string(root.join(path)) {
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Parses the list; one of comments alone is empty.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Entry>> {
    let blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(blank) {
        return Ok(Vec::new());
    }
    let written: Vec<Written> = serde_saphyr::from_str(text)
        .map_err(|error| anyhow::anyhow!("{}", explain(path, error.without_snippet())))?;
    let mut entries: Vec<Entry> = Vec::new();
    for written in written {
        let why = written.why.split_whitespace().collect::<Vec<_>>().join(" ");
        for mutant in written.mutants {
            let entry = Entry {
                file: written.file.clone(),
                mutant: mutant.value,
                times: written.times,
                why: why.clone(),
                at: At::location(path, &mutant.referenced),
            };
            let twice = entries.iter().find(|other| other.key() == entry.key());
            let message = if why.split(' ').count() < 3 {
                "`why` gives no reason: say why no test could or should notice".to_owned()
            } else if entry.times == 0 {
                "`times` is 0: leave the entry out".to_owned()
            } else if let Some(first) = twice {
                format!("the same mutant stands at {}: use `times`", first.at)
            } else {
                entries.push(entry);
                continue;
            };
            let at = entry.at;
            bail!("{}", Finding { at, message });
        }
    }
    Ok(entries)
}
