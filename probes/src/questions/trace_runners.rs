//! Does `trace` judge repositories that it has never seen by what their own runners print today?
//!
//! Owns the way of each repository: nothing, rows, a run that fails in part, a mended tree, a run that is green; and the
//! exit code and the findings of each step. Refuses results that no runner wrote. Invariant: where python3, node, npm or
//! what is fetched for them is not there, nothing was measured, and that is an error.

mod repositories;
mod tools;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use m0_spec::T27;
use serde_json::Value;

use self::repositories::{PYTHON, Repository, TYPESCRIPT};
use self::tools::Tools;
use super::Question;
use crate::report::Report;
use crate::samples::Samples;
use crate::session::Session;

pub(super) const QUESTION: Question = Question {
    name: "trace_runners",
    asks: "is a repository of Python and one of TypeScript judged by what pytest and node's runner print?",
    rows: &[T27],
    rounds: 3,
    run,
};

/// The rows of each repository: shown, shown by a test that fails, shown by nothing.
const CLAIMS: [&str; 3] = [
    "A sum holds both of its parts.",
    "A mean may lie between two whole numbers.",
    "Nothing sums to zero.",
];

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let trace = session.binary("trace");
    ensure!(trace.is_file(), "cannot start {}", trace.display());
    // Beside the build, as what `cargo xtask conformance` fetches: once for many runs.
    let tools = Tools::new(session.binary("../m0/runners"));
    let home = std::env::temp_dir().join(format!("probe-runners-{}", std::process::id()));
    let outcome = [&PYTHON, &TYPESCRIPT].into_iter().try_for_each(|kind| {
        session.shows(&format!("fetching what runs {}", kind.language));
        let runner = (kind.runner)(&tools)?;
        let mut seconds = Vec::new();
        for round in session.rounds() {
            session.shows(kind.language);
            let root = home.join(format!("{}-{round}", kind.language));
            let place = Place {
                trace: &trace,
                root: &root,
            };
            let way = way(kind, &place, &runner);
            seconds.push(way.with_context(|| format!("the repository of {}", kind.language))?);
        }
        let what = format!("check of {} results", kind.language);
        report.figure(&what, "s", Samples::of(seconds)?);
        Ok(())
    });
    // What is left in the temporary directory does no harm.
    let _ = std::fs::remove_dir_all(&home);
    outcome
}

/// The whole way of one repository; seconds of the check of its first results.
fn way(kind: &Repository, place: &Place<'_>, runner: &[String]) -> Result<f64> {
    std::fs::create_dir_all(place.root).context("cannot make a repository")?;
    for (name, text) in kind.files {
        place.write(name, text)?;
    }
    place.git(&["init", "--quiet"])?;
    for (index, claim) in CLAIMS.into_iter().enumerate() {
        let args = ["new", "A", claim, "--why", "Sums are used."];
        let said = place.trace(&args, 0)?;
        let id = format!("A{} in", index + 1);
        ensure!(
            said.starts_with(&id),
            "the {index}th row is not {id}: {said}"
        );
    }
    place.commit()?;
    let before = [kind.unknown, "out/*.xml:1:1 results-missing"];
    place.finds("before its runner ran", 1, &before)?;

    kind.test(place, runner, 1)?;
    let began = Instant::now();
    place.finds("with a test that fails", 1, kind.broken)?;
    let seconds = began.elapsed().as_secs_f64();
    for (id, grade) in [("A1", "passed"), ("A2", "ran"), ("A3", "none")] {
        place.stands(id, grade)?;
    }
    let said = place.trace(&["report", "--html", "out/site"], 0)?;
    ensure!(
        said.contains("4 pages in"),
        "the report is not whole: {said}"
    );

    for (name, from, to) in kind.mended {
        place.replace(name, from, to)?;
    }
    place.commit()?;
    place.finds(
        "mended, with the results of before",
        3,
        &["out/junit.xml:1:1 results-stale"],
    )?;
    kind.test(place, runner, 0)?;
    place.finds("mended", 0, kind.kept)?;
    for id in ["A1", "A2", "A3"] {
        place.stands(id, "passed")?;
    }
    Ok(seconds)
}

/// A repository and the program that judges it.
struct Place<'a> {
    trace: &'a Path,
    root: &'a Path,
}

impl Place<'_> {
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.root.join(name);
        let dir = path.parent().context("it is within the repository")?;
        std::fs::create_dir_all(dir)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn replace(&self, name: &str, from: &str, to: &str) -> Result<()> {
        let path = self.root.join(name);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(text.contains(from), "{name} does not hold `{from}`");
        self.write(name, &text.replacen(from, to, 1))
    }

    fn git(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=probe", "-c", "user.email=probe@localhost"])
            .args(args);
        done(command.current_dir(self.root), 0).map(drop)
    }

    fn commit(&self) -> Result<()> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "-m", "a step"])
    }

    /// What `trace` printed, when it ended with this code.
    fn trace(&self, args: &[&str], code: i32) -> Result<String> {
        let mut command = Command::new(self.trace);
        command.args(args).env_remove("CARGO_TARGET_DIR");
        done(command.current_dir(self.root), code)
    }

    /// Exactly these findings, each with its place and its code.
    fn finds(&self, when: &str, code: i32, wanted: &[&str]) -> Result<()> {
        let text = self
            .trace(&["check", "--json"], code)
            .context(when.to_owned())?;
        let found = findings(&text)?;
        ensure!(
            found == wanted,
            "{when} these were found: {found:#?}, and not: {wanted:#?}"
        );
        Ok(())
    }

    fn stands(&self, id: &str, grade: &str) -> Result<()> {
        let text = self.trace(&["explain", id, "--json"], 0)?;
        let told: Value = serde_json::from_str(&text).context("explain printed no JSON")?;
        ensure!(told["reached"] == grade, "{id} is not {grade}: {text}");
        Ok(())
    }
}

/// `file:line:column code` of each finding.
fn findings(text: &str) -> Result<Vec<String>> {
    let told: Value = serde_json::from_str(text).context("check printed no JSON")?;
    let findings = told["findings"].as_array().context("there is no list")?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |finding: &Value| {
        let (file, code) = (word(&finding["file"]), word(&finding["code"]));
        format!("{file}:{}:{} {code}", finding["line"], finding["column"])
    };
    Ok(findings.iter().map(one).collect())
}

/// What a command printed, when it ended with this code.
fn done(command: &mut Command, code: i32) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.code() == Some(code),
        "{command:?} ended with {}, not with {code}:\n{said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(said)
}
