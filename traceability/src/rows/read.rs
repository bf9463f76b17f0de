//! Reads the rows: YAML files of one area each, and the ledger of ids.
//!
//! Owns the shape of a row and where each part stands in its file. Refuses to judge rows among each
//! other: that is `check`. Invariant: what is returned has a known state and known kinds of
//! evidence, and carries line and column of every id and claim.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_saphyr::{Error, Spanned};

use crate::code::{Code, Fault};
use crate::files::{self, Open};
use crate::finding::{At, Finding, nearest};

/// One file: the rows of one area.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// Letter or letters that every id of the file begins with.
    #[serde(rename = "area")]
    pub letters: Spanned<String>,
    /// Heading of the area in the generated document.
    pub title: Spanned<String>,
    /// The grade that each row of the area must reach.
    pub floor: Grade,
    /// The rows, in the order of the file.
    pub rows: Vec<Row>,
    /// The file, relative to the repository.
    #[serde(skip)]
    pub file: PathBuf,
}

/// One promise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Area and number, `E22`.
    pub id: Spanned<String>,
    /// One testable sentence.
    pub claim: Spanned<String>,
    /// What went, or would go, wrong without it.
    pub why: Spanned<String>,
    /// Whether evidence is wanted now.
    pub state: State,
    /// Kinds of evidence, each of which must be there.
    pub needs: Spanned<Vec<Need>>,
    /// A floor of this row's own.
    #[serde(default)]
    pub floor: Option<Grade>,
    /// Why a row that is not active is not; wanted for every state but `active`.
    #[serde(default)]
    pub reason: Option<Spanned<String>>,
    /// Successors of a retired row; may be empty.
    #[serde(default)]
    pub by: Option<Vec<Spanned<String>>>,
    /// Day on which a row was retired, `2026-11-29`.
    #[serde(default)]
    pub date: Option<Spanned<String>>,
    /// Day after which a waiver (`known-issue`, `out-of-scope`) no longer holds.
    #[serde(default)]
    pub expires: Option<Spanned<String>>,
    /// The issue of a `known-issue`.
    #[serde(default)]
    pub issue: Option<Spanned<String>>,
    /// Who answers for a `known-issue`.
    #[serde(default)]
    pub owner: Option<Spanned<String>>,
}

/// How far a row has come, from promised to proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// A test claims it and a sabotage showed that the test would not notice: worse than nothing.
    /// No floor: a row cannot ask for it.
    #[serde(skip_deserializing)]
    Hollow,
    /// Nothing shows it.
    None,
    /// A test, phase or probe names it.
    Declared,
    /// That test started.
    Ran,
    /// Its runner says that it passed.
    Passed,
    /// A sabotage was caught by that very test.
    Proven,
}

impl Grade {
    /// All of them, the worst first.
    pub const ALL: [Self; 6] = [
        Self::Hollow,
        Self::None,
        Self::Declared,
        Self::Ran,
        Self::Passed,
        Self::Proven,
    ];

    /// The word in the YAML.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hollow => "hollow",
            Self::None => "none",
            Self::Declared => "declared",
            Self::Ran => "ran",
            Self::Passed => "passed",
            Self::Proven => "proven",
        }
    }
}

/// Whether a promise is kept now, later, not here, or no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Evidence is wanted now.
    Active,
    /// Promised for later: evidence must not appear without the state being changed.
    Planned,
    /// Known not to hold: its evidence must fail.
    KnownIssue,
    /// Not shown here, and why.
    OutOfScope,
    /// Promised no more.
    Retired,
}

impl State {
    /// The word in the YAML.
    pub fn word(self) -> &'static str {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// A test of cases: unit, death, command line, example.
    Test,
    /// A phase that drives real processes.
    Smoke,
    /// A model of all interleavings.
    Loom,
    /// A property over generated inputs.
    Property,
    /// A measurement.
    Probe,
}

impl Need {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::Test,
        Self::Property,
        Self::Loom,
        Self::Smoke,
        Self::Probe,
    ];

    /// The word in the YAML.
    pub fn word(self) -> &'static str {
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
pub type Recorded = (String, usize);

/// Reads every `*.yaml` of the directory, sorted by name; a file that does not parse is a fault.
/// `spec` is relative to `root`, and so are the paths in faults.
pub fn areas(root: &Path, spec: &Path, open: &Open) -> Result<(Vec<Area>, Vec<Fault>)> {
    let dir = root.join(spec);
    let mut names: Vec<PathBuf> = std::fs::read_dir(&dir)
        .with_context(|| {
            let spec = dir.display();
            format!("cannot list {spec}, where rows are kept; `trace new` makes the first")
        })?
        .map(|entry| entry.map(|entry| spec.join(entry.file_name())))
        .collect::<std::io::Result<_>>()?;
    names.retain(|name| name.extension().is_some_and(|ext| ext == "yaml"));
    names.sort();
    let mut areas = Vec::new();
    let mut findings = Vec::new();
    for file in names {
        let text = files::text(root, open, &file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        match area(&file, &text) {
            Ok(area) => areas.push(area),
            Err(finding) => findings.push(Fault::new(Code::RowUnreadable, finding)),
        }
    }
    Ok((areas, findings))
}

/// Parses one file.
pub fn area(file: &Path, text: &str) -> Result<Area, Finding> {
    match serde_saphyr::from_str::<Area>(text) {
        Ok(area) => Ok(Area {
            file: file.into(),
            ..area
        }),
        Err(error) => Err(explain(file, error.without_snippet())),
    }
}

/// The name of the ledger of ids within the directory of the rows.
pub const LEDGER: &str = "ids.lock";

/// The ids that the ledger records; a missing ledger is an empty one.
pub fn ledger(root: &Path, spec: &Path) -> Result<Vec<Recorded>> {
    let path = root.join(spec).join(LEDGER);
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
pub fn explain(file: &Path, error: &Error) -> Finding {
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
