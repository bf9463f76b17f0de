//! A gate in a slot: listed, run whole or check by check.
//!
//! Owns the commands and the meaning of exit codes. Refuses to compare runs: that is the session's.
//! Invariant: each run has a fresh output directory, so an old results file cannot be read as a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::build::Built;
pub use super::make::{NotBuilt, build, build_with};
use super::outcome::{Class, One, Ran, last_lines, tail};
use super::process::{End, Ended, Job, run};
use crate::results::{self, Checks, EXIT, Status};
use crate::schema::gate::{Format, Gate, Isolate};
use crate::schema::read::duration;
use crate::slot::Slot;

/// Bound on a run that names none.
const RUN: Duration = Duration::from_mins(2);

/// Where commands run, and what is set for them.
#[derive(Debug)]
pub struct Place<'a> {
    /// The copy.
    pub slot: &'a Slot,
    /// Directory for outputs.
    pub work: PathBuf,
    /// Whether jails are wanted at all.
    pub jailed: bool,
    counter: AtomicU64,
    busy: AtomicU64,
}

impl<'a> Place<'a> {
    /// A place whose outputs go below `work`.
    pub fn new(slot: &'a Slot, work: PathBuf, jailed: bool) -> Self {
        Self {
            slot,
            work,
            jailed,
            counter: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        }
    }

    /// Time that gates' runs took so far, each for itself: two that ran side by side count twice.
    pub fn busy(&self) -> Duration {
        Duration::from_micros(self.busy.load(Ordering::Relaxed))
    }

    pub(super) fn out(&self, what: &str) -> PathBuf {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        self.work.join(format!("{number:04}-{what}"))
    }

    /// Variables that every command gets: the target directory is ours, and lints do not break a build.
    pub(super) fn env(&self, gate: &Gate) -> BTreeMap<String, String> {
        let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
        let mut env = BTreeMap::from([
            (
                "CARGO_TARGET_DIR".to_owned(),
                self.slot.target.display().to_string(),
            ),
            ("CARGO_PROFILE_DEV_DEBUG".into(), "0".into()),
            ("CARGO_PROFILE_TEST_DEBUG".into(), "0".into()),
            ("CARGO_INCREMENTAL".into(), "1".into()),
            (
                "RUSTFLAGS".into(),
                format!("{flags} --cap-lints=warn").trim().to_owned(),
            ),
            (
                "INSTA_WORKSPACE_ROOT".into(),
                self.slot.tree.display().to_string(),
            ),
            ("SABOTAGE_SLOT".into(), self.slot.tree.display().to_string()),
        ]);
        env.extend(gate.env.clone());
        env
    }
}

/// A gate that is built.
#[derive(Debug, Clone)]
pub struct Ready<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it declares.
    pub gate: &'a Gate,
    /// What its build made.
    pub built: Built,
}

/// Replaces `{check}`, `{out}` and `{target}`; a check is quoted for the shell.
pub(super) fn fill(command: &str, place: &Place<'_>, out: &Path, check: Option<&str>) -> String {
    let quoted = check
        .map(|check| format!("'{}'", check.replace('\'', "'\\''")))
        .unwrap_or_default();
    command
        .replace("{out}", &out.display().to_string())
        .replace("{target}", &place.slot.target.display().to_string())
        .replace("{check}", &quoted)
}

