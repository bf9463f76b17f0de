//! JSON lines (results of tests, events, phases) and `evidence.json`.
//!
//! Owns which keys mean what. Each line is an object whose `event` is one of
//!
//! - `run`: `commit`, `tree`, `dirty`, `toolchain` of the whole file;
//! - `test`: `binary`, `test`, `verdict` (`passed`, `failed`, `timed-out`, `ignored`), `seconds`, `kind`;
//! - `verdict`: a phase: `test`, `passed`, `rows`, `failure`, `seconds`, `file` and `line` of the phase, and the keys of `run`;
//! - `ran`, `declared`: a test that started or was listed: `rows`, `package`, `target`, `test`, `file`, `line`;
//! - anything else: passed over.
//!
//! A line without `event` is a measured figure: `probe`, `rows`, `kept` (whether its goal was kept; a figure
//! without a goal is kept), `commit`.
//!
//! Invariant: a line that is no object of this form, where one is wanted, is a fault with its line.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{Event, Held, Outcome, Sabotaged, Verdict};
use crate::finding::{At, Finding};
use crate::rows::read::Need;
use crate::tree::Provenance;

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Run(Provenance),
    Test {
        #[serde(default)]
        binary: String,
        test: String,
        verdict: String,
        seconds: Option<f64>,
        kind: Option<String>,
        message: Option<String>,
    },
    Verdict {
        test: String,
        passed: bool,
        #[serde(default)]
        rows: Vec<String>,
        failure: Option<String>,
        seconds: Option<f64>,
        file: Option<PathBuf>,
        line: Option<usize>,
        #[serde(flatten)]
        provenance: Provenance,
    },
    Ran(Started),
    Declared(Started),
    #[serde(other)]
    Other,
}

/// A measured quantity.
#[derive(Deserialize)]
struct Figure {
    probe: String,
    #[serde(default)]
    rows: Vec<String>,
    kept: Option<bool>,
    commit: Option<String>,
    quantity: Option<String>,
}

impl Figure {
    fn outcome(self, line: usize) -> Outcome {
        let kept = self.kept.unwrap_or(true);
        let quantity = self.quantity.unwrap_or_else(|| "a figure".into());
        Outcome {
            suite: String::new(),
            test: format!("probe::{}", self.probe),
            verdict: if kept {
                Verdict::Passed
            } else {
                Verdict::Failed
            },
            seconds: None,
            message: (!kept).then(|| format!("{quantity} is beyond its goal")),
            kind: Some(Need::Probe),
            rows: self.rows,
            place: None,
            line,
            file: 0,
        }
    }
}

#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    rows: Vec<String>,
    #[serde(default)]
    package: String,
    #[serde(default)]
    target: String,
    test: String,
    file: Option<PathBuf>,
    line: Option<usize>,
}

/// Reads JSON lines.
pub(super) fn lines(path: &Path, text: &str) -> Result<Held, Finding> {
    let mut held = Held::default();
    let mut worst = Worst::default();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let fault = |error: serde_json::Error| Finding {
            at: At::place(path, index + 1, error.column().max(1)),
            message: format!("no line of results: {error}"),
        };
        let value: Value = serde_json::from_str(line).map_err(fault)?;
        if value.get("event").is_none() && value.get("probe").is_some() {
            let figure: Figure = serde_json::from_value(value).map_err(fault)?;
            if held.provenance == Provenance::default() {
                held.provenance.commit.clone_from(&figure.commit);
            }
            worst.add(&mut held.outcomes, figure.outcome(index + 1));
            continue;
        }
        match serde_json::from_value(value).map_err(fault)? {
            Line::Run(provenance) => held.provenance = provenance,
            Line::Test {
                binary,
                test,
                verdict,
                seconds,
                kind,
                message,
            } => held.outcomes.push(Outcome {
                suite: binary,
                test,
                verdict: verdict_of(&verdict),
                seconds,
                message,
                kind: kind.as_deref().and_then(kind_of),
                rows: Vec::new(),
                place: None,
                line: index + 1,
                file: 0,
            }),
            Line::Verdict {
                test,
                passed,
                rows,
                failure,
                seconds,
                file,
                line,
                provenance,
            } => {
                if held.provenance == Provenance::default() {
                    held.provenance = provenance;
                }
                let verdict = if passed {
                    Verdict::Passed
                } else {
                    Verdict::Failed
                };
                let outcome = Outcome {
                    suite: String::new(),
                    kind: kind_of(test.split("::").next().unwrap_or_default()),
                    test,
                    verdict,
                    seconds,
                    message: failure,
                    rows,
                    place: file.zip(line),
                    line: index + 1,
                    file: 0,
                };
                worst.add(&mut held.outcomes, outcome);
            }
            Line::Ran(started) => held.events.push(event(true, started)),
            Line::Declared(started) => held.events.push(event(false, started)),
            Line::Other => {}
        }
    }
    Ok(held)
}

/// Of several rounds of a phase, or figures of a probe, the worst counts.
#[derive(Default)]
struct Worst(HashMap<String, usize>);

impl Worst {
    fn add(&mut self, outcomes: &mut Vec<Outcome>, outcome: Outcome) {
        match self.0.entry(outcome.test.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(outcomes.len());
                outcomes.push(outcome);
            }
            Entry::Occupied(at) => {
                let other = &mut outcomes[*at.get()];
                if outcome.verdict > other.verdict {
                    *other = outcome;
                }
            }
        }
    }
}

fn event(ran: bool, started: Started) -> Event {
    Event {
        ran,
        rows: started.rows,
        package: started.package,
        target: started.target,
        kind: kind_of(started.test.split("::").next().unwrap_or_default()),
        test: started.test,
        place: started.file.zip(started.line),
    }
}

fn verdict_of(word: &str) -> Verdict {
    match word {
        "passed" | "ok" | "pass" => Verdict::Passed,
        "ignored" | "skipped" => Verdict::Skipped,
        "flaky" => Verdict::Flaky,
        // Failed, timed out, and every word that is not known to be good.
        _ => Verdict::Failed,
    }
}

/// The kind by a runner's word; none for a word that says no more than "test".
fn kind_of(word: &str) -> Option<Need> {
    match word {
        "property" => Some(Need::Property),
        "loom" => Some(Need::Loom),
        "smoke" => Some(Need::Smoke),
        "probe" => Some(Need::Probe),
        _ => None,
    }
}

/// Reads `evidence.json`: an array of objects.
pub(super) fn evidence(path: &Path, text: &str) -> Result<Held, Finding> {
    let fault = |error: &serde_json::Error| Finding {
        at: At::place(path, error.line().max(1), error.column().max(1)),
        message: format!("no evidence of sabotage: {error}"),
    };
    let entries: Vec<Value> = serde_json::from_str(text).map_err(|error| fault(&error))?;
    let mut held = Held::default();
    for entry in entries {
        let provenance: Provenance =
            serde_json::from_value(entry.clone()).map_err(|error| fault(&error))?;
        if held.provenance == Provenance::default() {
            held.provenance = provenance;
        }
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let rows = entry["rows"].as_array().into_iter().flatten();
        held.sabotages.push(Sabotaged {
            rule: text("rule"),
            rows: rows
                .filter_map(|row| row.as_str().map(str::to_owned))
                .collect(),
            check: text("check"),
            verdict: text("verdict").to_lowercase(),
            message: text("message"),
        });
    }
    Ok(held)
}
