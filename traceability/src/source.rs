//! What the source says: which tests there are, where, and which rows each names.
//!
//! Reading order: `cargo` (which files make which binary), `rust` (tests of Rust), `comments` and
//! `lexer` (tests of other languages). Refuses to run or build anything: what macros make is told by
//! the events of a run. Invariant: a tag is a tag only where the language has an attribute or a
//! comment, never inside a string.

mod cache;
pub mod cargo;
pub mod comments;
mod items;
mod lexer;
pub mod rust;
#[cfg(test)]
mod tests;
mod unreached;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use cache::{Files, Held, Seen, Slot};

use crate::code::{Code, Fault};
use crate::config::Config;
use crate::cores;
use crate::files::{self, Open};
use crate::finding::{At, Finding};
use crate::rows::read::Need;

/// A row that a test names, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The id as written.
    pub id: String,
    /// Its place.
    pub at: At,
}

/// One test, phase or probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// What runs it: `package::target` for Rust (as nextest names it), the dotted module for Python, the
    /// file elsewhere.
    pub suite: String,
    /// Its path within the suite, as the runner prints it.
    pub name: String,
    /// The rows that it names.
    pub rows: Vec<Named>,
    /// What kind of evidence it is.
    pub kind: Need,
    /// Where it stands.
    pub at: At,
    /// Its last line.
    pub last: u64,
    /// The conditions of compilation that it stands under, as written.
    pub cfg: Vec<String>,
    /// Whether the source says that it is not to be run.
    pub ignored: bool,
    /// SHA-256 over its tokens; white space and comments do not count.
    pub hash: String,
    /// Its crate, with underscores; empty where there is none.
    pub krate: String,
}

impl Test {
    /// Suite and name as one text, by which trace.lock and people name it.
    pub fn id(&self) -> String {
        if self.suite.is_empty() {
            self.name.clone()
        } else {
            format!("{} {}", self.suite, self.name)
        }
    }
}

/// Everything that the source says.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Source {
    /// The tests, by suite and name.
    pub tests: Vec<Test>,
    /// Misplaced tags and files that do not parse.
    pub faults: Vec<Fault>,
    /// Files that were searched.
    pub searched: Vec<PathBuf>,
    /// Tests that a macro makes under names that the source does not tell: attributes and their places.
    pub by_macro: Vec<Named>,
}

impl Source {
    /// A fault at a place.
    fn fault(&mut self, code: Code, at: At, message: String) {
        self.faults.push(Fault::new(code, Finding { at, message }));
    }

    /// Adds what another part of the source says.
    fn extend(&mut self, other: Self) {
        self.tests.extend(other.tests);
        self.faults.extend(other.faults);
        self.searched.extend(other.searched);
        self.by_macro.extend(other.by_macro);
    }
}

/// Searches the files of a repository, or takes what is kept of a search of the very same.
pub fn read(root: &Path, config: &Config, listed: &[PathBuf], open: &Open) -> Source {
    let mut held = Held::default();
    // What an editor holds is not what is on disk, and changes with each key.
    let slot = open
        .is_empty()
        .then(|| Slot::of(root, config, listed, &mut held))
        .flatten();
    if let Some(kept) = slot.as_ref().and_then(|slot| slot.get(root)) {
        return kept;
    }
    let files = Files::of(root, open, &held);
    let (source, seen) = search(config, listed, files, cores::all());
    if let Some(slot) = slot {
        slot.put(&source, &seen, listed);
    }
    source
}

/// What is searched by itself.
enum Part<'a> {
    /// A binary's files, from its root.
    Target(&'a cargo::Target),
    /// A file of another language.
    File(comments::Language, &'a Path),
}

fn search(config: &Config, listed: &[PathBuf], files: Files<'_>, cores: usize) -> (Source, Seen) {
    let wanted = |path: &&PathBuf| {
        let path = path.to_string_lossy();
        let matches = |pattern: &String| files::matches(pattern, &path);
        let asked = config.tests.is_empty() || config.tests.iter().any(matches);
        asked && !config.ignore.iter().any(matches)
    };
    let candidates: Vec<&PathBuf> = listed.iter().filter(wanted).collect();
    let rust: BTreeSet<&Path> = candidates
        .iter()
        .map(|path| path.as_path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
        .collect();
    let targets = cargo::targets(files.root, listed);
    let other = candidates.iter().filter_map(|path| {
        let language = comments::Language::of(path)?;
        Some(Part::File(language, path))
    });
    let parts: Vec<Part<'_>> = targets.iter().map(Part::Target).chain(other).collect();
    let found = cores::each(cores, &parts, |part| {
        let (mut source, mut seen) = (Source::default(), Seen::default());
        match part {
            Part::Target(target) => {
                rust::read(
                    &config.attribute,
                    target,
                    &rust,
                    files,
                    &mut source,
                    &mut seen,
                );
            }
            Part::File(language, path) => {
                let bytes = files.bytes(path);
                comments::read(
                    *language,
                    path,
                    &String::from_utf8_lossy(&bytes),
                    &mut source,
                );
            }
        }
        (source, seen)
    });
    let (mut source, mut seen) = (Source::default(), Seen::default());
    let mut others = Vec::new();
    for (part, (own, looked)) in parts.iter().zip(found) {
        match part {
            Part::Target(_) => source.extend(own),
            Part::File(_, path) => others.push((path, own)),
        }
        seen.extend(looked);
    }
    // Every file that could be read was searched, by whichever target.
    source.searched.extend(seen.read.iter().cloned());
    unreached::tell(&config.attribute, &rust, files, cores, &mut source);
    for (path, own) in others {
        source.extend(own);
        source.searched.push(path.to_path_buf());
    }
    source
        .tests
        .sort_by(|a, b| (&a.suite, &a.name, &a.at).cmp(&(&b.suite, &b.name, &b.at)));
    (source, seen)
}
