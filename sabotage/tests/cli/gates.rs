//! The clean tree first: a gate that is not green there decides nothing.

use super::fixture::{CAUGHT, Fixture, MISSED, SHELL_GATES, STALE, TAP};

#[track_caller]
fn bad(fixture: &Fixture, parts: &[&str]) {
    let (code, verdicts, answer) = fixture.verdicts(&[]);
    assert_eq!((code, verdicts.len()), (4, 0), "{}", answer.out);
    for part in parts {
        assert!(answer.out.contains(part), "{part} in {}", answer.out);
    }
}

#[m0_spec::row(B8)]
#[test]
fn a_red_gate_gives_no_verdict() {
    let fixture = Fixture::shell(CAUGHT);
    fixture.write(
        "t.sh",
        &TAP.replace(
            "check negates \"$(neg 0)\" 0",
            "check negates \"$(neg 0)\" 1",
        ),
    );
    bad(
        &fixture,
        &[
            "GATE red tap",
            "`negates` fails on the clean tree: got 0, want 1",
        ],
    );
}

#[m0_spec::row(B8)]
#[test]
fn a_flaky_gate_gives_no_verdict() {
    let fixture = Fixture::shell(CAUGHT);
    let flip = "if [ -e flip ]; then rm flip; else touch flip; fi\n. ./sum.sh\n[ -e flip ] && neg() { echo 1; }\n";
    fixture.write("t.sh", &TAP.replace(". ./sum.sh\n", flip));
    bad(&fixture, &["GATE flaky tap", "`negates`"]);
}

#[m0_spec::row(B8)]
#[test]
fn a_gate_that_runs_too_little_gives_no_verdict() {
    let fixture = Fixture::shell(CAUGHT);
    fixture.write(
        "sabotage/gates.yaml",
        &format!("{SHELL_GATES}    min_checks: 3\n"),
    );
    bad(
        &fixture,
        &["GATE empty tap", "2 checks ran, fewer than min_checks (3)"],
    );
}

#[m0_spec::row(B22)]
#[test]
fn verdicts_are_withdrawn_when_the_clean_tree_is_red_afterwards() {
    let fixture = Fixture::shell(CAUGHT);
    // The third clean run, which is the sentinel, finds what the rule's run left behind.
    let wear = "[ \"$(add 1 1)\" = 2 ] || touch worn\n[ -e worn ] && [ \"$(add 1 1)\" = 2 ] && neg() { echo 9; }\n";
    fixture.write("t.sh", &TAP.replace("bad=0\n", &format!("bad=0\n{wear}")));
    let answer = fixture.check(&[], 5, &[("adds-wrong", "infra")]);
    assert!(answer.out.contains("not green any more"), "{}", answer.out);
}

#[m0_spec::row(B52)]
#[test]
fn the_matrix_names_every_check_of_every_gate_that_notices() {
    let both = "- id: both-wrong\n  promise: Both hold.\n  edits:\n    - {file: sum.sh, find: '$1 + $2', with: '$1 - $2'}\n    - {file: sum.sh, find: '0 - $1', with: '1 - $1'}\n  \
         expect: [{gate: tap, check: adds}]\n";
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE, both].concat());
    let more = "  same: {run: sh t.sh, results: exit, exit: {pass: [0], fail: [1]}, timeout: 20s}\n  red: {run: 'exit 1', results: exit, exit: {pass: [0], fail: [1]}, timeout: 20s}\n";
    fixture.write("sabotage/gates.yaml", &format!("{SHELL_GATES}{more}"));
    let path = fixture.cache().with_file_name("results.json");
    let answer = fixture.run(&["run", "--matrix", "--json", &path.display().to_string()]);
    assert_eq!(answer.code, 3, "{}", answer.out);
    let text = std::fs::read_to_string(path).expect("written");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let noticed: Vec<&serde_json::Value> =
        (0..4).map(|at| &results["rules"][at]["noticed"]).collect();
    assert_eq!(noticed[0], &serde_json::json!(["same: exit", "tap: adds"]));
    assert_eq!(noticed[1], &serde_json::json!([]));
    assert!(
        noticed[2].is_null(),
        "a rule that is BROKEN was not asked about"
    );
    assert_eq!(
        noticed[3],
        &serde_json::json!(["same: exit", "tap: adds", "tap: negates"])
    );
    assert!(
        answer
            .out
            .contains("adds-wrong: noticed by 2: same: exit, tap: adds\n"),
        "{}",
        answer.out
    );
    assert!(
        answer.out.contains("gate red as a whole is red"),
        "{}",
        answer.out
    );
}
