//! A gate's build in a slot: what it made, or why there is nothing to run.
//!
//! Owns the build command and its flags. Refuses to call a rule BROKEN: that is the session's.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::build::{Built, Diagnostic, artifacts, errors};
use super::gate::{Place, Ready, fill};
use super::outcome::last_lines;
use super::process::{End, Job, run};
use crate::schema::gate::{Gate, Isolate};

/// Bound on a build.
const BUILD: Duration = Duration::from_mins(30);

/// Why a build gave nothing to run.
#[derive(Debug, Clone)]
pub enum NotBuilt {
    /// The compiler, or the build command, refused the source.
    Refused(Vec<Diagnostic>, String),
    /// The build itself could not work.
    Infra(String),
}

/// Builds a gate.
pub fn build<'a>(
    place: &Place<'_>,
    name: &'a str,
    gate: &'a Gate,
) -> Result<Result<Ready<'a>, NotBuilt>> {
    build_with(place, name, gate, &[])
}

/// Builds a gate with features of cargo set; a gate that cargo does not build is built as it is.
pub fn build_with<'a>(
    place: &Place<'_>,
    name: &'a str,
    gate: &'a Gate,
    features: &[String],
) -> Result<Result<Ready<'a>, NotBuilt>> {
    let Some(text) = command(place, gate) else {
        return Ok(Ok(Ready {
            name,
            gate,
            built: Built::default(),
        }));
    };
    let cargo = is_cargo(&text);
    let text = if cargo {
        flagged(&text, features)
    } else {
        text
    };
    let job = Job {
        command: vec!["sh".into(), "-c".into(), text],
        dir: place.slot.tree.clone(),
        env: place.env(gate),
        timeout: BUILD,
        out: place.out(&format!("build-{name}")),
        // A build may fetch, and its daemons are its own affair.
        isolate: Isolate {
            net: false,
            pid: false,
        },
    };
    let ended = run(&job)?;
    let messages = ended.stdout();
    match ended.end {
        End::Code(0) => Ok(Ok(Ready {
            name,
            gate,
            built: artifacts(&messages, true),
        })),
        End::Code(_) => {
            let errors = errors(&messages, &place.slot.tree);
            let said = last_lines(&ended.stderr());
            if cargo && errors.is_empty() {
                return Ok(Err(NotBuilt::Infra(format!(
                    "cargo failed without a diagnostic: {said}"
                ))));
            }
            Ok(Err(NotBuilt::Refused(errors, said)))
        }
        End::TimedOut => Ok(Err(NotBuilt::Infra("the build passed its bound".into()))),
        other => Ok(Err(NotBuilt::Infra(format!(
            "the build ended by {other:?}"
        )))),
    }
}

/// The command that builds a gate; none when there is nothing to build.
fn command(place: &Place<'_>, gate: &Gate) -> Option<String> {
    match (&gate.cargo_test, &gate.build) {
        (Some(args), _) => Some(format!("cargo test {} --no-run", args.value)),
        (None, Some(build)) => Some(fill(build, place, Path::new("."), None)),
        (None, None) => None,
    }
}

/// Whether cargo builds the gate, so that features can be set.
pub fn by_cargo(gate: &Gate) -> bool {
    gate.cargo_test.is_some() || gate.build.as_deref().is_some_and(is_cargo)
}

fn is_cargo(command: &str) -> bool {
    command.trim_start().starts_with("cargo ")
}

/// The command with cargo's messages as JSON and the features, before what is not for cargo.
fn flagged(command: &str, features: &[String]) -> String {
    let flags = if features.is_empty() {
        "--message-format=json".to_owned()
    } else {
        format!("--message-format=json --features '{}'", features.join(","))
    };
    match command.split_once(" -- ") {
        Some((before, after)) => format!("{before} {flags} -- {after}"),
        None => format!("{command} {flags}"),
    }
}
