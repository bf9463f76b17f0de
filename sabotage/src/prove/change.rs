//! A change as git recorded it: hunks of the product, and the names that its tests touch.
//!
//! Owns which lines count as tests and what as a document. Reads git, writes only below the cache.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::suite::Suite;
use crate::source::edit::{Splice, is_rust};
use crate::source::item::{Named, find};
use crate::source::tokens;
use crate::tree::{Tree, git};

/// One hunk of a file that is no test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(crate) file: PathBuf,
    /// First line of the new text; where nothing was added, the line before.
    pub(crate) line: usize,
    pub(crate) old: String,
    pub(crate) new: String,
}

impl Hunk {
    /// The replacement that takes it back.
    pub(crate) fn back(&self, text: &str) -> Splice {
        let skipped = if self.new.is_empty() {
            self.line
        } else {
            self.line - 1
        };
        let start: usize = text.split_inclusive('\n').take(skipped).map(str::len).sum();
        Splice {
            range: start..(start + self.new.len()).min(text.len()),
            with: self.old.clone(),
        }
    }
}

/// What a change is made of.
#[derive(Debug)]
pub(crate) struct Change {
    /// Every file that it touches.
    pub(crate) files: Vec<PathBuf>,
    /// Hunks of the product.
    pub(crate) hunks: Vec<Hunk>,
    /// Tests that it adds or touches, by the names that stand in the source.
    pub(crate) tests: Vec<String>,
    /// Words of the lines that it adds to tests.
    words: BTreeSet<String>,
}

impl Change {
    pub(crate) fn read(root: &Path, base: &str, tip: &str) -> Result<Self> {
        let listed = git(
            root,
            &[
                "diff",
                "--name-only",
                "-z",
                "--no-renames",
                "--diff-filter=AM",
                base,
                tip,
            ],
        )?;
        let files: Vec<PathBuf> = listed
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
            .collect();
        let suite = Suite::of(root);
        let mut change = Self {
            files: files.clone(),
            hunks: Vec::new(),
            tests: Vec::new(),
            words: BTreeSet::new(),
        };
        for file in files {
            let path = file.to_string_lossy().into_owned();
            let Ok(text) = git(root, &["show", &format!("{tip}:{path}")]) else {
                continue;
            };
            let diff = git(
                root,
                &[
                    "diff",
                    "--unified=0",
                    "--no-color",
                    "--no-ext-diff",
                    "--no-renames",
                    base,
                    tip,
                    "--",
                    &path,
                ],
            )?;
            let tests = if suite.holds(&file) {
                std::iter::once(0..usize::MAX).collect()
            } else {
                test_lines(&file, &text)
            };
            for hunk in hunks(&file, &diff) {
                if tests.iter().any(|range| range.contains(&hunk.line)) {
                    change.words.extend(words(&enclosing(&file, &text, &hunk)));
                    change.words.extend(words(&hunk.new));
                    for test in named(&file, &text, &hunk) {
                        if !change.tests.contains(&test) {
                            change.tests.push(test);
                        }
                    }
                } else if !is_document(&file) && !hunk.old.trim().eq(hunk.new.trim()) {
                    change.hunks.push(hunk);
                }
            }
        }
        Ok(change)
    }

    /// Whether the change adds or touches this check.
    pub(crate) fn owns(&self, check: &str) -> bool {
        let last = check
            .rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
            .next()
            .unwrap_or(check);
        self.words.contains(last)
    }
}

fn words(text: &str) -> Vec<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.split(|c| !word(c))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The name of the function that holds a hunk of a test.
fn enclosing(file: &Path, text: &str, hunk: &Hunk) -> String {
    if !is_rust(file) {
        return String::new();
    }
    let offset = hunk.back(text).range.start;
    let Some(row) = tokens::of(text) else {
        return String::new();
    };
    let index = row.iter().position(|token| token.range.start >= offset);
    index
        .and_then(|index| crate::source::item::enclosing_fn(&row, index))
        .unwrap_or_default()
}

