//! Commands that look back or outwards: `diff`, `badge`, and which rows a change touches.
//!
//! Owns their words. Refuses to compare: `compare` does. Invariant: what programs read goes to stdout, alone.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::compare::{Change, Diff, Snapshot};
use crate::history::Checkout;
use crate::judge::judge;
use crate::rows::read::Grade;
use crate::show::{badge, words};
use crate::workspace::Workspace;

/// Flags of `diff`.
#[derive(Debug, Args)]
pub(super) struct Compare {
    /// A commit, branch or tag.
    rev: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Flags of `badge`.
#[derive(Debug, Args)]
pub(super) struct Badge {
    /// Files of results, instead of those of trace.yaml.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    results: Vec<String>,
    /// Write the picture here instead of printing it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The rows that what changed since a revision concerns.
pub(super) fn touched(root: &Path, rev: &str) -> Result<BTreeSet<String>> {
    Ok(since(root, rev)?.1.touched())
}

fn since(root: &Path, rev: &str) -> Result<(String, Diff)> {
    let old = Checkout::of(root, rev)?;
    let before = Snapshot::of(&old.root).with_context(|| format!("at {rev}"))?;
    let diff = Diff::of(&before, &Snapshot::of(root)?);
    Ok((old.commit.clone(), diff))
}

/// Tells what changed.
pub(super) fn compare(root: &Path, compare: &Compare) -> Result<u8> {
    let (commit, diff) = since(root, &compare.rev)?;
    if compare.json {
        let mut told = serde_json::to_value(&diff)?;
        told["since"] = commit.into();
        told["touched"] = diff.touched().into_iter().collect();
        println!("{told:#}");
    } else {
        anstream::print!("{}", text(&commit, &diff));
    }
    Ok(0)
}

fn sign(change: Change) -> char {
    match change {
        Change::Added => '+',
        Change::Removed => '-',
        Change::Changed => '~',
    }
}

fn text(commit: &str, diff: &Diff) -> String {
    let mut out = String::new();
    let short: String = commit.chars().take(12).collect();
    for row in &diff.rows {
        for (name, old, new) in &row.parts {
            let what = match row.change {
                Change::Added => new.clone(),
                Change::Removed => old.clone(),
                Change::Changed => format!("{name}: {}", words::plain(&words::compare(old, new))),
            };
            let _ = writeln!(out, "{} row {} {what}", sign(row.change), row.id);
        }
    }
    for (mark, edges) in [('+', &diff.gained), ('-', &diff.lost)] {
        for (row, test) in edges {
            let _ = writeln!(out, "{mark} {row} by {test}");
        }
    }
    for (what, list) in [("test", &diff.tests), ("sabotage", &diff.sabotages)] {
        for named in list {
            let rows = named.rows.join(" ");
            let _ = writeln!(out, "{} {what} {} [{rows}]", sign(named.change), named.name);
        }
    }
    if diff.is_empty() {
        let _ = writeln!(
            out,
            "nothing that is promised or shown changed since {short}"
        );
    } else {
        let touched = diff.touched();
        let rows: Vec<&str> = touched.iter().map(String::as_str).collect();
        let _ = writeln!(
            out,
            "since {short}: {} rows are touched: {}",
            rows.len(),
            rows.join(" ")
        );
    }
    out
}

/// Prints or writes the badge; inconclusive where results are missing.
pub(super) fn picture(root: &Path, badge: &Badge) -> Result<u8> {
    let workspace = Workspace::read(root, &super::given(&badge.results))?;
    let judged = judge(&workspace, &super::ask(Grade::Proven));
    let share = badge::share(&workspace, &judged);
    let svg = badge::svg(share);
    match &badge.out {
        Some(path) => {
            std::fs::write(path, svg)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => print!("{svg}"),
    }
    Ok(if share.is_some() { 0 } else { 3 })
}
