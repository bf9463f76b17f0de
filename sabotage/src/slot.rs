//! Slots: copies of the tree outside the repository, in which rules are applied and built.
//!
//! Owns the copy and its target directory. Refuses to share either with another run: a slot is locked.
//! Invariant: after [`Slot::sync`] the copy holds the tree's files with the tree's bytes, and no others
//! outside what builds make, however the last run ended; a file that had the right bytes keeps its time,
//! one that is written gets the present one, so that cargo notices.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tree::{Kind, Tree, hash_of};

/// The directory of all that is kept for one repository between runs.
pub fn home(root: &Path) -> Result<PathBuf> {
    let base = std::env::var_os("SABOTAGE_CACHE")
        .map(PathBuf::from)
        .or_else(|| {
            std::env::var_os("XDG_CACHE_HOME").map(|dir| PathBuf::from(dir).join("sabotage"))
        })
        .or_else(|| std::env::var_os("HOME").map(|dir| PathBuf::from(dir).join(".cache/sabotage")))
        .context("no cache directory: set SABOTAGE_CACHE")?;
    let root = root
        .canonicalize()
        .with_context(|| format!("cannot find {}", root.display()))?;
    let name = root
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let key = hash_of(root.to_string_lossy().as_bytes());
    let home = base.join(format!("{name}-{}", &key[..12]));
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    Ok(home)
}

/// One copy, locked while this value lives.
#[derive(Debug)]
pub struct Slot {
    /// The copy's root.
    pub tree: PathBuf,
    /// Where cargo builds the copy.
    pub target: PathBuf,
    dirty: PathBuf,
    _lock: File,
}

impl Slot {
    /// Opens the slot `name` of a repository's home, or fails when another run has it.
    pub fn open(home: &Path, name: &str) -> Result<Self> {
        let dir = home.join("slots").join(name);
        let tree = dir.join("tree");
        fs::create_dir_all(&tree).with_context(|| format!("cannot make {}", tree.display()))?;
        let lock = File::create(dir.join("lock")).context("cannot make the slot's lock")?;
        lock.try_lock()
            .with_context(|| format!("another run uses {}", dir.display()))?;
        Ok(Self {
            tree,
            target: dir.join("target"),
            dirty: dir.join("dirty"),
            _lock: lock,
        })
    }

    /// Whether the last run ended with a rule applied.
    pub fn was_dirty(&self) -> Option<String> {
        fs::read_to_string(&self.dirty).ok()
    }

    /// Makes the copy equal to `tree`; returns how many files were written or removed.
    pub fn sync(&self, tree: &Tree) -> Result<usize> {
        let mut changed = 0;
        let wanted: BTreeSet<&Path> = tree
            .entries
            .iter()
            .map(|entry| entry.path.as_path())
            .collect();
        for stray in self.strays(&wanted)? {
            fs::remove_file(&stray)
                .with_context(|| format!("cannot remove {}", stray.display()))?;
            changed += 1;
        }
        for entry in &tree.entries {
            let (from, to) = (tree.root.join(&entry.path), self.tree.join(&entry.path));
            if same(&to, entry.kind, &entry.hash) {
                continue;
            }
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            if fs::symlink_metadata(&to).is_ok_and(|meta| meta.is_dir()) {
                fs::remove_dir_all(&to)?;
            } else if fs::symlink_metadata(&to).is_ok() {
                fs::remove_file(&to)?;
            }
            if entry.kind == Kind::Link {
                symlink(fs::read_link(&from)?, &to)?;
            } else {
                // Read and write, not a copy of the file's time: the present one makes cargo look.
                fs::write(&to, fs::read(&from)?)?;
                let mode = if entry.kind == Kind::Executable {
                    0o755
                } else {
                    0o644
                };
                fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
            }
            changed += 1;
        }
        let _ = fs::remove_file(&self.dirty);
        Ok(changed)
    }

    /// Files of the copy that are not of the tree; directories named `target` are what builds make.
    fn strays(&self, wanted: &BTreeSet<&Path>) -> Result<Vec<PathBuf>> {
        let mut strays = Vec::new();
        let mut open = vec![PathBuf::new()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(self.tree.join(&dir))? {
                let entry = entry?;
                let path = dir.join(entry.file_name());
                if entry.file_type()?.is_dir() {
                    if path != Path::new("target") && path != Path::new(".git") {
                        open.push(path);
                    }
                } else if !wanted.contains(path.as_path()) {
                    strays.push(entry.path());
                }
            }
        }
        Ok(strays)
    }

    /// Writes new texts; the slot is marked dirty first, so that a run that dies here is noticed.
    pub fn write<'a>(
        &self,
        why: &str,
        files: impl Iterator<Item = (&'a Path, &'a str)>,
    ) -> Result<()> {
        fs::write(&self.dirty, why).context("cannot mark the slot dirty")?;
        for (path, text) in files {
            let to = self.tree.join(path);
            fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
        }
        Ok(())
    }

    /// Says that every file is as the tree has it again.
    pub fn clean(&self) {
        let _ = fs::remove_file(&self.dirty);
    }
}

/// Whether the copy's file has the kind and the bytes.
fn same(path: &Path, kind: Kind, hash: &str) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return false;
    };
    if kind == Kind::Link {
        return fs::read_link(path)
            .is_ok_and(|target| hash_of(target.to_string_lossy().as_bytes()) == hash);
    }
    let executable = meta.permissions().mode() & 0o111 != 0;
    meta.is_file()
        && executable == (kind == Kind::Executable)
        && fs::read(path).is_ok_and(|bytes| hash_of(&bytes) == hash)
}
