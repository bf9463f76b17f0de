//! `sabotage from-fix COMMIT`: a rule drafted from a fix, whose product hunks it takes back.
//!
//! Owns the draft. Reads git and the tree, builds nothing; what it cannot know stands in capital letters.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use super::author::block;
use crate::glob;
use crate::prove::change::{Change, Hunk};
use crate::schema::Declared;
use crate::schema::read;
use crate::schema::rule::Rule;
use crate::source::edit::{self, is_rust};
use crate::source::{item, tokens};
use crate::tree::git;
use crate::verdict::Exit;

/// Lines around a hunk that cannot be found by its own text, fewest first.
const CONTEXTS: [usize; 4] = [1, 2, 3, 6];

pub(super) fn from_fix(root: &Path, commit: &str) -> Result<Exit> {
    let tip = git(
        root,
        &["rev-parse", "--verify", &format!("{commit}^{{commit}}")],
    )?;
    let tip = tip.trim();
    let change = Change::read(root, &format!("{tip}^"), tip)?;
    if change.hunks.is_empty() {
        anstream::eprintln!("{commit} changes nothing but tests and documents");
        return Ok(Exit::Nothing);
    }
    let subject = git(root, &["log", "-1", "--format=%s", tip])?;
    let subject = subject.trim();
    let mut text = format!(
        "# Drafted from {}: say in the promise what holds since then, then sabotage lint.\n- id: {}\n  promise: {}\n  rows: []\n  edits:\n",
        &tip[..tip.len().min(12)],
        slug(subject),
        serde_json::to_string(&format!("WHAT IS PROMISED, of the fix: {subject}"))?,
    );
    for hunk in &change.hunks {
        let then = git(root, &["show", &format!("{tip}:{}", hunk.file.display())])?;
        text.push_str(&drafted(hunk, &then));
    }
    expected(root, &change, &mut text);
    anstream::print!("{text}");
    Ok(Exit::Declared)
}

/// Lower-case words joined by `-`, so many as make a name.
fn slug(subject: &str) -> String {
    let lower = subject.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(8)
        .collect();
    if words.is_empty() {
        "a-fix-undone".into()
    } else {
        words.join("-")
    }
}

/// The edit that takes a hunk back: by its text where that stands once, else with lines around it.
fn drafted(hunk: &Hunk, then: &str) -> String {
    let mut head = format!("    - file: {}\n", hunk.file.display());
    if let Some(named) = enclosing(hunk, then) {
        let _ = writeln!(head, "      in: {named}");
    }
    let mut plain = head.clone();
    block(&mut plain, "find", &hunk.new);
    // In Rust the match begins and ends at a token, and the white space around it stays.
    let old = if is_rust(&hunk.file) {
        hunk.old.trim()
    } else {
        &hunk.old
    };
    block(&mut plain, "with", old);
    let mut best = plain;
    for context in CONTEXTS {
        if !hunk.new.is_empty() && applies(&best, hunk, then) {
            break;
        }
        best.clone_from(&head);
        block(&mut best, "patch", &patch(hunk, then, context));
        if applies(&best, hunk, then) {
            break;
        }
    }
    best
}

/// The function that holds the hunk, where there is one.
fn enclosing(hunk: &Hunk, then: &str) -> Option<String> {
    if !is_rust(&hunk.file) {
        return None;
    }
    let range = hunk.back(then).range;
    let row = tokens::of(then)?;
    let first = row
        .iter()
        .position(|token| token.range.start >= range.start)?;
    let named = item::enclosing_fn(&row, first)?;
    // A hunk that goes on behind the function is not inside it.
    let last = row
        .iter()
        .rposition(|token| token.range.end <= range.end)
        .unwrap_or(first);
    (item::enclosing_fn(&row, last.max(first))? == named).then_some(named)
}

/// The hunk backwards, with lines of the text around it.
fn patch(hunk: &Hunk, then: &str, context: usize) -> String {
    let range = hunk.back(then).range;
    let before: Vec<&str> = then[..range.start].lines().rev().take(context).collect();
    let mut text = String::new();
    for line in before.into_iter().rev() {
        let _ = writeln!(text, " {line}");
    }
    for line in hunk.new.lines() {
        let _ = writeln!(text, "-{line}");
    }
    for line in hunk.old.lines() {
        let _ = writeln!(text, "+{line}");
    }
    for line in then[range.end..].lines().take(context) {
        let _ = writeln!(text, " {line}");
    }
    text
}

/// Whether an edit fits the text that the fix left.
fn applies(edit: &str, hunk: &Hunk, then: &str) -> bool {
    let text = format!("- id: draft\n  promise: p\n  edits:\n{edit}  expect: []\n");
    let Ok(rules) = read::parse::<Vec<Rule>>(Path::new("draft"), &text) else {
        return false;
    };
    rules.first().is_some_and(|rule| {
        let read = |path: &Path| (path == hunk.file).then(|| then.to_owned());
        edit::apply(Path::new("."), rule, read).is_ok()
    })
}

/// The checks that the change touched, at the gate that its files belong to.
fn expected(root: &Path, change: &Change, text: &mut String) {
    let declared = read::declared(root).ok().map(|(declared, _)| declared);
    let gates = declared
        .map(|declared| touched(&declared, change))
        .unwrap_or_default();
    let gate = gates.first().map_or("tests", String::as_str);
    text.push_str("  expect:\n");
    let mut tests = change.tests.iter();
    let first = tests
        .next()
        .map_or("THE CHECK THAT SHOULD NOTICE", String::as_str);
    let mut line = |check: &str, sign: &str| {
        let check = serde_json::to_string(check).unwrap_or_default();
        let _ = writeln!(text, "    {sign}- {{gate: {gate}, check: {check}}}");
    };
    line(first, "");
    for other in tests {
        line(other, "# ");
    }
    if gates.len() > 1 {
        let _ = writeln!(text, "    # or another gate: {}", gates[1..].join(", "));
    }
}

/// The gates whose inputs hold what the change touches.
fn touched(declared: &Declared, change: &Change) -> Vec<String> {
    let all = declared.gates.gates.iter();
    all.filter(|(_, gate)| {
        gate.inputs.is_empty()
            || change.files.iter().any(|file| {
                let path = file.to_string_lossy();
                gate.inputs.iter().any(|input| glob::matches(input, &path))
            })
    })
    .map(|(name, _)| name.clone())
    .collect()
}
