//! `cargo xtask sabotage-host`: builds the sabotage tool and runs this repository's rules with it.
//!
//! Owns the build, the hand-over and what "the change" is for `--quick`. Refuses to know a rule or a flag
//! of the tool: every other argument is passed on. Invariant: the tool that runs is the one that was
//! just built, and its exit code is this command's.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::repository::Repository;
use crate::smoke::executables;

/// Builds, then replaces this process; returns only when that fails.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let output = repository
        .cargo()
        .args(["build", "--package=sabotage", "--bin=sabotage"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    ensure!(output.status.success(), "the sabotage tool does not build");
    let built = executables(&String::from_utf8_lossy(&output.stdout));
    let tool = built.iter().find(|(name, _)| name == "sabotage");
    let (_, tool) = tool.context("the build made no binary sabotage")?;
    let mut command = Command::new(tool);
    command.arg("--directory").arg(&repository.root).arg("run");
    for arg in args {
        if arg == "--quick" {
            command.arg("--since").arg(base(repository));
        } else {
            command.arg(arg);
        }
    }
    // The same process, so that a signal to it and its exit code are the tool's own.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot become {}", tool.display()))
}

/// What the change is compared with: where it left the upstream branch, or the last commit's parent.
fn base(repository: &Repository) -> String {
    let ask = |args: &[&str]| {
        let output = Command::new("git")
            .current_dir(&repository.root)
            .args(args)
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    ask(&["merge-base", "HEAD", "@{upstream}"])
        .or_else(|| ask(&["rev-parse", "--verify", "--quiet", "HEAD~1"]))
        .unwrap_or_else(|| "HEAD".into())
}
