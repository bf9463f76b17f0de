//! What the runners said: verdicts of tests, lines of tests that started, verdicts on sabotages.
//!
//! Owns the common form, and whether a file is of this tree. The forms are read by the files below.
//! Refuses to take a test's own word: only a runner's verdict is a pass. Invariant: what is of another
//! tree is kept apart and never counted.

mod json;
mod junit;
mod standing;
mod tap;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use standing::standing;
pub use standing::{Late, Now, Standing};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::code::{Code, Fault};
use crate::config::{Config, Sort, Source};
use crate::files;
use crate::finding::{At, Finding};
use crate::rows::read::Need;
use crate::tree::Provenance;

/// What a runner said of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It did not run.
    Skipped,
    /// It passed at the first try.
    Passed,
    /// It failed and passed when it was tried again.
    Flaky,
    /// It failed, or took too long.
    Failed,
}

/// One test's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The suite as the runner names it; empty where it has none.
    pub suite: String,
    /// The test's name within it.
    pub test: String,
    /// The runner's word.
    pub verdict: Verdict,
    /// Seconds, where the runner timed it.
    pub seconds: Option<f64>,
    /// The failure, where there is one.
    pub message: Option<String>,
    /// The kind of evidence, where the line says it.
    pub kind: Option<Need>,
    /// The rows, where the line says them.
    pub rows: Vec<String>,
    /// Where the test stands, when the line says it.
    pub place: Option<(PathBuf, usize)>,
    /// Its line in the file of results; 0 where the form has none.
    pub line: usize,
    /// Index of its file in [`Results::files`].
    pub file: usize,
}

/// A line of a test that started or was only listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// It started; else it was only listed.
    pub ran: bool,
    /// The rows that it names.
    pub rows: Vec<String>,
    /// Its package.
    pub package: String,
    /// Its crate.
    pub target: String,
    /// Its path within the crate.
    pub test: String,
    /// Where it stands, when the line says it.
    pub place: Option<(PathBuf, usize)>,
    /// The kind of evidence, where the source of results says it.
    pub kind: Option<Need>,
}

/// What came of a sabotage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sabotaged {
    /// The rule.
    pub rule: String,
    /// The rows that it breaks.
    pub rows: Vec<String>,
    /// The check that noticed, or should have.
    pub check: String,
    /// `caught`, `missed`, `caught-elsewhere` and others, in lower case.
    pub verdict: String,
    /// What the check said.
    pub message: String,
}

/// A file of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct File {
    /// Its path.
    pub path: PathBuf,
    /// The tree it is of, as it says.
    pub provenance: Provenance,
    /// Whether it counts, and if not why.
    pub standing: Standing,
    /// How many results it holds.
    pub count: usize,
}

/// All results that count, and the files that they came from.
#[derive(Debug, Default)]
pub struct Results {
    /// Verdicts on tests.
    pub outcomes: Vec<Outcome>,
    /// Tests that started.
    pub events: Vec<Event>,
    /// Verdicts on sabotages.
    pub sabotages: Vec<Sabotaged>,
    /// Every file, stale ones too.
    pub files: Vec<File>,
    /// What is missing, stale or unreadable.
    pub faults: Vec<Fault>,
    /// Kinds of evidence whose results are missing or stale; none means any kind of test.
    pub lacking: Vec<Option<Sort>>,
}

/// What one file holds, before it is judged.
#[derive(Debug, Default)]
struct Held {
    outcomes: Vec<Outcome>,
    events: Vec<Event>,
    sabotages: Vec<Sabotaged>,
    provenance: Provenance,
}

/// What the files of results hold, before it is known of which tree they are.
#[derive(Debug)]
pub struct Found(Vec<(Source, Vec<OneFile>)>);

/// A file and what it holds.
type OneFile = (PathBuf, Result<Held, Finding>);

/// Reads the results that the configuration names, or instead those of `patterns`.
pub fn read(root: &Path, config: &Config, patterns: &[String]) -> Result<Found> {
    let given: Vec<Source> = patterns
        .iter()
        .map(|pattern| Source {
            files: pattern.clone(),
            kind: None,
            made_by: None,
            optional: false,
        })
        .collect();
    let sources = if given.is_empty() {
        &config.results
    } else {
        &given
    };
    let mut read = Vec::new();
    for source in sources {
        let mut files = Vec::new();
        for path in files::find(root, &source.files)? {
            let full = root.join(&path);
            let text = std::fs::read_to_string(&full)
                .with_context(|| format!("cannot read {}", full.display()))?;
            let held = held(&path, &text);
            files.push((path, held));
        }
        read.push((source.clone(), files));
    }
    Ok(Found(read))
}

