//! `cargo xtask conformance`: builds host_check and the conformance tier, and becomes the tier.
//!
//! Owns: the build, the hand-over, and where other people's clients are kept. Refuses to know a part or a flag
//! of the tier: every argument is passed on. Invariant: the server that is judged is the one that was just
//! built, by its path.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::repository::Repository;
use crate::smoke::executables;

/// Builds, then replaces this process; returns only when that fails.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let output = repository
        .cargo()
        .args(BUILD)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    ensure!(
        output.status.success(),
        "host_check and the conformance tier do not build"
    );
    let built = executables(&String::from_utf8_lossy(&output.stdout));
    let find = |name: &str| {
        let found = built.iter().find(|(built, _)| built == name);
        found
            .map(|(_, path)| path)
            .with_context(|| format!("the build made no binary {name}"))
    };
    let (server, tier) = (find("host_check")?, find("conformance")?);
    let error = Command::new(tier)
        .arg("--server-bin")
        .arg(server)
        .arg("--tools")
        .arg(repository.results()?.join("conformance"))
        .args(args)
        .exec();
    Err(error).with_context(|| format!("cannot become {}", tier.display()))
}

/// What the tier drives, and itself.
const BUILD: [&str; 5] = [
    "build",
    "--package=host_check",
    "--package=smokes",
    "--bins",
    "--message-format=json-render-diagnostics",
];
