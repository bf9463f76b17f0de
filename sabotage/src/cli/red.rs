//! `sabotage doctor --prove-gates`: each gate must go red when there is nothing left to be green about.
//!
//! Owns the two broken trees: every source file empty, and every source file but the tests. Manifests stay, so
//! that it is the gate that is asked and not the build tool. Works in a copy of its own.

use std::path::Path;

use anyhow::Result;

use super::complain;
use crate::glob;
use crate::prove::suite::Suite;
use crate::run::gate::Place;
use crate::schema::gate::Gate;
use crate::schema::{check, read};
use crate::session::baseline::whole;
use crate::slot::{Slot, home};
use crate::tree::{Entry, Kind, Tree};
use crate::verdict::Exit;

/// What a gate says of a tree: none when it is green, else why not.
type Said = Option<String>;

pub(super) fn prove_gates(root: &Path) -> Result<Exit> {
    let (declared, mut findings) = read::declared(root)?;
    findings.extend(check::shared(&declared));
    if !findings.is_empty() {
        return Ok(complain(&findings));
    }
    let home = home(root)?;
    let slot = Slot::open(&home, "doctor")?;
    let tree = Tree::read(root)?;
    let work = home
        .join("runs")
        .join(format!("doctor-{}", std::process::id()));
    let place = Place::new(&slot, work, true);
    let suite = Suite::of(root);
    let mut exit = Exit::Nothing;
    for (name, gate) in &declared.gates.gates {
        if exit == Exit::Nothing {
            exit = Exit::Declared;
        }
        slot.sync(&tree)?;
        if let Some(why) = ask(&place, name, gate)? {
            anstream::println!(
                "GATE {name}: not green on the clean tree, so that red would show nothing: {why}"
            );
            exit = Exit::Gate;
            continue;
        }
        let mut red = Vec::new();
        for (what, tests) in [
            ("every file empty", true),
            ("all but the tests empty", false),
        ] {
            let emptied: Vec<&Path> = tree
                .entries
                .iter()
                .filter(|entry| source(gate, entry) && (tests || !suite.holds(&entry.path)))
                .map(|entry| entry.path.as_path())
                .collect();
            slot.write("doctor", emptied.iter().map(|path| (*path, "")))?;
            let said = ask(&place, name, gate)?;
            slot.sync(&tree)?;
            let count = emptied.len();
            match said {
                Some(why) => red.push(format!("{what} ({count}): {why}")),
                None => anstream::println!("weak {name}: green with {what} ({count})"),
            }
        }
        if red.is_empty() {
            anstream::println!(
                "GATE {name}: stays green whatever the files hold; it can prove nothing"
            );
            exit = Exit::Gate;
        }
        for why in red {
            anstream::println!("ok   {name} goes red with {why}");
        }
    }
    if exit == Exit::Nothing {
        anstream::println!("there is no gate to prove");
    }
    Ok(exit)
}

/// Builds and runs the whole gate.
fn ask(place: &Place<'_>, name: &str, gate: &Gate) -> Result<Said> {
    Ok(match whole(place, name, gate)? {
        Ok(passed) if passed.is_empty() => Some("empty: no check ran".into()),
        Ok(_) => None,
        Err((word, why)) => Some(format!("{word}: {}", line(&why))),
    })
}

fn line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Whether a file is one of a gate's sources: an input, and neither a manifest nor this program's.
fn source(gate: &Gate, entry: &Entry) -> bool {
    let path = entry.path.to_string_lossy();
    let input =
        gate.inputs.is_empty() || gate.inputs.iter().any(|input| glob::matches(input, &path));
    let name = entry
        .path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let ext = entry
        .path
        .extension()
        .map(|ext| ext.to_string_lossy().into_owned())
        .unwrap_or_default();
    let manifest = matches!(
        ext.as_str(),
        "toml" | "lock" | "json" | "yaml" | "yml" | "cfg" | "ini" | "mod" | "sum" | "md"
    );
    let build = name.starts_with('.') || name.ends_with("akefile") || name.starts_with("CMake");
    let ours = entry.path.starts_with("sabotage/rules") || entry.path == Path::new(read::GATES);
    input && entry.kind != Kind::Link && !manifest && !build && !ours
}
