//! The line by which evidence is known to have run.
//!
//! Owns its form: one JSON object for each probe, appended to the file that `TRACE_EVENTS` names, `declared` instead of
//! `ran` where `TRACE_DECLARE` is set. Refuses verdicts: the exit code is the verdict.
//! Invariant: without `TRACE_EVENTS` nothing is written.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;

use anyhow::{Context, Result};
use serde_json::json;

use crate::questions::Question;

/// Appends the line of a probe; answers whether it is only to be declared and not run.
pub fn trace(question: &Question) -> Result<bool> {
    let Some(path) = std::env::var_os("TRACE_EVENTS").filter(|path| !path.is_empty()) else {
        return Ok(false);
    };
    let declare = std::env::var_os("TRACE_DECLARE").is_some();
    append(&path, question, if declare { "declared" } else { "ran" })?;
    Ok(declare)
}

fn append(path: &OsStr, question: &Question, event: &str) -> Result<()> {
    let rows: Vec<&str> = question.rows.iter().map(|row| row.id).collect();
    let line = json!({
        "event": event, "rows": rows, "package": "probes", "target": "probes",
        "test": format!("probe::{}", question.name),
    });
    let name = || format!("TRACE_EVENTS={}", path.display());
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(name)?;
    file.write_all(format!("{line}\n").as_bytes())
        .with_context(name)
}

#[cfg(test)]
mod tests {
    use super::append;
    use crate::questions::named;

    #[m0_spec::row(H4)]
    #[test]
    fn a_probe_that_starts_appends_one_line_with_its_rows() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let path = dir.path().join("events");
        for event in ["declared", "ran"] {
            append(path.as_os_str(), named("memory").expect("a probe"), event).expect("written");
        }
        let text = std::fs::read_to_string(&path).expect("it was written");
        let tail = "\"rows\":[\"S18\"],\"package\":\"probes\",\"target\":\"probes\",\"test\":\"probe::memory\"}\n";
        assert_eq!(
            text,
            format!("{{\"event\":\"declared\",{tail}{{\"event\":\"ran\",{tail}")
        );
    }
}
