//! Pins: the surroundings of each rule as they were when somebody last looked.
//!
//! Owns `sabotage/known.lock`, one sorted line a rule. Refuses to judge: a rule that drifted still runs, and
//! its drift is a note. Invariant: white space and comments move no pin; the file is written by `accept` alone.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::finding::At;
use crate::schema::rule::Rule;
use crate::source::edit::is_rust;
use crate::source::item::{Named, find};
use crate::source::tokens;
use crate::tree::hash_of;

/// The file, relative to the repository.
pub const LOCK: &str = "sabotage/known.lock";

const HEADER: &str =
    "# The surroundings of each rule as somebody last looked at them: sabotage accept [RULE].\n";

/// Pins by rule.
pub type Pins = BTreeMap<String, String>;

/// Hash of everything that surrounds a rule's edits: the named items, or whole files.
pub fn of(rule: &Rule, tree: &Path) -> Option<String> {
    let mut all = String::new();
    for edit in &rule.edits {
        let path = Path::new(&edit.file.value);
        let text = std::fs::read_to_string(tree.join(path)).ok()?;
        let row = if is_rust(path) {
            tokens::of_file(&text)
        } else {
            None
        };
        let Some(row) = row else {
            all.push_str(&text);
            continue;
        };
        let ranges = match &edit.inside {
            Some(inside) => find(&row, &Named::parse(&inside.value)?),
            None => std::iter::once(0..row.len()).collect(),
        };
        for token in ranges.into_iter().flat_map(|range| &row[range]) {
            all.push_str(&token.text);
            all.push(' ');
        }
    }
    Some(hash_of(all.as_bytes())[..16].to_owned())
}

/// Reads the file; a missing one pins nothing.
pub fn read(root: &Path) -> Result<Pins> {
    let path = root.join(LOCK);
    if !path.exists() {
        return Ok(Pins::new());
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {LOCK}"))?;
    let mut pins = Pins::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#') && !line.is_empty())
    {
        match line.split_once(' ') {
            Some((rule, pin)) => pins.insert(rule.to_owned(), pin.to_owned()),
            None => bail!("{LOCK}:{}:1: not `RULE HASH`", index + 1),
        };
    }
    Ok(pins)
}

/// What changed around rules since they were accepted, a sentence each.
pub fn drifted<'a>(pins: &Pins, rules: impl Iterator<Item = &'a Rule>, tree: &Path) -> Vec<String> {
    let drift = |rule: &Rule| {
        let id = &rule.id.value;
        let pin = pins.get(id)?;
        let now = of(rule, tree)?;
        let at = At::location(&rule.file, &rule.id.referenced);
        (now != *pin).then(|| {
            format!("DRIFTED {id} ({at}): what surrounds its edits has changed; look whether it still breaks its promise (sabotage show {id}), then sabotage accept {id}")
        })
    };
    rules.filter_map(drift).collect()
}

/// Rules that nobody has accepted, in a repository that pins its rules.
pub fn unpinned<'a>(
    pins: &Pins,
    rules: impl Iterator<Item = &'a Rule>,
    tree: &Path,
) -> Vec<String> {
    let missing = |rule: &Rule| {
        let id = &rule.id.value;
        let at = At::location(&rule.file, &rule.id.referenced);
        (!pins.is_empty() && !pins.contains_key(id) && of(rule, tree).is_some())
            .then(|| format!("UNPINNED {id} ({at}): {LOCK} does not know it; sabotage accept {id}"))
    };
    rules.filter_map(missing).collect()
}

/// Pins of rules that are gone.
pub fn left_over(pins: &Pins, rules: &[Rule]) -> Vec<String> {
    let gone = |id: &&String| !rules.iter().any(|rule| rule.id.value == **id);
    let say = |id: &String| {
        format!("LEFT OVER {id}: {LOCK} pins it, and no rule has that id; sabotage accept")
    };
    pins.keys().filter(gone).map(say).collect()
}

/// Pins rules as they are now, and forgets rules that are gone.
pub fn accept(root: &Path, rules: &[&Rule], all: &[Rule]) -> Result<usize> {
    let mut pins = read(root)?;
    pins.retain(|id, _| all.iter().any(|rule| rule.id.value == *id));
    let mut changed = 0;
    for rule in rules {
        let Some(pin) = of(rule, root) else { continue };
        changed += usize::from(pins.insert(rule.id.value.clone(), pin.clone()) != Some(pin));
    }
    let mut lines = String::new();
    for (rule, pin) in &pins {
        lines.extend([rule, " ", pin, "\n"]);
    }
    std::fs::write(root.join(LOCK), format!("{HEADER}{lines}"))
        .with_context(|| format!("cannot write {LOCK}"))?;
    Ok(changed)
}
