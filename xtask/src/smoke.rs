//! `cargo xtask smoke-host`: builds host_check and the smokes, and becomes the smokes.
//!
//! Owns: the build and the hand-over. Refuses to know a phase or a flag of the smokes: every
//! argument is passed on. Invariant: the server that is driven is the one that was just built, by
//! its path.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::binaries::{Binaries, become_it};
use crate::repository::Repository;

/// Builds, then replaces this process; returns only when that fails.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let build = ["--package=host_check", "--package=smokes", "--bins"];
    let built = Binaries::build(repository, "host_check and smokes", &build)?;
    let summary = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty());
    let summary = summary.map(PathBuf::from);
    let mut smokes = Command::new(built.path("smokes")?);
    smokes.arg("--server-bin").arg(built.path("host_check")?);
    smokes.args(words(args, &repository.results()?, summary.as_deref()));
    become_it(smokes)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{runs, words};

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
