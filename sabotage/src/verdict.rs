//! Verdicts, records and exit codes.
//!
//! Owns what each verdict counts as. Pure. Invariant: the exit code of a set of records is the most
//! serious one among them, and measuring nothing is never 0.

use serde::{Deserialize, Serialize};

use crate::finding::At;
use crate::source::patch::Patch;

/// What became of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The rule says so.
    Skipped,
    /// An anchor does not match exactly once.
    BrokenStale,
    /// A gate, check or row is not there, or did not run clean.
    BrokenExpectation,
    /// It does not compile.
    BrokenUncompilable,
    /// It changes nothing.
    BrokenInert,
    /// Nothing can be concluded.
    Infra,
    /// Our deadline, twice.
    Timeout,
    /// Repeats disagree.
    Flaky,
    /// The expected check newly fails.
    Caught,
    /// Another check does, or the expected one with another message.
    CaughtElsewhere,
    /// Everything is green.
    Missed,
    /// A declared gap, still open.
    KnownGap,
    /// A declared gap, now caught: the ledger lies.
    GapClosed,
    /// Not reached.
    Pending,
}

impl Verdict {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Skipped => "SKIPPED",
            Self::BrokenStale => "BROKEN: stale",
            Self::BrokenExpectation => "BROKEN: expectation",
            Self::BrokenUncompilable => "BROKEN: uncompilable",
            Self::BrokenInert => "BROKEN: inert",
            Self::Infra => "INFRA",
            Self::Timeout => "TIMEOUT",
            Self::Flaky => "FLAKY",
            Self::Caught => "CAUGHT",
            Self::CaughtElsewhere => "CAUGHT-ELSEWHERE",
            Self::Missed => "MISSED",
            Self::KnownGap => "KNOWN-GAP",
            Self::GapClosed => "GAP-CLOSED",
            Self::Pending => "PENDING",
        }
    }

    /// Whether the rule proves nothing because it is broken itself.
    pub fn is_broken(self) -> bool {
        matches!(
            self,
            Self::BrokenStale
                | Self::BrokenExpectation
                | Self::BrokenUncompilable
                | Self::BrokenInert
        )
    }

    /// Whether the reader has nothing to do about it.
    pub fn is_fine(self) -> bool {
        matches!(self, Self::Caught | Self::Skipped | Self::KnownGap)
    }

    /// The exit code that it asks for.
    pub fn exit(self) -> Exit {
        match self {
            Self::Skipped | Self::Caught | Self::KnownGap => Exit::Declared,
            verdict if verdict.is_broken() => Exit::Rule,
            Self::CaughtElsewhere | Self::Missed => Exit::Tests,
            Self::GapClosed => Exit::Ledger,
            Self::Pending => Exit::Incomplete,
            _ => Exit::Inconclusive,
        }
    }
}

/// Exit codes, most serious first; a number in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Exit {
    /// A defect of this program.
    Internal,
    /// Stopped by the user.
    Interrupted,
    /// Wrong command line or unreadable files.
    Usage,
    /// The gate is red, flaky or empty on the clean tree.
    Gate,
    /// A rule is BROKEN.
    Rule,
    /// A rule was missed, or caught elsewhere.
    Tests,
    /// A declared gap is closed.
    Ledger,
    /// INFRA, TIMEOUT or FLAKY.
    Inconclusive,
    /// PENDING.
    Incomplete,
    /// No rule ran.
    Nothing,
    /// As declared, and at least one rule ran.
    Declared,
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> Self {
        exit.code()
    }
}

impl TryFrom<u8> for Exit {
    type Error = String;

    fn try_from(code: u8) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|exit| exit.code() == code);
        found.copied().ok_or_else(|| format!("no exit code {code}"))
    }
}

impl Exit {
    /// All of them, most serious first.
    pub const ALL: [Self; 11] = [
        Self::Internal,
        Self::Interrupted,
        Self::Usage,
        Self::Gate,
        Self::Rule,
        Self::Tests,
        Self::Ledger,
        Self::Inconclusive,
        Self::Incomplete,
        Self::Nothing,
        Self::Declared,
    ];

    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Internal => 70,
            Self::Interrupted => 130,
            Self::Usage => 2,
            Self::Gate => 4,
            Self::Rule => 3,
            Self::Tests => 1,
            Self::Ledger => 6,
            Self::Inconclusive => 5,
            Self::Incomplete => 8,
            Self::Nothing => 7,
            Self::Declared => 0,
        }
    }
}

/// The exit code of a whole run.
///
/// ```
/// use sabotage::verdict::{exit_of, Exit, Verdict};
/// assert_eq!(exit_of([Verdict::Caught, Verdict::Missed].into_iter()), Exit::Tests);
/// assert_eq!(exit_of([Verdict::Skipped].into_iter()), Exit::Nothing);
/// ```
pub fn exit_of(verdicts: impl Iterator<Item = Verdict>) -> Exit {
    let mut worst = Exit::Declared;
    let mut ran = false;
    for verdict in verdicts {
        worst = worst.min(verdict.exit());
        ran |= !matches!(verdict, Verdict::Skipped);
    }
    if ran { worst } else { worst.min(Exit::Nothing) }
}

/// Everything that is told about one rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub rule: String,
    /// What it breaks.
    pub promise: String,
    /// Rows of the specification.
    pub rows: Vec<String>,
    /// Where it stands.
    pub at: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The gate that decided.
    #[serde(default)]
    pub gate: Option<String>,
    /// The check that decided.
    #[serde(default)]
    pub check: Option<String>,
    /// Why it is this verdict, in one sentence.
    #[serde(default)]
    pub why: String,
    /// The failure's message.
    #[serde(default)]
    pub message: Option<String>,
    /// Whether it was built with all the others, or alone.
    #[serde(default)]
    pub built: String,
    /// Time spent on it, in seconds.
    #[serde(default)]
    pub seconds: f64,
    /// With `--matrix`: every check of every gate that notices, as `gate: check`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noticed: Option<Vec<String>>,
    /// What it changes; empty where it does not apply, or changes no file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Patch>,
    /// Where the verdict was obtained, when it is not this run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Obtained>,
}

/// The run that a kept verdict is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obtained {
    /// Its commit, when there was one.
    pub commit: Option<String>,
    /// Hash of its tree, changes that were not committed included.
    pub tree: String,
    /// When, in UTC.
    pub at: String,
}

impl Record {
    /// A record without a reason yet.
    pub fn new(rule: &crate::schema::rule::Rule, verdict: Verdict) -> Self {
        Self {
            rule: rule.id.value.clone(),
            promise: rule.promise.clone(),
            rows: rule.rows.iter().map(|row| row.value.clone()).collect(),
            at: At::location(&rule.file, &rule.id.referenced).to_string(),
            verdict,
            gate: None,
            check: None,
            why: String::new(),
            message: None,
            built: String::new(),
            seconds: 0.0,
            patches: Vec::new(),
            cached: None,
            noticed: None,
        }
    }

    /// The record with its reason.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            ..self
        }
    }
}
