//! The front door of the repository: `cargo xtask COMMAND`.
//!
//! Owns the commands and their flags. Refuses to do any work itself: each command is a file.
//! Invariant: exit 0 when what was asked for is green, 1 when it is not, 2 for a wrong command line.

mod binaries;
mod conformance;
mod gates;
mod mutants;
mod probe;
mod repository;
mod sabotage;
mod screen;
mod setup;
mod smoke;
mod spec;
mod test;
mod tidy;
mod trace;
mod verify;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use repository::Repository;
use traceability::finding;

/// Builds, tests and checks this repository.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test: unit, property, death, CLI, loom models, examples in the documentation.
    Test(test::Options),
    /// Build host_check and the smokes, and run the smokes with the given arguments.
    #[command(disable_help_flag = true)]
    SmokeHost {
        /// Passed on; `--help` and `--list` tell more.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build host_check and the conformance tier, and run the tier with the given arguments.
    #[command(disable_help_flag = true)]
    Conformance {
        /// Passed on; `--help` and `--list` tell more.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build host_check, the peers and the probes in release, and run the probes with the given arguments.
    #[command(disable_help_flag = true)]
    Probe {
        /// Passed on; `--help` and `list` tell more.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build the sabotage tool and run this repository's rules with it.
    #[command(disable_help_flag = true)]
    SabotageHost {
        /// Passed on to `sabotage run`; `--quick` runs the rules that the change touches.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Ask whether every sabotage rule still applies to the source as it is (no rule is built).
    SabotageLint,
    /// Say which part of a change its own tests hold: take the other hunks back one at a time.
    #[command(disable_help_flag = true)]
    Prove {
        /// Passed on to `sabotage prove`; without any it is the change that `--quick` means.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run the gates that a change must pass.
    Ci {
        /// Run only these gates.
        #[arg(long, value_name = "GATE", value_parser = gates::names())]
        only: Vec<String>,
    },
    /// Check what must be absent: clocks in pure crates, unsafe outside server/unix, and so on.
    Tidy,
    /// Check the rows under spec/ and write what is generated from them.
    Spec {
        /// Write nothing; fail when a generated file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Judge rows, tests and the last results of test and smoke-host.
    #[command(disable_help_flag = true)]
    Trace {
        /// Passed on to `trace`; flags alone are those of `trace check`. `--help` tells more.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Sweep policy, wire, page, framelog and streams for changes that no test notices (needs cargo-mutants).
    Mutants(mutants::Options),
    /// Make all evidence and judge it: test, smoke-host, sabotage-host, trace, report.
    Verify(verify::Options),
    /// Check advisories, licences and versions of the dependencies (needs cargo-deny).
    Deny,
    /// Install the tools that are slow to build: cargo-nextest, cargo-deny, cargo-mutants.
    Setup {
        /// Only say what is missing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{} {error:#}", screen::bad("error:"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    if let Command::Completions { shell } = command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "xtask", &mut script);
        // A reader that has gone wants no more.
        let _ = std::io::stdout().write_all(&script);
        return Ok(());
    }
    let repository = Repository::own()?;
    match command {
        Command::Test(options) => test::run(&repository, &options),
        Command::SmokeHost { args } => smoke::run(&repository, &args),
        Command::Conformance { args } => conformance::run(&repository, &args),
        Command::Probe { args } => probe::run(&repository, &args),
        Command::SabotageHost { args } => sabotage::run(&repository, &args),
        Command::SabotageLint => sabotage::lint(&repository),
        Command::Prove { args } => sabotage::prove(&repository, &args),
        Command::Ci { only } => gates::run(&repository, &only),
        Command::Tidy => tidy::run(&repository),
        Command::Spec { check } => spec::run(&repository.root, check),
        Command::Trace { args } => trace::run(&repository, &args),
        Command::Mutants(options) => mutants::run(&repository, &options),
        Command::Verify(options) => verify::run(&repository, &options),
        Command::Deny => setup::deny(&repository),
        Command::Setup { dry_run } => setup::run(&repository, dry_run),
        Command::Completions { .. } => Ok(()),
    }
}
