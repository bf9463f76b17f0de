//! A finding: what is wrong and the file, line and column where it is.
//!
//! Owns the one form in which every complaint about a file of the repository is printed, the form that
//! editors and terminals turn into links. Refuses to decide what is wrong.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_saphyr::Location;

/// A place in a file; line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At {
    file: PathBuf,
    line: u64,
    column: u64,
}

impl At {
    /// The beginning of a file.
    pub(crate) fn file(file: &Path) -> Self {
        Self::line(file, 1)
    }

    /// The beginning of a line.
    pub(crate) fn line(file: &Path, line: usize) -> Self {
        Self {
            file: file.into(),
            line: line as u64,
            column: 1,
        }
    }

    /// A line and a column.
    pub(crate) fn place(file: &Path, line: usize, column: usize) -> Self {
        Self {
            file: file.into(),
            line: line as u64,
            column: column as u64,
        }
    }

    /// Where the YAML parser found a node.
    pub(crate) fn location(file: &Path, location: &Location) -> Self {
        Self {
            file: file.into(),
            line: location.line(),
            column: location.column(),
        }
    }
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) at: At,
    pub(crate) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At { file, line, column } = &self.at;
        write!(f, "{}:{line}:{column}: {}", file.display(), self.message)
    }
}

/// The candidate that is most like `got`, if any is near enough to be what was meant. Of two that
/// are one slip away the one with the same first letter wins: `wy` meant `why`, not `by`.
pub(crate) fn nearest<'a>(got: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(got, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3))
        .min_by_key(|(distance, candidate)| {
            (*distance, got.chars().next() != candidate.chars().next())
        })
        .map(|(_, candidate)| candidate)
}
