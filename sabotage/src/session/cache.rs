//! CAUGHT verdicts of earlier runs, each under a key of everything that it rests on.
//!
//! Owns the key. Refuses every other verdict: what was missed, broken or inconclusive is asked again.
//! Invariant: two runs share a key only when the rule, the files it edits, the gates with their inputs and
//! limits, the toolchain, the lock files and this program are the same; what is kept names the tree and the
//! commit on which it was obtained.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Applied, Options};
use crate::glob;
use crate::schema::Declared;
use crate::schema::gate::Gate;
use crate::tree::{Tree, hash_of};
use crate::verdict::{Obtained, Record, Verdict};

/// What no rule came back for in this time is forgotten.
const KEPT: Duration = Duration::from_hours(24 * 60);

/// Keys of a rule that say nothing about its verdict.
const WORDS: [&str; 4] = ["promise", "rows", "tags", "platforms"];

/// The verdicts kept for one repository.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    base: Value,
    gates: BTreeMap<String, Value>,
    now: Obtained,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    record: Record,
    obtained: Obtained,
}

impl Cache {
    /// The cache below `home`, for runs of this tree with these options.
    pub(super) fn open(
        home: &Path,
        declared: &Declared,
        options: &Options,
        tree: &Tree,
    ) -> Result<Self> {
        let dir = home.join("caught");
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        forget(&dir);
        let base = json!({
            "tool": tool()?, "toolchain": toolchain(tree), "locks": locks(tree),
            "repeat": options.repeat, "jailed": options.jailed, "per_rule": options.per_rule,
        });
        let gates = declared.gates.gates.iter().map(|(name, gate)| {
            let told =
                json!({ "gate": gate, "inputs": inputs(gate, tree), "programs": programs(gate) });
            (name.clone(), told)
        });
        Ok(Self {
            dir,
            base,
            gates: gates.collect(),
            now: Obtained {
                commit: tree.commit.clone(),
                tree: tree.hash.clone(),
                at: jiff::Timestamp::now().to_string(),
            },
        })
    }

    /// The key of a rule as it is now.
    pub(super) fn key(&self, applied: &Applied<'_>) -> Result<String> {
        let rule = applied.rule;
        let mut told = serde_json::to_value(rule)?;
        if let Some(map) = told.as_object_mut() {
            map.retain(|name, _| !WORDS.contains(&name.as_str()));
        }
        let gates: BTreeMap<&str, Option<&Value>> = rule
            .expect
            .checks
            .iter()
            .chain(&rule.must_pass)
            .map(|check| {
                let name = check.gate.value.as_str();
                (name, self.gates.get(name))
            })
            .collect();
        let files: BTreeMap<&PathBuf, [String; 2]> = applied
            .files
            .iter()
            .map(|(path, changed)| {
                let hashes = [&changed.before, &changed.after].map(|text| hash_of(text.as_bytes()));
                (path, hashes)
            })
            .collect();
        let all = json!({ "base": self.base, "rule": told, "gates": gates, "files": files });
        Ok(hash_of(all.to_string().as_bytes()))
    }

    /// The verdict kept under a key, told in the rule's present words.
    pub(super) fn get(&self, key: &str, applied: &Applied<'_>) -> Option<Record> {
        let text = std::fs::read(self.path(key)).ok()?;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        if entry.record.verdict != Verdict::Caught || entry.record.rule != applied.rule.id.value {
            return None;
        }
        let now = Record::new(applied.rule, Verdict::Caught);
        Some(Record {
            rows: now.rows,
            promise: now.promise,
            at: now.at,
            seconds: 0.0,
            cached: Some(entry.obtained),
            ..entry.record
        })
    }

