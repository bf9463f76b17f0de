//! `cargo xtask test`: every test of the workspace, by whichever runner is there.
//!
//! Owns the stages (tests, loom models, doc tests), the files that they leave in `target/m0` and the
//! closing lines. Refuses to know what a test shows: rows are the attribute's, grades another
//! tool's. Invariant: the run is green only when something ran and nothing failed, and each stage
//! that was asked for without a filter has run at least one test.

mod kinds;
mod libtest;
mod loom;
mod nextest;
mod results;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::repository::{Provenance, Repository};
use crate::screen;
use kinds::Kinds;
use results::Results;

/// What to run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Options {
    /// Run only tests whose path contains this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Run only the tests of these packages.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) package: Vec<String>,
    /// Run only these stages; all of them when none is named.
    #[arg(long, value_name = "STAGE")]
    pub(crate) stage: Vec<Stage>,
    /// Which program runs the tests; nextest where it is installed, else cargo's own.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) runner: Runner,
}

/// A part of the run with a build of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// Unit, property, process, death and CLI tests.
    Tests,
    /// Models of all interleavings, built with `--cfg loom`.
    Loom,
    /// The examples in the documentation.
    Doc,
}

/// The program that runs the stage `tests`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Runner {
    /// nextest where it is there.
    #[default]
    Auto,
    /// cargo-nextest: a process for each test, and a bound on its time.
    Nextest,
    /// The test binaries one after the other.
    Cargo,
}

/// What each stage is given.
pub(crate) struct Run<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) options: &'a Options,
    /// Value of `TRACE_EVENTS` for every test process.
    pub(crate) events: PathBuf,
    pub(crate) kinds: Kinds,
}

/// Runs the stages, writes the results, prints the closing lines.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    let results_dir = repository.results()?;
    let provenance = Provenance::of(&repository.root);
    let events = results_dir.join("trace-events.jsonl");
    let first = results::run_line("events", &provenance)? + "\n";
    std::fs::write(&events, first).with_context(|| format!("cannot write {}", events.display()))?;
    let kinds = Kinds::read(repository)?;
    let run = Run {
        repository,
        options,
        events,
        kinds,
    };
    let runner = match options.runner {
        Runner::Auto if nextest::is_there(repository) => Runner::Nextest,
        Runner::Auto => Runner::Cargo,
        chosen => chosen,
    };

    let mut results = Results::default();
    let mut faults = Vec::new();
    for stage in [Stage::Tests, Stage::Loom, Stage::Doc] {
        if !options.stage.is_empty() && !options.stage.contains(&stage) {
            continue;
        }
        let began = Instant::now();
        let before = results.outcomes.len();
        screen::title(&format!("{stage:?}").to_lowercase());
        match stage {
            Stage::Tests if runner == Runner::Nextest => nextest::run(&run, &mut results)?,
            Stage::Tests => libtest::run(&run, &mut results)?,
            Stage::Loom => loom::run(&run, &mut results)?,
            Stage::Doc => libtest::run_doc(&run, &mut results)?,
        }
        let narrowed = options.filter.is_some() || !options.package.is_empty();
        if results.outcomes.len() == before && !narrowed {
            faults.push(format!("the stage {stage:?} ran no test").to_lowercase());
        }
        anstream::eprintln!("{:.1} s", began.elapsed().as_secs_f64());
    }

    let file = results_dir.join("test-results.jsonl");
    let name = if runner == Runner::Nextest {
        "nextest"
    } else {
        "cargo"
    };
    results.write(&file, name, &provenance)?;
    if results.ran() == 0 {
        faults.push("no test ran".into());
    }
    for failed in results
        .outcomes
        .iter()
        .filter(|outcome| outcome.verdict.is_failure())
    {
        anstream::println!(
            "{} {} {}",
            screen::bad(failed.verdict.word()),
            failed.binary,
            failed.test
        );
    }
    for line in results.lines() {
        anstream::println!("{line}");
    }
    anstream::println!("results in {}", file.display());
    for fault in &faults {
        anstream::println!("{} {fault}", screen::bad("red:"));
    }
    anstream::println!("{}", results.closing());
    if results.failed() > 0 || !faults.is_empty() {
        bail!("the tests are not green");
    }
    Ok(())
}
