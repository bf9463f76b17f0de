//! Tests of joining and of grades, on graphs made by hand.

use std::path::Path;

use super::{Graph, is_check};
use crate::finding::At;
use crate::lock::Lock;
use crate::results::{Event, File, Outcome, Results, Sabotaged, Standing, Verdict};
use crate::rows::Rows;
use crate::rows::read::{Grade, Need, area};
use crate::sabotage::Rules;
use crate::source::{Named, Test};
use crate::tree::Provenance;

fn rows() -> Rows {
    let text = "area: E\ntitle: T\nfloor: passed\nrows:\n  - {id: E1, claim: A thing is so., why: It is., state: active, needs: [test, smoke]}\n";
    let area = area(Path::new("spec/E.yaml"), text).expect("it is right");
    Rows {
        dir: "spec".into(),
        areas: vec![area],
        ledger: Vec::new(),
    }
}

fn test(suite: &str, name: &str, krate: &str) -> Test {
    let at = At::line(Path::new("a"), 1);
    Test {
        suite: suite.into(),
        name: name.into(),
        rows: vec![Named {
            id: "E1".into(),
            at: at.clone(),
        }],
        kind: Need::Test,
        at,
        last: 1,
        cfg: Vec::new(),
        ignored: false,
        hash: "h".into(),
        krate: krate.into(),
    }
}

fn outcome(suite: &str, test: &str, verdict: Verdict) -> Outcome {
    Outcome {
        suite: suite.into(),
        test: test.into(),
        verdict,
        seconds: None,
        message: None,
        kind: None,
        rows: Vec::new(),
        place: None,
        line: 0,
        file: 0,
    }
}

fn join(tests: Vec<Test>, results: Results) -> Graph {
    let results = Results {
        files: vec![File {
            path: "r".into(),
            provenance: Provenance::default(),
            standing: Standing::Current,
            count: 1,
        }],
        ..results
    };
    Graph::join(
        &rows(),
        tests,
        &Rules::default(),
        &results,
        &Lock::default(),
    )
}

fn of(outcomes: Vec<Outcome>) -> Results {
    Results {
        outcomes,
        ..Results::default()
    }
}

fn grades(graph: &Graph) -> Vec<Grade> {
    graph.edges.iter().map(|edge| edge.grade).collect()
}

#[m0_spec::row(T8)]
#[test]
fn only_a_runners_pass_makes_an_edge_passed() {
    use Verdict::{Failed, Flaky, Passed, Skipped};
    for (verdicts, grade) in [
        (vec![], Grade::Declared),
        (vec![Skipped], Grade::Declared),
        (vec![Failed], Grade::Ran),
        (vec![Flaky], Grade::Ran),
        (vec![Passed], Grade::Passed),
        (vec![Passed, Failed], Grade::Ran),
        (vec![Passed, Skipped], Grade::Passed),
    ] {
        let outcomes = verdicts.iter().map(|verdict| outcome("p", "t", *verdict));
        let graph = join(vec![test("p", "t", "p")], of(outcomes.collect()));
        assert_eq!(grades(&graph), [grade], "{verdicts:?}");
    }
    // A line at the start says that it ran, and no more.
    let event = Event {
        ran: true,
        rows: vec!["E1".into()],
        package: "p".into(),
        target: "p".into(),
        test: "t".into(),
        place: None,
        kind: None,
    };
    let events = |ran| Results {
        events: vec![Event {
            ran,
            ..event.clone()
        }],
        ..Results::default()
    };
    assert_eq!(
        grades(&join(vec![test("p", "t", "p")], events(true))),
        [Grade::Ran]
    );
    assert_eq!(
        grades(&join(vec![test("p", "t", "p")], events(false))),
        [Grade::Declared]
    );
    // And a test that a macro made is known by its line alone.
    assert_eq!(grades(&join(vec![], events(true))), [Grade::Ran]);
}

#[m0_spec::row(T7)]
#[test]
fn a_result_is_joined_by_suite_and_name_or_to_none() {
    let two = || vec![test("p", "t", "p"), test("p::b", "t", "b")];
    let graph = join(two(), of(vec![outcome("p::b", "t", Verdict::Passed)]));
    assert_eq!(grades(&graph), [Grade::Declared, Grade::Passed]);
    // Another binary's test of the same name is not ours.
    let graph = join(two(), of(vec![outcome("q", "t", Verdict::Passed)]));
    assert_eq!(
        (grades(&graph), graph.joined),
        (vec![Grade::Declared; 2], 0)
    );
    // Names without a suite fit both, and raise neither.
    let graph = join(two(), of(vec![outcome("", "t", Verdict::Passed)]));
    assert_eq!(grades(&graph), [Grade::Declared; 2]);
    assert_eq!(graph.ambiguous.len(), 1);
    // Runners of other languages name less, or more, than the path.
    let python = || {
        vec![
            test("tests.test_a", "test_t", ""),
            test("tests.test_b.TestX", "test_t", ""),
        ]
    };
    for (suite, name, wanted) in [
        ("test_a", "test_t", 0),
        ("tests.test_b.TestX", "test_t[1-2]", 1),
        ("src.tests.test_b.TestX", "test_t", 1),
    ] {
        let graph = join(python(), of(vec![outcome(suite, name, Verdict::Passed)]));
        let mut expected = [Grade::Declared; 2];
        expected[wanted] = Grade::Passed;
        assert_eq!(grades(&graph), expected, "{suite} {name}");
    }
}

