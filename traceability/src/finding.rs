//! A finding: what is wrong and the file, line and column where it is.
//!
//! Owns the one form in which every complaint about a file of the repository is printed, the form that
//! editors and terminals turn into links. Refuses to decide what is wrong.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_saphyr::Location;

/// A place in a file; line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct At {
    /// The file, relative to the repository.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
}

impl At {
    /// The beginning of a file.
    pub fn file(file: &Path) -> Self {
        Self::line(file, 1)
    }

    /// The beginning of a line.
    pub fn line(file: &Path, line: usize) -> Self {
        Self {
            file: file.into(),
            line: line as u64,
            column: 1,
        }
    }

    /// A line and a column.
    pub fn place(file: &Path, line: usize, column: usize) -> Self {
        Self {
            file: file.into(),
            line: line as u64,
            column: column as u64,
        }
    }

    /// Where the YAML parser found a node.
    pub fn location(file: &Path, location: &Location) -> Self {
        Self {
            file: file.into(),
            line: location.line(),
            column: location.column(),
        }
    }
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Where.
    pub at: At,
    /// What is wrong, without the place.
    pub message: String,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// The candidate that is most like `got`, if any is near enough to be what was meant. Of two that
/// are one slip away the one with the same first letter wins: `wy` meant `why`, not `by`.
pub fn nearest<'a>(got: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(got, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3))
        .min_by_key(|(distance, candidate)| {
            (*distance, got.chars().next() != candidate.chars().next())
        })
        .map(|(_, candidate)| candidate)
}

/// ", did you mean E22?", or nothing when no candidate is near.
pub fn hint<'a>(got: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    nearest(got, candidates).map_or_else(String::new, |near| format!(", did you mean {near}?"))
}
