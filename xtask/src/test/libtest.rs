//! Tests under cargo's own harness: the stage `tests` where nextest is not there, models and
//! examples everywhere.
//!
//! Owns: building the test binaries, running each in the surroundings that cargo would give it, and
//! reading the lines that it prints. Refuses to trust a silence: a binary that fails without naming
//! a test is a failure of its own.
//! Invariant: each line `test … ok` becomes one outcome.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Run;
use super::kinds::Kind;
use super::results::{Outcome, Results, Verdict};

/// A test binary and the surroundings in which it runs.
#[derive(Debug)]
pub(crate) struct Binary {
    /// The name that nextest gives it too: `m0-policy::table`.
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    /// The package's directory.
    pub(crate) dir: PathBuf,
    pub(crate) package: String,
}

/// Builds and runs every test of the selected packages.
pub(crate) fn run(run: &Run<'_>, results: &mut Results) -> Result<()> {
    let mut build = run.repository.cargo();
    build.args(["test", "--no-run", "--lib", "--bins", "--tests"]);
    select(&mut build, run);
    let Some(binaries) = build_all(run, build)? else {
        results.fault("cargo", "the tests do not build", Kind::Unit);
        return Ok(());
    };
    for binary in &binaries {
        run_one(run, binary, None, results)?;
    }
    Ok(())
}

/// Runs the examples of the documentation.
pub(crate) fn run_doc(run: &Run<'_>, results: &mut Results) -> Result<()> {
    let mut command = run.repository.cargo();
    command.args(["test", "--doc", "--no-fail-fast"]);
    select(&mut command, run);
    if let Some(filter) = &run.options.filter {
        command.args(["--", filter]);
    }
    execute(run, command, "doc", Some(Kind::Doc), results)
}

fn select(command: &mut Command, run: &Run<'_>) {
    if run.options.package.is_empty() {
        command.arg("--workspace");
    }
    for package in &run.options.package {
        command.args(["--package", package]);
    }
}

/// A line of `--message-format=json`, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds with the given command; none when it does not compile. Cargo prints its diagnostics.
pub(crate) fn build_all(run: &Run<'_>, mut command: Command) -> Result<Option<Vec<Binary>>> {
    let output = command
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo test")?;
    if !output.status.success() {
        return Ok(None);
    }
    let mut binaries = Vec::new();
    for line in output.stdout.lines() {
        let Ok(message) = serde_json::from_str::<Message>(&line?) else {
            continue;
        };
        let (Some(path), Some(target), Some(manifest)) =
            (message.executable, message.target, message.manifest_path)
        else {
            continue;
        };
        // Binaries that the tests start are built too, and are no tests.
        if !message.profile.is_some_and(|profile| profile.test) {
            continue;
        }
        let package = run
            .repository
            .packages
            .iter()
            .find(|package| package.manifest_path == manifest);
        let package = package.with_context(|| format!("{} is no member", manifest.display()))?;
        binaries.push(Binary {
            id: id_of(&package.name, &target),
            path,
            dir: package.dir().to_owned(),
            package: package.name.clone(),
        });
    }
    binaries.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Some(binaries))
}

/// nextest's name of a binary.
fn id_of(package: &str, target: &Target) -> String {
    match target.kind.first().map_or("", String::as_str) {
        "test" => format!("{package}::{}", target.name),
        kind @ ("bin" | "example" | "bench") => format!("{package}::{kind}/{}", target.name),
        _ => package.to_owned(),
    }
}

/// Runs one binary; `kind` overrides what its name says.
pub(crate) fn run_one(
    run: &Run<'_>,
    binary: &Binary,
    kind: Option<Kind>,
    results: &mut Results,
) -> Result<()> {
    let mut command = Command::new(&binary.path);
    command
        .current_dir(&binary.dir)
        .env("CARGO_MANIFEST_DIR", &binary.dir)
        .env("CARGO_PKG_NAME", &binary.package)
        .env("TRACE_EVENTS", &run.events);
    if let Some(path) = library_path() {
        command.env("LD_LIBRARY_PATH", path);
    }
    if let Some(filter) = &run.options.filter {
        command.arg(filter);
    }
    eprintln!("running {}", binary.id);
    execute(run, command, &binary.id, kind, results)
}

/// The compiler's own libraries, which the tests of a procedural macro are linked to.
fn library_path() -> Option<std::ffi::OsString> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let mut paths = vec![sysroot.join("lib")];
    if let Some(inherited) = std::env::var_os("LD_LIBRARY_PATH") {
        paths.extend(std::env::split_paths(&inherited));
    }
    std::env::join_paths(paths).ok()
}

/// Runs a command that speaks as the harness does, shows what it prints and reads it.
fn execute(
    run: &Run<'_>,
    mut command: Command,
    binary: &str,
    kind: Option<Kind>,
    results: &mut Results,
) -> Result<()> {
    // With one thread the harness prints a name before the test and the verdict after it, and what
    // the test prints comes between them.
    if std::thread::available_parallelism().is_ok_and(|count| count.get() == 1) {
        command.env("RUST_TEST_THREADS", "2");
    }
    let began = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run the tests of {binary}"))?;
    let stdout = child.stdout.take().expect("it was asked to be a pipe");
    let (mut outcomes, mut harness) = (Vec::new(), false);
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read what the tests print")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        harness |= line.starts_with("running ");
        if let Some((test, verdict)) = read_line(&line) {
            let kind = kind.unwrap_or_else(|| run.kinds.of(binary, &test));
            outcomes.push(Outcome {
                binary: binary.into(),
                test,
                kind,
                verdict,
                seconds: None,
            });
        }
    }
    let status = child.wait().context("cannot wait for the tests")?;
    let kind = kind.or_else(|| outcomes.first().map(|outcome| outcome.kind));
    let kind = kind.unwrap_or_else(|| run.kinds.of(binary, ""));
    let told = outcomes.iter().any(|outcome| outcome.verdict.is_failure());
    if !outcomes.is_empty() {
        results.walls.push((kind, began.elapsed().as_secs_f64()));
    }
    results.outcomes.extend(outcomes);
    if !status.success() && !told {
        results.fault(binary, &format!("{status} and no test is named"), kind);
    } else if status.success() && !harness && kind != Kind::Doc {
        // A binary with a main of its own is one test.
        let test = binary.rsplit("::").next().unwrap_or(binary).to_owned();
        let binary = binary.to_owned();
        let seconds = Some(began.elapsed().as_secs_f64());
        results.outcomes.push(Outcome {
            binary,
            test,
            kind,
            verdict: Verdict::Passed,
            seconds,
        });
    }
    Ok(())
}

/// Reads `test path ... ok`, with or without what the harness says between path and verdict.
pub(super) fn read_line(line: &str) -> Option<(String, Verdict)> {
    let (test, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let verdict = match verdict.split([',', ' ', '(']).next()? {
        "ok" => Verdict::Passed,
        "FAILED" => Verdict::Failed,
        "ignored" => Verdict::Ignored,
        _ => return None,
    };
    let notes = [" - should panic", " - compile fail", " - compile"];
    let test = notes
        .iter()
        .find_map(|note| test.strip_suffix(note))
        .unwrap_or(test);
    Some((test.into(), verdict))
}
