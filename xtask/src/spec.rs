//! `cargo xtask spec`: the rows are checked, and what is generated from them is written or compared.
//!
//! Owns: the order (read, check, generate) and the three files. Refuses to know evidence: which
//! tests show a row is another tool's question.
//! Invariant: nothing is written while any finding stands, but for staleness itself.

mod check;
mod emit;
#[cfg(test)]
mod tests;
mod yaml;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::finding::{At, Finding};

/// The generated files, relative to the repository.
const CONSTANTS: &str = "spec/src/rows.rs";
const DOCUMENT: &str = "spec/SPEC.md";

/// Regenerates the files under `root`, or with `check_only` fails when one of them is stale.
pub(crate) fn run(root: &Path, check_only: bool) -> Result<()> {
    let (areas, mut findings) = yaml::areas(root)?;
    let past = yaml::ledger(root)?;
    // A file that does not parse would make all its rows look lost.
    if findings.is_empty() {
        findings = check::check(&areas, &past);
    }
    if !findings.is_empty() {
        return fail(&findings);
    }
    let files = [
        (CONSTANTS, emit::constants(&areas)),
        (DOCUMENT, emit::document(&areas)),
        (check::LEDGER, emit::ledger(&areas, &past)),
    ];
    let mut stale = Vec::new();
    for (name, fresh) in &files {
        let path = root.join(name);
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        if old == *fresh {
            continue;
        }
        if check_only {
            let line = old
                .lines()
                .zip(fresh.lines())
                .take_while(|(old, fresh)| old == fresh)
                .count()
                + 1;
            stale.push(Finding {
                at: At::line(Path::new(name), line),
                message: "is stale: run `cargo xtask spec` and commit what it writes".into(),
            });
        } else {
            std::fs::write(&path, fresh).with_context(|| format!("cannot write {name}"))?;
            println!("wrote {name}");
        }
    }
    if !stale.is_empty() {
        return fail(&stale);
    }
    let rows: usize = areas.iter().map(|area| area.rows.len()).sum();
    println!("spec: {rows} rows in {} areas", areas.len());
    Ok(())
}

fn fail(findings: &[Finding]) -> Result<()> {
    for finding in findings {
        eprintln!("{finding}");
    }
    bail!("spec: {} finding(s)", findings.len())
}
