//! JUnit XML: test cases, their failures and errors.
//!
//! Owns the names of elements. A case that passed only on a retry (`flakyFailure`) counts as failed:
//! a gate that is flaky proves nothing.

use roxmltree::{Document, Node, ParsingOptions};

use super::{Checks, Status, add};

/// Reads a report. With `suites`, the suite's name and `$` stand before each check, as cargo-nextest
/// names a test's binary; else the class stands before it, with `.`, where there is one.
pub(super) fn read(text: &str, suites: bool) -> Result<Checks, String> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document =
        Document::parse_with_options(text, options).map_err(|error| error.to_string())?;
    let mut checks = Checks::new();
    for case in document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
    {
        let name = case.attribute("name").unwrap_or_default();
        let suite = case.parent().and_then(|suite| suite.attribute("name"));
        let full = match (suites, suite, case.attribute("classname")) {
            (true, Some(suite), _) => format!("{suite}${name}"),
            (false, _, Some(class)) if !class.is_empty() => format!("{class} {name}"),
            _ => name.to_owned(),
        };
        add(&mut checks, &full, status(case));
    }
    Ok(checks)
}

fn status(case: Node<'_, '_>) -> Status {
    let child = |names: &[&str]| {
        case.children()
            .find(|node| names.contains(&node.tag_name().name()))
    };
    if let Some(failure) = child(&[
        "failure",
        "error",
        "flakyFailure",
        "flakyError",
        "rerunFailure",
    ]) {
        let head = failure.attribute("message").unwrap_or_default();
        let body: String = failure
            .descendants()
            .filter(Node::is_text)
            .filter_map(|node| node.text())
            .collect();
        return Status::Failed(format!("{head}\n{body}").trim().to_owned());
    }
    if child(&["skipped"]).is_some() {
        Status::Skipped
    } else {
        Status::Passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(B9)]
    #[test]
    fn failures_errors_skips_and_retries() {
        let text = "<testsuites><testsuite name=\"s\"><testcase name=\"a\" classname=\"k\"/>\
             <testcase name=\"b\"><failure message=\"m\">body</failure></testcase>\
             <testcase name=\"c\"><skipped/></testcase><testcase name=\"d\"><error message=\"e\"/></testcase>\
             <testcase name=\"f\"><flakyFailure message=\"once\"/></testcase></testsuite></testsuites>";
        let checks = read(text, false).expect("it is XML");
        assert_eq!(checks["k a"], Status::Passed);
        assert_eq!(checks["b"], Status::Failed("m\nbody".into()));
        assert_eq!(checks["c"], Status::Skipped);
        assert_eq!(checks["d"], Status::Failed("e".into()));
        assert_eq!(checks["f"], Status::Failed("once".into()));
        assert!(read(text, true).expect("it is XML").contains_key("s$a"));
        assert!(read("<a>", false).is_err());
    }
}
