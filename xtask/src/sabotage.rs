//! `cargo xtask sabotage-host`: builds the sabotage tool, runs this repository's rules with it, keeps the evidence;
//! `sabotage-lint` only asks whether each rule still applies.
//!
//! Owns the build, the hand-over, what "the change" is for `--quick`, and where evidence is left for `trace`. Refuses
//! to know a rule or a flag of the tool: every other argument is passed on. Invariant: the tool that runs
//! is the one that was just built, its exit code is this command's, and evidence of an earlier run is
//! never left in the place of this one's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::binaries::{Binaries, become_it};
use crate::repository::Repository;

/// The evidence of a whole run, in the directory of results.
pub(crate) const EVIDENCE: &str = "evidence.json";

/// Builds, runs, keeps the evidence; ends with the tool's exit code unless that is 0.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let tool = build(repository)?;
    let words = words(args, || base(&repository.root));
    let keep = match kept_as(args) {
        Some(name) => Some(repository.results()?.join(name)),
        None => None,
    };
    if let Some(file) = &keep {
        remove(file)?;
    }
    let status = call(&tool, repository).args(&words).status();
    let status = status.with_context(|| format!("cannot run {}", tool.display()))?;
    // Usage and unreadable files (2), red gates (4) and nothing chosen (7) leave no verdicts of this run.
    if let (Some(file), Some(0 | 1 | 3 | 5 | 6 | 8)) = (keep, status.code()) {
        let output = call(&tool, repository)
            .arg("evidence")
            .stderr(Stdio::inherit())
            .output();
        let output = output.with_context(|| format!("cannot run {}", tool.display()))?;
        ensure!(output.status.success(), "the run left no evidence");
        std::fs::write(&file, &output.stdout)
            .with_context(|| format!("cannot write {}", file.display()))?;
        anstream::println!("evidence in {}", file.display());
    }
    if !status.success() {
        std::process::exit(status.code().unwrap_or(70));
    }
    Ok(())
}

/// Builds the tool alone, and asks it whether each rule still applies and its surroundings were accepted.
pub(crate) fn lint(repository: &Repository) -> Result<()> {
    let tool = build(repository)?;
    let status = call(&tool, repository).arg("lint").status();
    let status = status.with_context(|| format!("cannot run {}", tool.display()))?;
    if !status.success() {
        std::process::exit(status.code().unwrap_or(70));
    }
    Ok(())
}

/// `cargo xtask prove`: becomes `sabotage prove`; without words it is of the change that `--quick` means.
pub(crate) fn prove(repository: &Repository, args: &[String]) -> Result<()> {
    let tool = build(repository)?;
    let mut command = call(&tool, repository);
    command.arg("prove").args(args);
    if args.is_empty() {
        command.arg("--base").arg(base(&repository.root));
    }
    become_it(command)
}

/// The tool, as this tree builds it.
pub(crate) fn build(repository: &Repository) -> Result<PathBuf> {
    let words = ["--package=sabotage", "--bin=sabotage"];
    let built = Binaries::build(repository, "the sabotage tool", &words)?;
    Ok(built.path("sabotage")?.to_owned())
}

/// The tool, started on this repository.
fn call(tool: &Path, repository: &Repository) -> Command {
    let mut command = Command::new(tool);
    command.arg("--directory").arg(&repository.root);
    command
}

/// The tool's words: `run`, and `--since` the base in the place of `--quick`.
fn words(args: &[String], base: impl Fn() -> String) -> Vec<String> {
    let mut words = vec!["run".to_owned()];
    for arg in args {
        if arg == "--quick" {
            words.extend(["--since".to_owned(), base()]);
        } else {
            words.push(arg.clone());
        }
    }
    words
}

