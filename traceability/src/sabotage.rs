//! Sabotage rules: which rows each breaks and which check should notice.
//!
//! Owns the few keys of a rule that concern rows; the sabotage tool owns the rest and judges it.
//! Refuses to apply a rule. Invariant: every name carries its place.

mod once;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use crate::code::{Code, Fault};
use crate::config::Config;
use crate::files::{self, Open};
use crate::finding::At;
use crate::rows::read::explain;
use crate::tree::sha256;
use once::Once;

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// Where it stands.
    pub at: At,
    /// The rows that it breaks.
    pub rows: Vec<(String, At)>,
    /// The checks that should notice.
    pub checks: Vec<(String, At)>,
    /// The promise, one sentence.
    pub promise: String,
    /// SHA-256 over its values.
    pub hash: String,
}

/// All rules, by their files, and by the rows that they break.
#[derive(Debug, Default)]
pub struct Rules {
    all: Vec<Rule>,
    by_row: BTreeMap<String, Vec<usize>>,
}

impl Rules {
    /// Sorts the rules by the rows that they break.
    pub fn of(all: Vec<Rule>) -> Self {
        let mut by_row: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, rule) in all.iter().enumerate() {
            for (row, _) in &rule.rows {
                let entry = by_row.entry(row.clone()).or_default();
                // A row that a rule names twice is broken once.
                if entry.last() != Some(&at) {
                    entry.push(at);
                }
            }
        }
        Self { all, by_row }
    }

    /// The rules that break a row.
    pub fn breaking(&self, row: &str) -> impl Iterator<Item = &Rule> {
        let found = self.by_row.get(row).into_iter().flatten();
        found.map(|at| &self.all[*at])
    }
}

impl Deref for Rules {
    type Target = [Rule];

    fn deref(&self) -> &[Rule] {
        &self.all
    }
}

#[derive(Deserialize)]
struct Written {
    id: Spanned<String>,
    #[serde(default)]
    promise: String,
    #[serde(default)]
    rows: Vec<Spanned<String>>,
    #[serde(default)]
    expect: Checks,
}

#[derive(Deserialize)]
struct Check {
    check: Spanned<String>,
}

/// `expect`: a list, or `any:` or `all:` with one.
#[derive(Default)]
struct Checks(Vec<Check>);