/// Names of tests in the lines that a hunk of a test adds, and of the one that holds it.
fn named(file: &Path, text: &str, hunk: &Hunk) -> Vec<String> {
    let pattern = if is_rust(file) {
        r"\bfn\s+(\w+)"
    } else {
        r#"\bdef\s+(test_\w+)|\bfunc\s+(Test\w+)|\b(?:it|test)\(\s*["'`]([^"'`]+)|^\s*check\s+([\w-]+)"#
    };
    let pattern = regex::RegexBuilder::new(pattern).multi_line(true).build();
    let pattern = pattern.expect("the patterns are constants");
    let added = pattern
        .captures_iter(&hunk.new)
        .filter_map(|found| found.iter().skip(1).flatten().next())
        .map(|name| name.as_str().to_owned());
    let holder = enclosing(file, text, hunk);
    let holder = holder.strip_prefix("fn ").map(str::to_owned);
    let is_one = |name: &String| !is_rust(file) || attributed(text, name);
    added.chain(holder).filter(is_one).collect()
}

/// Whether a function stands below an attribute whose path ends in `test`.
fn attributed(text: &str, name: &str) -> bool {
    let mut lines = text.lines().rev();
    let head = format!("fn {name}(");
    if !lines.any(|line| line.contains(&head)) {
        return false;
    }
    let mut above = lines
        .map(str::trim)
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    let test = |line: &str| {
        let path = line
            .trim_start_matches("#[")
            .split(['(', ']'])
            .next()
            .unwrap_or_default();
        path.rsplit("::").next() == Some("test")
    };
    above.any(test)
}

/// The lines of `mod tests`.
fn test_lines(file: &Path, text: &str) -> Vec<std::ops::Range<usize>> {
    let (Some(row), Some(named)) = (tokens::of(text), Named::parse("mod tests")) else {
        return Vec::new();
    };
    if !is_rust(file) {
        return Vec::new();
    }
    let line = |offset: usize| text[..offset].matches('\n').count() + 1;
    find(&row, &named)
        .into_iter()
        .map(|range| line(row[range.start].range.start)..line(row[range.end - 1].range.end) + 1)
        .collect()
}

/// Files that no test can hold.
fn is_document(file: &Path) -> bool {
    let ext = file
        .extension()
        .map(|ext| ext.to_string_lossy().into_owned())
        .unwrap_or_default();
    matches!(
        ext.as_str(),
        "md" | "txt" | "lock" | "snap" | "yaml" | "yml" | "html" | "svg" | "gitignore"
    )
}

/// The hunks of one file's diff without context.
fn hunks(file: &Path, diff: &str) -> Vec<Hunk> {
    let mut all: Vec<Hunk> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@") {
            let new = line
                .split_whitespace()
                .nth(2)
                .unwrap_or_default()
                .trim_start_matches('+');
            let at = new
                .split(',')
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or(1);
            all.push(Hunk {
                file: file.into(),
                line: at,
                old: String::new(),
                new: String::new(),
            });
        } else if let Some(hunk) = all.last_mut() {
            if let Some(old) = line.strip_prefix('-') {
                hunk.old.push_str(old);
                hunk.old.push('\n');
            } else if let Some(new) = line.strip_prefix('+') {
                hunk.new.push_str(new);
                hunk.new.push('\n');
            }
        }
    }
    all
}

/// Puts the files of a commit below `to`, with an index of its own, and reads them as a tree.
pub(crate) fn extract(root: &Path, tip: &str, to: &Path) -> Result<Tree> {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to)?;
    let index = to.with_extension("index");
    let _ = std::fs::remove_file(&index);
    let prefix = format!("--prefix={}/", to.display());
    for args in [
        &["read-tree", tip][..],
        &["checkout-index", "--all", "--quiet", &prefix],
    ] {
        let status = Command::new("git")
            .current_dir(root)
            .args(args)
            .env("GIT_INDEX_FILE", &index)
            .status()
            .context("cannot run git")?;
        ensure!(status.success(), "git {} fails", args.join(" "));
    }
    let commit = git(root, &["rev-parse", tip])?.trim().to_owned();
    Tree::below(to, Some(commit))
}
