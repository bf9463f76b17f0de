//! Where a run is told, and which of its verdicts make the exit code: the same words for run, report and merge.
//!
//! Owns those flags. Invariant: no flag turns a run that measured nothing into a success.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::report::told::Told;
use crate::report::{elements, github, html, json, junit, markdown, sarif, terminal};
use crate::verdict::Exit;

/// Files to write; `-` is standard output.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Reports (FILE may be - for standard output)")]
pub(super) struct Outputs {
    /// Write the results as JSON (sabotage schema results).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write JUnit XML: a case a rule.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write Markdown: the closing line and a table, worst first.
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Write SARIF 2.1.0, for code scanning and editors.
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write one self-contained page: patches, verdicts, messages, with search.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write JSON for the viewers and dashboards of mutation-testing-elements.
    #[arg(long, value_name = "FILE")]
    elements: Option<PathBuf>,
    /// Print annotations for GitHub Actions; Markdown goes to $GITHUB_STEP_SUMMARY.
    #[arg(long)]
    github: bool,
    /// Only these verdicts fail: missed, broken, closed, inconclusive, pending (1, 3, 6, 5, 8).
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        hide_possible_values = true,
        conflicts_with = "exit_zero"
    )]
    fail_on: Vec<FailOn>,
    /// No verdict fails; a red gate, an empty run and a wrong command line still do.
    #[arg(long)]
    exit_zero: bool,
}

/// A group of verdicts with one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// MISSED, CAUGHT-ELSEWHERE.
    Missed,
    /// BROKEN.
    Broken,
    /// GAP-CLOSED.
    Closed,
    /// INFRA, TIMEOUT, FLAKY.
    Inconclusive,
    /// PENDING, or a shard that is missing.
    Pending,
}

impl FailOn {
    fn exit(self) -> Exit {
        match self {
            Self::Missed => Exit::Tests,
            Self::Broken => Exit::Rule,
            Self::Closed => Exit::Ledger,
            Self::Inconclusive => Exit::Inconclusive,
            Self::Pending => Exit::Incomplete,
        }
    }
}

impl Outputs {
    /// Writes what is asked for, prints the closing lines, and says what to exit with.
    pub(super) fn give(&self, told: &Told, root: &Path) -> Result<Exit> {
        put(self.json.as_deref(), || json::pretty(told))?;
        put(self.junit.as_deref(), || Ok(junit::report(told)))?;
        put(self.md.as_deref(), || Ok(markdown::report(told)))?;
        put(self.sarif.as_deref(), || json::pretty(&sarif::log(told)))?;
        put(self.html.as_deref(), || Ok(html::page(told, root)))?;
        put(self.elements.as_deref(), || {
            json::pretty(&elements::report(told, root))
        })?;
        if self.github {
            for line in github::annotations(told) {
                anstream::println!("{line}");
            }
            summary(&markdown::report(told))?;
        }
        if !self.prints() {
            anstream::print!("{}", terminal::matrix(told));
        }
        let exit = self.exit(told);
        let closing = terminal::closing(told);
        let but = if exit == told.exit {
            String::new()
        } else {
            format!(" (as asked: {})", exit.code())
        };
        if self.prints() {
            anstream::eprintln!("{closing}{but}");
        } else {
            anstream::println!("{closing}{but}");
        }
        Ok(exit)
    }

    /// Whether a report has standard output for itself.
    pub(super) fn prints(&self) -> bool {
        let files = [
            &self.json,
            &self.junit,
            &self.md,
            &self.sarif,
            &self.html,
            &self.elements,
        ];
        files
            .iter()
            .any(|file| file.as_deref() == Some(Path::new("-")))
    }

    /// The exit code: the most serious one that counts here.
    fn exit(&self, told: &Told) -> Exit {
        let counts = |exit: &Exit| {
            let verdict = matches!(
                exit,
                Exit::Tests | Exit::Rule | Exit::Ledger | Exit::Inconclusive | Exit::Incomplete
            );
            !verdict
                || (!self.exit_zero
                    && (self.fail_on.is_empty()
                        || self.fail_on.iter().any(|on| on.exit() == *exit)))
        };
        let verdicts = told.rules.iter().map(|record| record.verdict.exit());
        let all = verdicts.chain([told.exit]).filter(counts);
        all.min().unwrap_or(Exit::Declared)
    }
}

fn put(path: Option<&Path>, text: impl FnOnce() -> Result<String>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let text = text()?;
    if path == Path::new("-") {
        anstream::print!("{text}");
        return Ok(());
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Appends to the job's summary, where there is one.
fn summary(text: &str) -> Result<()> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write GITHUB_STEP_SUMMARY ({})", path.display()))
}
