//! `cargo xtask smoke-host`: builds host_check and the smokes, and becomes the smokes.
//!
//! Owns: the build and the hand-over. Refuses to know a phase or a flag of the smokes: every
//! argument is passed on. Invariant: the server that is driven is the one that was just built, by
//! its path.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::repository::Repository;

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Builds, then replaces this process; returns only when that fails.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let output = repository
        .cargo()
        .args([
            "build",
            "--package=host_check",
            "--package=smokes",
            "--bins",
        ])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    ensure!(
        output.status.success(),
        "host_check and smokes do not build"
    );
    let built = executables(&String::from_utf8_lossy(&output.stdout));
    let find = |name: &str| {
        let found = built.iter().find(|(built, _)| built == name);
        found
            .map(|(_, path)| path)
            .with_context(|| format!("the build made no binary {name}"))
    };
    let (server, smokes) = (find("host_check")?, find("smokes")?);
    let summary = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty());
    let summary = summary.map(PathBuf::from);
    let words = words(args, &repository.results()?, summary.as_deref());
    // The same process, so that a signal to it and its exit code are the smokes' own.
    let error = Command::new(smokes)
        .arg("--server-bin")
        .arg(server)
        .args(words)
        .exec();
    Err(error).with_context(|| format!("cannot become {}", smokes.display()))
}

/// The smokes' words: every argument, and of a whole run where its results and its summary go.
fn words(args: &[String], results: &Path, summary: Option<&Path>) -> Vec<String> {
    let mut words = args.to_vec();
    if runs(args) {
        if !args.iter().any(|word| word.starts_with("--json")) {
            let file = results.join("smoke-results.jsonl");
            words.push(format!("--json={}", file.display()));
        }
        words.extend(summary.map(|file| format!("--summary={}", file.display())));
    }
    words
}

/// Whether these arguments ask for all phases, so that the results may stand for a whole run.
fn runs(args: &[String]) -> bool {
    let apart = [
        "--list",
        "--help",
        "-h",
        "--version",
        "-V",
        "--planted",
        "--phase",
    ];
    !args.iter().any(|word| {
        apart
            .iter()
            .any(|other| word == other || word.starts_with(&format!("{other}=")))
    })
}

/// Names and paths of the binaries in cargo's messages.
pub(crate) fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    let message = |line| serde_json::from_str::<Message>(line).ok();
    let binary = |message: Message| {
        let target = message
            .target
            .filter(|target| target.kind.iter().any(|kind| kind == "bin"))?;
        Some((target.name, message.executable?))
    };
    messages
        .lines()
        .filter_map(message)
        .filter_map(binary)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{executables, runs, words};

    #[m0_spec::row(H26)]
    #[test]
    fn the_binary_that_was_built_is_found_by_its_path() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"smokes\",\"kind\":[\"lib\"]},\"executable\":null}\n\
             {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"smokes\",\"kind\":[\"bin\"]},\"executable\":\"/t/debug/smokes\"}\n\
             not json\n{\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(
            executables(messages),
            [("smokes".to_owned(), "/t/debug/smokes".into())]
        );
    }
    #[m0_spec::row(H26)]
    #[test]
    fn only_a_whole_run_leaves_results_behind() {
        let args = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert!(runs(&[]) && runs(&args("--repeat 2 --tap")));
        for part in [
            "--list",
            "--phase drain",
            "--phase=drain",
            "--help",
            "--planted",
        ] {
            assert!(!runs(&args(part)), "{part}");
        }
    }

    #[m0_spec::row(H26)]
    #[test]
    fn every_argument_is_passed_on_and_a_whole_run_leaves_its_results() {
        let args = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let told = |text: &str, summary| words(&args(text), Path::new("t/m0"), summary).join(" ");
        assert_eq!(told("--phase drain --keep", None), "--phase drain --keep");
        assert_eq!(
            told("--repeat 2 --tap", None),
            "--repeat 2 --tap --json=t/m0/smoke-results.jsonl"
        );
        assert_eq!(
            told("--json x.jsonl --jobs 1", Some(Path::new("s.md"))),
            "--json x.jsonl --jobs 1 --summary=s.md"
        );
    }
}
