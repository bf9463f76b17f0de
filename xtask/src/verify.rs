//! `cargo xtask verify`: makes all evidence in the right order, judges it, and shows one screen.
//!
//! Owns the order and the screen. Refuses to judge: `trace` does. Invariant: what is judged was made by this run
//! (results of an earlier one are removed first, unless only judging is asked for), a step that fails hides
//! no later one, and the exit code is 0 only when each step and the judgement were green.

mod screen;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::gates::{Gate, Outcome, close, command, gate, run_one};
use crate::repository::Repository;
use crate::sabotage::{EVIDENCE, remove};
use crate::screen as colour;
use screen::Judgement;

/// What is made and how strictly it is judged.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Ask no row for more than this grade; for `proven` the probes are measured, too.
    #[arg(long, value_enum, value_name = "GRADE", default_value_t = Floor::Passed)]
    floor: Floor,
    /// Of the sabotages, run those that the change since this revision touches; the rows that it touches
    /// must be proven.
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// Run nothing: judge the results that are there.
    #[arg(long)]
    judge_only: bool,
    /// Print what `trace check` found as one JSON object on stdout; all else goes to stderr.
    #[arg(long)]
    json: bool,
}

/// The grade that every row must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Floor {
    /// What shows it ran and was green.
    Passed,
    /// And a sabotage of it was noticed.
    Proven,
}

impl Floor {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Proven => "proven",
        }
    }
}

/// Results of an earlier run, which would be judged in the place of this one's.
const RESULTS: [&str; 4] = [
    "test-results.jsonl",
    "trace-events.jsonl",
    "smoke-results.jsonl",
    EVIDENCE,
];
/// What the probes leave behind, when they are a step.
const FIGURES: &str = "probe-results.jsonl";

/// What makes evidence, the cheapest first, and the judgement after all of it.
fn steps(options: &Options) -> Vec<Gate> {
    let mut steps = Vec::new();
    if !options.judge_only {
        let rules = match &options.since {
            Some(rev) => Gate {
                // As the sabotage tool says when a selection holds no rule.
                nothing: Some((7, "the change touches no rule")),
                ..gate(
                    "sabotage-host",
                    &format!("xtask sabotage-host --since {rev}"),
                )
            },
            None => gate("sabotage-host", "xtask sabotage-host"),
        };
        steps.extend([
            gate("test", "xtask test"),
            gate("smoke-host", "xtask smoke-host"),
        ]);
        // A row that needs a probe is not proven without its figures.
        if options.floor == Floor::Proven {
            steps.push(gate("probe", "xtask probe all --json"));
        }
        steps.push(rules);
    }
    let mut check = format!("xtask trace check --json --floor {}", options.floor.word());
    if let Some(rev) = &options.since {
        check.push_str(" --since ");
        check.push_str(rev);
    }
    steps.extend([
        gate("trace", &check),
        gate("report", "xtask trace report --html"),
    ]);
    steps
}

/// Runs the steps and shows what came of them.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    let results = repository.results()?;
    if !options.judge_only {
        clear(&results, options.floor)?;
    }
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let report = results.join("report");
    let mut steps = steps(options);
    let mut outcomes = Vec::new();
    let mut judged = None;
    let count = steps.len();
    for (index, step) in steps.iter_mut().enumerate() {
        colour::title(&format!(
            "[{}/{count}] {}: {}",
            index + 1,
            step.name,
            step.command.join(" ")
        ));
        match step.name {
            "trace" => {
                let (outcome, text) = judge(step, repository, &own)?;
                outcomes.push(outcome);
                judged = Some(text);
                continue;
            }
            "report" => step.command.push(report.display().to_string()),
            "probe" => step
                .command
                .push(results.join(FIGURES).display().to_string()),
            _ => {}
        }
        outcomes.push(if options.json {
            quiet(step, repository, &own)?
        } else {
            run_one(step, repository, &own)?
        });
    }
    let text = judged.context("there is a judgement among the steps")?;
    let judgement = Judgement::parse(&text);
    if options.json {
        println!("{}", text.trim());
    }
    let shown = match &judgement {
        Ok(judgement) => judgement.screen(options.floor.word(), &report.join("index.html")),
        Err(error) => format!(
            "{} the judgement is not as expected: {error:#}\n",
            colour::bad("red:")
        ),
    };
    if options.json {
        anstream::eprint!("{shown}");
        anstream::stderr().flush().context("the error stream")?;
    } else {
        anstream::print!("{shown}");
    }
    if let Ok(judgement) = &judgement {
        summarise(&judgement.markdown(options.floor.word()))?;
    }
    judgement?;
    if options.json {
        return crate::gates::verdict(&outcomes);
    }
    close(&steps, &outcomes)
}

