//! What a rule does to a file, as places and whole lines: for people and for reports.
//!
//! Owns lines and columns of a splice. Invariant: `old` is what stands in the file from line `line` on.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::edit::Changed;
use crate::finding::At;

/// One replacement. Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// The file, relative to the repository.
    pub file: String,
    /// Where the replaced text begins.
    pub line: usize,
    /// Where the replaced text begins.
    pub column: usize,
    /// Where it ends.
    pub end_line: usize,
    /// Where it ends.
    pub end_column: usize,
    /// What stands there instead.
    pub with: String,
    /// The lines that are touched, as they are.
    pub old: String,
    /// The lines that are touched, as the rule makes them.
    pub new: String,
}

impl Patch {
    /// The patches of one file, rising.
    pub fn of(path: &Path, changed: &Changed) -> Vec<Self> {
        let before = &changed.before;
        let one = |splice: &super::edit::Splice| {
            let range = splice.range.clone();
            let start = before[..range.start].rfind('\n').map_or(0, |at| at + 1);
            let end = before[range.end..]
                .find('\n')
                .map_or(before.len(), |at| range.end + at);
            let (from, to) = (
                At::offset(path, before, range.start),
                At::offset(path, before, range.end),
            );
            Self {
                file: path.display().to_string(),
                line: from.line,
                column: from.column,
                end_line: to.line,
                end_column: to.column,
                with: splice.with.clone(),
                old: before[start..end].to_owned(),
                new: [
                    &before[start..range.start],
                    &splice.with,
                    &before[range.end..end],
                ]
                .concat(),
            }
        };
        changed.splices.iter().map(one).collect()
    }

    /// Whether the lines stand in `text` where this patch says.
    pub fn fits(&self, text: &str) -> bool {
        let start = text
            .split_inclusive('\n')
            .take(self.line.saturating_sub(1))
            .map(str::len)
            .sum::<usize>();
        text[start..].starts_with(&self.old)
    }
}

/// A hunk without context.
impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (old, new) = (self.old.lines().count(), self.new.lines().count());
        writeln!(f, "@@ -{0},{old} +{0},{new} @@", self.line)?;
        for line in self.old.lines() {
            writeln!(f, "-{line}")?;
        }
        for line in self.new.lines() {
            writeln!(f, "+{line}")?;
        }
        Ok(())
    }
}