impl<'de> Deserialize<'de> for Checks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = Checks;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of checks, or `any:` or `all:` with one")
    }

    fn visit_unit<E>(self) -> Result<Checks, E> {
        Ok(Checks::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Checks, A::Error> {
        let mut checks = Vec::new();
        while let Some(check) = list.next_element()? {
            checks.push(check);
        }
        Ok(Checks(checks))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Checks, A::Error> {
        let mut checks = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if ["any", "all"].contains(&key.as_str()) {
                checks.extend(map.next_value::<Vec<Check>>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Checks(checks))
    }
}

/// Reads the rules of all files that the configuration names.
pub fn read(root: &Path, config: &Config, open: &Open) -> Result<(Rules, Vec<Fault>)> {
    let mut rules = Vec::new();
    let mut faults = Vec::new();
    for pattern in &config.sabotage {
        for path in files::find(root, pattern)? {
            let text = files::text(root, open, &path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            match parse(&path, &text) {
                Ok(read) => rules.extend(read),
                Err(fault) => faults.push(fault),
            }
        }
    }
    Ok((Rules::of(rules), faults))
}

/// Parses one file; a file of comments alone holds no rule.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Rule>, Fault> {
    let blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(blank) {
        return Ok(Vec::new());
    }
    let rules = match once::read(text) {
        Some(rules) => rules,
        None => twice(path, text)?,
    };
    let named = |(text, place): (String, Location)| (text, At::location(path, &place));
    let rule = |rule: Once| {
        let (id, at) = named(rule.id);
        Rule {
            id,
            at,
            rows: rule.rows.into_iter().map(named).collect(),
            checks: rule.checks.into_iter().map(named).collect(),
            promise: rule.promise,
            hash: sha256(rule.value.to_string().as_bytes()),
        }
    };
    Ok(rules.into_iter().map(rule).collect())
}

/// Reads the rules of a file by their type, and once more for the values alone.
fn twice(path: &Path, text: &str) -> Result<Vec<Once>, Fault> {
    let fault = |error: serde_saphyr::Error| {
        Fault::new(Code::RuleUnreadable, explain(path, error.without_snippet()))
    };
    let written: Vec<Written> = serde_saphyr::from_str(text).map_err(fault)?;
    let values: Vec<serde_json::Value> = serde_saphyr::from_str(text).map_err(fault)?;
    let placed = |text: Spanned<String>| (text.value, text.referenced);
    let rule = |(written, value): (Written, serde_json::Value)| Once {
        id: placed(written.id),
        promise: written.promise,
        rows: written.rows.into_iter().map(placed).collect(),
        checks: written
            .expect
            .0
            .into_iter()
            .map(|check| placed(check.check))
            .collect(),
        value,
    };
    Ok(written.into_iter().zip(values).map(rule).collect())
}

#[cfg(test)]
mod tests {
    use super::{once, parse, twice};
    use std::path::Path;

    #[m0_spec::row(T3)]
    #[test]
    fn one_pass_reads_what_two_read_or_leaves_it_to_them() {
        let plain = [
            "- id: a\n  promise: One is one.\n  rows: [E1, 'E2']\n  edits:\n    - file: x\n      before: |\n        a = !b\n      n: [1, 0.5, true, ~, 2026-11-29]\n  expect: [{gate: g, check: \"t::u\", message: m}]\n",
            "- {expect: {all: [{check: two}], any: [{check: one, n: 1}], more: {x: y}}, id: b, rows: [E1, E1]}\n- id: c\n",
            "- id: &a one\n  rows: &r [E1]\n- id: two\n  rows: *r\n  promise: *a\n",
        ];
        let odd = [
            "- id: 5\n  rows: [E1]\n",
            "- id: yes\n",
            "- id: a\n  promise: ~\n",
            "- id: a\n  promise: 1.50\n",
            "- id: a\n  rows: []\n",
            "- id: a\n  rows: ~\n",
            "- id: a\n  rows: [E1, 2]\n",
            "- id: a\n  expect: ~\n",
            "- id: a\n  expect: {all: []}\n",
            "- id: a\n  expect: [{gate: g}]\n",
            "- id: a\n  expect: [{check: 7}]\n",
            "- id: !!str 5\n",
            "- id: !!binary aGk=\n",
            "- id: a\n  id: b\n",
            "- id: a\n  x: 1\n  x: 2\n",
            "- id: a\n  x: {? [k] : v}\n",
            "- rows: [E1]\n",
            "- id: a\n  1: b\n",
            "- [a]\n",
            "id: a\n",
            "- id: [\n",
        ];
        for (texts, plain) in [(&plain[..], true), (&odd[..], false)] {
            for text in texts {
                assert_eq!(once::read(text).is_some(), plain, "{text}");
                let path = Path::new("r.yaml");
                let all = |rules: Vec<once::Once>| -> Vec<String> {
                    let all = rules.iter().map(|rule| {
                        let places = (&rule.id, &rule.rows, &rule.checks);
                        format!("{places:?} {} {}", rule.promise, rule.value)
                    });
                    all.collect()
                };
                let two = twice(path, text).map(all).ok();
                if let Some(one) = once::read(text) {
                    assert_eq!(Some(all(one)), two, "{text}");
                }
                assert_eq!(parse(path, text).is_ok(), two.is_some(), "{text}");
            }
        }
    }

    #[m0_spec::row(T3)]
    #[test]
    fn rows_and_expected_checks_are_read_in_each_form() {
        let text = "- id: a\n  rows: [E1]\n  edits: [{file: x}]\n  expect: [{gate: g, check: one}]\n\
                    - id: b\n  rows: [E1, E2]\n  expect: {all: [{gate: g, check: two, message: m}]}\n- id: c\n";
        let rules = parse(Path::new("r.yaml"), text).expect("it is right");
        let got: Vec<_> = rules
            .iter()
            .map(|rule| {
                let rows: Vec<&str> = rule.rows.iter().map(|row| row.0.as_str()).collect();
                let checks: Vec<&str> = rule.checks.iter().map(|check| check.0.as_str()).collect();
                (rule.id.as_str(), rows, checks)
            })
            .collect();
        assert_eq!(
            got,
            [
                ("a", vec!["E1"], vec!["one"]),
                ("b", vec!["E1", "E2"], vec!["two"]),
                ("c", vec![], vec![])
            ]
        );
        assert_eq!(rules[1].rows[1].1.to_string(), "r.yaml:6:14");
        let fault = parse(Path::new("r.yaml"), "- rows: [E1]\n").expect_err("no id");
        assert!(fault.to_string().starts_with("r.yaml:1:"), "{fault}");
    }
}
