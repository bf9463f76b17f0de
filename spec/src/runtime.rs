//! What the attribute `#[row(..)]` runs at the start of a test.
//!
//! Owns: one JSON line a test and process, appended to the file that `TRACE_EVENTS` names by a
//! single write, so that processes which run at once do not mix their lines. Refuses to know the
//! verdict: a test that starts has shown nothing yet. Only std, since every test binary links it.
//!
//! Two variables: `TRACE_EVENTS` (path; unset: nothing happens) and, beside it, `TRACE_DECLARE`
//! (any value: the line says `declared` instead of `ran`, and the test unwinds before its body, so
//! its verdict counts for nothing and no evidence comes of it).
//! Invariant: at most one line for each test in a process, however often its body runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::Row;

/// Where a test stands in the source, as the attribute found it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// `module_path!()` at the test; its first segment is the crate.
    pub module: &'static str,
    /// Name of the test function.
    pub test: &'static str,
    /// The cargo package under test, when cargo builds it.
    pub package: Option<&'static str>,
    /// Path of the source file, as the compiler was given it.
    pub file: &'static str,
    /// Line of the attribute, from 1.
    pub line: u32,
}

/// Tests of this process that have already left their line.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Appends this test's line if `TRACE_EVENTS` asks for it; the first statement of each test.
///
/// # Panics
///
/// When the file cannot be written: evidence that is lost in silence would show as a test that
/// never ran. With `TRACE_DECLARE` it unwinds (without a message) after the line.
pub fn ran(rows: &[Row], place: &Place) {
    let Some(path) = std::env::var_os("TRACE_EVENTS").filter(|path| !path.is_empty()) else {
        return;
    };
    let declare = std::env::var_os("TRACE_DECLARE").is_some();
    let event = if declare { "declared" } else { "ran" };
    let first = SEEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(format!("{}::{}", place.module, place.test));
    if first && let Err(error) = append(Path::new(&path), &line(event, rows, place)) {
        panic!("TRACE_EVENTS={}: {error}", path.display());
    }
    if declare {
        std::panic::resume_unwind(Box::new("listed, not run"));
    }
}

/// One line, one write: O_APPEND keeps lines of several processes whole.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(line.as_bytes())
}

/// The line with its line feed: `test` is the path that the runner prints, without the crate.
fn line(event: &str, rows: &[Row], place: &Place) -> String {
    let (target, module) = place.module.split_once("::").unwrap_or((place.module, ""));
    let test = if module.is_empty() {
        place.test.to_owned()
    } else {
        format!("{module}::{}", place.test)
    };
    let ids: Vec<String> = rows.iter().map(|row| json(row.id)).collect();
    format!(
        "{{\"event\":{},\"rows\":[{}],\"package\":{},\"target\":{},\"test\":{},\"file\":{},\"line\":{}}}\n",
        json(event),
        ids.join(","),
        json(place.package.unwrap_or("")),
        json(target),
        json(&test),
        json(place.file),
        place.line,
    )
}

/// A JSON string; paths may hold a quote or a control character.
fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes any text");
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{Place, line};

    #[crate::row(H4)]
    #[test]
    fn a_line_is_one_json_object_with_the_path_that_the_runner_prints() {
        let place = Place {
            module: "my_crate::deep::tests",
            test: "a_test",
            package: Some("my-crate"),
            file: "src/a \"b\"\u{1}.rs",
            line: 7,
        };
        assert_eq!(
            line("ran", &[crate::E22, crate::D10], &place),
            "{\"event\":\"ran\",\"rows\":[\"E22\",\"D10\"],\"package\":\"my-crate\",\"target\":\"my_crate\",\
             \"test\":\"deep::tests::a_test\",\"file\":\"src/a \\\"b\\\"\\u0001.rs\",\"line\":7}\n"
        );
        let top = Place {
            module: "world",
            ..place
        };
        assert!(
            line("ran", &[crate::E22], &top).contains("\"target\":\"world\",\"test\":\"a_test\"")
        );
    }
}
