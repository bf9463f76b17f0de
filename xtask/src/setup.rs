//! `cargo xtask setup` and the jobs that need what it installs.
//!
//! Owns: the list of tools that are slow to build and that no everyday command needs. Refuses to
//! install anything that was not asked for. Invariant: a tool that is missing makes its job fail
//! and is named; it is never skipped in silence.

use anyhow::{Context, Result, ensure};

use crate::repository::Repository;

/// A cargo subcommand of somebody else's.
pub(crate) struct Tool {
    /// As in `cargo NAME` and `cargo install cargo-NAME`.
    pub(crate) name: &'static str,
    why: &'static str,
}

/// What `setup` installs.
pub(crate) const TOOLS: [Tool; 3] = [
    Tool {
        name: "nextest",
        why: "runs each test in a process of its own, with a bound on its time",
    },
    Tool {
        name: "deny",
        why: "checks advisories, licences and doubled versions of dependencies",
    },
    Tool {
        name: "mutants",
        why: "sweeps the pure crates for changes that no test notices",
    },
];

/// Installs what is missing, or only says what would be.
pub(crate) fn run(repository: &Repository, dry_run: bool) -> Result<()> {
    for tool in &TOOLS {
        let crate_name = format!("cargo-{}", tool.name);
        if is_there(repository, tool.name) {
            println!("{crate_name}: there ({})", tool.why);
            continue;
        }
        println!(
            "{crate_name}: missing ({}); cargo install --locked {crate_name}",
            tool.why
        );
        if dry_run {
            continue;
        }
        let status = repository
            .cargo()
            .args(["install", "--locked", &crate_name])
            // What is built for a tool is nothing of the repository's.
            .env_remove("CARGO_TARGET_DIR")
            .status();
        let status = status.with_context(|| format!("cannot install {crate_name}"))?;
        ensure!(status.success(), "cargo install {crate_name} failed");
    }
    Ok(())
}

/// `cargo xtask deny`: advisories, licences, bans, sources, as `deny.toml` says.
pub(crate) fn deny(repository: &Repository) -> Result<()> {
    ensure!(
        is_there(repository, "deny"),
        "deny did not run: cargo-deny is missing, `cargo xtask setup` installs it"
    );
    let status = repository
        .cargo()
        .args(["deny", "check"])
        .status()
        .context("cannot run cargo deny")?;
    ensure!(
        status.success(),
        "cargo deny is not green: it says above what it found or could not fetch"
    );
    Ok(())
}

fn is_there(repository: &Repository, name: &str) -> bool {
    let output = repository.cargo().args([name, "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}
