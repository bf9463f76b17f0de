//! Runs phases, each in a process of its own, side by side where they may be.
//!
//! A process a phase: its bound can be kept whatever the phase does, its orphans are its own, and one
//! that panics ends nobody else. Knows nothing of what phases do or how results are shown.
//! Invariant: when a phase is over no process of it is left.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::outcome::{Outcome, log_tails};
use crate::owned::{self, PHASE_MARK};
use crate::phase::Phase;
use crate::proc::Pid;
use crate::until::until;

/// How to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server to drive.
    pub server_bin: PathBuf,
    /// The smokes binary, started again for each phase.
    pub helper_bin: PathBuf,
    /// Phases at once, at least 1.
    pub jobs: usize,
    /// Times that everything is run.
    pub repeat: usize,
    /// Where the directories of phases are made.
    pub dir: PathBuf,
    /// Keep the directories of phases that passed, too.
    pub keep: bool,
    /// The registry is the one of planted defects.
    pub planted: bool,
}

/// One phase that has run.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Which.
    pub phase: Phase,
    /// Which time, from 1.
    pub round: usize,
    /// What became of it.
    pub outcome: Outcome,
    /// Its directory, when it was kept.
    pub dir: Option<PathBuf>,
    /// The end of its logs, when it failed.
    pub tails: String,
}

/// What happens while phases run.
pub trait Watcher: Sync {
    /// A phase starts.
    fn started(&self, phase: &Phase);
    /// A phase is over.
    fn ended(&self, ran: &Ran);
}

/// Runs every phase as often as the plan says: first those that may be side by side, the longest first,
/// then the others one by one.
pub fn run_all(phases: &[Phase], plan: &Plan, watcher: &dyn Watcher) -> Vec<Ran> {
    let (mut beside, alone): (Vec<Phase>, Vec<Phase>) =
        phases.iter().partition(|phase| phase.parallel_safe);
    beside.sort_by_key(|phase| std::cmp::Reverse(phase.bound));
    let mut ran = Vec::new();
    for round in 1..=plan.repeat {
        ran.extend(run_pool(&beside, plan, round, plan.jobs.max(1), watcher));
        ran.extend(run_pool(&alone, plan, round, 1, watcher));
    }
    ran
}

/// The processes of the phases that run. Every other child of ours is an orphan that a phase left.
#[derive(Debug, Default)]
struct Crew(Mutex<BTreeSet<Pid>>);

impl Crew {
    fn pids(&self) -> MutexGuard<'_, BTreeSet<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a phase's process, known before anyone can take it for an orphan.
    fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        let mut pids = self.pids();
        let child = command.spawn()?;
        pids.insert(pid_of(&child));
        Ok(child)
    }

    /// A phase's process has ended: what it left without a mark came to us and is ended, too.
    fn dismiss(&self, child: &Child) -> Result<()> {
        let mut pids = self.pids();
        pids.remove(&pid_of(child));
        owned::end_adopted(|pid| pids.contains(&pid))
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::try_from(child.id()).expect("the kernel's pids fit in 31 bits")
}

fn run_pool(
    phases: &[Phase],
    plan: &Plan,
    round: usize,
    jobs: usize,
    watcher: &dyn Watcher,
) -> Vec<Ran> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let crew = Crew::default();
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(phases.len()) {
            scope.spawn(|| {
                while let Some(phase) = phases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    watcher.started(phase);
                    let ran = run_one(phase, plan, round, &crew);
                    watcher.ended(&ran);
                    done.lock().expect("no runner thread panics").push(ran);
                }
            });
        }
    });
    done.into_inner().expect("no runner thread panics")
}

fn run_one(phase: &Phase, plan: &Plan, round: usize, crew: &Crew) -> Ran {
    let dir = plan.dir.join(format!("{}.{round}", phase.name));
    let start = Instant::now();
    let outcome = run_process(phase, plan, round, &dir, crew).unwrap_or_else(|error| {
        Outcome::failed(format!("{error:#}"), start.elapsed().as_secs_f64())
    });
    let tails = if outcome.passed() {
        String::new()
    } else {
        log_tails(&dir, 15)
    };
    let keep = plan.keep || !outcome.passed();
    if !keep {
        // What cannot be removed stays in the run's own directory, which is removed as a whole.
        let _ = std::fs::remove_dir_all(&dir);
    }
    Ran {
        phase: *phase,
        round,
        outcome,
        dir: keep.then_some(dir),
        tails,
    }
}

fn run_process(
    phase: &Phase,
    plan: &Plan,
    round: usize,
    dir: &Path,
    crew: &Crew,
) -> Result<Outcome> {
    std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
    let mark = format!("{}-{round}", owned::new_mark(0)) + phase.name;
    let log = File::create(dir.join("phase.log"))?;
    let mut command = Command::new(&plan.helper_bin);
    command
        .arg(if plan.planted {
            "run-planted"
        } else {
            "run-phase"
        })
        .arg(phase.name)
        .args([dir, &plan.server_bin])
        .arg(owned::own_pid().to_string())
        .env(PHASE_MARK, &mark)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let mut child = crew
        .spawn(&mut command)
        .context("start the phase's process")?;
    let status = until("the phase to end", phase.bound, || match child.try_wait() {
        Ok(Some(status)) => Ok(status),
        Ok(None) => Err("it runs".to_owned()),
        Err(error) => Err(error.to_string()),
    });
    let ended = if status.is_err() {
        child.kill().and_then(|()| child.wait()).ok()
    } else {
        None
    };
    owned::end_phase(&mark)?;
    crew.dismiss(&child)?;
    let status = match status {
        Ok(status) => status,
        Err(error) => anyhow::bail!("{error} (killed: {ended:?})"),
    };
    Outcome::read(dir)
        .with_context(|| format!("the phase's process ended ({status}) without a word"))
}

/// Appends the line by which evidence is known to have run, once a phase, when `TRACE_EVENTS` names a
/// file. With `TRACE_DECLARE` beside it the line says `declared` and the caller runs nothing.
pub fn trace(phases: &[Phase]) -> Result<bool> {
    let Some(path) = std::env::var_os("TRACE_EVENTS").filter(|path| !path.is_empty()) else {
        return Ok(false);
    };
    let declare = std::env::var_os("TRACE_DECLARE").is_some();
    let event = if declare { "declared" } else { "ran" };
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("TRACE_EVENTS={}", path.display()))?;
    let mut seen = BTreeSet::new();
    for phase in phases.iter().filter(|phase| seen.insert(phase.name)) {
        let rows: Vec<&str> = phase.rows.iter().map(|row| row.id).collect();
        let line = serde_json::json!({
            "event": event, "rows": rows, "package": "smokes", "target": "smokes",
            "test": format!("smoke::{}", phase.name),
            "file": phase.place.file(), "line": phase.place.line(),
        });
        file.write_all(format!("{line}\n").as_bytes())?;
    }
    Ok(declare)
}

/// The longest that all phases may take if nothing is done side by side.
pub fn worst_case(phases: &[Phase]) -> Duration {
    phases.iter().map(|phase| phase.bound).sum()
}
