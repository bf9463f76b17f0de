//! Every kind of test under the attribute, and what it leaves behind when it starts.
//!
//! The module `kinds` holds one test of each kind; they run like any other. The tests below it run
//! this very binary again with `TRACE_EVENTS` set and read the lines.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::process::{Command, Output};

use m0_spec::{H4, H5, H6, H7};

mod kinds {
    #[m0_spec::row(H7)]
    #[test]
    fn before() {
        assert_eq!(module_path!(), "kinds::kinds");
    }

    #[test]
    #[m0_spec::row(H1, H7)]
    fn after() {
        assert_eq!(file!().rsplit('/').next(), Some("kinds.rs"));
    }

    #[m0_spec::row(H7)]
    #[test]
    #[should_panic(expected = "as it must")]
    fn must_panic() {
        panic!("as it must");
    }

    #[test]
    #[m0_spec::row(H7)]
    fn returns_a_result() -> Result<(), std::num::ParseIntError> {
        let number: u8 = "7".parse()?;
        assert_eq!(number, 7);
        Ok(())
    }

    #[m0_spec::row(H7)]
    #[tokio::test]
    async fn async_before() {
        tokio::task::yield_now().await;
        assert!(tokio::runtime::Handle::try_current().is_ok());
    }

    #[tokio::test]
    #[m0_spec::row(H7)]
    async fn async_after() {
        tokio::task::yield_now().await;
        assert!(tokio::runtime::Handle::try_current().is_ok());
    }

    #[m0_spec::row(H7)]
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn async_threads() {
        let there = tokio::spawn(async { 7 }).await;
        assert_eq!(there.expect("it did not panic"), 7);
    }

    proptest::proptest! {
        #[m0_spec::row(H5, H7)]
        #[test]
        fn property(x in 0_u32..9, y in 0_u32..9) {
            proptest::prop_assert_eq!(x + y, y + x);
        }
    }

    macro_rules! made {
        ($($name:ident: $row:ident, $value:expr;)*) => {$(
            #[m0_spec::row($row)]
            #[test]
            fn $name() {
                assert!($value > 0);
            }
        )*};
    }
    made! {
        made_by_a_macro: H7, 1;
        made_again: H7, 2;
    }

    /// Stands for a model checker: the body runs once for each interleaving.
    fn model(body: impl Fn()) {
        for _ in 0..3 {
            body();
        }
    }

    /// Not a test by itself, so the body of the attribute runs each time it is called.
    #[m0_spec::row(H5)]
    fn shared_body() {
        assert!(model as fn(fn()) as usize > 0);
    }

    #[m0_spec::row(H5, H7)]
    #[test]
    fn many_times() {
        model(shared_body);
    }
}

const KINDS: [&str; 12] = [
    "after",
    "async_after",
    "async_before",
    "async_threads",
    "before",
    "made_again",
    "made_by_a_macro",
    "many_times",
    "must_panic",
    "property",
    "returns_a_result",
    "shared_body",
];

/// Runs the tests of `kinds` in a process of its own; its output and the lines it left.
fn run(args: &[&str], vars: &[(&str, &str)]) -> (Output, String) {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let events = dir.path().join("events.jsonl");
    let this = std::env::current_exe().expect("a test has a file");
    let output = Command::new(this)
        .arg("kinds::")
        .args(args)
        .env("TRACE_EVENTS", &events)
        .env_remove("TRACE_DECLARE")
        .envs(vars.iter().copied())
        .output()
        .expect("this file can be run");
    let lines = std::fs::read_to_string(&events).unwrap_or_default();
    (output, lines)
}

/// Test name to its lines.
fn by_test(lines: &str) -> BTreeMap<String, Vec<serde_json::Value>> {
    let mut map: BTreeMap<String, Vec<serde_json::Value>> = BTreeMap::new();
    for line in lines.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
        let name = value["test"]
            .as_str()
            .expect("a line names its test")
            .to_owned();
        map.entry(name).or_default().push(value);
    }
    map
}

fn expected(without: &[&str]) -> Vec<String> {
    let wanted = KINDS.iter().filter(|kind| !without.contains(kind));
    wanted.map(|kind| format!("kinds::{kind}")).collect()
}

#[m0_spec::row(H1, H4, H5, H7)]
#[test]
fn each_kind_that_runs_leaves_one_line_and_keeps_its_verdict() {
    let (output, lines) = run(&[], &[]);
    assert!(output.status.success(), "{output:?}");
    let map = by_test(&lines);
    assert_eq!(map.keys().cloned().collect::<Vec<_>>(), expected(&[]));
    for (name, lines) in &map {
        assert_eq!(lines.len(), 1, "{name}");
        let line = &lines[0];
        assert_eq!(line["event"], "ran");
        assert_eq!(line["package"], "traceability-attr");
        assert_eq!(line["target"], "kinds");
        assert!(
            line["file"]
                .as_str()
                .is_some_and(|file| file.ends_with("tests/kinds.rs")),
            "{line}"
        );
        assert!(
            line["line"].as_u64().is_some_and(|line| line > 10),
            "{line}"
        );
    }
    assert_eq!(
        map["kinds::after"][0]["rows"],
        serde_json::json!(["H1", "H7"])
    );
    assert_eq!(
        map["kinds::made_again"][0]["rows"],
        serde_json::json!(["H7"])
    );
}

#[m0_spec::row(H4)]
#[test]
fn without_the_variable_nothing_is_written() {
    let (output, lines) = run(&[], &[("TRACE_EVENTS", "")]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(lines, "");
}

#[m0_spec::row(H4)]
#[test]
fn a_file_that_cannot_be_written_fails_the_test() {
    let (output, _) = run(&[], &[("TRACE_EVENTS", "/nowhere/at/all.jsonl")]);
    assert!(!output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("TRACE_EVENTS=/nowhere/at/all.jsonl"));
}

#[m0_spec::row(H6)]
#[test]
fn a_binary_lists_what_it_declares_and_runs_no_body() {
    let (output, lines) = run(&[], &[("TRACE_DECLARE", "1")]);
    let map = by_test(&lines);
    // The shared body is called by a test, and no body runs.
    assert_eq!(
        map.keys().cloned().collect::<Vec<_>>(),
        expected(&["shared_body"]),
        "{output:?}"
    );
    assert!(
        map.values()
            .flatten()
            .all(|line| line["event"] == "declared"),
        "{lines}"
    );
    // No verdict comes of it: what did not run cannot pass.
    assert!(!output.status.success(), "{output:?}");
}

#[m0_spec::row(H2)]
#[test]
fn constants_are_the_rows_of_the_yaml() {
    for row in [H4, H5, H6, H7] {
        assert!(m0_spec::ALL.contains(&row), "{row:?}");
        assert!(
            row.id.starts_with('H') && row.title.ends_with('.'),
            "{row:?}"
        );
    }
}
