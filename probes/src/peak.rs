//! The most memory that one command held.
//!
//! Owns the process between the probe and the command: the kernel keeps one figure for all children that a process ever
//! had (getrusage(2)), also for those from before an exec, so the command is the only child of a process of its own.
//! Invariant: the figure is that of the command and of what it waited for, and of nobody else.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};

/// The first word of a command line that is for [`main`].
pub const WORD: &str = "peak-of";

/// Runs `words` as a command and prints its peak in KiB; fails as the command does.
pub fn main(words: &[OsString]) -> ExitCode {
    match run(words) {
        Ok(kibibytes) => {
            println!("{kibibytes}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[OsString]) -> Result<i64> {
    let (program, args) = words.split_first().context("no command to measure")?;
    let status = Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(
        status.success(),
        "{} ended with {status}",
        program.display()
    );
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    Ok(usage.max_rss())
}

/// Bytes that `program` held at the most, run in `dir`; `probes` is the program that knows [`WORD`].
pub fn of(probes: &Path, program: &Path, args: &[&str], dir: &Path) -> Result<u64> {
    let output = Command::new(probes)
        .arg(WORD)
        .arg(program)
        .args(args)
        .current_dir(dir)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .context("cannot run the probes")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "no peak was measured: {said}");
    let text = String::from_utf8_lossy(&output.stdout);
    let kibibytes: u64 = text.trim().parse().context("a number of KiB")?;
    Ok(kibibytes * 1024)
}
