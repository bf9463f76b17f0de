//! Which tree something was measured on.
//!
//! Owns: asking git and rustc, and the hash of the tree as it lies on disk, uncommitted changes included.
//! Refuses to write into the repository: index and objects of its own are used and removed.
//! Invariant: a result of another tree is never taken for one of this tree.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What a result was measured on, so that it is never taken for another tree's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Hash of the commit, when the root is a git checkout.
    pub commit: Option<String>,
    /// Hash of the tree as it lies on disk, uncommitted changes included.
    pub tree: Option<String>,
    /// Whether the tree differs from the commit.
    pub dirty: Option<bool>,
    /// `rustc --version`.
    pub toolchain: Option<String>,
}

impl Provenance {
    /// Asks git and rustc; what cannot be told is none.
    pub fn of(root: &Path) -> Self {
        Self {
            toolchain: line(Command::new("rustc").arg("--version")),
            ..Self::of_tree(root).0
        }
    }

    /// Asks git alone: the toolchain stays none. Beside it the hash of the tree that HEAD names.
    pub fn of_tree(root: &Path) -> (Self, Option<String>) {
        let Some(git) = Git::of(root) else {
            return (Self::default(), None);
        };
        let tree = working_tree(root, &git);
        let differs = |tree: &String| git.committed.as_ref().map(|committed| tree != committed);
        let own = Self {
            commit: git.commit,
            dirty: tree.as_ref().and_then(differs),
            tree,
            toolchain: None,
        };
        (own, git.committed)
    }
}

/// Where git keeps what belongs to a checkout, and its HEAD.
struct Git {
    objects: PathBuf,
    index: PathBuf,
    commit: Option<String>,
    committed: Option<String>,
}

impl Git {
    /// One question for all: starting git costs more than its answer. Before the first commit git answers the
    /// paths and then fails.
    fn of(root: &Path) -> Option<Self> {
        let paths = ["--git-path", "objects", "--git-path", "index"];
        let output = Command::new("git")
            .current_dir(root)
            .arg("rev-parse")
            .args(paths)
            .args(["HEAD", "HEAD^{tree}"])
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let lines: Vec<&str> = text.lines().collect();
        let hash = |at: usize| {
            let line = *lines.get(at).filter(|_| output.status.success())?;
            Some(line.to_owned())
        };
        Some(Self {
            objects: root.join(lines.first()?),
            index: root.join(lines.get(1)?),
            commit: hash(2),
            committed: hash(3),
        })
    }
}

/// The tree on disk, written with an index and an object store of its own: neither the user's index
/// nor the repository's objects are touched. The index begins as a copy of the user's, with its time of change, so
/// that git hashes anew only what it would hash anew itself.
fn working_tree(root: &Path, git: &Git) -> Option<String> {
    // One directory for each call, also when two run at once in one process.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let own = std::env::temp_dir().join(format!("trace-tree-{}-{call}", std::process::id()));
    std::fs::create_dir_all(own.join("objects")).ok()?;
    copy_with_time(&git.index, &own.join("index"));
    let apart = |args: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(root)
            .args(args)
            .env("GIT_INDEX_FILE", own.join("index"))
            .env("GIT_OBJECT_DIRECTORY", own.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &git.objects);
        line(&mut command)
    };
    let tree = apart(&["add", "--all"]).and_then(|_| apart(&["write-tree"]));
    // Left-overs in the temporary directory do no harm and are not worth a failure.
    let _ = std::fs::remove_dir_all(&own);
    tree
}

/// Copies a file and when it was changed; what cannot be copied is left out, for git makes an index anew.
fn copy_with_time(from: &Path, to: &Path) {
    let copied = || -> std::io::Result<()> {
        let changed = std::fs::metadata(from)?.modified()?;
        std::fs::copy(from, to)?;
        std::fs::File::options()
            .append(true)
            .open(to)?
            .set_modified(changed)
    };
    if copied().is_err() {
        // Half a copy, or one without its time, would be believed.
        let _ = std::fs::remove_file(to);
    }
}

/// The trimmed output of a command that succeeds.
fn line(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// SHA-256 of some bytes in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The hash over paths, kinds and contents that the sabotage tool puts into its evidence: SHA-256 of
/// each file's path, a zero, its kind (0 plain, 1 executable, 2 link) and the hexadecimal hash of its
/// content, in the order of the paths.
pub fn content_hash(root: &Path, files: &[std::path::PathBuf]) -> std::io::Result<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut names: Vec<String> = files
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    let mut all = Sha256::new();
    for name in names {
        let path = root.join(&name);
        let meta = std::fs::symlink_metadata(&path)?;
        let (kind, content) = if meta.is_symlink() {
            let target = std::fs::read_link(&path)?;
            (2, target.to_string_lossy().into_owned().into_bytes())
        } else {
            let executable = meta.permissions().mode() & 0o111 != 0;
            (u8::from(executable), std::fs::read(&path)?)
        };
        all.update(name.as_bytes());
        all.update([0, kind]);
        all.update(sha256(&content).as_bytes());
    }
    Ok(hex(&all.finalize()))
}

#[cfg(test)]
mod tests {
    use super::{Provenance, sha256};

    #[m0_spec::row(T4)]
    #[test]
    fn a_hash_is_the_digits_that_every_other_tool_prints() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
    }

    #[m0_spec::row(T4)]
    #[test]
    fn a_tree_without_git_has_no_hash_and_none_is_guessed() {
        let bare = tempfile::tempdir().expect("a directory for the test");
        let none = Provenance::of(bare.path());
        assert_eq!((none.commit, none.tree, none.dirty), (None, None, None));
        assert!(
            none.toolchain
                .is_some_and(|line| line.starts_with("rustc 1."))
        );
    }

    #[m0_spec::row(H14)]
    #[test]
    fn a_changed_file_changes_the_tree_and_leaves_the_index_alone() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            let identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
            let output = command
                .current_dir(dir.path())
                .args(identity)
                .args(args)
                .output();
            let output = output.expect("git runs");
            assert!(output.status.success(), "{args:?}: {output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        git(&["init", "--quiet"]);
        std::fs::write(dir.path().join("a"), "1").expect("written");
        git(&["add", "a"]);
        git(&["commit", "--quiet", "-m", "first"]);
        let clean = Provenance::of(dir.path());
        assert_eq!(clean.dirty, Some(false));
        std::fs::write(dir.path().join("b"), "2").expect("written");
        let changed = Provenance::of(dir.path());
        assert_eq!(changed.dirty, Some(true));
        assert_eq!(changed.commit, clean.commit);
        assert_ne!(changed.tree, clean.tree);
        assert_eq!(git(&["status", "--porcelain"]), "?? b\n");
    }
}
