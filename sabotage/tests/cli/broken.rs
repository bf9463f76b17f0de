//! Rules that prove nothing are named, with their place.

use super::fixture::{CAUGHT, Fixture};

#[track_caller]
fn lint(rules: &str, code: i32, parts: &[&str]) {
    let answer = Fixture::shell(rules).run(&["lint"]);
    assert_eq!(answer.code, code, "{}", answer.out);
    for part in parts {
        assert!(answer.out.contains(part), "{part} in {}", answer.out);
    }
}

#[m0_spec::row(B1)]
#[test]
fn a_wrong_word_has_its_place_and_the_right_one() {
    let key = CAUGHT.replace("promise:", "promis:");
    lint(
        &key,
        2,
        &["sabotage/rules/r.yaml:2:3: unknown key `promis`, did you mean `promise`?"],
    );
    lint(
        &CAUGHT.replace("  expect:", "  expectt:"),
        2,
        &["r.yaml:4:3: unknown key `expectt`"],
    );
    let twice = format!("{CAUGHT}{CAUGHT}");
    lint(
        &twice,
        2,
        &["r.yaml:5:7: the id `adds-wrong` stands at sabotage/rules/r.yaml:1:7 already"],
    );
}

#[m0_spec::row(B1, B7)]
#[test]
fn a_gate_or_check_that_is_not_there_breaks_the_expectation() {
    lint(
        &CAUGHT.replace("gate: tap", "gate: tpa"),
        3,
        &[
            "BROKEN: expectation",
            "r.yaml:4:19: no gate `tpa`",
            "did you mean `tap`?",
        ],
    );
    let check = CAUGHT.replace("check: adds,", "check: add,");
    let answer = Fixture::shell(&check).check(&[], 3, &[("adds-wrong", "broken-expectation")]);
    assert!(
        answer
            .out
            .contains("r.yaml:4:31: gate `tap` has no check `add`"),
        "{}",
        answer.out
    );
    assert!(
        answer.out.contains("did you mean `adds`?"),
        "{}",
        answer.out
    );
}

#[m0_spec::row(B7)]
#[test]
fn a_row_that_is_not_there_breaks_the_expectation() {
    let fixture = Fixture::shell(&CAUGHT.replace("  edits:", "  rows: [R7]\n  edits:"));
    fixture.write("spec/r.yaml", "- id: R1\n- id: R2\n");
    let gates = super::fixture::SHELL_GATES;
    fixture.write(
        "sabotage/gates.yaml",
        &format!("rows: {{files: spec/*.yaml, pattern: '^- id: (\\w+)'}}\n{gates}"),
    );
    let answer = fixture.run(&["lint"]);
    assert_eq!(answer.code, 3, "{}", answer.out);
    assert!(
        answer
            .out
            .contains("r.yaml:3:10: no row `R7`, did you mean `R"),
        "{}",
        answer.out
    );
}

#[m0_spec::row(B7)]
#[test]
fn a_message_that_the_clean_run_prints_proves_nothing() {
    let clean = CAUGHT.replace("got -1, want 5", "adds");
    let answer = Fixture::shell(&clean).check(&[], 3, &[("adds-wrong", "broken-expectation")]);
    assert!(
        answer.out.contains("matches what the clean run prints"),
        "{}",
        answer.out
    );
}

#[m0_spec::row(B4)]
#[test]
fn a_stale_anchor_names_its_place_and_the_nearest_line() {
    let near = CAUGHT.replace("find: '$1 + $2'", "find: 'add() { echo $(( $1 + $3 )); }'");
    lint(
        &near,
        3,
        &[
            "BROKEN: stale",
            "r.yaml:3:32: the anchor matches nothing",
            "the nearest line is sum.sh:1:1",
        ],
    );
    let twice = CAUGHT.replace("'$1 + $2'", "'$1'");
    lint(
        &twice,
        3,
        &[
            "BROKEN: stale",
            "the anchor matches 2 times in `sum.sh` (lines 1, 2)",
        ],
    );
    lint(
        &CAUGHT.replace("sum.sh", "sun.sh"),
        3,
        &["BROKEN: stale", "there is no text file `sun.sh`"],
    );
    lint(
        &CAUGHT.replace("sum.sh", "../sum.sh"),
        3,
        &["is no path inside the repository"],
    );
}

#[m0_spec::row(B3, B4)]
#[test]
fn a_patch_does_not_move_to_another_function() {
    let body = |name: &str, sum: &str| {
        format!("fn {name}(a: u8) -> u8 {{\n    let b = 1;\n    {sum}\n}}\n\n")
    };
    let rule = "- id: one\n  promise: It holds.\n  edits:\n    - file: a.rs\n      in: fn first\n      patch: |2\n             let b = 1;\n        -    a + b\n        +    a - b\n  \
        expect: [{gate: tap, check: adds}]\n";
    let fixture = Fixture::shell(rule);
    fixture.write(
        "a.rs",
        &[body("first", "a + b"), body("second", "a + b")].concat(),
    );
    let fits = fixture.run(&["show", "one"]).out;
    assert!(
        fits.contains("@@ -2,2 +2,2 @@") || fits.contains("@@ -3,1 +3,1 @@"),
        "{fits}"
    );
    // The function was rewritten; git apply and patch would now change the other one, and exit 0.
    fixture.write(
        "a.rs",
        &[body("first", "b + a"), body("second", "a + b")].concat(),
    );
    let stale = fixture.run(&["lint"]);
    assert_eq!(stale.code, 3, "{}", stale.out);
    assert!(
        stale.out.contains("BROKEN: stale") && stale.out.contains("matches nothing in `fn first`"),
        "{}",
        stale.out
    );
}
