//! Other ways to break a promise than an edit: a commit taken back, features and variables; and its bounds.

use super::fixture::{CAUGHT, CRATE, Fixture, SHELL_GATES, SUM, TAP};

/// A repository whose second commit fixes `add`, tests it and says so; the id of that commit.
fn fixed(rule: &str) -> (Fixture, String) {
    let spaced = |text: &str| format!("# one\n# two\n# three\n{text}# four\n# five\n# six\n");
    let fixture = Fixture::new(&[
        ("sum.sh", &spaced(&SUM.replace("$1 + $2", "$1 - $2"))),
        ("other.sh", "twice() { echo $(( $1 + $1 + 1 )); }\n"),
        ("tests/t.sh", "echo 1..1\necho ok - nothing\n"),
        (
            "sabotage/gates.yaml",
            &SHELL_GATES.replace("sh t.sh", "sh tests/t.sh"),
        ),
    ]);
    fixture.write("sum.sh", &spaced(SUM));
    fixture.write("other.sh", "twice() { echo $(( $1 + $1 )); }\n");
    fixture.write("tests/t.sh", TAP);
    fixture.write("CHANGES.md", "add adds\n");
    fixture.commit("fix");
    let commit = fixture.git(&["rev-parse", "HEAD"]).trim().to_owned();
    fixture.write("sabotage/rules/r.yaml", &rule.replace("COMMIT", &commit));
    (fixture, commit)
}

const REVERT: &str = "- id: add-was-wrong\n  promise: add adds.\n  revert: {commit: COMMIT, keep: [other.sh]}\n  expect: [{gate: tap, check: adds, message: 'got -1, want 5'}]\n";

#[m0_spec::row(B40)]
#[test]
fn a_fix_is_taken_back_and_its_tests_stay() {
    let (fixture, _) = fixed(REVERT);
    fixture.check(&[], 0, &[("add-was-wrong", "caught")]);
    let shown = fixture.run(&["show", "add-was-wrong"]).out;
    assert!(
        shown.contains("+++ b/sum.sh") && shown.contains("+add() { echo $(( $1 - $2 )); }"),
        "{shown}"
    );
    assert!(
        !shown.contains("other.sh") && !shown.contains("t.sh") && !shown.contains("CHANGES"),
        "{shown}"
    );
    fixture.write(
        "sabotage/rules/r.yaml",
        &REVERT
            .replace("COMMIT", "HEAD")
            .replace(", keep: [other.sh]", ""),
    );
    assert!(
        fixture
            .run(&["show", "add-was-wrong"])
            .out
            .contains("+++ b/other.sh")
    );
    // What moved is found by its surroundings.
    fixture.write(
        "sum.sh",
        &format!("# zero\n# zero\n# one\n# two\n# three\n{SUM}# four\n# five\n# six\n"),
    );
    fixture.check(&[], 0, &[("add-was-wrong", "caught")]);
}

#[m0_spec::row(B40, B4)]
#[test]
fn a_commit_that_no_longer_fits_is_stale() {
    let (fixture, commit) = fixed(REVERT);
    let stale = |text: &str, part: &str| {
        fixture.write("sum.sh", text);
        let answer = fixture.run(&["lint"]);
        assert_eq!(answer.code, 3, "{}", answer.out);
        assert!(
            answer.out.contains("BROKEN: stale") && answer.out.contains(part),
            "{}",
            answer.out
        );
    };
    let changed = format!("r.yaml:3:20: sum.sh:4 of `{commit}` has other surroundings now");
    stale(
        &format!(
            "# one\n# two\n# three\n{}# four\n# five\n# six\n",
            SUM.replace("$1 + $2", "$2 + $1")
        ),
        &changed,
    );
    let part = format!("# one\n# two\n# three\n{SUM}# four\n# five\n# six\n");
    stale(&format!("{part}{part}"), "fits in several places now");
    fixture.write("sabotage/rules/r.yaml", &REVERT.replace("COMMIT", "v9"));
    stale(&part, "r.yaml:3:20: no commit `v9`");
    let none = REVERT
        .replace("COMMIT", "HEAD")
        .replace("other.sh", "'*.sh'");
    fixture.write("sabotage/rules/r.yaml", &none);
    stale(
        &part,
        "changes nothing but tests, documents and what is kept",
    );
}

