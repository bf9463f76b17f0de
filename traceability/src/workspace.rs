//! A repository as the tool sees it: all that was read, joined.
//!
//! Owns the order of reading. Refuses to judge and to print. Invariant: what could not be read is a fault in
//! `faults`, never a silence.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::code::{Fault, Severity};
use crate::config::Config;
use crate::files;
use crate::graph::Graph;
use crate::lock::Lock;
use crate::results::{self, Now, Results};
use crate::rows::{self, Rows};
use crate::sabotage::{self, Rule};
use crate::source::{self, Source};
use crate::tree::{self, Provenance};

/// Everything about a repository.
#[derive(Debug)]
pub struct Workspace {
    /// The repository's root.
    pub root: PathBuf,
    /// `trace.yaml`.
    pub config: Config,
    /// The rows.
    pub rows: Rows,
    /// What the source says.
    pub source: Source,
    /// Sabotage rules.
    pub rules: Vec<Rule>,
    /// Results that count.
    pub results: Results,
    /// Edges that were proven or accepted.
    pub lock: Lock,
    /// All of it joined.
    pub graph: Graph,
    /// What could not be read, or is wrong by itself.
    pub faults: Vec<Fault>,
    /// The tree as it is.
    pub now: Now,
}

/// What a command line adds to a repository's configuration.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Patterns of results, instead of those that are configured.
    pub results: Vec<String>,
    /// Where cargo builds, when that is not `target`: results that are configured under `target/` are
    /// looked for there.
    pub target: Option<PathBuf>,
}

impl Workspace {
    /// Reads a repository.
    ///
    /// # Errors
    ///
    /// When a file or directory cannot be read at all, or `trace.yaml` does not parse.
    pub fn read(root: &Path, given: &Given) -> Result<Self> {
        let mut config = Config::read(root)?;
        if let Some(target) = &given.target {
            for source in &mut config.results {
                if let Some(rest) = source.files.strip_prefix("target/") {
                    source.files = format!("{}/{rest}", target.display());
                }
            }
        }
        let (rows, mut faults) = Rows::read(root, &config.spec)?;
        let listed = files::list(root)?;
        let source = source::read(root, &config, &listed);
        let (rules, rule_faults) = sabotage::read(root, &config)?;
        let (lock, lock_faults) = Lock::read(root, &config.spec)?;
        let now = now(root, &listed, &source);
        let results = results::read(root, &config, &given.results, &now)?;
        faults.extend(rule_faults);
        faults.extend(lock_faults);
        faults.extend(source.faults.iter().cloned());
        faults.extend(results.faults.iter().cloned());
        if faults
            .iter()
            .all(|fault| config.severity(fault.code) < Severity::Unreadable)
        {
            let files = rows.generated(config.constants.as_deref());
            faults.extend(rows::stale(root, &files, false));
        }
        let graph = Graph::join(&rows, &source, &rules, &results, &lock);
        Ok(Self {
            root: root.into(),
            config,
            rows,
            source,
            rules,
            results,
            lock,
            graph,
            faults,
            now,
        })
    }
}

fn now(root: &Path, listed: &[PathBuf], source: &Source) -> Now {
    let newest = source
        .searched
        .iter()
        .filter_map(|path| {
            let meta = std::fs::metadata(root.join(path)).ok()?;
            Some((meta.modified().ok()?, path.clone()))
        })
        .max();
    Now {
        provenance: Provenance::of(root),
        committed: tree::committed(root),
        content: tree::content_hash(root, listed).ok(),
        newest,
    }
}
