//! Tests of the readers of results, and of what makes results stale.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::standing::standing;
use super::{Held, Late, Now, Standing, Verdict, held};
use crate::rows::read::Need;
use crate::tree::Provenance;

fn read(text: &str) -> Held {
    held(Path::new("r"), text).expect("it is of a known form")
}

fn verdicts(held: &Held) -> Vec<(&str, &str, Verdict)> {
    held.outcomes
        .iter()
        .map(|outcome| {
            (
                outcome.suite.as_str(),
                outcome.test.as_str(),
                outcome.verdict,
            )
        })
        .collect()
}

#[m0_spec::row(T11, T8)]
#[test]
fn json_lines_junit_and_tap_come_to_the_same_verdicts() {
    use Verdict::{Failed, Flaky, Passed, Skipped};
    let lines = read(
        "{\"event\":\"run\",\"commit\":\"c\",\"tree\":\"t\",\"dirty\":false}\n\
         {\"event\":\"test\",\"binary\":\"p::b\",\"test\":\"a\",\"verdict\":\"passed\",\"kind\":\"property\",\"seconds\":0.5}\n\
         {\"event\":\"test\",\"binary\":\"p::b\",\"test\":\"f\",\"verdict\":\"timed-out\",\"kind\":\"unit\"}\n\
         {\"event\":\"test\",\"binary\":\"p::b\",\"test\":\"s\",\"verdict\":\"ignored\"}\n\
         {\"event\":\"progress\",\"of\":\"something else\"}\n\n",
    );
    assert_eq!(
        verdicts(&lines),
        [
            ("p::b", "a", Passed),
            ("p::b", "f", Failed),
            ("p::b", "s", Skipped)
        ]
    );
    assert_eq!(lines.outcomes[0].kind, Some(Need::Property));
    assert_eq!(lines.outcomes[1].kind, None);
    assert_eq!(lines.provenance.tree.as_deref(), Some("t"));

    let junit = read(
        "<?xml version=\"1.0\"?><testsuites><testsuite name=\"p::b\"><properties><property name=\"tree\" value=\"t\"/></properties>\
         <testcase name=\"a\" classname=\"p::b\" time=\"0.5\"/>\
         <testcase name=\"f\" classname=\"p::b\"><failure message=\"no\"/></testcase>\
         <testcase name=\"s\" classname=\"p::b\"><skipped/></testcase>\
         <testcase name=\"again\"><flakyFailure message=\"once\"/></testcase></testsuite></testsuites>",
    );
    assert_eq!(
        verdicts(&junit),
        [
            ("p::b", "a", Passed),
            ("p::b", "f", Failed),
            ("p::b", "s", Skipped),
            ("p::b", "again", Flaky)
        ]
    );
    assert_eq!(junit.provenance.tree.as_deref(), Some("t"));
    assert_eq!(junit.outcomes[1].message.as_deref(), Some("no"));

    let tap = read(
        "TAP version 14\n# tree: t\n1..4\nok 1 - a\nnot ok 2 - f\n  ---\n  x: y\n  ...\nok 3 - s # SKIP not here\nok d\n",
    );
    assert_eq!(
        verdicts(&tap),
        [
            ("", "a", Passed),
            ("", "f", Failed),
            ("", "s", Skipped),
            ("", "d", Passed)
        ]
    );
    assert_eq!(tap.provenance.tree.as_deref(), Some("t"));
}

#[m0_spec::row(T11)]
#[test]
fn what_is_cut_off_or_of_no_known_form_is_unreadable() {
    for (text, place, part) in [
        (
            "{\"event\":\"run\"}\n{\"event\":\"te",
            "r:2:",
            "no line of results",
        ),
        ("{\"event\":\"test\"}\n", "r:1:", "missing field"),
        ("<testsuites><testsuite>", "r:1:", "no JUnit"),
        (
            "1..2\nok 1 - a\n",
            "r:1:1",
            "2 tests are planned and 1 are told",
        ),
        ("1..1\nBail out! no disk\n", "r:2:1", "bailed out"),
        ("hello\n", "r:1:1", "neither JSON, JUnit nor TAP"),
        ("[{]", "r:1:", "no evidence"),
    ] {
        let finding = held(Path::new("r"), text)
            .err()
            .map(|finding| finding.to_string());
        let told = finding.unwrap_or_default();
        assert!(
            told.starts_with(place) && told.contains(part),
            "{text}: {told}"
        );
    }
}

