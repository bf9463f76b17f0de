//! Shards of one run, put together.
//!
//! Owns what makes shards one run: the same tree, the same selection, each part once. Pure.
//! Invariant: a merge is as declared only when every part is there.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::told::{Shard, Told};
use crate::verdict::{Exit, exit_of};

/// Puts parts together; each comes with a name for messages. An error when they are not parts of one run.
pub fn merge(parts: Vec<(String, Told)>) -> Result<Told> {
    let mut by_part: BTreeMap<usize, (String, Told)> = BTreeMap::new();
    let mut whole = 0;
    for (name, told) in parts {
        let Some(Shard { part, parts }) = told.shard else {
            bail!("{name} is no shard: it was run without --shard K/N");
        };
        if let Some((first, other)) = by_part.values().next() {
            let Shard { parts: of, .. } = other.shard.unwrap_or(Shard { part, parts });
            if other.tree != told.tree {
                bail!(
                    "verdicts of different trees: {first} is of tree {:.16}, {name} of tree {:.16}",
                    other.tree,
                    told.tree
                );
            }
            if of != parts {
                bail!("{first} is one of {of} shards, {name} one of {parts}");
            }
            if other.selected != told.selected {
                bail!(
                    "shards of different selections: {first} is a part of {} rules, {name} of {}",
                    other.selected,
                    told.selected
                );
            }
        }
        whole = parts;
        if let Some((first, _)) = by_part.get(&part) {
            bail!("shard {part}/{parts} is there twice: {first} and {name}");
        }
        by_part.insert(part, (name, told));
    }
    let mut homes: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, told) in by_part.values() {
        for record in &told.rules {
            if let Some(first) = homes.insert(&record.rule, name) {
                bail!("rule {} is in two shards: {first} and {name}", record.rule);
            }
        }
    }
    let missing: Vec<usize> = (1..=whole)
        .filter(|part| !by_part.contains_key(part))
        .collect();
    let mut parts = by_part.into_values().map(|(_, told)| told);
    let Some(mut all) = parts.next() else {
        bail!("no shard is named");
    };
    all.shard = None;
    for told in parts {
        all.rules.extend(told.rules);
        all.seconds += told.seconds;
        match (&mut all.pace, told.pace) {
            (Some(pace), Some(other)) => pace.join(&other),
            (pace, other) => *pace = pace.or(other),
        }
        add(&mut all.gates, told.gates);
        add(&mut all.notes, told.notes);
        for (how, seconds) in told.seconds_a_rule {
            all.seconds_a_rule
                .entry(how)
                .and_modify(|so_far| *so_far = so_far.max(seconds))
                .or_insert(seconds);
        }
    }
    all.exit = exit_of(all.rules.iter().map(|record| record.verdict));
    if !all.gates.is_empty() {
        all.rules.clear();
        all.exit = Exit::Gate;
    }
    for part in missing {
        all.notes.push(format!(
            "shard {part}/{whole} is missing; its rules have no verdict"
        ));
        all.exit = all.exit.min(Exit::Incomplete);
    }
    Ok(all)
}

/// What is not there yet.
fn add<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}
