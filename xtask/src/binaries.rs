//! Binaries of this repository: built now, found by their paths, and become.
//!
//! Owns the build that a command needs before it hands over, and the hand-over. Refuses to know what a binary
//! does or which words it takes. Invariant: the binary that runs is the one that was just built.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::repository::Repository;

/// What a build made.
#[derive(Debug)]
pub(crate) struct Binaries(Vec<(String, PathBuf)>);

impl Binaries {
    /// Builds with these arguments of `cargo build`; `what` is being built, for the error.
    pub(crate) fn build(repository: &Repository, what: &str, args: &[&str]) -> Result<Self> {
        let output = repository
            .cargo()
            .arg("build")
            .args(args)
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo build")?;
        ensure!(output.status.success(), "cargo cannot build {what}");
        Ok(Self::told(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Names and paths of the binaries in cargo's messages.
    fn told(messages: &str) -> Self {
        let message = |line| serde_json::from_str::<Message>(line).ok();
        let binary = |message: Message| {
            let target = message
                .target
                .filter(|target| target.kind.iter().any(|kind| kind == "bin"))?;
            Some((target.name, message.executable?))
        };
        let binaries = messages.lines().filter_map(message).filter_map(binary);
        Self(binaries.collect())
    }

    /// The path of one of them.
    pub(crate) fn path(&self, name: &str) -> Result<&Path> {
        let found = self.0.iter().find(|(built, _)| built == name);
        found
            .map(|(_, path)| path.as_path())
            .with_context(|| format!("the build made no binary {name}"))
    }
}

/// Replaces this process, so that a signal to it and its exit code are the program's own; returns only when that fails.
pub(crate) fn become_it(mut command: Command) -> Result<()> {
    let error = command.exec();
    let program = Path::new(command.get_program());
    Err(error).with_context(|| format!("cannot become {}", program.display()))
}

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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Binaries;

    #[m0_spec::row(H26)]
    #[test]
    fn the_binary_that_was_built_is_found_by_its_path() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"smokes\",\"kind\":[\"lib\"]},\"executable\":null}\n\
             {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"other\",\"kind\":[\"bin\"]},\"executable\":\"/t/debug/other\"}\n\
             {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"smokes\",\"kind\":[\"bin\"]},\"executable\":\"/t/debug/smokes\"}\n\
             {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"smokes\",\"kind\":[\"test\"]},\"executable\":\"/t/debug/deps/smokes-1\"}\n\
             not json\n{\"reason\":\"build-finished\",\"success\":true}\n";
        let built = Binaries::told(messages);
        let smokes = built.path("smokes").expect("it was built");
        assert_eq!(smokes, Path::new("/t/debug/smokes"));
        let error = built.path("probes").expect_err("it was not built");
        assert!(error.to_string().contains("no binary probes"), "{error}");
    }
}