#[m0_spec::row(B42)]
#[test]
fn more_collateral_than_the_rule_allows_breaks_it() {
    let only = SHELL_GATES.replace("run: sh t.sh", "run: sh t.sh\n    only: sh t.sh {check}");
    let one = TAP
        .replace(
            "echo 1..2\n",
            "only=$1\n[ -n \"$only\" ] && echo 1..1 || echo 1..2\n",
        )
        .replace(
            "check() {",
            "check() { [ -z \"$only\" ] || [ \"$only\" = \"$1\" ] || return 0;",
        );
    let broad = CAUGHT.replace(
        "'$1 - $2'}",
        "'$1 - $2'}, {file: sum.sh, find: '0 - $1', with: '1 - $1'}",
    );
    let fixture = Fixture::shell(&broad);
    fixture.write("sabotage/gates.yaml", &only);
    fixture.write("t.sh", &one);
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
    let bound =
        |most: usize| broad.replace("  expect:", &format!("  max_collateral: {most}\n  expect:"));
    fixture.write("sabotage/rules/r.yaml", &bound(1));
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
    fixture.write("sabotage/rules/r.yaml", &bound(0));
    let answer = fixture.check(&[], 3, &[("adds-wrong", "broken-expectation")]);
    assert!(
        answer
            .out
            .contains("1 other checks fail with it, more than max_collateral (0): `negates`"),
        "{}",
        answer.out
    );
}

const LIB: &str = "pub fn add(a: u8, b: u8) -> u8 {\n    if cfg!(feature = \"points\") && std::env::var(\"POINT\").is_ok() {\n        return 0;\n    }\n    \
    if cfg!(feature = \"broken\") { 1 } else { a + b }\n}\n";

#[m0_spec::row(B41)]
#[test]
fn features_and_variables_arm_a_rule() {
    let rule = |id: &str, activate: &str| {
        format!(
            "- id: {id}\n  promise: It adds.\n  activate: {activate}\n  expect: [{{gate: unit, check: adds}}]\n"
        )
    };
    let rules = [
        rule("armed", "{features: [points], env: {POINT: '1'}}"),
        rule("not-built-in", "{env: {POINT: '1'}}"),
        rule("by-the-feature", "{features: [broken]}"),
        rule(
            "not-by-the-variable",
            "{features: [broken], env: {POINT: '1'}}",
        ),
        rule("no-such-feature", "{features: [pionts], env: {POINT: '1'}}"),
        rule("unused", "{features: [unused]}"),
    ];
    let features = "[features]\npoints = []\nbroken = []\nunused = []\n";
    let fixture = Fixture::cargo(&[
        ("Cargo.toml", &format!("{CRATE}\n{features}")),
        ("src/lib.rs", LIB),
        (
            "tests/it.rs",
            "#[test]\nfn adds() {\n    assert_eq!(fx::add(2, 3), 5);\n}\n",
        ),
        (
            "sabotage/gates.yaml",
            "gates:\n  unit: {cargo_test: --offline, timeout: 60s}\n  tap: {run: sh t.sh}\n",
        ),
        ("sabotage/rules/r.yaml", &rules.concat()),
    ]);
    let wanted = [
        ("armed", "caught"),
        ("not-built-in", "missed"),
        ("by-the-feature", "caught"),
        ("not-by-the-variable", "broken-expectation"),
        ("no-such-feature", "broken-expectation"),
        ("unused", "missed"),
    ];
    let answer = fixture.check(&["--no-elsewhere"], 3, &wanted);
    for part in [
        "with the features and without the variables it is CAUGHT already",
        "the gate does not build with the features",
    ] {
        assert!(answer.out.contains(part), "{part} in {}", answer.out);
    }
    let tap = rule("x", "{features: [points]}").replace("gate: unit", "gate: tap");
    fixture.write("sabotage/rules/r.yaml", &tap);
    let lint = fixture.run(&["lint"]);
    assert_eq!(lint.code, 3, "{}", lint.out);
    assert!(
        lint.out
            .contains("r.yaml:3:25: features need a gate that cargo builds, and `tap` is none"),
        "{}",
        lint.out
    );
}
