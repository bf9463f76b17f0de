//! What the source said the last time, kept beside git's own files, for a repository that did not change since.
//!
//! Owns the key: this very program, the configuration, every listed path, and the content of each file that may be
//! searched. Refuses what it cannot be sure of: without git, or when a file that git does not list was read, nothing
//! is kept. Invariant: a kept answer is given only where searching again would give the same, so that removing the
//! file changes nothing but the time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Source, comments};
use crate::config::Config;
use crate::files::{self, Open};
use crate::tree::hex;

/// The directory within git's, and the file within it.
const HOME: &str = "trace";
const FILE: &str = "source.json";

/// A place to keep an answer, and the key of the repository as it is.
#[derive(Debug)]
pub(super) struct Slot {
    file: PathBuf,
    key: String,
}

#[derive(Serialize)]
struct Keep<'a> {
    key: &'a str,
    absent: &'a BTreeSet<PathBuf>,
    source: &'a Source,
}

#[derive(Deserialize)]
struct Kept {
    key: String,
    absent: BTreeSet<PathBuf>,
    source: Source,
}

impl Slot {
    /// The slot of a repository; none where there is no place for it, or no way to be sure.
    pub(super) fn of(root: &Path, config: &Config, listed: &[PathBuf]) -> Option<Self> {
        let home = git_dir(root)?.join(HOME);
        let mut key = Sha256::new();
        let own = std::env::current_exe().ok()?;
        let meta = std::fs::metadata(&own).ok()?;
        key.update(format!(
            "{} {} {:?}\n",
            own.display(),
            meta.len(),
            meta.modified().ok()?
        ));
        key.update(format!(
            "{:?} {:?} {:?}\n",
            config.attribute, config.tests, config.ignore
        ));
        for path in listed {
            key.update(path.as_os_str().as_encoded_bytes());
            let searched = comments::Language::of(path).is_some()
                || path.extension().is_some_and(|ext| ext == "rs")
                || path.file_name().is_some_and(|name| name == "Cargo.toml");
            if searched {
                let content = std::fs::read(root.join(path)).ok()?;
                key.update([0]);
                key.update(Sha256::digest(&content));
            }
            key.update([b'\n']);
        }
        Some(Self {
            file: home.join(FILE),
            key: hex(&key.finalize()),
        })
    }

    /// What is kept for this key.
    pub(super) fn get(&self, root: &Path) -> Option<Source> {
        let text = std::fs::read(&self.file).ok()?;
        // The key stands first: another one ends the reading.
        let begins = format!("{{\"key\":\"{}\"", self.key);
        if !text.starts_with(begins.as_bytes()) {
            return None;
        }
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        let same = kept.key == self.key && kept.absent.iter().all(|path| !root.join(path).exists());
        same.then_some(kept.source)
    }

    /// Keeps an answer, whole or not at all. What cannot be written is searched again the next time.
    pub(super) fn put(&self, source: &Source, probed: &Probed<'_>, listed: &[PathBuf]) {
        let is_listed = |path: &PathBuf| listed.binary_search(path).is_ok();
        if !probed.read.iter().all(is_listed) {
            return;
        }
        let keep = Keep {
            key: &self.key,
            absent: &probed.absent,
            source,
        };
        let written = || -> Option<()> {
            let text = serde_json::to_vec(&keep).ok()?;
            let home = self.file.parent()?;
            std::fs::create_dir_all(home).ok()?;
            let beside = home.join(format!("{FILE}.{}", std::process::id()));
            std::fs::write(&beside, text).ok()?;
            std::fs::rename(&beside, &self.file).ok()
        };
        let _ = written();
    }
}

/// The files of a repository as a search sees them, and what it looked at.
#[derive(Debug)]
pub(super) struct Probed<'a> {
    root: &'a Path,
    open: &'a Open,
    /// Files that were read.
    pub(super) read: BTreeSet<PathBuf>,
    /// Files that were looked for and were not there.
    pub(super) absent: BTreeSet<PathBuf>,
}

impl<'a> Probed<'a> {
    /// Nothing was looked at so far.
    pub(super) fn of(root: &'a Path, open: &'a Open) -> Self {
        Self {
            root,
            open,
            read: BTreeSet::new(),
            absent: BTreeSet::new(),
        }
    }

