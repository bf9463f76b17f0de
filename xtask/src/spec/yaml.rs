//! Reads the rows: YAML files of one area each, and the ledger of ids.
//!
//! Owns the shape of a row and where each part stands in its file. Refuses to judge rows among each
//! other: that is `check`. Invariant: what is returned has a known state and known kinds of
//! evidence, and carries line and column of every id and claim.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_saphyr::{Error, Spanned};

use crate::finding::{At, Finding, nearest};

/// One file: the rows of one area.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Area {
    /// Letter or letters that every id of the file begins with.
    #[serde(rename = "area")]
    pub(crate) letters: Spanned<String>,
    /// Heading of the area in the generated document.
    pub(crate) title: Spanned<String>,
    /// The grade that each row of the area must reach.
    pub(crate) floor: Grade,
    /// The rows, in the order of the file.
    pub(crate) rows: Vec<Row>,
    /// The file, relative to the repository.
    #[serde(skip)]
    pub(crate) file: PathBuf,
}

/// One promise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// Area and number, `E22`.
    pub(crate) id: Spanned<String>,
    /// One testable sentence.
    pub(crate) claim: Spanned<String>,
    /// What went, or would go, wrong without it.
    pub(crate) why: Spanned<String>,
    /// Whether evidence is wanted now.
    pub(crate) state: State,
    /// Kinds of evidence, each of which must be there.
    pub(crate) needs: Spanned<Vec<Need>>,
    /// A floor of this row's own.
    #[serde(default)]
    pub(crate) floor: Option<Grade>,
    /// Why a row that is not active is not; wanted for every state but `active`.
    #[serde(default)]
    pub(crate) reason: Option<Spanned<String>>,
    /// Successors of a retired row; may be empty.
    #[serde(default)]
    pub(crate) by: Option<Vec<Spanned<String>>>,
    /// Day on which a row was retired, `2026-11-29`.
    #[serde(default)]
    pub(crate) date: Option<Spanned<String>>,
    /// Day after which a waiver (`known-issue`, `out-of-scope`) no longer holds.
    #[serde(default)]
    pub(crate) expires: Option<Spanned<String>>,
    /// The issue of a `known-issue`.
    #[serde(default)]
    pub(crate) issue: Option<Spanned<String>>,
    /// Who answers for a `known-issue`.
    #[serde(default)]
    pub(crate) owner: Option<Spanned<String>>,
}

/// How far a row has come, from promised to proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Grade {
    None,
    Declared,
    Ran,
    Passed,
    Proven,
}

impl Grade {
    /// The word in the YAML.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Declared => "declared",
            Self::Ran => "ran",
            Self::Passed => "passed",
            Self::Proven => "proven",
        }
    }
}

/// Whether a promise is kept now, later, not here, or no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    Active,
    Planned,
    KnownIssue,
    OutOfScope,
    Retired,
}

impl State {
    /// The word in the YAML.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Planned => "planned",
            Self::KnownIssue => "known issue",
            Self::OutOfScope => "out of scope",
            Self::Retired => "retired",
        }
    }
}

/// A kind of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Need {
    Test,
    Smoke,
    Loom,
    Property,
    Probe,
}

impl Need {
    /// The word in the YAML.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Smoke => "smoke",
            Self::Loom => "loom",
            Self::Property => "property",
            Self::Probe => "probe",
        }
    }
}

/// An id of the ledger and its line.
pub(crate) type Recorded = (String, usize);

/// Reads every `*.yaml` of `spec/`, sorted by name; a file that does not parse is a finding.
pub(crate) fn areas(root: &Path) -> Result<(Vec<Area>, Vec<Finding>)> {
    let dir = root.join("spec");
    let mut names: Vec<PathBuf> = std::fs::read_dir(&dir)
        .with_context(|| format!("cannot list {}", dir.display()))?
        .map(|entry| entry.map(|entry| PathBuf::from("spec").join(entry.file_name())))
        .collect::<std::io::Result<_>>()?;
    names.retain(|name| name.extension().is_some_and(|ext| ext == "yaml"));
    names.sort();
    let mut areas = Vec::new();
    let mut findings = Vec::new();
    for file in names {
        let text = std::fs::read_to_string(root.join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        match area(&file, &text) {
            Ok(area) => areas.push(area),
            Err(finding) => findings.push(finding),
        }
    }
    Ok((areas, findings))
}

/// Parses one file.
pub(crate) fn area(file: &Path, text: &str) -> Result<Area, Finding> {
    match serde_saphyr::from_str::<Area>(text) {
        Ok(area) => Ok(Area {
            file: file.into(),
            ..area
        }),
        Err(error) => Err(explain(file, error.without_snippet())),
    }
}

/// The ids that `spec/ids.lock` records; a missing ledger is an empty one.
pub(crate) fn ledger(root: &Path) -> Result<Vec<Recorded>> {
    let path = root.join("spec/ids.lock");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    Ok(text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#') && !line.is_empty())
        .map(|(index, line)| (line.to_owned(), index + 1))
        .collect())
}

/// Turns the parser's error into one line with the nearest right word.
fn explain(file: &Path, error: &Error) -> Finding {
    let at = error
        .location()
        .map_or(At::file(file), |location| At::location(file, &location));
    let message = match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => unknown("key", field, expected),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => unknown("word", variant, expected),
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        other => {
            // The parser repeats the place that we print first.
            let text = other.to_string();
            text.lines().next().unwrap_or_default().to_owned()
        }
    };
    Finding { at, message }
}

/// "unknown key `clam`, did you mean `claim`?"
fn unknown(what: &str, got: &str, expected: &[&'static str]) -> String {
    let right = expected.join(", ");
    match nearest(got, expected.iter().copied()) {
        Some(near) => format!("unknown {what} `{got}`, did you mean `{near}`? (one of {right})"),
        None => format!("unknown {what} `{got}` (one of {right})"),
    }
}
