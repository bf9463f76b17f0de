//! What the source said the last time, kept beside git's own files, for a repository that did not change since.
//!
//! Owns the key: this very program, the configuration, every listed path, and the content of each file that may be
//! searched. Refuses what it cannot be sure of: without git, or when a file that git does not list was read, nothing
//! is kept. Invariant: a kept answer is given only where searching again would give the same, so that removing the
//! file changes nothing but the time.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Source, comments};
use crate::config::Config;
use crate::cores;
use crate::files::Open;
use crate::tree::hex;

/// The directory within git's, and the file within it.
const HOME: &str = "trace";
const FILE: &str = "source.json";

/// Bytes of source that are held between the key and the search: more is read twice.
const HELD: u64 = 32 * 1024 * 1024;

/// A place to keep an answer, and the key of the repository as it is.
#[derive(Debug)]
pub(super) struct Slot {
    file: PathBuf,
    key: String,
}

/// What files hold.
pub(super) type Held<'a> = HashMap<&'a Path, Vec<u8>>;

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
    /// The slot of a repository; none where there is no place for it, or no way to be sure. Where nothing is kept the
    /// search follows, and finds in `held` what was read for the key.
    pub(super) fn of<'a>(
        root: &Path,
        config: &Config,
        listed: &'a [PathBuf],
        held: &mut Held<'a>,
    ) -> Option<Self> {
        let file = git_dir(root)?.join(HOME).join(FILE);
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
        let room = AtomicU64::new(if file.exists() { 0 } else { HELD });
        let parts = cores::each(cores::all(), listed, |path| {
            let searched = comments::Language::of(path).is_some()
                || path.extension().is_some_and(|ext| ext == "rs")
                || path.file_name().is_some_and(|name| name == "Cargo.toml");
            if !searched {
                return Some(None);
            }
            let content = std::fs::read(root.join(path)).ok()?;
            let hash = Sha256::digest(&content);
            let take = |room: u64| room.checked_sub(content.len() as u64);
            let fits = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            Some(Some((hash, fits.is_ok().then_some(content))))
        });
        for (path, part) in listed.iter().zip(parts) {
            key.update(path.as_os_str().as_encoded_bytes());
            if let Some((hash, content)) = part? {
                key.update([0]);
                key.update(hash);
                held.extend(content.map(|content| (path.as_path(), content)));
            }
            key.update([b'\n']);
        }
        let key = hex(&key.finalize());
        Some(Self { file, key })
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
    pub(super) fn put(&self, source: &Source, seen: &Seen, listed: &[PathBuf]) {
        let is_listed = |path: &PathBuf| listed.binary_search(path).is_ok();
        if !seen.read.iter().all(is_listed) {
            return;
        }
        let keep = Keep {
            key: &self.key,
            absent: &seen.absent,
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

/// The files of a repository as a search sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a> {
    /// The root of the repository.
    pub(super) root: &'a Path,
    open: &'a Open,
    held: &'a Held<'a>,
}

/// What a search looked at.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Files that were read.
    pub(super) read: BTreeSet<PathBuf>,
    /// Files that were looked for and were not there.
    pub(super) absent: BTreeSet<PathBuf>,
}

impl Seen {
    /// Adds what another search looked at.
    pub(super) fn extend(&mut self, other: Self) {
        self.read.extend(other.read);
        self.absent.extend(other.absent);
    }
}

impl<'a> Files<'a> {
    /// What an editor holds stands for what is held here, and that for what is on disk.
    pub(super) fn of(root: &'a Path, open: &'a Open, held: &'a Held<'a>) -> Self {
        Self { root, open, held }
    }

    /// The text of a file; none where it cannot be read.
    pub(super) fn text(&self, path: &Path, seen: &mut Seen) -> Option<Cow<'a, str>> {
        let text = match (self.open.get(path), self.held.get(path)) {
            (Some(text), _) => Some(Cow::Borrowed(text.as_str())),
            (None, Some(bytes)) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            (None, None) => {
                let text = std::fs::read_to_string(self.root.join(path));
                text.ok().map(Cow::Owned)
            }
        };
        let looked = match text {
            Some(_) => &mut seen.read,
            None => &mut seen.absent,
        };
        looked.insert(path.to_owned());
        text
    }

    /// The bytes of a listed file, whatever they are.
    pub(super) fn bytes(&self, path: &Path) -> Cow<'a, [u8]> {
        if let Some(text) = self.open.get(path) {
            return Cow::Borrowed(text.as_bytes());
        }
        match self.held.get(path) {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(std::fs::read(self.root.join(path)).unwrap_or_default()),
        }
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, path: &Path, seen: &mut Seen) -> bool {
        let there = self.held.contains_key(path) || self.root.join(path).is_file();
        if !there {
            seen.absent.insert(path.to_owned());
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
