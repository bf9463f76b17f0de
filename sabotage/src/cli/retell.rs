//! Commands that tell a run again: report, merge, evidence.
//!
//! Owns where runs are found. Refuses to run a gate. Invariant: the exit code is that of the run that is told.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::complain;
use super::outputs::Outputs;
use crate::report::json::{self, Proof};
use crate::report::merge;
use crate::report::told::Told;
use crate::schema::read;
use crate::slot::home;
use crate::tree::Tree;
use crate::verdict::{Exit, Verdict};

#[derive(Debug, clap::Args)]
pub(super) struct ReportOptions {
    /// A results.json, or the directory of one; the default is the last run.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(Debug, clap::Args)]
pub(super) struct MergeOptions {
    /// Each shard's results.json, or the directory of one.
    #[arg(required = true, value_name = "DIR")]
    parts: Vec<PathBuf>,
    /// Where results.json and evidence.json go; by default the merge becomes the last run.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Evidence {
    /// Say whether evidence is of the tree as it is now, and of all its rules.
    Verify {
        /// An evidence.json; the default is the last run's.
        file: Option<PathBuf>,
    },
}

pub(super) fn report(root: &Path, asked: &ReportOptions) -> Result<Exit> {
    let told = match &asked.from {
        Some(path) => Told::read(path)?,
        None => Told::last(&home(root)?)?,
    };
    if !asked.outputs.prints() {
        for record in told.wanting() {
            anstream::println!("{}", crate::report::terminal::record(record));
        }
        for note in &told.notes {
            anstream::println!("note: {note}");
        }
    }
    asked.outputs.give(&told, root)
}

pub(super) fn merged(root: &Path, asked: &MergeOptions) -> Result<Exit> {
    let mut parts = Vec::new();
    for path in &asked.parts {
        parts.push((path.display().to_string(), Told::read(path)?));
    }
    let told = merge::merge(parts)?;
    let home = home(root)?;
    let dir = match &asked.out {
        Some(dir) => dir.clone(),
        None => crate::session::run_dir(&home),
    };
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    json::write(&told, &dir)?;
    if asked.out.is_none() {
        std::fs::write(home.join("last"), dir.display().to_string())
            .context("cannot make the merge the last run")?;
    }
    for note in &told.notes {
        anstream::eprintln!("note: {note}");
    }
    let exit = asked.outputs.give(&told, root)?;
    if !asked.outputs.prints() {
        anstream::println!("details: {}", dir.display());
    }
    Ok(exit)
}

pub(super) fn evidence(root: &Path) -> Result<Exit> {
    let file = last_evidence(root)?;
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    anstream::print!("{text}");
    Ok(Exit::Declared)
}

fn last_evidence(root: &Path) -> Result<PathBuf> {
    let last = home(root)?.join("last");
    let dir = std::fs::read_to_string(last).context("no run has ended yet: sabotage run")?;
    Ok(Path::new(&dir).join("evidence.json"))
}

/// Exit 0: of this tree and of every rule; 6: stale; 8: rules have no evidence; 7: it says nothing.
pub(super) fn verify(root: &Path, file: Option<&Path>) -> Result<Exit> {
    let file = match file {
        Some(file) => file.to_owned(),
        None => last_evidence(root)?,
    };
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let proofs: Vec<Proof> = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is no evidence.json (sabotage schema evidence)",
            file.display()
        )
    })?;
    let Some(first) = proofs.first() else {
        anstream::println!("EMPTY: {} holds no rule", file.display());
        return Ok(Exit::Nothing);
    };
    let tree = Tree::read(root)?;
    let trees: BTreeSet<&str> = proofs.iter().map(|proof| proof.tree.as_str()).collect();
    ensure!(
        trees.len() == 1,
        "{} mixes verdicts of {} trees",
        file.display(),
        trees.len()
    );
    if first.tree != tree.hash {
        let commit = first.commit.as_deref().unwrap_or("no commit");
        anstream::println!(
            "STALE: the evidence is of tree {:.16} ({commit:.12}), and the tree is {:.16} now; sabotage run makes it anew",
            first.tree,
            tree.hash
        );
        return Ok(Exit::Ledger);
    }
    let (declared, findings) = read::declared(root)?;
    if !findings.is_empty() {
        return Ok(complain(&findings));
    }
    let held: BTreeSet<&str> = proofs.iter().map(|proof| proof.rule.as_str()).collect();
    let without: Vec<&str> = declared
        .rules
        .iter()
        .map(|rule| rule.id.value.as_str())
        .filter(|id| !held.contains(id))
        .collect();
    let caught = proofs
        .iter()
        .filter(|proof| proof.verdict == Verdict::Caught)
        .count();
    if without.is_empty() {
        anstream::println!(
            "VALID: {} rules of this tree, {caught} caught",
            proofs.len()
        );
        return Ok(Exit::Declared);
    }
    anstream::println!(
        "INCOMPLETE: {} of {} rules of this tree, {caught} caught; without evidence: {}",
        proofs.len(),
        declared.rules.len(),
        without.join(", ")
    );
    Ok(Exit::Incomplete)
}
