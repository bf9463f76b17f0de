//! The user's working tree: which files belong to it, and one hash over all of them.
//!
//! Owns the reading of the tree. Refuses to write it, and runs no git command that does: `ls-files` and
//! `rev-parse` only. Invariant: two trees of the same files, modes and bytes have the same hash.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sha2::{Digest as _, Sha256};

/// One file of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Hash of the content, or of the link's target.
    pub hash: String,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file that is not executable.
    Plain,
    /// A file that is.
    Executable,
    /// A symbolic link.
    Link,
}

impl Kind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Executable => "executable",
            Self::Link => "link",
        }
    }
}

/// A tree as it was at one moment.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The root of the repository.
    pub root: PathBuf,
    /// The files, sorted by path.
    pub entries: Vec<Entry>,
    /// Hash over paths, kinds and contents.
    pub hash: String,
    /// The commit, when there is one.
    pub commit: Option<String>,
}

/// The root of the repository that holds `dir`.
pub fn root_of(dir: &Path) -> Result<PathBuf> {
    let text = git(dir, &["rev-parse", "--show-toplevel"])
        .with_context(|| format!("{} is in no git repository", dir.display()))?;
    Ok(PathBuf::from(text.trim_end_matches('\n')))
}

impl Tree {
    /// Reads the tree at `root`: tracked files and new ones that are not ignored.
    pub fn read(root: &Path) -> Result<Self> {
        let listed = git(root, &["ls-files", "-z", "-co", "--exclude-standard"])?;
        let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut entries = Vec::with_capacity(paths.len());
        for path in paths {
            entries.extend(entry(root, Path::new(path))?);
        }
        let commit = git(root, &["rev-parse", "--verify", "--quiet", "HEAD"]).ok();
        Ok(Self::of(
            root,
            entries,
            commit.map(|text| text.trim().to_owned()),
        ))
    }

    /// Reads every file below a directory that is no repository.
    pub fn below(root: &Path, commit: Option<String>) -> Result<Self> {
        let mut entries = Vec::new();
        let mut open = vec![PathBuf::new()];
        while let Some(dir) = open.pop() {
            for found in std::fs::read_dir(root.join(&dir))? {
                let found = found?;
                let path = dir.join(found.file_name());
                if found.file_type()?.is_dir() {
                    open.push(path);
                } else {
                    entries.extend(entry(root, &path)?);
                }
            }
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self::of(root, entries, commit))
    }

    fn of(root: &Path, entries: Vec<Entry>, commit: Option<String>) -> Self {
        let mut all = Sha256::new();
        for entry in &entries {
            all.update(entry.path.to_string_lossy().as_bytes());
            all.update([0, entry.kind as u8]);
            all.update(entry.hash.as_bytes());
        }
        Self {
            root: root.into(),
            entries,
            hash: hex(&all.finalize()),
            commit,
        }
    }
}

/// The entry at a path; none when it is listed and gone, or a submodule.
fn entry(root: &Path, path: &Path) -> Result<Option<Entry>> {
    let full = root.join(path);
    let Ok(meta) = std::fs::symlink_metadata(&full) else {
        return Ok(None);
    };
    if meta.is_dir() {
        return Ok(None);
    }
    let (kind, hash) = if meta.is_symlink() {
        let target = std::fs::read_link(&full)?;
        (Kind::Link, hash_of(target.to_string_lossy().as_bytes()))
    } else {
        let bytes =
            std::fs::read(&full).with_context(|| format!("cannot read {}", full.display()))?;
        let executable = meta.permissions().mode() & 0o111 != 0;
        (
            if executable {
                Kind::Executable
            } else {
                Kind::Plain
            },
            hash_of(&bytes),
        )
    };
    Ok(Some(Entry {
        path: path.into(),
        kind,
        hash,
    }))
}

/// SHA-256 in hexadecimal.
pub fn hash_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// What a git command that only reads prints.
pub fn git(dir: &Path, args: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    // An index refreshed in passing would be a write into the user's .git.
    command
        .current_dir(dir)
        .args(args)
        .env("GIT_OPTIONAL_LOCKS", "0");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    let output = command.output().context("cannot run git")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "git {}: {}",
        args.join(" "),
        errors.trim()
    );
    String::from_utf8(output.stdout).context("git prints a name that is no UTF-8")
}
