//! The shape of a gate: how it is built and run, and how its results are read.
//!
//! Owns the YAML of `sabotage/gates.yaml`. Refuses to run anything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

/// The file `sabotage/gates.yaml`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// Where the rows of the specification stand, so that rules cannot name one that is not there.
    #[serde(default)]
    pub rows: Option<Rows>,
    /// Patterns of files that are tests where neither name nor directory tells it.
    #[serde(default)]
    pub tests: Vec<Spanned<String>>,
    /// Gates by name.
    pub gates: BTreeMap<String, Gate>,
}

/// Where rows are declared.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Files, as a pattern relative to the repository: `spec/*.yaml`.
    pub files: Spanned<String>,
    /// A pattern whose first group is the row's name, tried on each line.
    pub pattern: Spanned<String>,
}

/// One gate. Commands run under `sh -c` in the copy's root; `{check}`, `{out}` (a fresh directory) and
/// `{target}` (cargo's target directory) are replaced.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Instead of `build` and `run`: arguments of `cargo test`, whose executables are then launched
    /// directly.
    #[serde(default)]
    pub cargo_test: Option<Spanned<String>>,
    /// Builds what the gate runs; a failure with a rule applied is BROKEN: uncompilable.
    #[serde(default)]
    pub build: Option<String>,
    /// Runs every check.
    #[serde(default)]
    pub run: Option<Spanned<String>>,
    /// Runs just `{check}`.
    #[serde(default)]
    pub only: Option<Spanned<String>>,
    /// Lists the checks, one a line, and runs none.
    #[serde(default)]
    pub list: Option<String>,
    /// The form of the results.
    #[serde(default)]
    pub results: Format,
    /// The file that holds them; the default is what the command prints.
    #[serde(default)]
    pub results_file: Option<String>,
    /// Patterns of `regex` results.
    #[serde(default)]
    pub pattern: Option<Patterns>,
    /// Names in `json-lines` results.
    #[serde(default)]
    pub fields: Fields,
    /// What exit codes mean.
    #[serde(default)]
    pub exit: Exits,
    /// A run with fewer checks proves nothing.
    #[serde(default = "one")]
    pub min_checks: usize,
    /// Variables of build and run.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Bound on one run, `60s`.
    #[serde(default)]
    pub timeout: Option<Spanned<String>>,
    /// What is private to each run.
    #[serde(default)]
    pub isolate: Isolate,
    /// Nothing else runs beside it.
    #[serde(default)]
    pub exclusive: bool,
    /// Files that decide its verdict, as patterns; the default is all.
    #[serde(default)]
    pub inputs: Vec<String>,
}

fn one() -> usize {
    1
}

/// The form of a gate's results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The text of Rust's test harness.
    Libtest,
    /// JUnit XML.
    Junit,
    /// JUnit XML of cargo-nextest: the suite's name stands before each check.
    Nextest,
    /// The Test Anything Protocol.
    Tap,
    /// One JSON object a line.
    JsonLines,
    /// Lines that match a pattern.
    Regex,
    /// One check named `exit`: the exit code alone.
    #[default]
    Exit,
}

/// Patterns whose group `check` is a check's name; group `message`, where there is one, its failure.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Patterns {
    /// A line of a check that passed.
    pub pass: Spanned<String>,
    /// A line of a check that failed.
    pub fail: Spanned<String>,
}

/// Where a JSON line holds what is read; a line without the check's name and verdict is passed over.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fields {
    /// Name of the check.
    pub check: String,
    /// `true` or `"passed"` when it passed.
    pub passed: String,
    /// The failure's message.
    pub message: String,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            check: "test".into(),
            passed: "passed".into(),
            message: "message".into(),
        }
    }
}

/// What exit codes mean; every other code is INFRA.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exits {
    /// Every check passed.
    pub pass: Vec<i32>,
    /// A check failed.
    pub fail: Vec<i32>,
    /// No check ran.
    pub empty: Vec<i32>,
}

impl Default for Exits {
    fn default() -> Self {
        Self {
            pass: vec![0],
            fail: vec![1, 101],
            empty: vec![],
        }
    }
}

/// What is private to each run.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Isolate {
    /// A network of its own, in which only loopback is up.
    pub net: bool,
    /// Process ids of its own: nothing outlives the run.
    pub pid: bool,
}

impl Default for Isolate {
    fn default() -> Self {
        Self {
            net: true,
            pid: true,
        }
    }
}
