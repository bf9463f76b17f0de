//! Does the report work in a browser, and how fast does its search answer at 1,000 rows?
//!
//! Owns the question. Refuses a figure of a report that does not work: search, filters, keyboard, a row's page and the
//! dark form are seen to be right first, by a headless Chromium that opens the report as a file. Invariant: where
//! Chromium, its driver or the feature `browser` is not there, nothing was measured, and that is an error.

use anyhow::{Result, ensure};
use m0_spec::T26;

use super::Question;
use crate::report::Report;
use crate::session::Session;

#[cfg(feature = "browser")]
mod browser;
#[cfg(feature = "browser")]
use browser::measure;

pub(super) const QUESTION: Question = Question {
    name: "report_search",
    asks: "does the report of 1,000 rows work in a browser, and how fast does its search answer?",
    rows: &[T26],
    rounds: 5,
    run,
};

/// Milliseconds (`spec/T.yaml`, T26).
#[cfg(feature = "browser")]
const GOAL_MS: f64 = 100.0;

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let trace = session.binary("trace");
    ensure!(trace.is_file(), "cannot start {}", trace.display());
    let home = std::env::temp_dir().join(format!("probe-report-{}", std::process::id()));
    let outcome = measure(session, report, &trace, &home);
    // What is left in the temporary directory does no harm.
    let _ = std::fs::remove_dir_all(&home);
    outcome
}

#[cfg(not(feature = "browser"))]
fn measure(_: &Session, _: &mut Report, _: &std::path::Path, _: &std::path::Path) -> Result<()> {
    anyhow::bail!("cannot start Chromium: this program was built without the feature `browser`")
}
