//! The repository that a command works on: its root, its target directory, its packages.
//!
//! Owns: asking cargo. Refuses to guess a path that one of them can tell.
//! Invariant: `root` holds the manifest of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
pub(crate) use traceability::tree::Provenance;

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
    }
}
