//! One known caught, one missed, one BROKEN, in three languages; and what else a rule may declare.

use super::fixture::{CAUGHT, Fixture, MISSED, STALE};

#[m0_spec::row(B13, B15, B4)]
#[test]
fn shell_with_tap() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let wanted = [
        ("adds-wrong", "caught"),
        ("negates-wrong", "missed"),
        ("gone", "broken-stale"),
    ];
    let answer = fixture.check(&[], 3, &wanted);
    assert!(
        answer.out.contains("1 caught, 2 missed, 1 BROKEN: stale"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("s a rule"), "{}", answer.out);
}

#[m0_spec::row(B13, B15, B5)]
#[test]
fn python_with_unittest() {
    let gates = "gates:\n  unit:\n    run: python3 -m unittest -v 2>&1\n    only: 'python3 -m unittest -v {check} 2>&1'\n    \
        results: regex\n    pattern: {pass: '^\\w+ \\((?P<check>[\\w.]+)\\) \\.\\.\\. ok$', fail: '^\\w+ \\((?P<check>[\\w.]+)\\) \\.\\.\\. (FAIL|ERROR)$'}\n    \
        exit: {pass: [0], fail: [1], empty: [5]}\n    timeout: 60s\n";
    let rules = "- id: area-wrong\n  promise: area multiplies.\n  edits: [{file: shape.py, find: 'a * b', with: 'a + b'}]\n  \
        expect: [{gate: unit, check: test_shape.Shape.test_area}]\n\
        - id: edge-wrong\n  promise: edge adds.\n  edits: [{file: shape.py, find: 'a + a', with: 'a * a'}]\n  \
        expect: [{gate: unit, check: test_shape.Shape.test_edge}]\n\
        - id: same\n  promise: Nothing changes.\n  edits: [{file: shape.py, find: 'a * b', with: 'a * b'}]\n  \
        expect: [{gate: unit, check: test_shape.Shape.test_area}]\n";
    let fixture = Fixture::new(&[
        (
            "shape.py",
            "def area(a, b):\n    return a * b\n\n\ndef edge(a):\n    return a + a\n",
        ),
        (
            "test_shape.py",
            "import unittest\nimport shape\n\n\nclass Shape(unittest.TestCase):\n    def test_area(self):\n        \
             self.assertEqual(shape.area(2, 3), 6)\n\n    def test_edge(self):\n        self.assertEqual(shape.edge(2), 4)\n",
        ),
        (".gitignore", "__pycache__/\n"),
        ("sabotage/gates.yaml", gates),
        ("sabotage/rules/r.yaml", rules),
    ]);
    let wanted = [
        ("area-wrong", "caught"),
        ("edge-wrong", "missed"),
        ("same", "broken-inert"),
    ];
    fixture.check(&[], 3, &wanted);
}

#[m0_spec::row(B15)]
#[test]
fn a_rule_that_nobody_notices_ends_the_run_with_1() {
    let alone = Fixture::shell(MISSED);
    alone.check(&[], 1, &[("negates-wrong", "missed")]);
    let beside = Fixture::shell(&[CAUGHT, MISSED].concat());
    let told = [("adds-wrong", "caught"), ("negates-wrong", "missed")];
    beside.check(&[], 1, &told);
}

#[m0_spec::row(B14)]
#[test]
fn another_check_that_notices_is_told() {
    let elsewhere = CAUGHT.replace("check: adds, message: 'got -1, want 5'", "check: negates");
    let answer = Fixture::shell(&elsewhere).check(&[], 1, &[("adds-wrong", "caught-elsewhere")]);
    assert!(answer.out.contains("`adds` notices"), "{}", answer.out);
    let other = CAUGHT.replace("got -1, want 5", "got 6");
    Fixture::shell(&other).check(&[], 1, &[("adds-wrong", "caught-elsewhere")]);
}

#[m0_spec::row(B13)]
#[test]
fn all_expected_checks_must_fail_where_the_rule_says_all() {
    let both = "[{gate: tap, check: adds}, {gate: tap, check: negates}]";
    let any = CAUGHT.replace(
        "[{gate: tap, check: adds, message: 'got -1, want 5'}]",
        both,
    );
    Fixture::shell(&any).check(&[], 0, &[("adds-wrong", "caught")]);
    let all = CAUGHT.replace(
        "[{gate: tap, check: adds, message: 'got -1, want 5'}]",
        &format!("{{all: {both}}}"),
    );
    Fixture::shell(&all).check(&["--no-elsewhere"], 1, &[("adds-wrong", "missed")]);
}

#[m0_spec::row(B27)]
#[test]
fn a_control_that_fails_too_breaks_the_rule() {
    let control = CAUGHT.replace(
        "  expect:",
        "  must_pass: [{gate: tap, check: negates}]\n  expect:",
    );
    Fixture::shell(&control).check(&[], 0, &[("adds-wrong", "caught")]);
    let broad = control.replace(
        "'$1 - $2'}",
        "'$1 - $2'}, {file: sum.sh, find: '0 - $1', with: '1 - $1'}",
    );
    let answer = Fixture::shell(&broad).check(&[], 3, &[("adds-wrong", "broken-expectation")]);
    assert!(
        answer.out.contains("the control `negates`"),
        "{}",
        answer.out
    );
}

#[m0_spec::row(B20)]
#[test]
fn a_known_gap_is_declared_and_one_that_closed_is_told() {
    let gap = "  known_gap: {why: No test yet., until: 2999-01-01}\n";
    Fixture::shell(&format!("{MISSED}{gap}")).check(&[], 0, &[("negates-wrong", "known-gap")]);
    Fixture::shell(&format!("{CAUGHT}{gap}")).check(&[], 6, &[("adds-wrong", "gap-closed")]);
}

#[m0_spec::row(B16)]
#[test]
fn measuring_nothing_is_no_success() {
    let skip = format!("{CAUGHT}  skip: {{why: Not now., until: 2999-01-01}}\n");
    Fixture::shell(&skip).check(&[], 7, &[("adds-wrong", "skipped")]);
    Fixture::shell("# none\n").check(&[], 7, &[]);
    let past = format!("{CAUGHT}  skip: {{why: Not now., until: 2001-01-01}}\n");
    let lint = Fixture::shell(&past).run(&["lint"]);
    assert_eq!(lint.code, 3, "{}", lint.out);
    assert!(
        lint.out.contains("the waiver ended on 2001-01-01"),
        "{}",
        lint.out
    );
}

#[m0_spec::row(B23)]
#[test]
fn shards_are_disjoint_and_whole() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let mut all = Vec::new();
    for shard in ["1/2", "2/2"] {
        let (_, verdicts, _) = fixture.verdicts(&["--shard", shard]);
        all.extend(verdicts.into_iter().map(|(rule, _)| rule));
    }
    all.sort();
    assert_eq!(all, ["adds-wrong", "gone", "negates-wrong"]);
    assert_eq!(fixture.run(&["run", "--shard", "3/2"]).code, 2);
}
