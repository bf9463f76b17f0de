//! `trace.lock`: what each edge was when it was last proven or accepted.
//!
//! Owns the file's form: one sorted line an edge, parted by tabs: row, test, hash of the claim, of the
//! test's tokens, of the sabotages, and the reason of whoever accepted it. Refuses to guess: hashes are equal or
//! not. Invariant: a change of one edge changes one line, so that two branches seldom conflict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::code::{Code, Fault};
use crate::finding::{At, Finding};
use crate::graph::{Graph, is_check};
use crate::rows::read::Row;
use crate::sabotage::Rules;
use crate::tree::sha256;

/// The file's name within the directory of the rows.
pub const FILE: &str = "trace.lock";

const HEAD: &str = "# What each edge was when it was last proven or accepted; written by `trace accept`.\n\
                    # row, test, claim, tokens of the test, sabotages, why\n";

/// One edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The row's id.
    pub row: String,
    /// The test's id.
    pub test: String,
    /// Hash of the claim.
    pub claim: String,
    /// Hash of the test's tokens.
    pub tokens: String,
    /// Hash of the rules that break the row and expect this test to notice.
    pub sabotages: String,
    /// Why it was accepted, or `proven`.
    pub why: String,
}

/// All edges of the file, by row and test.
#[derive(Debug, Default)]
pub struct Lock {
    /// The path, relative to the repository.
    pub path: PathBuf,
    /// Lines and their numbers.
    pub lines: BTreeMap<(String, String), (Line, usize)>,
}

impl Lock {
    /// Reads the file; a missing one locks nothing.
    pub fn read(root: &Path, spec: &Path) -> Result<(Self, Vec<Fault>)> {
        let path = spec.join(FILE);
        let text = match std::fs::read_to_string(root.join(&path)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        Ok(Self::parse(path, &text))
    }

    /// Parses a text.
    pub fn parse(path: PathBuf, text: &str) -> (Self, Vec<Fault>) {
        let mut lines = BTreeMap::new();
        let mut faults = Vec::new();
        for (index, text) in text.lines().enumerate() {
            if text.starts_with('#') || text.is_empty() {
                continue;
            }
            let parts: Vec<&str> = text.split('\t').collect();
            let [row, test, claim, tokens, sabotages, why] = parts[..] else {
                let message = format!("six fields are wanted and {} are here", parts.len());
                let finding = Finding {
                    at: At::line(&path, index + 1),
                    message,
                };
                faults.push(Fault::new(Code::LockUnreadable, finding));
                continue;
            };
            let line = Line {
                row: row.into(),
                test: test.into(),
                claim: claim.into(),
                tokens: tokens.into(),
                sabotages: sabotages.into(),
                why: why.into(),
            };
            lines.insert((row.to_owned(), test.to_owned()), (line, index + 1));
        }
        (Self { path, lines }, faults)
    }

    /// The line of an edge as it is now.
    pub fn line_of(&self, graph: &Graph, edge: usize, row: &Row, rules: &Rules) -> Line {
        let edge = &graph.edges[edge];
        let test = &graph.shown[edge.test].test;
        let mut breaks: Vec<&str> = rules
            .breaking(&edge.row)
            .filter(|rule| rule.checks.iter().any(|(check, _)| is_check(check, test)))
            .map(|rule| rule.hash.as_str())
            .collect();
        breaks.sort_unstable();
        let sabotages = if breaks.is_empty() {
            "-".to_owned()
        } else {
            short(&sha256(breaks.join("\n").as_bytes()))
        };
        Line {
            row: edge.row.clone(),
            test: test.id(),
            claim: claim_hash(&row.claim.value),
            tokens: short(&test.hash),
            sabotages,
            why: String::new(),
        }
    }

    /// Whether some edge of a row has a line: where none has, nothing needs to be hashed.
    pub fn has_row(&self, row: &str) -> bool {
        if self.lines.is_empty() {
            return false;
        }
        let from = (row.to_owned(), String::new());
        let first = self.lines.range(from..).next();
        first.is_some_and(|((found, _), _)| found == row)
    }

    /// What of an edge changed since its line was written; none when nothing did or it has no line.
    pub fn changed(&self, now: &Line) -> Option<String> {
        let (old, number) = self.lines.get(&(now.row.clone(), now.test.clone()))?;
        let parts = [
            ("the claim", old.claim != now.claim),
            ("the test", old.tokens != now.tokens),
            ("a sabotage", old.sabotages != now.sabotages),
        ];
        let changed: Vec<&str> = parts
            .into_iter()
            .filter_map(|(name, changed)| changed.then_some(name))
            .collect();
        (!changed.is_empty()).then(|| {
            format!(
                "{} changed since {}:{number}",
                changed.join(" and "),
                self.path.display()
            )
        })
    }

    /// The text of the file with some edges renewed and those that are no more removed.
    pub fn renewed(&self, fresh: Vec<Line>, exists: impl Fn(&Line) -> bool) -> String {
        let mut lines: BTreeMap<(String, String), Line> = self
            .lines
            .iter()
            .filter(|(_, (line, _))| exists(line))
            .map(|(key, (line, _))| (key.clone(), line.clone()))
            .collect();
        for line in fresh {
            lines.insert((line.row.clone(), line.test.clone()), line);
        }
        let mut text = HEAD.to_owned();
        for line in lines.values() {
            let why = line.why.replace(['\t', '\n'], " ");
            let parts = [
                &line.row,
                &line.test,
                &line.claim,
                &line.tokens,
                &line.sabotages,
                &why,
            ];
            text.push_str(&parts.map(String::as_str).join("\t"));
            text.push('\n');
        }
        text
    }
}

/// The hash of a claim, white space folded.
pub fn claim_hash(claim: &str) -> String {
    let words: Vec<&str> = claim.split_whitespace().collect();
    short(&sha256(words.join(" ").as_bytes()))
}

/// As much of a hash as the file keeps.
pub fn short(hash: &str) -> String {
    hash.chars().take(16).collect()
}
