//! `cargo xtask spec`: the rows are checked, and what is generated from them is written or compared.
//!
//! Owns where this repository keeps rows and constants. Refuses to know the form of a row and the texts that are
//! generated: they are the traceability library's.
//! Invariant: nothing is written while any finding stands, but for staleness itself.

#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Result, bail};
use traceability::code::Fault;
use traceability::rows::{self, Rows};

/// Where the rows stand, relative to the repository.
const ROWS: &str = "spec";
/// The rows as constants.
const CONSTANTS: &str = "spec/src/rows.rs";

/// Regenerates the files under `root`, or with `check_only` fails when one of them is stale.
pub(crate) fn run(root: &Path, check_only: bool) -> Result<()> {
    let (all, faults) = Rows::read(root, Path::new(ROWS))?;
    if !faults.is_empty() {
        return fail(&faults);
    }
    let files = all.generated(Some(Path::new(CONSTANTS)));
    if check_only {
        let stale = rows::stale(root, &files, true);
        if !stale.is_empty() {
            return fail(&stale);
        }
    } else {
        for path in rows::write(root, &files)? {
            println!("wrote {}", path.display());
        }
    }
    println!(
        "spec: {} rows in {} areas",
        all.all().count(),
        all.areas.len()
    );
    Ok(())
}

fn fail(faults: &[Fault]) -> Result<()> {
    for fault in faults {
        eprintln!("{}", fault.finding);
    }
    bail!("spec: {} finding(s)", faults.len())
}
