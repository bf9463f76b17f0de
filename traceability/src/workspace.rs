//! A repository as the tool sees it: all that was read, joined.
//!
//! Owns the order of reading. Refuses to judge and to print. Invariant: what could not be read is a fault in
//! `faults`, never a silence.

use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

use anyhow::Result;

use crate::code::{Fault, Severity};
use crate::config::Config;
use crate::files::{self, Open};
use crate::graph::Graph;
use crate::lock::Lock;
use crate::results::{self, Late, Now, Results};
use crate::rows::{self, Rows};
use crate::sabotage::{self, Rules};
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
    /// What the source says; its tests are in the graph.
    pub source: Source,
    /// Sabotage rules.
    pub rules: Rules,
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
    /// Texts that an editor holds.
    pub open: Open,
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
        // What does not need each other does not wait for each other.
        let (git, rows, rules, found, source) = thread::scope(|scope| {
            let git = scope.spawn(|| Provenance::of_tree(root));
            let rows = scope.spawn(|| Rows::read_with(root, &config.spec, &given.open));
            let rules = scope.spawn(|| sabotage::read(root, &config, &given.open));
            let found = scope.spawn(|| results::read(root, &config, &given.results));
            let source = files::list(root).map(|listed| {
                let source = source::read(root, &config, &listed, &given.open);
                (listed, source)
            });
            (whole(git), whole(rows), whole(rules), whole(found), source)
        });
        let (rows, mut faults) = rows?;
        let (rules, rule_faults) = rules?;
        let (listed, mut source) = source?;
        let (lock, lock_faults) = Lock::read(root, &config.spec)?;
        let now = now(root, git, listed, &source);
        let results = results::settle(root, found?, &now);
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
        let tests = std::mem::take(&mut source.tests);
        let graph = Graph::join(&rows, tests, &rules, &results, &lock);
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

/// What a thread answers; its panic goes on here.
fn whole<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn now(
    root: &Path,
    (provenance, committed): (Provenance, Option<String>),
    listed: Vec<PathBuf>,
    source: &Source,
) -> Now {
    let own = root.to_owned();
    let searched = source.searched.clone();
    let newest = move || {
        let times = searched.into_iter().filter_map(|path| {
            let meta = std::fs::metadata(own.join(&path)).ok()?;
            Some((meta.modified().ok()?, path))
        });
        times.max()
    };
    let own = root.to_owned();
    Now {
        provenance,
        committed,
        content: Late::new(move || tree::content_hash(&own, &listed).ok()),
        newest: Late::new(newest),
    }
}
