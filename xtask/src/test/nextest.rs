//! The stage `tests` under cargo-nextest.
//!
//! Owns: its command line, its JUnit report and its list of ignored tests, read into outcomes.
//! Refuses to print what nextest prints better.
//! Invariant: each test case of the report becomes one outcome; a report that is missing is a
//! failure, never zero tests.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

use super::Run;
use super::kinds::{Kind, Kinds};
use super::results::{Outcome, Results, Verdict};
use crate::repository::Repository;

/// Whether nextest can be run.
pub(crate) fn is_there(repository: &Repository) -> bool {
    let output = repository.cargo().args(["nextest", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs the tests and reads the report.
pub(crate) fn run(run: &Run<'_>, results: &mut Results) -> Result<()> {
    let profile = if std::env::var_os("CI").is_some() {
        "ci"
    } else {
        "default"
    };
    // nextest keeps its store under the root, wherever cargo builds.
    let report = run
        .repository
        .root
        .join("target/nextest")
        .join(profile)
        .join("junit.xml");
    // A report of an earlier run must not be read as this one's.
    match std::fs::remove_file(&report) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", report.display()));
        }
        _ => {}
    }
    let status = run
        .repository
        .cargo()
        .args([
            "nextest",
            "run",
            "--no-fail-fast",
            "--no-tests=pass",
            "--profile",
            profile,
        ])
        .args(selection(run))
        .env("TRACE_EVENTS", &run.events)
        .status()
        .context("cannot run cargo nextest")?;
    let Ok(text) = std::fs::read_to_string(&report) else {
        let what = if status.success() {
            "it left no report"
        } else {
            "the tests do not build"
        };
        results.fault("nextest", what, Kind::Unit);
        return Ok(());
    };
    let outcomes = read_report(&text, &run.kinds);
    let told = outcomes.iter().any(|outcome| outcome.verdict.is_failure());
    results.outcomes.extend(outcomes);
    if !status.success() && !told {
        results.fault("nextest", "the run failed and names no test", Kind::Unit);
    }
    let list = run
        .repository
        .cargo()
        .args([
            "nextest",
            "list",
            "--message-format=json",
            "--profile",
            profile,
        ])
        .args(selection(run))
        .output()
        .context("cannot run cargo nextest list")?;
    if list.status.success() {
        results
            .outcomes
            .extend(read_ignored(&list.stdout, &run.kinds)?);
    }
    Ok(())
}

/// Packages and filter, the same for running and listing.
fn selection(run: &Run<'_>) -> Vec<String> {
    let mut args = vec!["--lib".into(), "--bins".into(), "--tests".into()];
    if run.options.package.is_empty() {
        args.push("--workspace".into());
    }
    for package in &run.options.package {
        args.push(format!("--package={package}"));
    }
    args.extend(run.options.filter.clone());
    args
}

/// Reads JUnit as nextest writes it: a tag begins its line, and text is escaped, so no text can
/// look like a tag.
pub(super) fn read_report(text: &str, kinds: &Kinds) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(attributes) = line.strip_prefix("<testcase ") {
            let get = |name| attribute(attributes, name);
            let (Some(test), Some(binary)) = (get("name"), get("classname")) else {
                continue;
            };
            let seconds = get("time").and_then(|time| time.parse().ok());
            let kind = kinds.of(&binary, &test);
            outcomes.push(Outcome {
                binary,
                test,
                kind,
                verdict: Verdict::Passed,
                seconds,
            });
        } else if let Some(last) = outcomes.last_mut() {
            // A failure, or a failure before a retry passed: neither is a pass.
            let failures = ["<failure", "<error", "<flakyFailure", "<flakyError"];
            if failures.iter().any(|tag| line.starts_with(tag)) {
                let timed_out = attribute(line, "type").is_some_and(|kind| kind == "test timeout");
                last.verdict = if timed_out {
                    Verdict::TimedOut
                } else {
                    Verdict::Failed
                };
            }
        }
    }
    outcomes
}

/// The value of an XML attribute, unescaped.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = format!(" {tag}")
        .split_once(&format!(" {name}=\""))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))?;
    let (value, _) = rest.split_once('"')?;
    let mut value = value.to_owned();
    for (escaped, plain) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ] {
        value = value.replace(escaped, plain);
    }
    Some(value)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct List {
    rust_suites: BTreeMap<String, Suite>,
}

#[derive(Deserialize)]
struct Suite {
    testcases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Case {
    filter_match: Match,
}

#[derive(Deserialize)]
struct Match {
    reason: Option<String>,
}

/// The tests that the filter takes and the source ignores.
pub(super) fn read_ignored(json: &[u8], kinds: &Kinds) -> Result<Vec<Outcome>> {
    let list: List =
        serde_json::from_slice(json).context("the list of nextest is not as expected")?;
    let mut outcomes = Vec::new();
    for (binary, suite) in list.rust_suites {
        for (test, case) in suite.testcases {
            if case.filter_match.reason.as_deref() == Some("ignored") {
                let kind = kinds.of(&binary, &test);
                let binary = binary.clone();
                outcomes.push(Outcome {
                    binary,
                    test,
                    kind,
                    verdict: Verdict::Ignored,
                    seconds: None,
                });
            }
        }
    }
    Ok(outcomes)
}