#[m0_spec::row(T9)]
#[test]
fn an_edge_is_proven_by_its_own_catch_and_hollow_by_its_miss() {
    let sabotaged = |check: &str, verdict: &str| Sabotaged {
        rule: "r".into(),
        rows: vec!["E1".into()],
        check: check.into(),
        verdict: verdict.into(),
        message: "left: 1".into(),
    };
    let all = |verdict, sabotages: Vec<Sabotaged>| {
        let results = Results {
            outcomes: vec![
                outcome("p", "t", verdict),
                outcome("p", "u", Verdict::Passed),
            ],
            sabotages,
            ..Results::default()
        };
        grades(&join(
            vec![test("p", "t", "p"), test("p", "u", "p")],
            results,
        ))
    };
    use Grade::{Hollow, Passed, Proven, Ran};
    let passed = Verdict::Passed;
    assert_eq!(
        all(passed, vec![sabotaged("t", "caught")]),
        [Proven, Passed]
    );
    assert_eq!(
        all(passed, vec![sabotaged("p$u", "caught")]),
        [Passed, Proven]
    );
    assert_eq!(
        all(passed, vec![sabotaged("v", "caught")]),
        [Passed, Passed]
    );
    assert_eq!(
        all(Verdict::Failed, vec![sabotaged("t", "caught")]),
        [Ran, Passed]
    );
    for verdict in ["missed", "caught-elsewhere"] {
        assert_eq!(all(passed, vec![sabotaged("t", verdict)]), [Hollow, Passed]);
        // One miss refutes, whatever else was caught.
        let both = vec![sabotaged("t", "caught"), sabotaged("t", verdict)];
        assert_eq!(all(passed, both), [Hollow, Passed]);
    }
    for verdict in ["broken-inert", "timeout", "infra", "skipped", "pending"] {
        assert_eq!(all(passed, vec![sabotaged("t", verdict)]), [Passed, Passed]);
    }
}

#[m0_spec::row(T9)]
#[test]
fn a_row_has_reached_no_more_than_its_weakest_kind() {
    let standing = |smoke: Option<Verdict>| {
        let phase = outcome("", "smoke::x", smoke.unwrap_or(Verdict::Passed));
        let phase = Outcome {
            kind: Some(Need::Smoke),
            rows: vec!["E1".into()],
            ..phase
        };
        let mut outcomes = vec![outcome("p", "t", Verdict::Passed)];
        outcomes.extend(smoke.map(|_| phase));
        let sabotages = vec![Sabotaged {
            rule: "r".into(),
            rows: vec!["E1".into()],
            check: "t".into(),
            verdict: "caught".into(),
            message: String::new(),
        }];
        let results = Results {
            outcomes,
            sabotages,
            ..Results::default()
        };
        let graph = join(vec![test("p", "t", "p")], results);
        let rows = rows();
        let (_, row) = rows.find("E1").expect("it is there");
        let standing = graph.standing(row);
        (standing.best, standing.reached())
    };
    assert_eq!(standing(None), (Grade::Proven, Grade::None));
    assert_eq!(standing(Some(Verdict::Failed)), (Grade::Proven, Grade::Ran));
    assert_eq!(
        standing(Some(Verdict::Passed)),
        (Grade::Proven, Grade::Proven)
    );
}

#[m0_spec::row(T9)]
#[test]
fn a_gate_names_a_test_with_or_without_its_suite() {
    let own = test("p::b", "a::t", "b");
    for check in [
        "t",
        "a::t",
        "p::b$a::t",
        "p::b a::t",
        "p::b::a::t",
        "b$a::t",
        "b::a::t",
    ] {
        assert!(is_check(check, &own), "{check}");
    }
    for check in [
        "tt",
        "a::tt",
        "q$a::t",
        "q::b$a::t",
        "::b::a::t",
        "$a::t",
        "::t",
        "",
    ] {
        assert!(!is_check(check, &own), "{check}");
    }
    // Of the unit tests of a library and of a binary the suite is a package's name, with its dashes, or a path.
    for (suite, krate, check) in [
        ("p-q", "p_q", "p_q::a::t"),
        ("p-q::bin/r-s", "r_s", "r_s::a::t"),
    ] {
        let own = test(suite, "a::t", krate);
        assert!(is_check(check, &own), "{check}");
        assert!(!is_check(&check.replacen('_', "x", 1), &own), "{check}");
    }
    let phase = Test {
        kind: Need::Smoke,
        ..test("smokes", "smoke::x", "")
    };
    assert!(is_check("x", &phase) && is_check("smoke::x", &phase));
}

#[m0_spec::row(T29)]
#[test]
fn what_results_alone_tell_of_stands_where_its_line_says_else_at_that_line() {
    let phase = |name: &str, place: Option<(&str, usize)>| Outcome {
        rows: vec!["E1".into()],
        place: place.map(|(file, line)| (file.into(), line)),
        line: 7,
        ..outcome("", name, Verdict::Passed)
    };
    let results = Results {
        outcomes: vec![
            phase("smoke::told", Some(("smokes/a.rs", 12))),
            phase("smoke::untold", None),
        ],
        ..Results::default()
    };
    let graph = join(Vec::new(), results);
    let places: Vec<String> = graph.edges.iter().map(|edge| edge.at.to_string()).collect();
    assert_eq!(places, ["smokes/a.rs:12:1", "r:7:1"]);
}
