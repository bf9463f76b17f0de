//! Which rules run: by name, tag, row or gate, by change, by shard; and which need not run again.
//!
//! Owns the words of a selector. Invariant: the shards of a run are disjoint and together are the whole.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::Value;

use super::{Options, Session};
use crate::finding::hint;
use crate::glob;
use crate::schema::Declared;
use crate::schema::rule::Rule;
use crate::tree::{Tree, git, hash_of};
use crate::verdict::{Record, Verdict};

/// The chosen rules in the order of their files, and how many there are in all shards.
pub(super) fn choose<'a>(
    declared: &'a Declared,
    options: &Options,
    tree: &Tree,
) -> Result<(Vec<&'a Rule>, usize)> {
    let mut chosen: Vec<&Rule> = named(declared, &options.selectors)?;
    if let Some(since) = &options.since {
        let changed = git(&tree.root, &["diff", "--name-only", "-z", since, "--"])?;
        let new = git(&tree.root, &["ls-files", "-z", "-o", "--exclude-standard"])?;
        let changed: Vec<&str> = changed
            .split('\0')
            .chain(new.split('\0'))
            .filter(|path| !path.is_empty())
            .collect();
        chosen.retain(|rule| touched(declared, rule, &changed));
    }
    let selected = chosen.len();
    if let Some((part, parts)) = options.shard {
        let mut number = 0;
        chosen.retain(|_| {
            number += 1;
            (number - 1) % parts == part - 1
        });
    }
    Ok((chosen, selected))
}

/// Rules that match one of the selectors; a selector that matches none is an error.
pub fn named<'a>(declared: &'a Declared, selectors: &[String]) -> Result<Vec<&'a Rule>> {
    for selector in selectors {
        if !declared.rules.iter().any(|rule| matches(rule, selector)) {
            let names = declared.rules.iter().map(|rule| rule.id.value.as_str());
            bail!("no rule matches `{selector}`{}", hint(selector, names));
        }
    }
    let meant = |rule: &&Rule| {
        selectors.is_empty() || selectors.iter().any(|selector| matches(rule, selector))
    };
    Ok(declared.rules.iter().filter(meant).collect())
}

fn matches(rule: &Rule, selector: &str) -> bool {
    let any = |pattern: &str, mut names: Box<dyn Iterator<Item = &String> + '_>| {
        names.any(|name| glob::matches(pattern, name))
    };
    match selector.split_once(':') {
        Some(("tag", pattern)) => any(pattern, Box::new(rule.tags.iter())),
        Some(("row", pattern)) => any(pattern, Box::new(rule.rows.iter().map(|row| &row.value))),
        Some(("gate", pattern)) => any(
            pattern,
            Box::new(rule.expect.checks.iter().map(|check| &check.gate.value)),
        ),
        _ => glob::matches(selector, &rule.id.value),
    }
}

/// Whether a change of these files can change the rule's verdict: its own file, the files it edits, or
/// declared inputs of its gates.
fn touched(declared: &Declared, rule: &Rule, changed: &[&str]) -> bool {
    changed.iter().any(|path| {
        rule.file.to_string_lossy() == *path
            || rule.edits.iter().any(|edit| edit.file.value == *path)
            || rule.expect.checks.iter().any(|check| {
                let gate = declared.gates.gates.get(&check.gate.value);
                gate.is_some_and(|gate| gate.inputs.iter().any(|input| glob::matches(input, path)))
            })
    })
}

/// What each rule's verdict depends on beside the tree: its own text.
pub(super) fn keys(chosen: &[&Rule], session: &Session) -> BTreeMap<String, String> {
    let key = |rule: &&Rule| {
        let text = format!("{rule:?}{:?}", session.declared.gates);
        (
            rule.id.value.clone(),
            hash_of(text.as_bytes())[..16].to_owned(),
        )
    };
    chosen.iter().map(key).collect()
}

/// Verdicts of the last run that still stand: same tree, same rule, and a verdict that says something.
pub(super) fn kept(session: &Session, chosen: &[&Rule]) -> Result<BTreeMap<String, Record>> {
    let mut kept = BTreeMap::new();
    let keys = keys(chosen, session);
    let mut runs: Vec<_> = std::fs::read_dir(session.home.join("runs"))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|run| run.join("events.jsonl").is_file())
        .collect();
    runs.sort();
    let Some(last) = runs.into_iter().rev().find(|run| *run != session.dir) else {
        return Ok(kept);
    };
    let text = std::fs::read_to_string(last.join("events.jsonl")).unwrap_or_default();
    // The last line of a run that was killed may be half a line.
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let Some(start) = events.iter().find(|event| event["event"] == "run_start") else {
        return Ok(kept);
    };
    if start["tree"] != session.tree.hash.as_str() {
        session
            .log
            .note("nothing to resume: the tree has changed since the last run");
        return Ok(kept);
    }
    for event in &events {
        if event["event"] == "withdrawn" {
            kept.remove(event["rule"].as_str().unwrap_or_default());
        }
        if event["event"] != "verdict" {
            continue;
        }
        let Ok(record) = serde_json::from_value::<Record>(event.clone()) else {
            continue;
        };
        let same = keys
            .get(&record.rule)
            .is_some_and(|key| start["keys"][&record.rule] == key.as_str());
        let telling = !matches!(
            record.verdict,
            Verdict::Pending | Verdict::Infra | Verdict::Timeout | Verdict::Flaky
        );
        if same && telling {
            kept.insert(record.rule.clone(), record);
        }
    }
    Ok(kept)
}