    /// Keeps a verdict; one that is not CAUGHT, or was kept before, is passed over.
    pub(super) fn put(&self, key: &str, record: &Record) -> Result<()> {
        if record.verdict != Verdict::Caught || record.cached.is_some() {
            return Ok(());
        }
        let entry = Entry {
            record: record.clone(),
            obtained: self.now.clone(),
        };
        let path = self.path(key);
        let fresh = path.with_extension("new");
        std::fs::write(&fresh, serde_json::to_vec(&entry)?)
            .and_then(|()| std::fs::rename(&fresh, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.json"))
    }
}

/// Removes what is old; what cannot be removed now is removed later.
fn forget(dir: &Path) {
    let Some(before) = SystemTime::now().checked_sub(KEPT) else {
        return;
    };
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let old = entry.metadata().and_then(|meta| meta.modified());
        if old.is_ok_and(|time| time < before) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// This program, by version and bytes.
fn tool() -> Result<Value> {
    let me = std::env::current_exe().context("cannot find this program")?;
    let bytes = std::fs::read(&me).with_context(|| format!("cannot read {}", me.display()))?;
    Ok(json!([env!("CARGO_PKG_VERSION"), hash_of(&bytes)]))
}

/// The compiler as the tree chooses it, and what changes its work from outside.
fn toolchain(tree: &Tree) -> Value {
    let rust = tree
        .entries
        .iter()
        .any(|entry| name(&entry.path) == "Cargo.toml");
    let rustc = rust.then(|| {
        let asked = Command::new("rustc")
            .arg("-vV")
            .current_dir(&tree.root)
            .output();
        asked.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    });
    json!([
        std::env::consts::OS,
        std::env::consts::ARCH,
        rustc,
        std::env::var("RUSTFLAGS").ok()
    ])
}

/// Files that decide what is built, whatever inputs a gate names.
fn locks(tree: &Tree) -> BTreeMap<&Path, &str> {
    let counts = |path: &Path| {
        let name = name(path);
        let lock = path.extension().is_some_and(|ext| ext == "lock");
        let others = [
            "Cargo.toml",
            "package-lock.json",
            "pnpm-lock.yaml",
            "go.sum",
            "rust-toolchain",
            "rust-toolchain.toml",
        ];
        lock || others.contains(&name.as_str()) || path.starts_with(".cargo")
    };
    let entries = tree.entries.iter().filter(|entry| !ours(&entry.path));
    entries
        .filter(|entry| counts(&entry.path))
        .map(|entry| (entry.path.as_path(), entry.hash.as_str()))
        .collect()
}

/// One hash over the files that decide a gate's verdict.
fn inputs(gate: &Gate, tree: &Tree) -> String {
    let patterns: Vec<Regex> = gate.inputs.iter().map(|input| glob::regex(input)).collect();
    let mut all = String::new();
    for entry in &tree.entries {
        let path = entry.path.to_string_lossy();
        let counts = if patterns.is_empty() {
            !ours(&entry.path)
        } else {
            patterns.iter().any(|pattern| pattern.is_match(&path))
        };
        if counts {
            all.extend([&*path, "\0", entry.kind.word(), "\0", &entry.hash, "\n"]);
        }
    }
    hash_of(all.as_bytes())
}

/// The files that only this program reads: rules, gates and pins, which are keyed by what they say.
fn ours(path: &Path) -> bool {
    path.starts_with(crate::schema::read::RULES)
        || path == Path::new(crate::schema::read::GATES)
        || path == Path::new(crate::pins::LOCK)
}

/// The programs that a gate's commands begin with, as they are found now: place, size and time.
fn programs(gate: &Gate) -> Vec<Value> {
    let spanned = [&gate.run, &gate.only].map(|text| text.as_ref().map(|text| &text.value));
    let commands = spanned
        .into_iter()
        .chain([gate.build.as_ref(), gate.list.as_ref()]);
    let first = |command: &String| command.split_whitespace().next().map(str::to_owned);
    let dirs: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    commands
        .flatten()
        .filter_map(first)
        .filter_map(|word| {
            let found = dirs
                .iter()
                .map(|dir| dir.join(&word))
                .find(|path| path.is_file())?;
            let real = found.canonicalize().ok()?;
            let meta = real.metadata().ok()?;
            let time = meta
                .modified()
                .ok()?
                .duration_since(SystemTime::UNIX_EPOCH)
                .ok()?;
            Some(json!([real, meta.len(), time.as_nanos().to_string()]))
        })
        .collect()
}

fn name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
