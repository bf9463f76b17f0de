//! `cargo xtask mutants`: sweeps the crates that decide for changes that no test notices.
//!
//! Owns which crates are swept, the flags and the closing lines. Refuses to make a mutant: cargo-mutants does.
//! Invariant: exit 0 only when each mutant was noticed or stands in the list with a reason, and each
//! entry of the list is a mutant that still survives; a sweep of no mutants is red.

mod judge;
mod ledger;
mod sweep;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::finding::hint;
use crate::repository::Repository;
use crate::screen;
use judge::Judged;
use sweep::{Fate, Sweep};

/// What is swept when no package is named: the crates without processes of their own.
const PACKAGES: [&str; 5] = [
    "m0-policy",
    "m0-wire",
    "m0-page",
    "m0-framelog",
    "m0-streams",
];
/// Mutants that no test notices, each with the reason why that is right.
const LEDGER: &str = ".config/mutants-survivors.yaml";

/// What to sweep.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Sweep these packages; policy, wire, page, framelog and streams when none is named.
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Sweep part K of N only.
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Seconds after which the tests of one mutant have hung, which is noticed.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,
    /// Print one JSON object on stdout; all else goes to stderr.
    #[arg(long)]
    json: bool,
}

/// Part `k` of `n`, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    k: usize,
    n: usize,
}

fn shard(text: &str) -> Result<Shard, String> {
    let parsed = text
        .split_once('/')
        .and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((k, n)) if (1..=n).contains(&k) => Ok(Shard { k, n }),
        _ => Err("not K/N with 1 ≤ K ≤ N".into()),
    }
}

/// Sweeps, judges, and says so.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    let packages = chosen(repository, &options.packages)?;
    let entries = ledger::read(&repository.root, Path::new(LEDGER))?;
    let version = sweep::version(repository)?;
    let mut sweeps = Vec::new();
    for (index, package) in packages.iter().enumerate() {
        let known = sweep::known(repository, package)?;
        let title = format!(
            "[{}/{}] {package}: {} mutants",
            index + 1,
            packages.len(),
            known.len()
        );
        screen::title(&title);
        sweeps.push(sweep::run(repository, package, known, options)?);
    }
    let judged = judge::judge(&sweeps, &entries);
    if options.json {
        println!("{:#}", told(&version, options, &sweeps, &judged));
    }
    close(&sweeps, &judged, options.json)
}

/// The packages that were asked for, each of which must be a member.
fn chosen(repository: &Repository, asked: &[String]) -> Result<Vec<String>> {
    if asked.is_empty() {
        return Ok(PACKAGES.map(str::to_owned).to_vec());
    }
    let names = || {
        repository
            .packages
            .iter()
            .map(|package| package.name.as_str())
    };
    for name in asked {
        let near = hint(name, names());
        ensure!(
            names().any(|known| known == name),
            "there is no package {name}{near}"
        );
    }
    Ok(asked.to_vec())
}

/// One line a package, then what is wrong, then the verdict.
fn close(sweeps: &[Sweep], judged: &Judged, json: bool) -> Result<()> {
    let say = |line: &str| {
        if json {
            anstream::eprintln!("{line}");
        } else {
            anstream::println!("{line}");
        }
    };
    screen::title("mutants");
    for sweep in sweeps {
        say(&sweep.line());
    }
    for finding in &judged.findings {
        say(&format!("{} {finding}", screen::bad("finding:")));
    }
    let ran: usize = sweeps.iter().map(|sweep| sweep.mutants.len()).sum();
    ensure!(ran > 0, "no mutant was tried");
    let explained = judged.explained.len();
    say(&format!(
        "{ran} mutants, {explained} survive for a reason, {} finding(s)",
        judged.findings.len()
    ));
    if !judged.findings.is_empty() {
        bail!(
            "{} finding(s); survivors with a reason stand in {LEDGER}",
            judged.findings.len()
        );
    }
    Ok(())
}

fn told(version: &str, options: &Options, sweeps: &[Sweep], judged: &Judged) -> Value {
    let package = |sweep: &Sweep| {
        json!({
            "package": sweep.package, "known": sweep.known.len(), "mutants": sweep.mutants.len(),
            "caught": sweep.count(Fate::Caught), "timed_out": sweep.count(Fate::TimedOut),
            "unviable": sweep.count(Fate::Unviable), "survived": sweep.count(Fate::Survived),
            "seconds": sweep.seconds, "mutants_a_second": sweep.rate(),
        })
    };
    let survivor = |(mutant, why): &(sweep::Mutant, String)| {
        json!({
            "file": mutant.file, "line": mutant.line, "column": mutant.column,
            "mutant": mutant.what, "why": why,
        })
    };
    let finding = |finding: &crate::finding::Finding| {
        json!({
            "file": finding.at.file, "line": finding.at.line, "column": finding.at.column,
            "message": finding.message,
        })
    };
    json!({
        "cargo_mutants": version,
        "shard": options.shard.map(|shard| format!("{}/{}", shard.k, shard.n)),
        "packages": sweeps.iter().map(package).collect::<Vec<_>>(),
        "explained": judged.explained.iter().map(survivor).collect::<Vec<_>>(),
        "findings": judged.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

/// The directory of all that a sweep leaves.
fn home(repository: &Repository) -> Result<std::path::PathBuf> {
    let dir = repository.results()?.join("mutants");
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}
