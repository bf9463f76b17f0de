//! Reads rules and gates; a file that does not parse is a finding with its place.
//!
//! Owns the names of the files and the words of a parser's error. Refuses to judge values among each
//! other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_saphyr::{Error, Spanned};

use super::Declared;
use super::gate::Gates;
use super::rule::Rule;
use crate::finding::{At, Finding, nearest};

/// The gates, relative to the repository.
pub const GATES: &str = "sabotage/gates.yaml";
/// The directory of the rules, relative to the repository.
pub const RULES: &str = "sabotage/rules";

/// Reads everything under `root`. Findings mean that what is returned is not whole.
pub fn declared(root: &Path) -> Result<(Declared, Vec<Finding>)> {
    let mut findings = Vec::new();
    let path = root.join(GATES);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {} (sabotage init makes it)", path.display()))?;
    let gates = match parse::<Gates>(Path::new(GATES), &text) {
        Ok(gates) => gates,
        Err(finding) => {
            findings.push(finding);
            Gates {
                rows: None,
                tests: Vec::new(),
                gates: std::collections::BTreeMap::new(),
            }
        }
    };
    let mut rules = Vec::new();
    for file in rule_files(root)? {
        let text = std::fs::read_to_string(root.join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        if text
            .lines()
            .all(|line| line.trim().is_empty() || line.starts_with('#'))
        {
            continue;
        }
        match parse::<Vec<Rule>>(&file, &text) {
            Ok(read) => {
                rules.extend(read.into_iter().map(|rule| Rule {
                    file: file.clone(),
                    ..rule
                }));
            }
            Err(finding) => findings.push(finding),
        }
    }
    Ok((
        Declared {
            root: root.into(),
            gates,
            rules,
        },
        findings,
    ))
}

/// The patterns of `tests`; none where the gates cannot be read, which [`declared`] tells.
pub(crate) fn tests(root: &Path) -> Vec<Spanned<String>> {
    let text = std::fs::read_to_string(root.join(GATES)).unwrap_or_default();
    let gates = parse::<Gates>(Path::new(GATES), &text);
    gates.map(|gates| gates.tests).unwrap_or_default()
}

/// The rules' files, sorted, relative to `root`.
fn rule_files(root: &Path) -> Result<Vec<PathBuf>> {
    let dir = root.join(RULES);
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?
    {
        let path = Path::new(RULES).join(entry?.file_name());
        if path
            .extension()
            .is_some_and(|ext| ext == "yaml" || ext == "yml")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Parses one file.
pub fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, Finding> {
    serde_saphyr::from_str(text).map_err(|error| explain(file, error.without_snippet()))
}

/// Turns the parser's error into one line with the nearest right word.
fn explain(file: &Path, error: &Error) -> Finding {
    let at = error
        .location()
        .map_or_else(|| At::file(file), |location| At::location(file, &location));
    let message = match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => unknown("key", field, expected),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => unknown("word", variant, expected),
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        // The parser repeats the place that we print first.
        other => other
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    Finding { at, message }
}

fn unknown(what: &str, got: &str, expected: &[&'static str]) -> String {
    let right = expected.join(", ");
    match nearest(got, expected.iter().copied()) {
        Some(near) => format!("unknown {what} `{got}`, did you mean `{near}`? (one of {right})"),
        None => format!("unknown {what} `{got}` (one of {right})"),
    }
}

/// `250ms`, `90s`, `5m`.
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

/// A duration in a file, or the finding that says what would be right.
pub fn spanned_duration(file: &Path, text: &Spanned<String>) -> Result<Duration, Finding> {
    duration(&text.value).ok_or_else(|| Finding {
        at: At::location(file, &text.referenced),
        message: format!(
            "`{}` is no duration such as `250ms`, `90s` or `5m`",
            text.value
        ),
    })
}
