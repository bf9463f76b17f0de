//! `cargo xtask ci`: the gates, as a list.
//!
//! Owns: which command lines a change must pass, their order, and the closing lines. Refuses to know
//! what is behind a command. Invariant: every gate of the list is in the closing lines, as passed,
//! as failed or as one that did not run, and one that did not run is never counted as passed.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::repository::Repository;
use crate::screen;

/// One gate: a name and a command line. `xtask` stands for this program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate {
    pub(crate) name: &'static str,
    pub(crate) command: &'static [&'static str],
    /// Set for a gate that is a job of its own, because it needs a tool that is slow to build.
    pub(crate) apart: bool,
}

const fn gate(name: &'static str, command: &'static [&'static str]) -> Gate {
    Gate {
        name,
        command,
        apart: false,
    }
}

/// The gates, cheapest first.
pub(crate) const GATES: [Gate; 7] = [
    gate("fmt", &["cargo", "fmt", "--all", "--check"]),
    gate("spec", &["xtask", "spec", "--check"]),
    gate("tidy", &["xtask", "tidy"]),
    gate(
        "clippy",
        &[
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    ),
    gate("test", &["xtask", "test"]),
    gate("smoke-host", &["xtask", "smoke-host"]),
    Gate {
        name: "deny",
        command: &["xtask", "deny"],
        apart: true,
    },
];

/// What came of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
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

/// Runs the gates that are named, or all that are no job of their own.
pub(crate) fn run(repository: &Repository, only: &[String]) -> Result<()> {
    for name in only {
        let names: Vec<&str> = GATES.iter().map(|gate| gate.name).collect();
        let near = crate::finding::nearest(name, names.iter().copied());
        let hint = near
            .map(|near| format!(", did you mean {near}?"))
            .unwrap_or_default();
        ensure!(
            names.contains(&name.as_str()),
            "there is no gate {name}{hint} ({})",
            names.join(", ")
        );
    }
    // Asked once: a gate may rebuild this program, and its path stays.
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let outcomes = run_all(&GATES, repository, &own, only)?;
    close(&GATES, &outcomes)
}

fn run_all(
    gates: &[Gate],
    repository: &Repository,
    own: &PathBuf,
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
        screen::title(&format!("{}: {}", gate.name, gate.command.join(" ")));
        let (program, args) = gate
            .command
            .split_first()
            .context("a gate names a command")?;
        let mut command = match *program {
            "cargo" => repository.cargo(),
            "xtask" => Command::new(own),
            other => Command::new(other),
        };
        let began = Instant::now();
        let status = command.args(args).current_dir(&repository.root).status();
        let status = status.with_context(|| format!("cannot run {}", gate.command.join(" ")))?;
        let time = began.elapsed();
        outcomes.push(if status.success() {
            Outcome::Passed(time)
        } else {
            Outcome::Failed(time)
        });
    }
    Ok(outcomes)
}

/// Prints the closing lines; an error unless something ran and nothing failed.
fn close(gates: &[Gate], outcomes: &[Outcome]) -> Result<()> {
    screen::title("gates");
    for (gate, outcome) in gates.iter().zip(outcomes) {
        anstream::println!("{:<11} {outcome}", gate.name);
    }
    let count =
        |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    let passed = count(|outcome| matches!(outcome, Outcome::Passed(_)));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let not_run = count(|outcome| matches!(outcome, Outcome::DidNotRun(_)));
    println!("gates: {passed} passed, {failed} failed, {not_run} did not run");
    if failed > 0 {
        bail!("{failed} gate(s) failed");
    }
    ensure!(passed > 0, "no gate ran");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{GATES, Gate, Outcome, close, gate, run, run_all};
    use crate::repository::Repository;

    fn outcomes(gates: &[Gate], only: &[String]) -> Vec<Outcome> {
        let repository = Repository::own().expect("this is a workspace");
        run_all(gates, &repository, &PathBuf::from("true"), only).expect("the commands exist")
    }

    #[m0_spec::row(H18)]
    #[test]
    fn a_red_gate_hides_no_later_one_and_makes_the_run_red() {
        let gates = [
            gate("first", &["false"]),
            gate("second", &["true"]),
            gate("third", &["xtask", "x"]),
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
            ..gate("apart", &["true"])
        };
        let gates = [gate("near", &["true"]), apart];
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
    fn a_gate_that_does_not_exist_is_told_with_the_nearest() {
        let repository = Repository::own().expect("this is a workspace");
        let error = run(&repository, &["clipy".into()]).expect_err("it does not exist");
        assert!(
            error.to_string().contains("did you mean clippy?"),
            "{error}"
        );
        assert!(
            GATES
                .iter()
                .filter(|gate| gate.apart)
                .all(|gate| gate.name == "deny")
        );
    }
}
