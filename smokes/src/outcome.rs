//! What became of one phase, and how its own process tells it.
//!
//! Owns the file `outcome.json` between the process of a phase and the runner.
//! Invariant: a phase whose process wrote no outcome has failed.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::lines::Lines;
use crate::owned;
use crate::phase::Phase;
use crate::proc;
use crate::run::{Measure, Run};
use crate::until::until;

/// What became of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why it failed, or `None`.
    pub failure: Option<String>,
    /// What it witnessed.
    pub witness: Vec<(String, u64)>,
    /// What it measured.
    pub measures: Vec<Measure>,
    /// What it has to say beside that.
    pub notes: Vec<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Outcome {
    /// A phase that could not tell anything itself.
    pub fn failed(why: String, seconds: f64) -> Self {
        Self {
            failure: Some(why),
            witness: vec![],
            measures: vec![],
            notes: vec![],
            seconds,
        }
    }

    /// Whether it passed.
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }

    /// Reads what a phase's process left in `dir`.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("outcome.json");
        let bytes = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    fn write(&self, dir: &Path) -> Result<()> {
        std::fs::write(dir.join("outcome.json"), serde_json::to_vec(self)?)?;
        Ok(())
    }
}

/// Runs a phase in this process, which must have been made for it: everything that is orphaned below us
/// comes to us, and nothing may be left when we end.
pub fn run_here(phase: &Phase, run: &Run) -> ExitCode {
    let start = Instant::now();
    let verdict = nix::sys::prctl::set_child_subreaper(true)
        .context("become the subreaper")
        .and_then(|()| (phase.run)(run))
        .and_then(|witness| {
            run.judge(&witness)?;
            nothing_below()?;
            Ok(witness)
        });
    // Whatever the verdict: nothing of this phase is left, with a mark or without.
    let swept = owned::end_below().err().map(|error| format!("{error:#}"));
    let (measures, notes) = run.findings();
    let (failure, witness) = match verdict {
        Ok(witness) => (None, witness.counts().to_vec()),
        Err(error) => (Some(format!("{error:#}")), Vec::new()),
    };
    let failure = match (failure, swept) {
        (None, swept) => swept,
        (Some(failure), Some(swept)) => Some(format!("{failure}; {swept}")),
        (failure, None) => failure,
    };
    let outcome = Outcome {
        failure,
        witness,
        measures,
        notes,
        seconds: start.elapsed().as_secs_f64(),
    };
    match outcome.write(run.dir()) {
        Ok(()) if outcome.passed() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the outcome cannot be told: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn nothing_below() -> Result<()> {
    until("no process below the phase", Duration::from_secs(1), || {
        let left = proc::descendants(owned::own_pid());
        left.iter()
            .filter(|stat| stat.is_zombie())
            .for_each(|stat| {
                owned::reap(stat.pid);
            });
        let alive: Vec<String> = left
            .iter()
            .filter(|stat| !stat.is_zombie())
            .map(owned::describe)
            .collect();
        if alive.is_empty() {
            Ok(())
        } else {
            Err(alive.join(", "))
        }
    })
}

/// The last lines of every log in a phase's directory, each under its path.
pub fn log_tails(dir: &Path, lines: usize) -> String {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return String::new();
    };
    let mut paths: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    paths.sort();
    let mut text = String::new();
    for path in paths {
        let tail = Lines::at(&path).tail(lines);
        if !tail.is_empty() {
            let _ = writeln!(text, "--- {}\n{tail}", path.display());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(H44)]
    #[test]
    fn an_outcome_survives_its_file_and_none_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(Outcome::read(dir.path()).is_err());
        let mut outcome = Outcome::failed("why".into(), 0.5);
        outcome.measures.push(Measure {
            quantity: "exit".into(),
            value: 0.1 + 0.2,
            unit: "ms".into(),
            bound: Some(500.0),
            headroom: Some(0.75),
        });
        outcome.write(dir.path()).expect("written");
        assert_eq!(Outcome::read(dir.path()).expect("read"), outcome);
    }

    #[m0_spec::row(H23)]
    #[test]
    fn the_tail_of_every_log_stands_under_its_path() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("server-1.log"), "a\nb\nc\n").expect("written");
        std::fs::write(dir.path().join("server-1.out"), "not this\n").expect("written");
        let tails = log_tails(dir.path(), 2);
        assert!(
            tails.contains("server-1.log\nb\nc\n") && !tails.contains("not this"),
            "{tails}"
        );
    }
}
