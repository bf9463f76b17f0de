//! A finding: what is wrong in a file, and the line and column where it stands.
//!
//! Owns the one form of every complaint about a rule, a gate or a source file, the form that editors
//! and terminals turn into links. Refuses to decide what is wrong.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A place in a file; line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct At {
    /// The file, relative to the repository.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl At {
    /// The beginning of a file.
    pub fn file(file: &Path) -> Self {
        Self {
            file: file.into(),
            line: 1,
            column: 1,
        }
    }

    /// The place of byte `offset` of `text`.
    pub fn offset(file: &Path, text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let before = String::from_utf8_lossy(before);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        Self {
            file: file.into(),
            line,
            column,
        }
    }

    /// Where the YAML parser found a node.
    pub fn location(file: &Path, location: &serde_saphyr::Location) -> Self {
        let (line, column) = (location.line() as usize, location.column() as usize);
        Self {
            file: file.into(),
            line: line.max(1),
            column: column.max(1),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where.
    pub at: At,
    /// What, in one sentence that names the nearest right name where there is one.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// The candidate that is most like `got`, if one is near enough to be what was meant.
///
/// ```
/// let names = ["publish", "drain"];
/// assert_eq!(sabotage::finding::nearest("publsh", names.into_iter()), Some("publish"));
/// assert_eq!(sabotage::finding::nearest("x", names.into_iter()), None);
/// ```
pub fn nearest<'a>(got: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(got, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3))
        .min_by_key(|(distance, candidate)| {
            (*distance, got.chars().next() != candidate.chars().next())
        })
        .map(|(_, candidate)| candidate)
}

/// `, did you mean `x`?` or nothing.
pub fn hint<'a>(got: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    nearest(got, candidates).map_or_else(String::new, |near| format!(", did you mean `{near}`?"))
}
