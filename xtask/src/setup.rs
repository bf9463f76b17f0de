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
    /// The one version that is right, where what it prints is compared with what is committed.
    version: Option<&'static str>,
}

/// What `setup` installs.
pub(crate) const TOOLS: [Tool; 3] = [
    Tool {
        name: "nextest",
        why: "runs each test in a process of its own, with a bound on its time",
        version: None,
    },
    Tool {
        name: "deny",
        why: "checks advisories, licences and doubled versions of dependencies",
        version: None,
    },
    Tool {
        name: "mutants",
        why: "sweeps the pure crates for changes that no test notices",
        version: Some("27.1.0"),
    },
];

/// Installs what is missing, or only says what would be.
pub(crate) fn run(repository: &Repository, dry_run: bool) -> Result<()> {
    for tool in &TOOLS {
        let there = installed(repository, tool.name);
        if there.as_deref().is_some_and(|version| tool.takes(version)) {
            println!("cargo-{}: there ({})", tool.name, tool.why);
            continue;
        }
        let lacks = there.map_or_else(
            || "missing".to_owned(),
            |version| format!("version {version} is there"),
        );
        let words = tool.install();
        println!(
            "cargo-{}: {lacks} ({}); cargo {}",
            tool.name,
            tool.why,
            words.join(" ")
        );
        if dry_run {
            continue;
        }
        let status = repository
            .cargo()
            .args(&words)
            // What is built for a tool is nothing of the repository's.
            .env_remove("CARGO_TARGET_DIR")
            .status();
        let status = status.with_context(|| format!("cannot install cargo-{}", tool.name))?;
        ensure!(status.success(), "cargo {} failed", words.join(" "));
    }
    Ok(())
}

impl Tool {
    fn takes(&self, version: &str) -> bool {
        self.version.is_none_or(|right| right == version)
    }

    /// The words after `cargo` that install it.
    fn install(&self) -> Vec<String> {
        let name = match self.version {
            Some(version) => format!("cargo-{}@{version}", self.name),
            None => format!("cargo-{}", self.name),
        };
        vec!["install".into(), "--locked".into(), name]
    }
}

/// The version of a tool that is there and right; an error that names the command which installs it.
pub(crate) fn ensure(repository: &Repository, name: &str) -> Result<String> {
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    let tool = tool.with_context(|| format!("setup knows no tool {name}"))?;
    let words = tool.install().join(" ");
    let version = installed(repository, name);
    let version = version.with_context(|| {
        format!("{name} did not run: cargo-{name} is missing, `cargo xtask setup` installs it")
    })?;
    ensure!(
        tool.takes(&version),
        "{name} did not run: cargo-{name} is {version}; `cargo {words}` installs the right one"
    );
    Ok(version)
}

/// `cargo xtask deny`: advisories, licences, bans, sources, as `deny.toml` says.
pub(crate) fn deny(repository: &Repository) -> Result<()> {
    self::ensure(repository, "deny")?;
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

/// The version that `cargo NAME --version` tells, when it is there.
fn installed(repository: &Repository, name: &str) -> Option<String> {
    let output = repository.cargo().args([name, "--version"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| version_in(&text))?
}

/// `27.1.0` of `cargo-mutants 27.1.0`, `0.9.100` of `cargo-nextest 0.9.100 (abc 2025-01-01)`.
fn version_in(text: &str) -> Option<String> {
    let first = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    text.split_whitespace().find(first).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{TOOLS, version_in};

    #[m0_spec::row(H47)]
    #[test]
    fn a_tool_of_another_version_is_not_the_right_one() {
        let told = |text: &str| version_in(text).unwrap_or_default();
        assert_eq!(told("cargo-mutants 27.1.0"), "27.1.0");
        assert_eq!(
            told("cargo-nextest 0.9.100 (7f1 2025-01-01)\nrelease: 0.9.100"),
            "0.9.100"
        );
        assert_eq!(told("cargo-deny"), "");
        let tool = TOOLS
            .iter()
            .find(|tool| tool.name == "mutants")
            .expect("it is known");
        assert!(tool.takes("27.1.0") && !tool.takes("27.0.0") && !tool.takes(""));
        assert_eq!(tool.install()[2], "cargo-mutants@27.1.0");
    }
}
