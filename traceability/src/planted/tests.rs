//! The tool on its planted repositories: each cause is told, and nothing else.

use super::{CAUSES, found, missed};
use crate::code::Code;

#[m0_spec::row(T5)]
#[test]
fn every_code_has_a_planted_cause_that_is_told_where_it_stands() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let missed = missed(dir.path()).expect("it is planted");
    assert!(missed.is_empty(), "{missed:#?}");
    assert_eq!(CAUSES.len(), Code::ALL.len());
}

#[m0_spec::row(T6)]
#[test]
fn stale_results_are_one_finding_and_not_one_for_each_row() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let (_, _, edits) = CAUSES
        .iter()
        .find(|(code, _, _)| *code == Code::ResultsStale)
        .expect("it is in the table");
    let told = found(dir.path(), edits).expect("it is planted");
    let codes: Vec<Code> = told.iter().map(|(_, code, _)| *code).collect();
    assert_eq!(codes, [Code::ResultsStale], "{told:#?}");
}

#[m0_spec::row(T6)]
#[test]
fn a_suite_of_which_nothing_ran_is_one_finding() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let more = "#[row(E1)] #[test] fn a() {}\n#[row(E1)] #[test] fn b() {}\n";
    let told = found(dir.path(), &[("tests/more.rs", "", more)]).expect("it is planted");
    assert_eq!(told.len(), 1, "{told:#?}");
    let (at, code, message) = &told[0];
    assert_eq!((at.as_str(), *code), ("tests/more.rs:1:2", Code::NeverRan));
    assert!(
        message.contains("none of the 2 tests of planted::more ran"),
        "{message}"
    );
}
