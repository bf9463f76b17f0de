//! A run: the tree is copied, the gates are measured clean, each rule is applied and judged.
//!
//! Owns the order. Reading order: `select`, `applied`, `cache`, `baseline`, `together` (one build for all), `own` (a build for each
//! rule), `judge`, `elsewhere`, `sentinel`.
//! Invariants: no verdict without a green clean tree; the copy is the tree again after each rule; what
//! follows the last green sentinel is withdrawn when the next is not green.

mod applied;
pub mod baseline;
mod cache;
mod elsewhere;
mod judge;
mod matrix;
mod own;
pub mod pace;
pub mod select;
mod sentinel;
mod together;
mod weaving;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use crate::finding::Finding;
use crate::log::Log;
use crate::pins;
use crate::report;
use crate::report::told::Told;
use crate::run::gate::Place;
use crate::run::interrupt::{self, Interrupted};
use crate::schema::rule::Rule;
use crate::schema::{Declared, check, read};
use crate::slot::{Slot, home};
use crate::tree::Tree;
use crate::verdict::{Exit, Record, Verdict, exit_of};
use applied::patches;
pub(crate) use applied::{Applied, lint};
use cache::Cache;
use pace::Pace;
use sentinel::Watch;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names, patterns, `tag:`, `row:`, `gate:`; none means all.
    pub selectors: Vec<String>,
    /// Only rules whose files changed since this revision.
    pub since: Option<String>,
    /// This part of so many.
    pub shard: Option<(usize, usize)>,
    /// No new rule after this time.
    pub budget: Option<Duration>,
    /// Runs of each expected check, where a rule names none.
    pub repeat: u32,
    /// Clean runs of each gate.
    pub baseline: u32,
    /// Keep the verdicts of the last run of the same tree.
    pub resume: bool,
    /// A build for each rule.
    pub per_rule: bool,
    /// Look for other checks that notice when the expected one does not.
    pub elsewhere: bool,
    /// Ask every check of every gate about every rule.
    pub matrix: bool,
    /// Gates run in namespaces where they can.
    pub jailed: bool,
    /// Gates at once; 0 is chosen from what the baseline measured.
    pub jobs: usize,
    /// Verdicts of earlier runs are used where everything they rest on is the same.
    pub cache: bool,
    /// Rules between two looks at the clean tree; 0 looks at the end only.
    pub sentinel: usize,
    /// Show nothing while running.
    pub quiet: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selectors: Vec::new(),
            since: None,
            shard: None,
            budget: None,
            repeat: 1,
            baseline: 2,
            resume: false,
            per_rule: false,
            elsewhere: true,
            matrix: false,
            jailed: true,
            jobs: 0,
            cache: true,
            sentinel: 200,
            quiet: false,
        }
    }
}

/// A run in hand.
#[derive(Debug)]
pub struct Session {
    /// What is declared.
    pub declared: Declared,
    /// What is asked for.
    pub options: Options,
    /// Where facts go.
    pub log: Log,
    /// The tree as it was copied.
    pub tree: Tree,
    /// The repository's cache.
    pub home: PathBuf,
    /// This run's directory.
    pub dir: PathBuf,
    started: Instant,
}

/// What a run came to.
#[derive(Debug)]
pub struct Summary {
    /// The exit code.
    pub exit: Exit,
    /// A record a rule.
    pub records: Vec<Record>,
    /// Gates that are not green; then there are no records.
    pub bad: Vec<baseline::Bad>,
    /// The run's directory.
    pub dir: PathBuf,
    /// The tree's hash.
    pub tree: String,
    /// The commit.
    pub commit: Option<String>,
    /// Wall time.
    pub wall: Duration,
    /// Seconds a rule: rules built alone, and rules built together, where there were any.
    pub per_rule: BTreeMap<String, f64>,
    /// Time of the gates that one build served.
    pub pace: Pace,
    /// What needs an eye beside the verdicts.
    pub notes: Vec<String>,
    /// Rules selected before they were divided into shards.
    pub selected: usize,
    /// The part that this run is of so many.
    pub shard: Option<(usize, usize)>,
}

