//! JUnit XML as nextest, pytest, node and many others write it.
//!
//! Owns which elements mean what: `testcase` with `classname` (or the suite's name where it has none) and
//! `name`; `failure` and `error` inside mean failed, `skipped` skipped, `flakyFailure` and `rerunFailure`
//! flaky or failed; `property` elements named `commit`, `tree` and `dirty` say which tree it is.
//! Invariant: a pass on retry is no pass, and a suite is no test: node writes a test with parts as a suite, and leaves out
//! that it failed itself.

use std::path::Path;

use roxmltree::{Document, Node, ParsingOptions};

use super::{Held, Outcome, Verdict};
use crate::finding::{At, Finding};
use crate::source::comments::Language;

/// Reads one report.
pub(super) fn read(path: &Path, text: &str) -> Result<Held, Finding> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|error| Finding {
        at: At::place(path, error.pos().row as usize, error.pos().col as usize),
        message: format!("no JUnit: {error}"),
    })?;
    let mut held = Held::default();
    for node in document.descendants().filter(Node::is_element) {
        match node.tag_name().name() {
            "property" => {
                let value = node.attribute("value").map(str::to_owned);
                match node.attribute("name") {
                    Some("commit") => held.provenance.commit = value,
                    Some("tree") => held.provenance.tree = value,
                    Some("dirty") => held.provenance.dirty = value.map(|value| value == "true"),
                    _ => {}
                }
            }
            "testcase" => held.outcomes.push(case(node)),
            _ => {}
        }
    }
    Ok(held)
}

fn case(node: Node<'_, '_>) -> Outcome {
    // Node says `test` or the suites around as the class, and beside it the file; other runners name a module or class.
    let script = node
        .attribute("file")
        .filter(|file| Language::of(Path::new(file)) == Some(Language::Script));
    let suite = script
        .or_else(|| node.attribute("classname"))
        .or_else(|| node.parent().and_then(|suite| suite.attribute("name")));
    let inside = |names: &[&str]| {
        node.children()
            .find(|child| names.contains(&child.tag_name().name()))
    };
    let failure = inside(&["failure", "error"]);
    let again = inside(&["flakyFailure", "flakyError", "rerunFailure", "rerunError"]);
    let verdict = if failure.is_some() {
        Verdict::Failed
    } else if again.is_some() {
        Verdict::Flaky
    } else if inside(&["skipped"]).is_some() {
        Verdict::Skipped
    } else {
        Verdict::Passed
    };
    let message = failure.or(again).map(|failure| {
        let text = failure.attribute("message").or_else(|| failure.text());
        text.unwrap_or_default().trim().to_owned()
    });
    Outcome {
        suite: suite.unwrap_or_default().to_owned(),
        test: node.attribute("name").unwrap_or_default().to_owned(),
        verdict,
        seconds: node.attribute("time").and_then(|time| time.parse().ok()),
        message,
        kind: None,
        rows: Vec::new(),
        place: None,
        line: 0,
        file: 0,
    }
}
