//! What a run tells while it runs: facts in `events.jsonl`, a progress line, and what needs an eye.
//!
//! Owns both. Invariant: each fact is one line, written before the next begins; a file without `run_end`
//! is the file of a run that did not end.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::verdict::Record;

/// Where facts go.
#[derive(Debug)]
pub struct Log {
    file: Mutex<File>,
    bar: ProgressBar,
    quiet: bool,
    notes: Mutex<Vec<String>>,
}

impl Log {
    /// A log that appends to `path`; `quiet` shows nothing on the terminal.
    pub fn create(path: &Path, quiet: bool) -> Result<Self> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        let bar = if !quiet && std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(0);
            let style =
                ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} ({elapsed}, {eta} left)");
            bar.set_style(style.expect("the template is a constant"));
            bar
        } else {
            ProgressBar::hidden()
        };
        Ok(Self {
            file: Mutex::new(file),
            bar,
            quiet,
            notes: Mutex::default(),
        })
    }

    /// Writes one fact.
    pub fn fact(&self, event: &str, mut value: Value) {
        if let Some(map) = value.as_object_mut() {
            map.shift_insert(0, "event".into(), json!(event));
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not turn a verdict; the missing line is noticed by whoever reads.
        let _ = writeln!(file, "{value}").and_then(|()| file.flush());
    }

    /// How many rules there are.
    pub fn expect(&self, rules: usize) {
        self.bar.set_length(rules as u64);
    }

    /// What is in hand.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_owned());
        self.fact("doing", json!({ "what": text }));
    }

    /// Something that needs an eye and is no verdict.
    pub fn note(&self, text: &str) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.iter().any(|note| note == text) {
            return;
        }
        notes.push(text.to_owned());
        drop(notes);
        self.fact("note", json!({ "text": text }));
        self.show(&format!("note: {text}"));
    }

    /// All notes so far.
    pub fn notes(&self) -> Vec<String> {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A verdict.
    pub fn verdict(&self, record: &Record) {
        self.fact("verdict", serde_json::to_value(record).unwrap_or_default());
        self.bar.inc(1);
        if !record.verdict.is_fine() {
            self.show(&crate::report::terminal::record(record));
        }
    }

    /// Takes the progress line away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }

    /// A line for people, above the progress line.
    pub fn show(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| anstream::eprintln!("{text}"));
        }
    }
}