    /// The root of the repository.
    pub(super) fn root(&self) -> &'a Path {
        self.root
    }

    /// The text of a file; none where it cannot be read.
    pub(super) fn text(&mut self, path: &Path) -> Option<String> {
        let text = files::text(self.root, self.open, path).ok();
        let looked = match text {
            Some(_) => &mut self.read,
            None => &mut self.absent,
        };
        looked.insert(path.to_owned());
        text
    }

    /// The bytes of a listed file, whatever they are.
    pub(super) fn bytes(&self, path: &Path) -> Vec<u8> {
        match self.open.get(path) {
            Some(text) => text.clone().into_bytes(),
            None => std::fs::read(self.root.join(path)).unwrap_or_default(),
        }
    }

    /// Whether there is such a file.
    pub(super) fn has(&mut self, path: &Path) -> bool {
        let there = self.root.join(path).is_file();
        if !there {
            self.absent.insert(path.to_owned());
        }
        there
    }
}

/// Git's directory of a checkout; of a linked worktree the one that its file names.
fn git_dir(root: &Path) -> Option<PathBuf> {
    let own = root.join(".git");
    if own.is_dir() {
        return Some(own);
    }
    let text = std::fs::read_to_string(&own).ok()?;
    let dir = root.join(text.trim().strip_prefix("gitdir: ")?);
    dir.is_dir().then_some(dir)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::{Source, read};
    use crate::config::Config;
    use crate::files::Open;

    fn names(source: &Source) -> Vec<String> {
        source.tests.iter().map(|test| test.name.clone()).collect()
    }

    fn at(root: &Path) -> PathBuf {
        root.join(".git/trace/source.json")
    }

    #[m0_spec::row(T18, T19)]
    #[test]
    fn what_is_kept_is_given_only_to_the_same_repository() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let root = dir.path();
        std::fs::create_dir_all(root.join(".git")).expect("made");
        std::fs::create_dir_all(root.join("src")).expect("made");
        let write =
            |name: &str, text: &str| std::fs::write(root.join(name), text).expect("written");
        let manifest = "[package]\nname = \"a\"\n";
        write("Cargo.toml", manifest);
        write("src/lib.rs", "mod more;\n#[test]\nfn one() {}\n");
        write("test_a.py", "# proves: E1\ndef test_a():\n    pass\n");
        write("src/deep.rs", "#[test]\nfn two() {}\n");
        let listed: Vec<PathBuf> = ["Cargo.toml", "src/deep.rs", "src/lib.rs", "test_a.py"]
            .map(PathBuf::from)
            .into();
        let search = |listed: &[PathBuf]| read(root, &Config::default(), listed, &Open::new());
        let first = search(&listed);
        assert_eq!(names(&first), ["one", "test_a"]);
        // What is kept is what is given: a mark in it comes back.
        let kept = std::fs::read_to_string(at(root)).expect("it is kept");
        write(
            ".git/trace/source.json",
            &kept.replace("\"test_a\"", "\"test_kept\""),
        );
        assert_eq!(names(&search(&listed)), ["one", "test_kept"]);
        // Another content of the same length, at whatever time.
        write("test_a.py", "# proves: E1\ndef test_b():\n    pass\n");
        assert_eq!(names(&search(&listed)), ["one", "test_b"]);
        // A module that nobody lists and that was not there before: it is read, and nothing is kept.
        let deep = "#[path = \"deep.rs\"]\nmod deep;\n";
        write("src/more.rs", deep);
        assert_eq!(
            names(&search(&listed)),
            ["more::deep::two", "one", "test_b"]
        );
        write("src/more.rs", &deep.replace("mod deep", "mod down"));
        assert_eq!(
            names(&search(&listed)),
            ["more::down::two", "one", "test_b"]
        );
        // Half a file is no answer.
        std::fs::remove_file(root.join("src/more.rs")).expect("it was there");
        search(&listed);
        let kept = std::fs::read_to_string(at(root)).expect("it is kept");
        write(".git/trace/source.json", &kept[..kept.len() - 9]);
        assert_eq!(names(&search(&listed)), ["one", "test_b"]);
        // Another attribute, another list.
        let config = Config {
            ignore: vec!["*.py".into()],
            ..Config::default()
        };
        assert_eq!(names(&read(root, &config, &listed, &Open::new())), ["one"]);
        assert_eq!(names(&search(&listed[..3])), ["one"]);
    }
}
