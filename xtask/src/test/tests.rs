//! Tests of the readers and of both runners on a small crate of their own.

use std::collections::BTreeMap;
use std::path::Path;

use super::kinds::{Kind, Kinds};
use super::results::{Outcome, Results, Verdict};
use super::{Options, Run, Runner, Stage, libtest, nextest};
use crate::repository::{Provenance, Repository};

const CRATE: &str = "\
//! A crate with one test of each verdict.
/// ```
/// assert_eq!(two_runners::two(), 2);
/// ```
pub fn two() -> u8 { 2 }
#[cfg(test)]
mod tests {
    #[test] fn good() { println!(\"test fake ... ok <failure> & \\\"quoted\\\"\"); }
    #[test] fn bad() { assert_eq!(1, 2, \"<testcase name=\\\"forged\\\"\"); }
    #[test] #[should_panic] fn panics() { panic!(\"as it must\"); }
    #[test] #[ignore = \"not, yet\"] fn later() {}
    mod properties { #[test] fn holds() {} }
}
";

/// A workspace of one package, built where the next run finds it again.
fn small_crate(name: &str, library: &str) -> Repository {
    let target = Repository::own().expect("this is a workspace").target;
    let dir = target.join("tmp").join(name);
    std::fs::create_dir_all(dir.join("src")).expect("a directory for the crate");
    std::fs::create_dir_all(dir.join("tests")).expect("a directory for the crate");
    std::fs::create_dir_all(dir.join(".config")).expect("a directory for the crate");
    let write = |path: &str, text: &str| std::fs::write(dir.join(path), text).expect("written");
    write(
        "Cargo.toml",
        &format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n"),
    );
    write("src/lib.rs", library);
    write("tests/death.rs", "#[test] fn killed() {}\n");
    let configuration = include_str!("../../../.config/nextest.toml");
    write(".config/nextest.toml", configuration);
    let mut repository = Repository::at(&dir).expect("it is a workspace");
    // Not the default, as with CARGO_TARGET_DIR.
    repository.target = dir.join("built");
    repository
}

/// Runs the stage `tests` with one of the runners; binary and test to verdict and kind.
fn verdicts(
    repository: &Repository,
    runner: Runner,
) -> BTreeMap<(String, String), (Verdict, Kind)> {
    let options = Options {
        runner,
        ..Options::default()
    };
    let events = repository.results().expect("made").join("events.jsonl");
    let kinds = Kinds::read(repository).expect("it can be read");
    let run = Run {
        repository,
        options: &options,
        events,
        kinds,
    };
    let mut results = Results::default();
    match runner {
        Runner::Nextest => nextest::run(&run, &mut results),
        _ => libtest::run(&run, &mut results),
    }
    .expect("the runner runs");
    let entry = |outcome: Outcome| {
        (
            (outcome.binary, outcome.test),
            (outcome.verdict, outcome.kind),
        )
    };
    results.outcomes.into_iter().map(entry).collect()
}

#[m0_spec::row(H14)]
#[test]
fn both_runners_tell_the_same() {
    let repository = small_crate("two-runners", CRATE);
    let told = verdicts(&repository, Runner::Cargo);
    let key = |binary: &str, test: &str| (binary.to_owned(), test.to_owned());
    let expected = BTreeMap::from([
        (
            key("two-runners", "tests::good"),
            (Verdict::Passed, Kind::Unit),
        ),
        (
            key("two-runners", "tests::bad"),
            (Verdict::Failed, Kind::Unit),
        ),
        (
            key("two-runners", "tests::panics"),
            (Verdict::Passed, Kind::Unit),
        ),
        (
            key("two-runners", "tests::later"),
            (Verdict::Ignored, Kind::Unit),
        ),
        (
            key("two-runners", "tests::properties::holds"),
            (Verdict::Passed, Kind::Property),
        ),
        (
            key("two-runners::death", "killed"),
            (Verdict::Passed, Kind::Death),
        ),
    ]);
    assert_eq!(told, expected);
    // Where nextest is not installed its reader is held to the same by the report below.
    if nextest::is_there(&repository) {
        assert_eq!(verdicts(&repository, Runner::Nextest), expected);
    }
}

#[m0_spec::row(H15)]
#[test]
fn a_run_without_tests_or_that_does_not_build_is_red() {
    let empty = small_crate("no-tests", "//! Nothing.\n");
    std::fs::write(empty.root.join("tests/death.rs"), "//! Nothing.\n").expect("written");
    let options = |runner| Options {
        runner,
        stage: vec![Stage::Tests],
        ..Options::default()
    };
    let broken = small_crate("no-build", "pub fn f() -> u8 { \"\" }\n");
    let mut runners = vec![Runner::Cargo];
    runners.extend(nextest::is_there(&empty).then_some(Runner::Nextest));
    for runner in runners {
        super::run(&empty, &options(runner)).expect_err("no test ran");
        super::run(&broken, &options(runner)).expect_err("it does not build");
    }
}

#[m0_spec::row(H14)]
#[test]
fn the_report_of_nextest_is_read() {
    let report = r#"<testsuites name="nextest-run" tests="4">
    <testsuite name="a" tests="4">
        <testcase name="tests::good" classname="a" timestamp="x" time="0.250"/>
        <testcase name="tests::slow" classname="a::death" timestamp="x" time="2.009">
            <failure type="test timeout"/>
            <system-out>
&lt;testcase name=&quot;forged&quot; classname=&quot;a&quot;&gt;
</system-out>
        </testcase>
        <testcase name="leak&lt;u8&gt;" classname="a" timestamp="x" time="1.0">
            <error type="test exited with code 0, but leaked handles so was marked failed"/>
        </testcase>
        <testcase name="flaky" classname="a" timestamp="x" time="1.0">
            <flakyFailure type="test failure with exit code 101"/>
        </testcase>
"#;
    let outcome = |binary: &str, test: &str, kind, verdict, seconds| Outcome {
        binary: binary.into(),
        test: test.into(),
        kind,
        verdict,
        seconds: Some(seconds),
    };
    assert_eq!(
        nextest::read_report(report, &Kinds::default()),
        [
            outcome("a", "tests::good", Kind::Unit, Verdict::Passed, 0.25),
            outcome(
                "a::death",
                "tests::slow",
                Kind::Death,
                Verdict::TimedOut,
                2.009
            ),
            outcome("a", "leak<u8>", Kind::Unit, Verdict::Failed, 1.0),
            outcome("a", "flaky", Kind::Unit, Verdict::Failed, 1.0),
        ]
    );
}

#[m0_spec::row(H14)]
#[test]
fn the_lines_of_the_harness_are_read() {
    for (line, test, verdict) in [
        ("test tests::a ... ok", "tests::a", Verdict::Passed),
        ("test tests::a ... FAILED", "tests::a", Verdict::Failed),
        (
            "test tests::a ... ignored, not, yet",
            "tests::a",
            Verdict::Ignored,
        ),
        (
            "test tests::a - should panic ... ok",
            "tests::a",
            Verdict::Passed,
        ),
        (
            "test src/lib.rs - Row (line 20) ... ok",
            "src/lib.rs - Row (line 20)",
            Verdict::Passed,
        ),
        (
            "test src/lib.rs - Row (line 20) - compile fail ... ok",
            "src/lib.rs - Row (line 20)",
            Verdict::Passed,
        ),
    ] {
        assert_eq!(
            libtest::read_line(line),
            Some((test.to_owned(), verdict)),
            "{line}"
        );
    }
    for line in [
        "running 3 tests",
        "test result: ok. 3 passed; 0 failed",
        "",
        "    test a ... ok",
    ] {
        assert_eq!(libtest::read_line(line), None, "{line}");
    }
}

fn results(verdicts: &[Verdict]) -> Results {
    let outcome = |(index, verdict): (usize, &Verdict)| Outcome {
        binary: "a".into(),
        test: format!("t{index}"),
        kind: Kind::Unit,
        verdict: *verdict,
        seconds: Some(0.5),
    };
    Results {
        outcomes: verdicts.iter().enumerate().map(outcome).collect(),
        walls: Vec::new(),
    }
}

#[m0_spec::row(H17)]
#[test]
fn the_closing_line_counts_what_passed_and_what_failed() {
    use Verdict::{Failed, Ignored, Passed, TimedOut};
    assert_eq!(results(&[]).closing(), "0 passed, 0 failed");
    assert_eq!(results(&[Passed, Passed]).closing(), "2 passed, 0 failed");
    assert_eq!(
        results(&[Passed, Failed, TimedOut]).closing(),
        "1 passed, 2 failed"
    );
    assert_eq!(
        results(&[Passed, Ignored]).closing(),
        "1 passed, 0 failed, 1 skipped"
    );
    assert_eq!(results(&[Ignored]).ran(), 0);
    let lines = results(&[Passed, Failed, Ignored]).lines();
    assert_eq!(lines[0], "unit      1 passed, 1 failed, 1 skipped  1.5 s");
    assert_eq!(lines[3], "loom      did not run");
}

#[m0_spec::row(H14)]
#[test]
fn the_file_holds_one_line_for_the_run_and_one_for_each_test() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let file = dir.path().join("results.jsonl");
    let provenance = Provenance {
        commit: None,
        tree: Some("t".into()),
        dirty: Some(true),
        toolchain: None,
    };
    let mut results = results(&[Verdict::TimedOut]);
    results.fault("b", "it died", Kind::Loom);
    results.write(&file, "cargo", &provenance).expect("written");
    let text = std::fs::read_to_string(Path::new(&file)).expect("it is there");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["event"], "run");
    assert_eq!(
        (&lines[0]["runner"], &lines[0]["tree"], &lines[0]["dirty"]),
        (&"cargo".into(), &"t".into(), &true.into())
    );
    assert_eq!(
        lines[1],
        serde_json::json!({"event": "test", "binary": "a", "test": "t0", "kind": "unit", "verdict": "timed-out", "seconds": 0.5})
    );
    assert_eq!(
        (&lines[2]["test"], &lines[2]["verdict"]),
        (&"(it died)".into(), &"failed".into())
    );
}
