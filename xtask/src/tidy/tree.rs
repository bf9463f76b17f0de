//! The files that tidy looks at, with their text.
//!
//! Owns: which files of the repository are ours. Refuses to look into build directories, the git
//! directory and files that are not text. Invariant: paths are relative to the root, with `/`.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use crate::repository::{Package, Repository};

/// A file and its text.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path
            .extension()
            .is_some_and(|extension| extension == "rs")
    }

    pub(crate) fn is_under(&self, home: &str) -> bool {
        self.path.starts_with(home)
    }

    pub(crate) fn is(&self, path: &str) -> bool {
        self.path == Path::new(path)
    }
}

/// What the checks are given.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
    /// Files that are not read, by their paths: licences, the lock file, pictures.
    pub(crate) others: Vec<PathBuf>,
}

/// Files of these kinds are read.
const KINDS: [&str; 6] = ["rs", "toml", "yaml", "yml", "md", "sh"];

impl Tree {
    /// Whether this is a file, or a directory with one below it.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => {
                    plain.pop();
                }
                Component::CurDir => {}
                other => plain.push(other),
            }
        }
        let read = self.files.iter().map(|file| &file.path);
        read.chain(&self.others)
            .any(|known| known.starts_with(&plain))
    }

    /// Reads the repository, sorted by path.
    pub(crate) fn read(repository: &Repository) -> Result<Self> {
        let mut files = Vec::new();
        let mut others = Vec::new();
        let mut dirs = vec![repository.root.clone()];
        while let Some(dir) = dirs.pop() {
            let entries = std::fs::read_dir(&dir)
                .with_context(|| format!("cannot list {}", dir.display()))?;
            for entry in entries {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if path.is_dir() {
                    let ours = name != "target" && name != ".git" && path != repository.target;
                    dirs.extend(ours.then_some(path.clone()));
                } else {
                    let relative = path.strip_prefix(&repository.root);
                    let relative: PathBuf = relative.expect("the walk began there").into();
                    if is_ours(&path) {
                        let text = std::fs::read_to_string(&path)
                            .with_context(|| format!("cannot read {}", path.display()))?;
                        files.push(File {
                            path: relative,
                            text,
                        });
                    } else {
                        others.push(relative);
                    }
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut packages = repository.packages.clone();
        for package in &mut packages {
            if let Ok(path) = package.manifest_path.strip_prefix(&repository.root) {
                package.manifest_path = path.into();
            }
        }
        Ok(Self {
            files,
            packages,
            others,
        })
    }
}

fn is_ours(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| KINDS.contains(&extension)) || path.ends_with(".ci/run")
}
