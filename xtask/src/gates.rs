//! `cargo xtask ci`: the gates, as a list.
//!
//! Owns: which command lines a change must pass, their order, how one is run, and the closing lines.
//! Refuses to know what is behind a command. Invariant: every gate of the list is in the closing lines, as
//! passed, as failed or as one that did not run, and one that did not run is never counted as passed.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::builder::PossibleValuesParser;

use crate::repository::Repository;
use crate::screen;

/// One gate: a name and a command line. `xtask` stands for this program.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) name: &'static str,
    pub(crate) command: Vec<String>,
    /// Set for a gate that is a job of its own, because it needs a tool that is slow to build.
    pub(crate) apart: bool,
    /// The exit code by which the command says that the change gave it nothing to do, and why.
    pub(crate) nothing: Option<(i32, &'static str)>,
}

/// A gate of every run, by the words of its command line.
pub(crate) fn gate(name: &'static str, command: &str) -> Gate {
    Gate {
        name,
        command: command.split_whitespace().map(str::to_owned).collect(),
        apart: false,
        nothing: None,
    }
}

/// The gates, cheapest first; `trace` judges what `test` and `smoke-host` leave behind.
pub(crate) fn gates() -> Vec<Gate> {
    vec![
        gate("fmt", "cargo fmt --all --check"),
        gate("spec", "xtask spec --check"),
        gate("tidy", "xtask tidy"),
        gate("lint", "xtask sabotage-lint"),
        gate(
            "clippy",
            "cargo clippy --workspace --all-targets -- -D warnings",
        ),
        gate("test", "xtask test"),
        gate("smoke-host", "xtask smoke-host"),
        gate("trace", "xtask trace"),
        Gate {
            apart: true,
            ..gate("deny", "xtask deny")
        },
    ]
}

/// What came of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Outcome {
    Passed(Duration),
    Failed(Duration),
    DidNotRun(&'static str),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(time) => {
                write!(f, "{} {:.1} s", screen::good("passed"), time.as_secs_f64())
            }
            Self::Failed(time) => {
                write!(f, "{} {:.1} s", screen::bad("failed"), time.as_secs_f64())
            }
            Self::DidNotRun(why) => write!(f, "did not run ({why})"),
        }
    }
}

/// The names of the gates, as the command line takes them.
pub(crate) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(gates().into_iter().map(|gate| gate.name))
}

/// Runs the gates that are named, or all that are no job of their own.
pub(crate) fn run(repository: &Repository, only: &[String]) -> Result<()> {
    let gates = gates();
    // Asked once: a gate may rebuild this program, and its path stays.
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let outcomes = run_all(&gates, repository, &own, only)?;
    close(&gates, &outcomes)
}

fn run_all(
    gates: &[Gate],
    repository: &Repository,
    own: &Path,
    only: &[String],
) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for gate in gates {
        let asked = only.iter().any(|name| name == gate.name);
        if !asked && gate.apart {
            outcomes.push(Outcome::DidNotRun("a job of its own"));
            continue;
        }
        if !asked && !only.is_empty() {
            outcomes.push(Outcome::DidNotRun("not asked for"));
            continue;
        }
        let title = format!("{}: {}", gate.name, gate.command.join(" "));
        screen::title(&title);
        outcomes.push(run_one(gate, repository, own)?);
    }
    Ok(outcomes)
}

/// Runs a gate, its output on ours.
pub(crate) fn run_one(gate: &Gate, repository: &Repository, own: &Path) -> Result<Outcome> {
    let began = Instant::now();
    let status = command(gate, repository, own)?.status();
    let status = status.with_context(|| format!("cannot run {}", gate.command.join(" ")))?;
    Ok(gate.outcome(status.code(), began.elapsed()))
}

impl Gate {
    /// What an exit code means; none is a death by a signal.
    pub(crate) fn outcome(&self, code: Option<i32>, time: Duration) -> Outcome {
        match (code, self.nothing) {
            (Some(0), _) => Outcome::Passed(time),
            (Some(code), Some((nothing, why))) if code == nothing => Outcome::DidNotRun(why),
            _ => Outcome::Failed(time),
        }
    }
}

/// The command line of a gate, to be started at the root.
pub(crate) fn command(gate: &Gate, repository: &Repository, own: &Path) -> Result<Command> {
    let (program, args) = gate
        .command
        .split_first()
        .context("a gate names a command")?;
    let mut command = match program.as_str() {
        "cargo" => repository.cargo(),
        "xtask" => Command::new(own),
        other => Command::new(other),
    };
    command.args(args).current_dir(&repository.root);
    Ok(command)
}

/// Prints the closing lines; an error unless something ran and nothing failed.
pub(crate) fn close(gates: &[Gate], outcomes: &[Outcome]) -> Result<()> {
    screen::title("gates");
    for (gate, outcome) in gates.iter().zip(outcomes) {
        anstream::println!("{:<13} {outcome}", gate.name);
    }
    let [passed, failed, not_run] = counted(outcomes);
    println!("gates: {passed} passed, {failed} failed, {not_run} did not run");
    verdict(outcomes)
}

