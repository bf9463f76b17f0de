//! Whether results are of this tree.
//!
//! Owns the comparison of what a file of results says of its tree with the tree as it is. Refuses to read results.
//! Invariant: what names another tree never counts, and what names none is at least younger than the source.

use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::SystemTime;

use serde::Serialize;

use crate::tree::Provenance;

/// Whether results count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// They are of this tree.
    Current,
    /// They say nothing of their tree; they count, and it is told.
    Unattributed,
    /// They are of another tree, with the reason.
    Stale(String),
}

/// The tree as it is now.
#[derive(Debug, Default)]
pub struct Now {
    /// By git.
    pub provenance: Provenance,
    /// The tree of the commit.
    pub committed: Option<String>,
    /// By content, as the sabotage tool hashes; found out only for results that name another tree than git.
    pub content: Late<String>,
    /// When the newest file that was searched for tests was changed; found out only for results that name no tree.
    pub newest: Late<(SystemTime, PathBuf)>,
}

/// What is found out when it is asked for the first time; none where it cannot be.
pub struct Late<T>(LazyLock<Option<T>, Box<dyn FnOnce() -> Option<T> + Send>>);

impl<T> Late<T> {
    /// Finds out by `find`.
    pub fn new(find: impl FnOnce() -> Option<T> + Send + 'static) -> Self {
        Self(LazyLock::new(Box::new(find)))
    }

    /// The answer.
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Late<T> {
    fn default() -> Self {
        Self::new(|| None)
    }
}

impl<T> fmt::Debug for Late<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Late")
    }
}

/// Whether results of `of` are results of the tree `now`.
pub(super) fn standing(of: &Provenance, now: &Now, written: Option<SystemTime>) -> Standing {
    let here = &now.provenance;
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    if let Some(tree) = of.tree.as_ref().filter(|tree| *tree != "unknown") {
        if here.tree.as_ref() != Some(tree) && now.content.get() != Some(tree) {
            let own = here.tree.as_deref().unwrap_or("unknown");
            return Standing::Stale(format!("of tree {}, this is {}", short(tree), short(own)));
        }
        if of.dirty == Some(true) && now.committed.as_ref() == Some(tree) {
            let tree = short(tree);
            return Standing::Stale(format!("of tree {tree} with changes that it does not name"));
        }
        return Standing::Current;
    }
    if let Some(commit) = of.commit.as_ref().filter(|commit| *commit != "unknown") {
        if here.commit.as_ref() != Some(commit) {
            let own = here.commit.as_deref().unwrap_or("unknown");
            return Standing::Stale(format!(
                "of commit {}, this is {}",
                short(commit),
                short(own)
            ));
        }
        if here.dirty == Some(true) || of.dirty == Some(true) {
            return Standing::Stale("of this commit, and the tree has changes".into());
        }
        return Standing::Current;
    }
    if let (Some(written), Some((newest, path))) = (written, now.newest.get())
        && written < *newest
    {
        return Standing::Stale(format!("older than {}", path.display()));
    }
    Standing::Unattributed
}