/// What a run has come to so far.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    pub(crate) records: BTreeMap<String, Record>,
    pub(crate) per_rule: BTreeMap<String, f64>,
    pub(crate) pace: Pace,
}

/// Files that could not be understood: nothing is run.
#[derive(Debug)]
pub struct Unreadable(pub Vec<Finding>);

impl Session {
    /// Reads the repository at `root`.
    pub fn open(root: &Path, options: Options) -> Result<Result<Self, Unreadable>> {
        let (declared, mut findings) = read::declared(root)?;
        findings.extend(check::shared(&declared));
        if !findings.is_empty() {
            return Ok(Err(Unreadable(findings)));
        }
        let home = home(root)?;
        let dir = run_dir(&home);
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let log = Log::create(&dir.join("events.jsonl"), options.quiet)?;
        let tree = Tree::read(root)?;
        Ok(Ok(Self {
            declared,
            options,
            log,
            tree,
            home,
            dir,
            started: Instant::now(),
        }))
    }

    /// The whole run.
    pub fn run(&self) -> Result<Summary> {
        let (chosen, selected) = select::choose(&self.declared, &self.options, &self.tree)?;
        self.log.fact(
            "run_start",
            json!({
                "tree": self.tree.hash, "commit": self.tree.commit, "pid": std::process::id(),
                "rules": chosen.iter().map(|rule| &rule.id.value).collect::<Vec<_>>(),
                "version": env!("CARGO_PKG_VERSION"), "keys": select::keys(&chosen, self),
            }),
        );
        self.log.expect(chosen.len());
        let slot = Slot::open(&self.home, "own")?;
        if let Some(rule) = slot.was_dirty() {
            self.log.note(&format!(
                "the last run ended with `{}` applied to its copy; the copy is made anew",
                rule.trim()
            ));
        }
        slot.sync(&self.tree)?;
        let pins = pins::read(&self.tree.root)?;
        for drift in pins::drifted(&pins, chosen.iter().copied(), &slot.tree) {
            self.log.note(&drift);
        }
        let mut told = Judged::default();
        interrupt::watch()?;
        let bad = match self.rules(&chosen, &slot, &mut told) {
            Err(error) if error.is::<Interrupted>() => {
                for rule in &chosen {
                    if !told.records.contains_key(&rule.id.value) {
                        let pending = Record::new(rule, Verdict::Pending).because("interrupted");
                        self.tell(&mut told.records, pending);
                    }
                }
                Vec::new()
            }
            other => other?,
        };
        if self.options.matrix && bad.is_empty() {
            match matrix::run(self, &slot, &chosen, &mut told.records) {
                // What was judged stands; the exit code says that somebody stopped it.
                Err(error) if error.is::<Interrupted>() => {}
                other => other?,
            }
        }
        let after = Tree::read(&self.tree.root)?;
        if after.hash != self.tree.hash {
            self.log.note("the working tree changed while the rules ran; the verdicts are of the tree as it was");
        }
        for rule in &chosen {
            if let Some(record) = told.records.get_mut(&rule.id.value) {
                record.patches = patches(&self.declared, rule, &slot.tree);
            }
        }
        self.close(&chosen, selected, told, bad)
    }