/// Judges which of the results are of this tree.
pub fn settle(root: &Path, found: Found, now: &Now) -> Results {
    let mut results = Results::default();
    if found.0.is_empty() {
        let message = "no results are configured and none are given by --results".into();
        let finding = Finding {
            at: At::file(Path::new(crate::config::FILE)),
            message,
        };
        let fault = Fault::new(Code::ResultsMissing, finding);
        results.faults.push(fault);
        results.lacking.push(None);
    }
    for (source, files) in found.0 {
        if files.is_empty() && source.optional {
            results.lacking.push(source.kind);
        } else if files.is_empty() {
            let hint = source
                .made_by
                .as_ref()
                .map_or_else(String::new, |command| format!("; `{command}` makes it"));
            let message = format!("no results: nothing is at {}{hint}", source.files);
            let path = Path::new(&source.files);
            results.lack(&source, Code::ResultsMissing, path, message);
        }
        for (path, held) in files {
            match held {
                Ok(held) => results.take(root, &source, &path, held, now),
                Err(finding) => results
                    .faults
                    .push(Fault::new(Code::ResultsUnreadable, finding)),
            }
        }
    }
    results
}

/// Reads a file by what it looks like.
fn held(path: &Path, text: &str) -> Result<Held, Finding> {
    let begins = text.trim_start();
    if begins.starts_with('<') {
        junit::read(path, text)
    } else if begins.starts_with('[') {
        json::evidence(path, text)
    } else if begins.starts_with('{') || begins.is_empty() {
        json::lines(path, text)
    } else {
        tap::read(path, text)
    }
}

impl Results {
    /// Whether results that could show this kind of evidence are missing or stale.
    pub fn lacks(&self, need: Need) -> bool {
        self.lacking
            .iter()
            .any(|sort| sort.is_none_or(|sort| sort.need() == Some(need)))
    }

    /// Whether verdicts on sabotages are missing or stale.
    pub fn lacks_sabotage(&self) -> bool {
        self.lacking.contains(&Some(Sort::Sabotage))
    }

    fn lack(&mut self, source: &Source, code: Code, path: &Path, message: String) {
        let at = At::file(path);
        self.faults.push(Fault::new(code, Finding { at, message }));
        self.lacking.push(source.kind);
    }

    fn take(&mut self, root: &Path, source: &Source, path: &Path, held: Held, now: &Now) {
        let count = held.outcomes.len() + held.events.len() + held.sabotages.len();
        let full = root.join(path);
        let written = std::fs::metadata(&full).and_then(|meta| meta.modified());
        let standing = standing(&held.provenance, now, written.ok());
        match &standing {
            Standing::Stale(why) => {
                let what = source.made_by.as_ref();
                let hint =
                    what.map_or_else(String::new, |command| format!("; run `{command}` again"));
                let message = format!("stale, {count} results are not counted: {why}{hint}");
                self.lack(source, Code::ResultsStale, path, message);
            }
            Standing::Unattributed if count > 0 => {
                let finding = Finding {
                    at: At::file(path),
                    message: "the results do not say which tree they are of".into(),
                };
                self.faults
                    .push(Fault::new(Code::ResultsUnattributed, finding));
            }
            _ => {}
        }
        if count == 0 && !matches!(standing, Standing::Stale(_)) && !source.optional {
            let message = "no results: the file holds none".into();
            self.lack(source, Code::NoResults, path, message);
        }
        if !matches!(standing, Standing::Stale(_)) {
            let file = self.files.len();
            self.outcomes
                .extend(held.outcomes.into_iter().map(|outcome| Outcome {
                    file,
                    kind: source.kind.and_then(Sort::need).or(outcome.kind),
                    ..outcome
                }));
            self.events
                .extend(held.events.into_iter().map(|event| Event {
                    kind: source.kind.and_then(Sort::need).or(event.kind),
                    ..event
                }));
            self.sabotages.extend(held.sabotages);
        }
        self.files.push(File {
            path: path.into(),
            provenance: held.provenance,
            standing,
            count,
        });
    }
}