impl Ready<'_> {
    /// The names of all checks, where the gate can tell without running them.
    pub fn list(&self, place: &Place<'_>) -> Result<Option<BTreeSet<String>>> {
        if self.gate.cargo_test.is_some() {
            let mut names = BTreeSet::new();
            for binary in &self.built.tests {
                let args = ["--list".to_owned(), "--format=terse".into()];
                let ended = run(&self.job(
                    place,
                    vec![binary.path.display().to_string()],
                    &args,
                    &binary.dir,
                ))?;
                let listed = ended.stdout();
                let tests = listed
                    .lines()
                    .filter_map(|line| line.strip_suffix(": test"));
                names.extend(tests.map(|test| format!("{}::{test}", binary.target)));
            }
            return Ok(Some(names));
        }
        if self.gate.results == Format::Exit {
            return Ok(Some(BTreeSet::from([EXIT.to_owned()])));
        }
        let Some(list) = &self.gate.list else {
            return Ok(None);
        };
        let job = self.shell(place, list, None);
        let ended = run(&job)?;
        if ended.end != End::Code(0) {
            bail!(
                "gate `{}`: `list` ended by {:?}: {}",
                self.name,
                ended.end,
                last_lines(&ended.stderr())
            );
        }
        let stdout = ended.stdout();
        let names = stdout
            .lines()
            .map(|line| line.split_whitespace().next().unwrap_or_default());
        Ok(Some(
            names
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        ))
    }

    /// Runs the named checks, or all of them; `env` is set on top of the gate's own.
    pub fn run(
        &self,
        place: &Place<'_>,
        checks: Option<&[String]>,
        env: &BTreeMap<String, String>,
        timeout: Option<Duration>,
    ) -> Result<Ran> {
        let mut jobs: Vec<(Vec<String>, Job)> = Vec::new();
        if self.gate.cargo_test.is_some() {
            jobs = self.launches(place, checks);
        } else if let (Some(checks), Some(only)) = (checks, &self.gate.only) {
            for check in checks {
                jobs.push((
                    vec![check.clone()],
                    self.shell(place, &only.value, Some(check)),
                ));
            }
        } else {
            let run = self
                .gate
                .run
                .as_ref()
                .context("a gate has `run` or `cargo_test`")?;
            jobs.push((Vec::new(), self.shell(place, &run.value, None)));
        }
        let mut ran = Ran::default();
        for (covers, mut job) in jobs {
            job.env.extend(env.clone());
            if let Some(timeout) = timeout {
                job.timeout = timeout;
            }
            ran.all.push(self.one(place, covers, &job)?);
        }
        Ok(ran)
    }

    /// The launches of test executables.
    fn launches(&self, place: &Place<'_>, checks: Option<&[String]>) -> Vec<(Vec<String>, Job)> {
        let mut jobs = Vec::new();
        for binary in &self.built.tests {
            let program = vec![binary.path.display().to_string()];
            let prefix = format!("{}::", binary.target);
            let Some(checks) = checks else {
                jobs.push((Vec::new(), self.job(place, program, &[], &binary.dir)));
                continue;
            };
            let mine: Vec<String> = checks
                .iter()
                .filter(|check| check.starts_with(&prefix))
                .cloned()
                .collect();
            if mine.is_empty() {
                continue;
            }
            let mut args = vec!["--exact".to_owned()];
            args.extend(mine.iter().map(|check| check[prefix.len()..].to_owned()));
            jobs.push((mine, self.job(place, program, &args, &binary.dir)));
        }
        jobs
    }

    fn job(&self, place: &Place<'_>, mut command: Vec<String>, args: &[String], dir: &Path) -> Job {
        command.extend(args.iter().cloned());
        let isolate = self.gate.isolate;
        let timeout = self
            .gate
            .timeout
            .as_ref()
            .and_then(|text| duration(&text.value));
        let mut env = place.env(self.gate);
        env.insert("CARGO_MANIFEST_DIR".into(), dir.display().to_string());
        for (name, path) in &self.built.bins {
            env.insert(format!("CARGO_BIN_EXE_{name}"), path.display().to_string());
        }
        Job {
            command,
            dir: dir.into(),
            env,
            timeout: timeout.unwrap_or(RUN),
            out: place.out(self.name),
            isolate: Isolate {
                net: isolate.net && place.jailed,
                pid: isolate.pid && place.jailed,
            },
        }
    }

    fn shell(&self, place: &Place<'_>, text: &str, check: Option<&str>) -> Job {
        let tree = place.slot.tree.clone();
        let mut job = self.job(place, vec!["sh".into(), "-c".into()], &[], &tree);
        job.command.push(fill(text, place, &job.out, check));
        job.env.remove("CARGO_MANIFEST_DIR");
        job
    }

    /// Runs one job and reads its results.
    fn one(&self, place: &Place<'_>, covers: Vec<String>, job: &Job) -> Result<One> {
        if let Some(file) = &self.gate.results_file {
            // What an earlier run left must not be taken for this one's.
            let _ = std::fs::remove_file(place.slot.tree.join(fill(file, place, &job.out, None)));
        }
        let ended = run(job)?;
        let micros = ended.wall.as_micros() as u64;
        place.busy.fetch_add(micros, Ordering::Relaxed);
        let exit = &self.gate.exit;
        let mut class = match ended.end {
            End::Code(code) if exit.pass.contains(&code) => Class::Pass,
            End::Code(code) if exit.empty.contains(&code) => Class::Empty,
            End::Code(code) if exit.fail.contains(&code) => Class::Fail,
            // A shell tells its child's death by a signal in this way.
            End::Code(code @ 129..=192) => Class::Signal(code - 128),
            End::Code(code) => Class::Unknown(code),
            End::Signal(signal) => Class::Signal(signal),
            End::TimedOut => Class::TimedOut,
            End::Lost => Class::Lost("the jail ended without telling how".into()),
        };
        let checks = match self.report(place, &ended) {
            Ok(checks) => checks,
            Err(why) => {
                if matches!(class, Class::Pass | Class::Fail) {
                    class = Class::Lost(format!("{why}{}", tail(&ended)));
                }
                Checks::new()
            }
        };
        let checks = if self.gate.results == Format::Exit && self.gate.cargo_test.is_none() {
            let text = || last_lines(&format!("{}\n{}", ended.stdout(), ended.stderr()));
            let status = match class {
                Class::Pass => Some(Status::Passed),
                Class::Fail => Some(Status::Failed(text())),
                _ => None,
            };
            status
                .map(|status| (EXIT.to_owned(), status))
                .into_iter()
                .collect()
        } else {
            checks
        };
        Ok(One {
            covers,
            class,
            checks,
            ended,
        })
    }

    /// Reads the results of a run that is over.
    fn report(&self, place: &Place<'_>, ended: &Ended) -> Result<Checks, String> {
        if self.gate.cargo_test.is_some() {
            let stdout = ended.stdout();
            let libtest = Gate {
                results: Format::Libtest,
                ..self.gate.clone()
            };
            let checks = results::read(&libtest, &stdout)?;
            // The executable's target stands before each name.
            let target = self.target_of(ended);
            return Ok(checks
                .into_iter()
                .map(|(name, status)| (format!("{target}::{name}"), status))
                .collect());
        }
        let text = match &self.gate.results_file {
            None => ended.stdout(),
            Some(file) => {
                let path = place.slot.tree.join(fill(file, place, &ended.out, None));
                std::fs::read_to_string(&path)
                    .map_err(|error| format!("no results in {}: {error}", path.display()))?
            }
        };
        results::read(self.gate, &text)
    }

    fn target_of(&self, ended: &Ended) -> String {
        let of = |binary: &&super::build::TestBinary| {
            ended.program.as_deref() == Some(&*binary.path.display().to_string())
        };
        self.built
            .tests
            .iter()
            .find(of)
            .map(|binary| binary.target.clone())
            .unwrap_or_default()
    }
}