    /// Every chosen rule: kept, looked at, measured and judged; returns the gates that are not green.
    fn rules(
        &self,
        chosen: &[&Rule],
        slot: &Slot,
        told: &mut Judged,
    ) -> Result<Vec<baseline::Bad>> {
        let kept = if self.options.resume {
            select::kept(self, chosen)?
        } else {
            BTreeMap::new()
        };
        let cache = if self.options.cache {
            Some(Cache::open(
                &self.home,
                &self.declared,
                &self.options,
                &self.tree,
            )?)
        } else {
            None
        };
        let rows = check::rows(&self.declared)?;
        let mut keys = BTreeMap::new();
        let mut todo = Vec::new();
        for rule in chosen {
            let id = &rule.id.value;
            if let Some(record) = kept.get(id) {
                self.tell(&mut told.records, record.clone());
                continue;
            }
            let applied = match self.lint(rule, slot, rows.as_ref()) {
                Ok(applied) => applied,
                Err(record) => {
                    self.tell(&mut told.records, record);
                    continue;
                }
            };
            if let Some(cache) = &cache {
                let key = cache.key(&applied)?;
                if let Some(record) = cache.get(&key, &applied) {
                    self.tell(&mut told.records, record);
                    continue;
                }
                keys.insert(id.clone(), key);
            }
            todo.push(applied);
        }
        if todo.is_empty() {
            return Ok(Vec::new());
        }
        let place = Place::new(slot, self.dir.join("out"), self.options.jailed);
        let rules: Vec<&Rule> = todo.iter().map(|applied| applied.rule).collect();
        let (woven, rest) = together::divide(self, todo);
        let baseline = baseline::measure(self, &place, &rules, &together::gates(&woven))?;
        if !baseline.bad.is_empty() {
            return Ok(baseline.bad);
        }
        let cache = cache.as_ref().map(|cache| (cache, &keys));
        let mut watch = Watch::new(self, &baseline.clean, cache);
        own::run(
            self,
            &place,
            &baseline.clean,
            (woven, rest),
            &mut watch,
            told,
        )
    }

    fn close(
        &self,
        chosen: &[&Rule],
        selected: usize,
        told: Judged,
        bad: Vec<baseline::Bad>,
    ) -> Result<Summary> {
        let records: Vec<Record> = if bad.is_empty() {
            chosen
                .iter()
                .filter_map(|rule| told.records.get(&rule.id.value).cloned())
                .collect()
        } else {
            Vec::new()
        };
        let exit = if interrupt::asked() {
            Exit::Interrupted
        } else if bad.is_empty() {
            exit_of(records.iter().map(|record| record.verdict))
        } else {
            Exit::Gate
        };
        self.log.done();
        let summary = Summary {
            exit,
            records,
            bad,
            dir: self.dir.clone(),
            tree: self.tree.hash.clone(),
            commit: self.tree.commit.clone(),
            wall: self.started.elapsed(),
            per_rule: told.per_rule,
            pace: told.pace,
            notes: self.log.notes(),
            selected,
            shard: self.options.shard,
        };
        report::json::write(&Told::of(&summary), &summary.dir)?;
        self.log.fact(
            "run_end",
            json!({ "exit": exit.code(), "seconds": summary.wall.as_secs_f64() }),
        );
        let _ = std::fs::write(self.home.join("last"), self.dir.display().to_string());
        Ok(summary)
    }

    /// Whether the budget is used up.
    pub(crate) fn spent(&self) -> bool {
        self.options
            .budget
            .is_some_and(|budget| self.started.elapsed() >= budget)
    }

    /// Records a verdict and tells it.
    pub(crate) fn tell(&self, records: &mut BTreeMap<String, Record>, record: Record) {
        self.log.verdict(&record);
        records.insert(record.rule.clone(), record);
    }

    /// Everything that can be said of a rule without a build.
    #[expect(
        clippy::result_large_err,
        reason = "both are records of about one size, made once a rule"
    )]
    fn lint<'a>(
        &self,
        rule: &'a Rule,
        slot: &Slot,
        rows: Option<&BTreeSet<String>>,
    ) -> Result<Applied<'a>, Record> {
        if let Some(skip) = &rule.skip {
            let why = format!("{} (until {})", skip.why, skip.until.value);
            return Err(Record::new(rule, Verdict::Skipped).because(why));
        }
        let here = |name: &String| name == std::env::consts::OS;
        if !rule.platforms.is_empty() && !rule.platforms.iter().any(here) {
            let why = format!("only on {}", rule.platforms.join(", "));
            return Err(Record::new(rule, Verdict::Skipped).because(why));
        }
        lint(&self.declared, rule, rows, &slot.tree)
    }
}

/// A directory for a run, below the repository's cache: they sort by time.
pub(crate) fn run_dir(home: &Path) -> PathBuf {
    let stamp = jiff::Timestamp::now().to_string().replace([':', '.'], "-");
    home.join("runs")
        .join(format!("{stamp}-{}", std::process::id()))
}