/// Removes results of an earlier run, evidence of its shards too.
fn clear(results: &Path, floor: Floor) -> Result<()> {
    let figures = (floor == Floor::Proven).then_some(FIGURES);
    for name in RESULTS.into_iter().chain(figures) {
        remove(&results.join(name))?;
    }
    let entries =
        std::fs::read_dir(results).with_context(|| format!("cannot list {}", results.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("evidence-") {
            remove(&path)?;
        }
    }
    Ok(())
}

/// A step whose output goes to the error stream, so that stdout is the judgement's alone.
fn quiet(step: &Gate, repository: &Repository, own: &Path) -> Result<Outcome> {
    let began = Instant::now();
    let output = command(step, repository, own)?
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", step.command.join(" ")))?;
    std::io::stderr()
        .write_all(&output.stdout)
        .context("the error stream")?;
    Ok(step.outcome(output.status.code(), began.elapsed()))
}

/// The judgement: its outcome and what it printed.
fn judge(step: &Gate, repository: &Repository, own: &Path) -> Result<(Outcome, String)> {
    let began = Instant::now();
    let output = command(step, repository, own)?
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", step.command.join(" ")))?;
    let outcome = step.outcome(output.status.code(), began.elapsed());
    Ok((
        outcome,
        String::from_utf8_lossy(&output.stdout).into_owned(),
    ))
}

/// Appends to the summary of a run on GitHub, where there is one.
pub(crate) fn summarise(markdown: &str) -> Result<()> {
    let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY") else {
        return Ok(());
    };
    let file = Path::new(&file);
    let open = std::fs::File::options()
        .create(true)
        .append(true)
        .open(file);
    let mut open = open.with_context(|| format!("cannot open {}", file.display()))?;
    open.write_all(markdown.as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::{FIGURES, Floor, Options, RESULTS, clear, steps};

    fn names(options: &Options) -> Vec<String> {
        steps(options)
            .iter()
            .map(|step| step.command.join(" "))
            .collect()
    }

    #[m0_spec::row(H49)]
    #[test]
    fn evidence_is_made_before_it_is_judged_and_the_report_comes_last() {
        let mut options = Options {
            floor: Floor::Proven,
            since: None,
            judge_only: false,
            json: false,
        };
        let all = names(&options);
        assert_eq!(
            all,
            [
                "xtask test",
                "xtask smoke-host",
                "xtask probe all --json",
                "xtask sabotage-host",
                "xtask trace check --json --floor proven",
                "xtask trace report --html",
            ]
        );
        options.judge_only = true;
        assert_eq!(names(&options), all[4..]);
        options.judge_only = false;
        options.since = Some("main".into());
        options.floor = Floor::Passed;
        assert_eq!(names(&options)[2], "xtask sabotage-host --since main");
        let touched_rows_too = "xtask trace check --json --floor passed --since main";
        assert_eq!(names(&options)[3], touched_rows_too);
        assert_eq!(steps(&options)[2].nothing.map(|nothing| nothing.0), Some(7));
        assert!(
            steps(&options)[..2]
                .iter()
                .all(|step| step.nothing.is_none())
        );
    }

    #[m0_spec::row(H49)]
    #[test]
    fn results_of_an_earlier_run_are_not_judged() {
        let dir = tempfile::tempdir().expect("a directory");
        let old = [
            "test-results.jsonl",
            "smoke-results.jsonl",
            "evidence.json",
            "evidence-1-of-2.json",
        ];
        for name in old.iter().chain(&[FIGURES]) {
            std::fs::write(dir.path().join(name), "old").expect("it is written");
        }
        let figures = dir.path().join(FIGURES);
        clear(dir.path(), Floor::Passed).expect("it can be cleared");
        assert!(old.iter().all(|name| !dir.path().join(name).exists()));
        assert!(figures.exists(), "the probes are no step then");
        clear(dir.path(), Floor::Proven).expect("it can be cleared");
        assert!(!figures.exists());
    }

    #[m0_spec::row(H49)]
    #[test]
    fn every_result_that_trace_must_have_is_made_anew() {
        let repository = crate::repository::Repository::own().expect("this is a workspace");
        let config = traceability::config::Config::read(&repository.root).expect("it is right");
        let known: Vec<&str> = RESULTS.into_iter().chain([FIGURES]).collect();
        for source in &config.results {
            let name = source
                .files
                .trim_start_matches("target/m0/")
                .replace('*', "");
            assert!(
                known.contains(&name.as_str()),
                "{} would be an earlier run's",
                source.files
            );
        }
    }
}
