//! A repository of the test's own, and the program run in it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A repository with git and some files, committed.
pub(super) fn repository(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory for the test");
    for (name, text) in files {
        write(dir.path(), name, text);
    }
    git(dir.path(), &["init", "--quiet"]);
    commit(dir.path());
    dir
}

pub(super) fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
    std::fs::write(path, text).expect("written");
}

pub(super) fn git(root: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
    let mut command = Command::new("git");
    let output = command.current_dir(root).args(identity).args(args).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
}

pub(super) fn commit(root: &Path) {
    git(root, &["add", "--all"]);
    git(
        root,
        &["commit", "--quiet", "--allow-empty", "-m", "a step"],
    );
}

/// What git answers on its first line.
pub(super) fn git_line(root: &Path, args: &[&str]) -> String {
    let output = Command::new("git").current_dir(root).args(args).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs `trace` there; exit code and what it printed.
pub(super) fn trace(root: &Path, args: &[&str]) -> (i32, String) {
    let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_trace"))
        .current_dir(root)
        .args(args)
        .env_remove("CARGO_TARGET_DIR")
        // No command waits for anything: one that hangs is a failure.
        .timeout(Duration::from_mins(1))
        .output()
        .expect("trace runs");
    let code = output.status.code().expect("it ends by itself");
    (code, text(&output))
}

fn text(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    format!("{out}{}", String::from_utf8_lossy(&output.stderr))
}

/// `trace check --json`: the exit code, and the codes with their places.
pub(super) fn check(root: &Path) -> (i32, Vec<String>) {
    let (code, text) = trace(root, &["check", "--json"]);
    let told: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(told["exit"], code);
    let findings = told["findings"].as_array().expect("a list");
    let one = |finding: &Value| {
        format!(
            "{}:{}:{} {}",
            finding["file"].as_str().expect("a file"),
            finding["line"],
            finding["column"],
            finding["code"].as_str().expect("a code")
        )
    };
    (code, findings.iter().map(one).collect())
}
