//! The repository that a command works on: its root, its target directory, its packages.
//!
//! Owns: asking cargo and git. Refuses to guess a path that one of them can tell.
//! Invariant: `root` holds the manifest of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A workspace on disk.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// Directory of the workspace's manifest.
    pub(crate) root: PathBuf,
    /// Where cargo builds, `CARGO_TARGET_DIR` respected.
    pub(crate) target: PathBuf,
    /// Members of the workspace.
    pub(crate) packages: Vec<Package>,
}

/// A member of the workspace, as `cargo metadata` tells it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

impl Package {
    /// The package's directory.
    pub(crate) fn dir(&self) -> &Path {
        self.manifest_path
            .parent()
            .expect("a manifest stands in a directory")
    }
}

/// A dependency of a member.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or none for a normal one.
    pub(crate) kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

impl Repository {
    /// The workspace whose `cargo xtask` was called: what cargo says now comes before what it said
    /// at build time, since two checkouts that share a target directory share this binary.
    pub(crate) fn own() -> Result<Self> {
        let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let here = here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        Self::at(&here)
    }

    /// The workspace at a directory.
    pub(crate) fn at(dir: &Path) -> Result<Self> {
        let output = cargo(dir)
            .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
            .output()
            .context("cannot run cargo metadata")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "cargo metadata failed: {}",
            errors.trim()
        );
        let metadata: Metadata =
            serde_json::from_slice(&output.stdout).context("cargo metadata is not as expected")?;
        Ok(Self {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            packages: metadata.packages,
        })
    }

    /// Where results are written; made when it is missing.
    pub(crate) fn results(&self) -> Result<PathBuf> {
        let dir = self.target.join("m0");
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(dir)
    }

    /// cargo, started at the root, building where `target` says.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo(&self.root);
        command.env("CARGO_TARGET_DIR", &self.target);
        command
    }
}

/// The cargo that started this program, or the one of the path.
fn cargo(dir: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(dir);
    command
}

/// What a result was measured on, so that it is never taken for another tree's.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Provenance {
    /// Hash of the commit, when the root is a git checkout.
    pub(crate) commit: Option<String>,
    /// Hash of the tree as it lies on disk, uncommitted changes included.
    pub(crate) tree: Option<String>,
    /// Whether the tree differs from the commit.
    pub(crate) dirty: Option<bool>,
    /// `rustc --version`.
    pub(crate) toolchain: Option<String>,
}

impl Provenance {
    /// Asks git and rustc; what cannot be told is none.
    pub(crate) fn of(root: &Path) -> Self {
        let git = |args: &[&str]| line(Command::new("git").current_dir(root).args(args));
        let tree = working_tree(root);
        let committed = git(&["rev-parse", "HEAD^{tree}"]);
        Self {
            commit: git(&["rev-parse", "HEAD"]),
            dirty: tree
                .as_ref()
                .and_then(|tree| committed.map(|committed| *tree != committed)),
            tree,
            toolchain: line(Command::new("rustc").arg("--version")),
        }
    }
}

/// The tree on disk, written with an index and an object store of its own: neither the user's index
/// nor the repository's objects are touched.
fn working_tree(root: &Path) -> Option<String> {
    let git = |args: &[&str]| line(Command::new("git").current_dir(root).args(args));
    let objects = root.join(git(&["rev-parse", "--git-path", "objects"])?);
    // One directory for each call, also when two run at once in one process.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let own = std::env::temp_dir().join(format!("m0-tree-{}-{call}", std::process::id()));
    std::fs::create_dir_all(own.join("objects")).ok()?;
    let apart = |args: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(root)
            .args(args)
            .env("GIT_INDEX_FILE", own.join("index"))
            .env("GIT_OBJECT_DIRECTORY", own.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects);
        line(&mut command)
    };
    let tree = apart(&["add", "--all"]).and_then(|_| apart(&["write-tree"]));
    // Left-overs in the temporary directory do no harm and are not worth a failure.
    let _ = std::fs::remove_dir_all(&own);
    tree
}

/// The trimmed output of a command that succeeds.
fn line(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Provenance, Repository};

    #[m0_spec::row(H14)]
    #[test]
    fn results_say_which_tree_they_are_of() {
        let repository = Repository::own().expect("this is a workspace");
        assert!(
            repository
                .packages
                .iter()
                .any(|package| package.name == "xtask")
        );
        let before = Provenance::of(&repository.root);
        assert!(
            before
                .toolchain
                .is_some_and(|line| line.starts_with("rustc 1."))
        );
        // A tree without git has no hash, and that is said rather than guessed.
        let bare = tempfile::tempdir().expect("a directory for the test");
        let none = Provenance::of(bare.path());
        assert_eq!((none.commit, none.tree, none.dirty), (None, None, None));
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
