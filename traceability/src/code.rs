//! The codes of findings: what each is called, how serious it is unless `trace.yaml` says otherwise.
//!
//! Owns the list; a code never changes its word, since `trace.yaml` and other programs name it.
//! Refuses to know how a finding is found. Invariant: each code has a planted cause in the tests.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// What a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Not shown and not counted.
    Off,
    /// Shown; the exit code stays.
    Warning,
    /// Nothing can be said without it: exit 3 unless something is worse.
    Inconclusive,
    /// Exit 1.
    Error,
    /// The input cannot be read: exit 2.
    Unreadable,
}

impl Severity {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warning => "warning",
            Self::Inconclusive => "inconclusive",
            Self::Error => "error",
            Self::Unreadable => "unreadable",
        }
    }
}

macro_rules! codes {
    ($($name:ident $word:literal $severity:ident $what:literal,)+) => {
        /// A kind of finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $what] #[serde(rename = $word)] $name,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The word, which never changes.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// What it means, one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $what,)+ }
            }

            /// What it weighs where `trace.yaml` does not say.
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }
        }
    };
}

codes! {
    RowUnreadable "row-unreadable" Unreadable "A file of rows does not parse.",
    RuleUnreadable "rule-unreadable" Unreadable "A file of sabotage rules does not parse.",
    SourceUnreadable "source-unreadable" Unreadable "A source file that should hold tests does not parse.",
    ResultsUnreadable "results-unreadable" Unreadable "A file of results does not parse.",
    LockUnreadable "lock-unreadable" Unreadable "A line of trace.lock is not of its form.",
    NoRows "no-rows" Error "There is no row at all.",
    IdMalformed "id-malformed" Error "An id is not letters of its area and a number.",
    IdDuplicate "id-duplicate" Error "An id is used for two rows.",
    IdLost "id-lost" Error "An id of the ledger stands in no file.",
    ClaimNoSentence "claim-no-sentence" Error "A claim is not one sentence.",
    RowIncomplete "row-incomplete" Error "A row or an area does not say what its state asks for.",
    SuccessorUnknown "successor-unknown" Error "A retired row names a successor that is not there.",
    GeneratedStale "generated-stale" Error "A file that is generated from the rows is not what they give.",
    NoTests "no-tests" Error "No test was found in the source.",
    FewerThanRecorded "fewer-than-recorded" Error "There are fewer rows, tests, results or sabotages than trace.yaml records.",
    TestWithoutRow "test-without-row" Error "A test names no row.",
    RowUnknown "row-unknown" Error "Evidence names a row that does not exist.",
    RowPlanned "row-planned" Error "Evidence names a row that is still planned.",
    RowRetired "row-retired" Error "Evidence names a retired row.",
    RowOutOfScope "row-out-of-scope" Error "Evidence names a row that is out of scope.",
    TagMisplaced "tag-misplaced" Error "A tag stands in a string, on nothing, or is not of its form.",
    NotCompiled "not-compiled" Error "A file with tests is part of no target.",
    RowWithoutEvidence "row-without-evidence" Error "No test, phase or probe names an active row.",
    RowWithoutKind "row-without-kind" Error "A kind of evidence that a row needs is not there.",
    BelowFloor "below-floor" Error "A row does not reach its floor.",
    Hollow "hollow" Error "A sabotage of a row was not noticed by the test that claims it.",
    EdgeStale "edge-stale" Error "Row, test or sabotage changed since the edge was last proven or accepted.",
    LockStale "lock-stale" Error "trace.lock names an edge that is no more.",
    SabotageWithoutRow "sabotage-without-row" Error "A sabotage rule names no row.",
    SabotageWithoutCheck "sabotage-without-check" Error "A sabotage rule expects no check to notice.",
    SabotageUnclaimed "sabotage-unclaimed" Error "The check that should notice a sabotage does not claim its row.",
    RowWithoutSabotage "row-without-sabotage" Error "No sabotage breaks a row whose floor is proven.",
    KnownIssuePasses "known-issue-passes" Error "The evidence of a known issue passes.",
    WaiverExpired "waiver-expired" Error "A waiver is past its date.",
    TestFailed "test-failed" Error "A test that claims a row failed.",
    TestFlaky "test-flaky" Error "A test passed only when it was run again.",
    NeverRan "never-ran" Error "A test is in the source and in no results: ignored, compiled out or filtered.",
    ResultAmbiguous "result-ambiguous" Error "A result fits more than one test.",
    NoResults "no-results" Error "A file of results holds no result.",
    ResultsMissing "results-missing" Inconclusive "Results that trace.yaml names are not there.",
    ResultsStale "results-stale" Inconclusive "Results are of another tree and are not counted.",
    ResultsUnattributed "results-unattributed" Warning "Results do not say which tree they are of.",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A finding and its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What kind of finding.
    pub code: Code,
    /// Where, and what is wrong.
    pub finding: Finding,
}

impl Fault {
    /// Both together.
    pub fn new(code: Code, finding: Finding) -> Self {
        Self { code, finding }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.finding, self.code)
    }
}
