//! `trace.yaml`: where rows, tests, sabotage rules and results are, and how much of each there must be.
//!
//! Owns the configuration's shape and its JSON Schema. Refuses to look at what it points to.
//! Invariant: every path is relative to the repository, and what is not said has the default that the
//! field's text names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::code::{Code, Severity};
use crate::finding::Finding;
use crate::rows::read::{Need, explain};

/// The file, at the root of a repository.
pub const FILE: &str = "trace.yaml";

/// The whole configuration.
///
/// ```
/// let config = traceability::config::Config::parse("least: {rows: 3}").expect("it is right");
/// assert_eq!((config.least.rows, config.spec.to_str()), (3, Some("spec")));
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Directory of the rows; `spec`.
    pub spec: PathBuf,
    /// Where `trace spec` writes the rows as Rust constants; nowhere.
    pub constants: Option<PathBuf>,
    /// Patterns of files that are searched for tests; all files of a known language.
    pub tests: Vec<String>,
    /// Patterns of files that are not searched, whatever `tests` says.
    pub ignore: Vec<String>,
    /// Name of the attribute on Rust tests; `row`.
    pub attribute: String,
    /// Patterns of files with sabotage rules; `sabotage/rules/*.yaml`.
    pub sabotage: Vec<String>,
    /// Files of results, and what they are of.
    pub results: Vec<Source>,
    /// Fewer of these is a finding.
    pub least: Least,
    /// Severities that differ from the defaults, by code.
    pub severity: BTreeMap<Code, Severity>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            spec: "spec".into(),
            constants: None,
            tests: Vec::new(),
            ignore: Vec::new(),
            attribute: "row".into(),
            sabotage: vec!["sabotage/rules/*.yaml".into()],
            results: Vec::new(),
            least: Least::default(),
            severity: BTreeMap::new(),
        }
    }
}

/// Files of results.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A pattern relative to the repository: `target/**/junit.xml`.
    pub files: String,
    /// What kind of evidence they hold; the default is what each test's source or line says.
    #[serde(default)]
    pub kind: Option<Sort>,
    /// The command that makes them, shown when they are missing.
    #[serde(default)]
    pub made_by: Option<String>,
    /// Set for results that need not be there: their absence is no finding, and what only they could show
    /// is left open.
    #[serde(default)]
    pub optional: bool,
}

/// What results are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Tests of cases.
    Test,
    /// Properties.
    Property,
    /// Models of all interleavings.
    Loom,
    /// Phases that drive real processes.
    Smoke,
    /// Measurements.
    Probe,
    /// What came of sabotages.
    Sabotage,
}

impl Sort {
    /// The kind of evidence; none for sabotages.
    pub fn need(self) -> Option<Need> {
        match self {
            Self::Test => Some(Need::Test),
            Self::Property => Some(Need::Property),
            Self::Loom => Some(Need::Loom),
            Self::Smoke => Some(Need::Smoke),
            Self::Probe => Some(Need::Probe),
            Self::Sabotage => None,
        }
    }
}

/// Recorded counts. More is fine; fewer means that something was lost.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Least {
    /// Rows that are not retired.
    pub rows: usize,
    /// Tests, phases and probes that name a row.
    pub tests: usize,
    /// Results of this tree.
    pub results: usize,
    /// Sabotage rules.
    pub sabotages: usize,
}

impl Default for Least {
    fn default() -> Self {
        Self {
            rows: 1,
            tests: 1,
            results: 1,
            sabotages: 0,
        }
    }
}

impl Config {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// The place and the nearest right word of the first fault.
    pub fn parse(text: &str) -> Result<Self, Finding> {
        if text
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(text)
            .map_err(|error| explain(Path::new(FILE), error.without_snippet()))
    }

    /// Reads `trace.yaml` of a repository; without one the defaults hold.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or does not parse.
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map_err(|finding| anyhow::anyhow!("{finding}")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// What a finding weighs here.
    pub fn severity(&self, code: Code) -> Severity {
        self.severity
            .get(&code)
            .copied()
            .unwrap_or_else(|| code.severity())
    }
}

/// The JSON Schema of `trace.yaml`, for editors.
pub fn schema() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    let patterns = json!({"type": "array", "items": {"type": "string"}});
    let kinds = Need::ALL.iter().map(|need| need.word());
    let kinds: Vec<&str> = kinds.chain(["sabotage"]).collect();
    let severities = json!({"enum": ["off", "warning", "inconclusive", "error"]});
    let codes: serde_json::Map<String, Value> = Code::ALL
        .iter()
        .map(|code| {
            let mut entry = severities.clone();
            entry["description"] = json!(code.meaning());
            entry["default"] = json!(code.severity().word());
            (code.word().to_owned(), entry)
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trace.yaml",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "spec": {"type": "string", "default": "spec", "description": "Directory of the rows."},
            "constants": {"type": "string", "description": "Where the rows are written as Rust constants."},
            "tests": patterns, "ignore": patterns,
            "attribute": {"type": "string", "default": "row"},
            "sabotage": patterns,
            "results": {"type": "array", "items": {
                "type": "object", "additionalProperties": false, "required": ["files"],
                "properties": {
                    "files": {"type": "string"}, "kind": {"enum": kinds},
                    "made_by": {"type": "string"}, "optional": {"type": "boolean"},
                },
            }},
            "least": {"type": "object", "additionalProperties": false, "properties": {
                "rows": count, "tests": count, "results": count, "sabotages": count,
            }},
            "severity": {"type": "object", "additionalProperties": false, "properties": codes},
        },
    })
}
