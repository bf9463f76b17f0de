//! What does the traceability tool cost on a repository of 1,000 rows, and on one of ten times that?
//!
//! Owns the clock around the real program. Refuses a figure of a run that found something: only a whole judgement
//! counts. Invariant: *cold* has no cache of the tool's own (the system's stays), *warm* has one that is whole.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use m0_spec::T18;

use super::Question;
use crate::grown::{self, ROWS, SABOTAGES, TESTS};
use crate::peak;
use crate::report::Report;
use crate::samples::Samples;
use crate::session::Session;

pub(super) const QUESTION: Question = Question {
    name: "trace_scale",
    asks: "how long does `trace` take for 1,000 rows with 3,000 tests, and how does that grow?",
    rows: &[T18],
    rounds: 11,
    run,
};

/// Seconds (`spec/T.yaml`, T18).
const GOAL_COLD: f64 = 0.15;
const GOAL_WARM: f64 = 0.05;
const GOAL_JOIN: f64 = 0.3;
const GOAL_HTML: f64 = 1.0;
/// Bytes.
const GOAL_MEMORY: f64 = 50.0 * 1024.0 * 1024.0;
/// Ten times the size may cost ten times the time.
const TIMES: usize = 10;

/// Seconds of each round on one repository.
#[derive(Default)]
struct Times {
    cold: Vec<f64>,
    warm: Vec<f64>,
    join: Vec<f64>,
    html: Vec<f64>,
}

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let trace = session.binary("trace");
    ensure!(trace.is_file(), "cannot start {}", trace.display());
    let home = std::env::temp_dir().join(format!("probe-trace-{}", std::process::id()));
    let outcome = measure(session, report, &trace, &home);
    // What is left in the temporary directory does no harm.
    let _ = std::fs::remove_dir_all(&home);
    outcome
}

fn measure(session: &Session, report: &mut Report, trace: &Path, home: &Path) -> Result<()> {
    let (small, large) = (home.join("one"), home.join("ten"));
    session.shows("growing");
    grown::grow(&small, 1)?;
    grown::grow(&large, TIMES)?;
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let memory = peak::of(&own, trace, &["check"], &small)?;
    let memory = Samples::of(vec![memory as f64])?;
    let (mut one, mut ten) = (Times::default(), Times::default());
    // Both in each round: a machine whose pace changes between them would tell of itself.
    for _ in session.rounds() {
        session.shows("size 1");
        one.add(trace, &small, 1)?;
        session.shows("size 10");
        ten.add(trace, &large, TIMES)?;
    }
    let ratio = |ten: &[f64], one: &[f64]| -> Result<Samples> {
        Samples::of(ten.iter().zip(one).map(|(ten, one)| ten / one).collect())
    };
    let most = TIMES as f64;
    let mut add = |what: &str, unit, samples, goal| {
        report.figure(what, unit, samples).goal(goal).swayed();
    };
    add(
        "check, cold",
        "s",
        Samples::of(one.cold.clone())?,
        GOAL_COLD,
    );
    add(
        "check, warm",
        "s",
        Samples::of(one.warm.clone())?,
        GOAL_WARM,
    );
    add(
        "check, new results joined",
        "s",
        Samples::of(one.join.clone())?,
        GOAL_JOIN,
    );
    add(
        "report --html",
        "s",
        Samples::of(one.html.clone())?,
        GOAL_HTML,
    );
    add("peak of memory", "bytes", memory, GOAL_MEMORY);
    add(
        "check, cold, ten times the size",
        "times",
        ratio(&ten.cold, &one.cold)?,
        most,
    );
    add(
        "check, warm, ten times the size",
        "times",
        ratio(&ten.warm, &one.warm)?,
        most,
    );
    add(
        "report, ten times the size",
        "times",
        ratio(&ten.html, &one.html)?,
        most,
    );
    report.note(
        "300 files in Rust, Python and TypeScript, 3,000 results and 300 sabotages in every check.",
    );
    Ok(())
}

impl Times {
    /// One round.
    fn add(&mut self, trace: &Path, root: &Path, size: usize) -> Result<()> {
        cool(root)?;
        self.cold.push(timed(trace, root, size, &["check"])?);
        self.warm.push(timed(trace, root, size, &["check"])?);
        grown::results(root, size)?;
        self.join.push(timed(trace, root, size, &["check"])?);
        let report = ["report", "--html", "site"];
        self.html.push(timed(trace, root, size, &report)?);
        Ok(())
    }
}

/// Removes what the tool keeps between runs.
fn cool(root: &Path) -> Result<()> {
    let kept: PathBuf = root.join(".git/trace");
    match std::fs::remove_dir_all(&kept) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", kept.display()))
        }
        _ => Ok(()),
    }
}

/// Seconds of one run, which must be a whole one.
fn timed(trace: &Path, root: &Path, size: usize, args: &[&str]) -> Result<f64> {
    let began = Instant::now();
    let output = Command::new(trace)
        .args(args)
        .current_dir(root)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .context("cannot run trace")?;
    let seconds = began.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stdout);
    let wanted = if args == ["check"] {
        let (rows, tests, sabotages) = (size * ROWS, size * TESTS, size * SABOTAGES);
        format!(
            "{rows} rows ({rows} active), {tests} tests that name them, {tests} edges, {tests} results joined, {sabotages} sabotages"
        )
    } else {
        format!("{} pages in site", size * ROWS + 1)
    };
    ensure!(
        output.status.success() && said.contains(&wanted),
        "nothing was measured: `trace {}` did not say `{wanted}` but:\n{said}{}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(seconds)
}