/// The file that the evidence of a run with these arguments is kept in: a shard has its own beside those of the others,
/// and a run of rules that somebody picked has none.
fn kept_as(args: &[String]) -> Option<String> {
    let mut shard = None;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (word.as_str(), args.get(at + 1).cloned()),
        };
        match flag {
            "--quick" | "--resume" | "--per-rule" | "--no-elsewhere" | "--no-jail" | "--quiet"
            | "-q" | "--github" | "--exit-zero" => {
                at += 1;
                continue;
            }
            "--shard" => shard = value,
            "--since" | "--budget" | "--repeat" | "--baseline" | "--jobs" | "-j" | "--json"
            | "--junit" | "--md" | "--sarif" | "--html" | "--elements" | "--fail-on" => {}
            // A selector, or a flag that is not known to leave the choice of rules alone.
            _ => return None,
        }
        at += if word.contains('=') { 1 } else { 2 };
    }
    let part = shard.map(|shard| format!("evidence-{}.json", shard.replace('/', "-of-")));
    Some(part.unwrap_or_else(|| EVIDENCE.to_owned()))
}

/// Removes a file that may not be there.
pub(crate) fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

/// What the change is compared with: where it left the upstream branch; when nothing has left it, the last
/// commit's parent.
pub(crate) fn base(root: &Path) -> String {
    let ask = |args: &[&str]| {
        let output = Command::new("git")
            .current_dir(root)
            .args(args)
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let told = |args: &[&str]| ask(args).filter(|text| !text.is_empty());
    let head = told(&["rev-parse", "HEAD"]);
    let left = told(&["merge-base", "HEAD", "@{upstream}"]);
    let clean = ask(&["status", "--porcelain"]).is_some_and(|text| text.is_empty());
    left.filter(|left| head.as_ref() != Some(left) || !clean)
        .or_else(|| told(&["rev-parse", "--verify", "--quiet", "HEAD~1"]))
        .unwrap_or_else(|| "HEAD".into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::{base, kept_as, words};

    fn args(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[m0_spec::row(H48)]
    #[test]
    fn quick_is_since_the_base_and_all_else_is_passed_on() {
        let told = |text: &str| words(&args(text), || "abc".into()).join(" ");
        assert_eq!(told(""), "run");
        assert_eq!(told("--quick -j 2"), "run --since abc -j 2");
        assert_eq!(told("row:E22 --since x"), "run row:E22 --since x");
    }

    #[m0_spec::row(H48)]
    #[test]
    fn a_run_of_picked_rules_leaves_the_evidence_of_the_whole_alone() {
        let told = |text: &str| kept_as(&args(text));
        for whole in [
            "",
            "--quick",
            "--since HEAD~3",
            "-j 2 --json x.json",
            "--repeat=2 --quiet",
        ] {
            assert_eq!(told(whole).as_deref(), Some("evidence.json"), "{whole}");
        }
        for shard in ["--shard 2/4", "--shard=2/4 -j 1", "--resume --shard 2/4"] {
            assert_eq!(
                told(shard).as_deref(),
                Some("evidence-2-of-4.json"),
                "{shard}"
            );
        }
        for part in [
            "publish-*",
            "--quick row:E22",
            "-j 2 tag:x",
            "--help",
            "--unheard-of",
        ] {
            assert_eq!(told(part), None, "{part}");
        }
    }

    fn git(dir: &Path, words: &str) -> String {
        let mut command = Command::new("git");
        command
            .current_dir(dir)
            .args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let output = command
            .args(words.split(' '))
            .output()
            .expect("git is there");
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[m0_spec::row(H48)]
    #[test]
    fn the_change_is_what_left_the_upstream_or_else_the_last_commit() {
        let dir = tempfile::tempdir().expect("a directory");
        let (hub, own) = (dir.path().join("hub"), dir.path().join("own"));
        std::fs::create_dir(&hub).expect("a directory");
        git(&hub, "init -q -b main");
        git(&hub, "commit -q --allow-empty -m one");
        let alone = base(&hub);
        assert_eq!(alone, "HEAD", "a first commit has no parent");
        git(&hub, "commit -q --allow-empty -m two");
        let (one, two) = (git(&hub, "rev-parse HEAD~1"), git(&hub, "rev-parse HEAD"));
        assert_eq!(base(&hub), one, "without an upstream it is the last commit");
        git(dir.path(), "clone -q hub own");
        assert_eq!(base(&own), one, "nothing has left the upstream");
        std::fs::write(own.join("new"), "x").expect("a file");
        assert_eq!(base(&own), two, "what is not committed has left it");
        git(&own, "add new");
        git(&own, "commit -q -m three");
        git(&own, "commit -q --allow-empty -m four");
        assert_eq!(base(&own), two, "both commits have left it");
    }
}
