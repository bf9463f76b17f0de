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

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use cache::Probed;

use crate::code::{Code, Fault};
use crate::config::Config;
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
}

/// Searches the files of a repository, or takes what is kept of a search of the very same.
pub fn read(root: &Path, config: &Config, listed: &[PathBuf], open: &Open) -> Source {
    // What an editor holds is not what is on disk, and changes with each key.
    let slot = open
        .is_empty()
        .then(|| cache::Slot::of(root, config, listed))
        .flatten();
    if let Some(kept) = slot.as_ref().and_then(|slot| slot.get(root)) {
        return kept;
    }
    let mut probed = Probed::of(root, open);
    let source = search(config, listed, &mut probed);
    if let Some(slot) = slot {
        slot.put(&source, &probed, listed);
    }
    source
}

fn search(config: &Config, listed: &[PathBuf], probed: &mut Probed<'_>) -> Source {
    let wanted = |path: &&PathBuf| {
        let path = path.to_string_lossy();
        let asked = config.tests.is_empty()
            || config
                .tests
                .iter()
                .any(|pattern| files::matches(pattern, &path));
        asked
            && !config
                .ignore
                .iter()
                .any(|pattern| files::matches(pattern, &path))
    };
    let mut source = Source::default();
    let candidates: Vec<&PathBuf> = listed.iter().filter(wanted).collect();
    let rust: BTreeSet<&Path> = candidates
        .iter()
        .map(|path| path.as_path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
        .collect();
    rust::read(&config.attribute, listed, &rust, &mut source, probed);
    for path in candidates {
        if let Some(language) = comments::Language::of(path) {
            let text = probed.bytes(path);
            let text = String::from_utf8_lossy(&text);
            source.searched.push(path.clone());
            comments::read(language, path, &text, &mut source);
        }
    }
    source
        .tests
        .sort_by(|a, b| (&a.suite, &a.name, &a.at).cmp(&(&b.suite, &b.name, &b.at)));
    source
}
