//! One package under cargo-mutants: what it would change, and what came of each change.
//!
//! Owns the hand-over and cargo-mutants' files. Refuses to judge. Invariant: the working tree is not touched,
//! the copy builds into a directory of its own, and a sweep whose clean tree is not green is an error.

use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::{Options, home};
use crate::repository::Repository;
use crate::setup;

/// A change that cargo-mutants can make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) column: usize,
    /// The change in words, without the place.
    pub(super) what: String,
}

/// What came of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// A test failed.
    Caught,
    /// The tests hung and were ended.
    TimedOut,
    /// It does not build.
    Unviable,
    /// Every test passed.
    Survived,
}

/// A package that was swept.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) package: String,
    /// The package's directory, relative to the repository.
    pub(super) dir: String,
    /// Every mutant of the package, those of other shards too.
    pub(super) known: Vec<Mutant>,
    /// Those that were tried.
    pub(super) mutants: Vec<(Mutant, Fate)>,
    /// Wall time, build of the clean tree and its tests included.
    pub(super) seconds: f64,
}

impl Sweep {
    pub(super) fn count(&self, fate: Fate) -> usize {
        self.mutants.iter().filter(|(_, got)| *got == fate).count()
    }

    /// Mutants a second of wall time.
    pub(super) fn rate(&self) -> f64 {
        self.mutants.len() as f64 / self.seconds.max(f64::EPSILON)
    }

    pub(super) fn line(&self) -> String {
        format!(
            "{:<12} {:>4} mutants in {:.0} s ({:.2} a second): {} caught, {} timed out, {} unviable, {} survived",
            self.package,
            self.mutants.len(),
            self.seconds,
            self.rate(),
            self.count(Fate::Caught),
            self.count(Fate::TimedOut),
            self.count(Fate::Unviable),
            self.count(Fate::Survived),
        )
    }
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    file: String,
    span: Span,
}

#[derive(Deserialize)]
struct Span {
    start: Place,
}

#[derive(Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

impl From<Listed> for Mutant {
    fn from(listed: Listed) -> Self {
        let Place { line, column } = listed.span.start;
        let place = format!("{}:{line}:{column}: ", listed.file);
        let what = listed.name.strip_prefix(&place).unwrap_or(&listed.name);
        Self {
            what: what.to_owned(),
            file: listed.file,
            line,
            column,
        }
    }
}

#[derive(Deserialize)]
struct Outcomes {
    outcomes: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    scenario: Scenario,
    summary: Summary,
}

#[derive(Deserialize)]
enum Scenario {
    Baseline,
    Mutant(Listed),
}

#[derive(Deserialize)]
enum Summary {
    Success,
    CaughtMutant,
    MissedMutant,
    Unviable,
    Failure,
    Timeout,
}

/// The version that is installed; an error unless it is the one whose words the list of survivors holds.
pub(super) fn version(repository: &Repository) -> Result<String> {
    setup::ensure(repository, "mutants")
}

fn mutants(repository: &Repository, package: &str) -> Command {
    let mut command = repository.cargo();
    // A snapshot that a mutant changes must fail, and be no new file.
    command.env("INSTA_UPDATE", "no");
    command.args(["mutants", "--dir"]).arg(&repository.root);
    command.args(["--package", package]);
    command
}

/// Every mutant of a package.
pub(super) fn known(repository: &Repository, package: &str) -> Result<Vec<Mutant>> {
    let mut command = mutants(repository, package);
    let output = command
        .args(["--list", "--json"])
        .stderr(Stdio::inherit())
        .output();
    let output = output.context("cannot run cargo mutants --list")?;
    ensure!(
        output.status.success(),
        "cargo mutants cannot list the mutants of {package}"
    );
    let listed: Vec<Listed> = serde_json::from_slice(&output.stdout)
        .context("the list of cargo mutants is not as expected")?;
    Ok(listed.into_iter().map(Mutant::from).collect())
}

/// Tries the mutants of a package, one after the other.
pub(super) fn run(
    repository: &Repository,
    package: &str,
    known: Vec<Mutant>,
    options: &Options,
) -> Result<Sweep> {
    let output = home(repository)?.join(package);
    let mut command = mutants(repository, package);
    command.env("CARGO_TARGET_DIR", home(repository)?.join("build"));
    command.args(["--jobs", "1", "--output"]).arg(&output);
    command.arg("--timeout").arg(options.timeout.to_string());
    command.args(["--build-timeout", "600"]);
    if let Some(shard) = options.shard {
        // Theirs are counted from 0.
        command.arg(format!("--shard={}/{}", shard.k - 1, shard.n));
    }
    std::fs::create_dir_all(&output)
        .with_context(|| format!("cannot make {}", output.display()))?;
    // What it says for people goes where our own progress goes.
    let stderr = std::io::stderr().as_fd().try_clone_to_owned();
    command.stdout(Stdio::from(
        stderr.context("cannot share the error stream")?,
    ));
    let began = Instant::now();
    let status = command.status().context("cannot run cargo mutants")?;
    let seconds = began.elapsed().as_secs_f64();
    match status.code() {
        // 2: some survived; 3: some timed out.
        Some(0 | 2 | 3) => {}
        Some(4) => bail!("the tests of {package} are not green on the clean tree"),
        _ => bail!("cargo mutants failed on {package}: {status}"),
    }
    let file = output.join("mutants.out/outcomes.json");
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let dir = repository
        .packages
        .iter()
        .find(|known| known.name == package);
    let dir = dir.context("the package is a member")?.dir();
    Ok(Sweep {
        package: package.to_owned(),
        dir: dir
            .strip_prefix(&repository.root)
            .unwrap_or(dir)
            .display()
            .to_string(),
        known,
        mutants: outcomes(&text)
            .with_context(|| format!("cannot understand {}", file.display()))?,
        seconds,
    })
}

/// The fates in `outcomes.json`.
pub(super) fn outcomes(text: &str) -> Result<Vec<(Mutant, Fate)>> {
    let read: Outcomes = serde_json::from_str(text)?;
    let mut fates = Vec::new();
    for outcome in read.outcomes {
        let Scenario::Mutant(listed) = outcome.scenario else {
            continue;
        };
        let mutant = Mutant::from(listed);
        let fate = match outcome.summary {
            Summary::CaughtMutant => Fate::Caught,
            Summary::MissedMutant => Fate::Survived,
            Summary::Unviable => Fate::Unviable,
            Summary::Timeout => Fate::TimedOut,
            Summary::Success | Summary::Failure => bail!("`{}` came to nothing known", mutant.what),
        };
        fates.push((mutant, fate));
    }
    Ok(fates)
}