/// As node 24 writes it, cut to what differs: a part of a test, a failure and its block, a skip.
const NODE_TAP: &str = "TAP version 13\n# Subtest: more\n    # Subtest: keeps nothing\n    ok 1 - keeps nothing\n      ---\n      duration_ms: 0.1\n      type: 'test'\n      ...\n\
    \x20   # Subtest: deep\n        # Subtest: is deep\n        ok 1 - is deep\n          ---\n          type: 'test'\n          ...\n        1..1\n    ok 2 - deep\n      ---\n      type: 'suite'\n      ...\n    1..2\n\
    ok 1 - more\n  ---\n  type: 'suite'\n  ...\n# Subtest: later\nok 2 - later # SKIP\n  ---\n  type: 'test'\n  ...\n# Subtest: fails\nnot ok 3 - fails\n  ---\n  \
    failureType: 'testCodeFailure'\n  error: '1 == 2'\n  stack: |-\n    ok 9 - a line of the stack\n  ...\n1..3\n# tests 5\n";

#[m0_spec::row(T11)]
#[test]
fn parts_of_tests_are_results_of_their_own_in_tap() {
    use Verdict::{Failed, Passed, Skipped};
    let wanted = [
        ("keeps nothing", Passed),
        ("is deep", Passed),
        ("deep", Passed),
        ("more", Passed),
        ("later", Skipped),
        ("fails", Failed),
    ];
    let got = read(NODE_TAP);
    let told: Vec<(&str, Verdict)> = got
        .outcomes
        .iter()
        .map(|outcome| (outcome.test.as_str(), outcome.verdict))
        .collect();
    assert_eq!(told, wanted);
    assert_eq!(got.outcomes[5].message.as_deref(), Some("1 == 2"));
    // A part that is missing is told at its own plan.
    let cut = NODE_TAP.replace("        ok 1 - is deep\n", "");
    let finding = held(Path::new("r"), &cut).expect_err("one is missing");
    assert_eq!(
        finding.to_string(),
        "r:14:1: 1 tests are planned and 0 are told"
    );
}

#[m0_spec::row(T11)]
#[test]
fn a_result_of_node_is_of_its_file_and_a_suite_is_none() {
    let text = "<testsuites><testcase name=\"a\" classname=\"test\" file=\"/w/tests/a.test.ts\"/>\
        <testsuite name=\"parent\" tests=\"1\" failures=\"0\"><testcase name=\"part\" classname=\"parent\" file=\"/w/tests/a.test.ts\"/></testsuite>\
        <testcase name=\"b\" classname=\"tests.test_b\" file=\"tests/test_b.py\"/></testsuites>";
    let got = read(text);
    let told: Vec<(&str, &str)> = got
        .outcomes
        .iter()
        .map(|outcome| (outcome.suite.as_str(), outcome.test.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("/w/tests/a.test.ts", "a"),
            ("/w/tests/a.test.ts", "part"),
            ("tests.test_b", "b")
        ]
    );
}

#[m0_spec::row(T8)]
#[test]
fn a_phase_passed_when_every_round_did() {
    let line = |passed: bool| {
        format!(
            "{{\"event\":\"verdict\",\"test\":\"smoke::x\",\"passed\":{passed},\"rows\":[\"E1\"],\"tree\":\"t\"}}\n"
        )
    };
    let all = |rounds: &[bool]| {
        let text: String = rounds.iter().map(|passed| line(*passed)).collect();
        let held = read(&text);
        assert_eq!(held.outcomes.len(), 1, "{text}");
        assert_eq!(held.outcomes[0].rows, ["E1"]);
        assert_eq!(held.outcomes[0].kind, Some(Need::Smoke));
        held.outcomes[0].verdict
    };
    assert_eq!(all(&[true, true]), Verdict::Passed);
    assert_eq!(all(&[true, false]), Verdict::Failed);
    assert_eq!(all(&[false, true]), Verdict::Failed);
}

