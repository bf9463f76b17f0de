//! What the tests of a run came to, whichever runner told it.
//!
//! Owns: verdicts, the results file (one JSON line a test after one line about the run) and
//! the figures of the closing lines. Pure but for one write.
//! Invariant: an ignored test is neither passed nor failed, and a test that was killed by the
//! runner's bound has failed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::kinds::Kind;
use crate::repository::Provenance;

/// What the runner said of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Passed,
    Failed,
    /// Killed by the runner's bound on its time.
    TimedOut,
    /// It did not run, and the source says so.
    Ignored,
}

impl Verdict {
    /// Whether the run is red because of it.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }

    /// The word for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Ignored => "ignored",
        }
    }
}

/// One test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Outcome {
    /// Package, and the target when it is not the library: `m0-policy::table`.
    pub(crate) binary: String,
    /// Path within the binary, as the test harness prints it.
    pub(crate) test: String,
    pub(crate) kind: Kind,
    pub(crate) verdict: Verdict,
    /// None where the runner times whole binaries only.
    pub(crate) seconds: Option<f64>,
}

/// All tests of a run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) outcomes: Vec<Outcome>,
    /// Seconds of whole binaries, for runners that do not time tests.
    pub(crate) walls: Vec<(Kind, f64)>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    Run {
        runner: &'a str,
        features: &'a str,
        #[serde(flatten)]
        provenance: &'a Provenance,
    },
    Test(&'a Outcome),
}

/// The line that says what a file of results was measured on.
pub(crate) fn run_line(runner: &str, provenance: &Provenance) -> Result<String> {
    let line = Line::Run {
        runner,
        features: "default",
        provenance,
    };
    serde_json::to_string(&line).context("a line of JSON")
}

impl Results {
    /// A failure that belongs to no test: a build, or a process that died before it told.
    pub(crate) fn fault(&mut self, binary: &str, what: &str, kind: Kind) {
        self.outcomes.push(Outcome {
            binary: binary.into(),
            test: format!("({what})"),
            kind,
            verdict: Verdict::Failed,
            seconds: None,
        });
    }

    pub(crate) fn failed(&self) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| outcome.verdict.is_failure())
            .count()
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| outcome.verdict == verdict)
            .count()
    }

    /// Tests that ran, whatever came of it.
    pub(crate) fn ran(&self) -> usize {
        self.outcomes.len() - self.count(Verdict::Ignored)
    }

    /// One line a kind: counts and seconds of testing.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut table: BTreeMap<Kind, (usize, usize, usize, f64)> = BTreeMap::new();
        for outcome in &self.outcomes {
            let entry = table.entry(outcome.kind).or_default();
            match outcome.verdict {
                Verdict::Passed => entry.0 += 1,
                Verdict::Failed | Verdict::TimedOut => entry.1 += 1,
                Verdict::Ignored => entry.2 += 1,
            }
            entry.3 += outcome.seconds.unwrap_or(0.0);
        }
        for (kind, seconds) in &self.walls {
            table.entry(*kind).or_default().3 += seconds;
        }
        Kind::ALL
            .into_iter()
            .map(|kind| {
                let (passed, failed, ignored, seconds) =
                    table.get(&kind).copied().unwrap_or_default();
                if passed + failed + ignored == 0 {
                    return format!("{:<9} did not run", kind.word());
                }
                let ignored = if ignored == 0 {
                    String::new()
                } else {
                    format!(", {ignored} skipped")
                };
                format!(
                    "{:<9} {passed} passed, {failed} failed{ignored}  {seconds:.1} s",
                    kind.word()
                )
            })
            .collect()
    }

    /// `N passed, N failed`, and `, N skipped` when some were.
    pub(crate) fn closing(&self) -> String {
        let (passed, failed) = (self.count(Verdict::Passed), self.failed());
        match self.count(Verdict::Ignored) {
            0 => format!("{passed} passed, {failed} failed"),
            skipped => format!("{passed} passed, {failed} failed, {skipped} skipped"),
        }
    }

    /// Writes the file: a line about the run, then the tests in order of binary and name.
    pub(crate) fn write(
        &mut self,
        path: &Path,
        runner: &str,
        provenance: &Provenance,
    ) -> Result<()> {
        self.outcomes
            .sort_by(|a, b| (&a.binary, &a.test).cmp(&(&b.binary, &b.test)));
        let mut lines = vec![run_line(runner, provenance)?];
        for outcome in &self.outcomes {
            lines.push(serde_json::to_string(&Line::Test(outcome))?);
        }
        lines.push(String::new());
        std::fs::write(path, lines.join("\n"))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
