//! `trace split`: one row becomes several.
//!
//! Owns the edit: new rows that take over kinds, floor and reason of the old one, and the old one retired in their
//! favour. Refuses to touch a test: those that name the old row are told, each with its place. Invariant: all of it is
//! written, or nothing.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::change::{next_free, quoted, retired, save, today};
use crate::config::Config;
use crate::rows::Rows;
use crate::rows::read::State;

/// Flags of `split`.
#[derive(Debug, Args)]
pub(super) struct Split {
    /// The row.
    row: String,
    /// The claim of each new row; at least two.
    #[arg(long, required = true, num_args = 1.., value_name = "CLAIM")]
    into: Vec<String>,
    /// Why.
    #[arg(long)]
    reason: String,
}

/// Splits a row and prints the new ids.
pub(super) fn split(root: &Path, split: &Split) -> Result<u8> {
    ensure!(
        split.into.len() > 1,
        "a row is split into two or more: say --into \"..\" \"..\""
    );
    let config = Config::read(root)?;
    let (all, _) = Rows::read(root, &config.spec)?;
    let (area, row) = super::find(&all, &split.row)?;
    ensure!(
        row.state != State::Retired,
        "{} is retired: it promises nothing that could be split",
        split.row
    );
    let letters = &area.letters.value;
    let first = next_free(&all, letters);
    let ids: Vec<String> = (first..)
        .take(split.into.len())
        .map(|number| format!("{letters}{number}"))
        .collect();
    let text = std::fs::read_to_string(root.join(&area.file))
        .with_context(|| format!("cannot read {}", area.file.display()))?;
    let mut text = retired(&text, row, &split.reason, &ids, &today())?;
    let needs: Vec<&str> = row.needs.value.iter().map(|need| need.word()).collect();
    for (id, claim) in ids.iter().zip(&split.into) {
        let _ = write!(
            text,
            "  - id: {id}\n    claim: {}\n    why: {}\n    state: active\n    needs: [{}]\n",
            quoted(claim),
            quoted(&row.why.value),
            needs.join(", ")
        );
        if let Some(floor) = row.floor {
            let _ = writeln!(text, "    floor: {}", floor.word());
        }
    }
    save(root, &config, &area.file, &text)?;
    println!("{} is retired for {}", split.row, ids.join(", "));
    Ok(0)
}