#[m0_spec::row(T29)]
#[test]
fn the_place_of_a_phase_and_the_line_of_a_figure_are_read() {
    let held = read(
        "{\"event\":\"run\",\"commit\":\"c\"}\n\
         {\"event\":\"verdict\",\"test\":\"smoke::a\",\"passed\":true,\"rows\":[\"E1\"],\"file\":\"s.rs\",\"line\":9}\n\
         {\"event\":\"verdict\",\"test\":\"smoke::b\",\"passed\":true,\"rows\":[\"E1\"]}\n\
         {\"probe\":\"p\",\"rows\":[\"E1\"],\"kept\":true}\n",
    );
    let places: Vec<_> = held
        .outcomes
        .iter()
        .map(|outcome| {
            let place = outcome.place.as_ref();
            (
                place.map(|(file, line)| (file.as_path(), *line)),
                outcome.line,
            )
        })
        .collect();
    assert_eq!(
        places,
        [(Some((Path::new("s.rs"), 9)), 2), (None, 3), (None, 4)]
    );
}

#[m0_spec::row(T8, T11)]
#[test]
fn a_probe_passed_when_every_figure_kept_its_goal() {
    let line = |kept: &str| {
        format!(
            "{{\"probe\":\"x\",\"quantity\":\"time\",\"rows\":[\"E1\"]{kept},\"commit\":\"c\"}}\n"
        )
    };
    let all = |figures: &[&str]| {
        let text: String = figures.iter().map(|kept| line(kept)).collect();
        let held = read(&text);
        assert_eq!(held.provenance.commit.as_deref(), Some("c"));
        assert_eq!(verdicts(&held).len(), 1, "{text}");
        assert_eq!(held.outcomes[0].test, "probe::x");
        held.outcomes[0].verdict
    };
    assert_eq!(all(&[",\"kept\":true", ""]), Verdict::Passed);
    assert_eq!(all(&[",\"kept\":true", ",\"kept\":false"]), Verdict::Failed);
}

#[m0_spec::row(T4)]
#[test]
fn results_count_only_for_the_tree_that_they_name() {
    let of = |commit: Option<&str>, tree: Option<&str>, dirty: Option<bool>| Provenance {
        commit: commit.map(str::to_owned),
        tree: tree.map(str::to_owned),
        dirty,
        toolchain: None,
    };
    let now = |tree: &str, dirty: bool| Now {
        provenance: of(Some("c1"), Some(tree), Some(dirty)),
        committed: Some("t1".into()),
        content: Late::new(|| Some("content".into())),
        newest: Late::default(),
    };
    let clean = now("t1", false);
    let changed = now("t2", true);
    let cases = [
        // By tree, whatever the commit.
        (of(None, Some("t1"), Some(false)), &clean, true),
        (of(Some("c0"), Some("t1"), None), &clean, true),
        (of(None, Some("content"), None), &clean, true),
        (of(Some("c1"), Some("t0"), Some(false)), &clean, false),
        // Measured on changes that a hash of the tree on disk names.
        (of(Some("c1"), Some("t2"), Some(true)), &changed, true),
        // Measured on changes that nothing names.
        (of(Some("c1"), Some("t1"), Some(true)), &clean, false),
        (of(Some("c1"), Some("t1"), Some(false)), &changed, false),
        // By commit alone.
        (of(Some("c1"), None, Some(false)), &clean, true),
        (of(Some("c0"), None, Some(false)), &clean, false),
        (of(Some("c1"), None, Some(false)), &changed, false),
        (of(Some("c1"), Some("unknown"), None), &clean, true),
    ];
    for (of, now, current) in cases {
        let got = standing(&of, now, None);
        assert_eq!(got == Standing::Current, current, "{of:?}: {got:?}");
    }
    // Without a word the file's age decides.
    let day = Duration::from_hours(24);
    let time = SystemTime::UNIX_EPOCH + day;
    let aged = Now {
        newest: Late::new(move || Some((time, "tests/a.py".into()))),
        ..now("t1", false)
    };
    let none = Provenance::default();
    let old = standing(&none, &aged, Some(SystemTime::UNIX_EPOCH));
    assert_eq!(old, Standing::Stale("older than tests/a.py".into()));
    assert_eq!(
        standing(&none, &aged, Some(time + day)),
        Standing::Unattributed
    );
}