/// How many passed, failed and did not run.
fn counted(outcomes: &[Outcome]) -> [usize; 3] {
    let count =
        |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    [
        count(|outcome| matches!(outcome, Outcome::Passed(_))),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::DidNotRun(_))),
    ]
}

/// An error unless something passed and nothing failed.
pub(crate) fn verdict(outcomes: &[Outcome]) -> Result<()> {
    let [passed, failed, _] = counted(outcomes);
    if failed > 0 {
        bail!("{failed} gate(s) failed");
    }
    ensure!(passed > 0, "no gate ran");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Gate, Outcome, close, gate, gates, run_all};
    use crate::repository::Repository;

    fn outcomes(gates: &[Gate], only: &[String]) -> Vec<Outcome> {
        let repository = Repository::own().expect("this is a workspace");
        run_all(gates, &repository, Path::new("true"), only).expect("the commands exist")
    }

    #[m0_spec::row(H18)]
    #[test]
    fn a_red_gate_hides_no_later_one_and_makes_the_run_red() {
        let gates = [
            gate("first", "false"),
            gate("second", "true"),
            gate("third", "xtask x"),
        ];
        let got = outcomes(&gates, &[]);
        assert!(
            matches!(
                got[..],
                [Outcome::Failed(_), Outcome::Passed(_), Outcome::Passed(_)]
            ),
            "{got:?}"
        );
        let error = close(&gates, &got).expect_err("one gate failed");
        assert!(error.to_string().contains("1 gate(s) failed"), "{error}");
        close(&gates[1..], &got[1..]).expect("the others passed");
    }

    #[m0_spec::row(H16)]
    #[test]
    fn a_gate_that_did_not_run_is_no_pass() {
        let apart = Gate {
            apart: true,
            ..gate("apart", "true")
        };
        let gates = [gate("near", "true"), apart];
        let got = outcomes(&gates, &[]);
        assert!(
            matches!(got[..], [Outcome::Passed(_), Outcome::DidNotRun(_)]),
            "{got:?}"
        );
        let got = outcomes(&gates, &["apart".into()]);
        assert!(
            matches!(got[..], [Outcome::DidNotRun(_), Outcome::Passed(_)]),
            "{got:?}"
        );
        assert!(got[0].to_string().starts_with("did not run"), "{}", got[0]);
        close(&gates, &[Outcome::DidNotRun("x"), Outcome::DidNotRun("y")])
            .expect_err("nothing ran");
    }

    #[m0_spec::row(H16)]
    #[test]
    fn a_gate_that_finds_nothing_to_do_is_no_pass_and_any_other_code_is_a_failure() {
        let with = |code: i32| {
            let gate = Gate {
                command: ["sh", "-c", &format!("exit {code}")]
                    .map(str::to_owned)
                    .to_vec(),
                nothing: Some((7, "no rule is touched")),
                ..gate("quick", "")
            };
            outcomes(&[gate], &[])[0]
        };
        assert_eq!(with(7), Outcome::DidNotRun("no rule is touched"));
        assert!(matches!(with(0), Outcome::Passed(_)));
        assert!(matches!(with(8), Outcome::Failed(_)));
    }

    #[m0_spec::row(H16)]
    #[test]
    fn only_deny_is_a_job_of_its_own() {
        let apart = |gate: &Gate| gate.apart.then_some(gate.name);
        let apart: Vec<&str> = gates().iter().filter_map(apart).collect();
        assert_eq!(apart, ["deny"]);
    }

    #[m0_spec::row(H49)]
    #[test]
    fn the_rows_are_judged_by_what_this_run_made() {
        let gates = gates();
        let place = |name: &str| gates.iter().position(|gate| gate.name == name);
        let trace = place("trace").expect("a gate");
        assert!(!gates[trace].apart && gates[trace].command == ["xtask", "trace"]);
        assert!(place("test") < Some(trace) && place("smoke-host") < Some(trace));
    }

    #[m0_spec::row(H50)]
    #[test]
    fn the_rules_are_linted_before_anything_slow_and_in_the_required_check() {
        let gates = gates();
        let place = |name: &str| gates.iter().position(|gate| gate.name == name);
        let lint = &gates[place("lint").expect("a gate")];
        assert!(!lint.apart && lint.command == ["xtask", "sabotage-lint"]);
        assert!(place("lint") < place("clippy"));
        let repository = Repository::own().expect("this is a workspace");
        let workflow = repository.root.join(".github/workflows/ci.yml");
        let workflow = std::fs::read_to_string(workflow).expect("the workflow");
        let check = workflow.split("  test:").next().expect("the first job");
        for gate in gates.iter().take(place("test").expect("a gate")) {
            assert!(
                check.contains(&format!("--only {}", gate.name)),
                "{}",
                gate.name
            );
        }
    }
}
