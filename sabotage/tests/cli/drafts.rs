//! Commands that help to write rules: a draft from a fix, a shell in the broken copy, and the proof of the gates.

use std::process::Stdio;

use super::fixture::{CAUGHT, Fixture, SHELL_GATES};

const WRONG: &str = "pub fn add(a: u8, b: u8) -> u8 {\n    a - b\n}\n\npub fn twice(a: u8) -> u8 {\n    let b = a;\n    log();\n    a - b\n}\n\nfn log() {}\n";
const RIGHT: &str = "pub fn add(a: u8, b: u8) -> u8 {\n    a + b\n}\n\npub fn twice(a: u8) -> u8 {\n    let b = a;\n    a + b\n}\n\nfn log() {}\n";
const TESTS: &str = "#[test]\nfn adds() {\n    assert_eq!(fx::add(2, 1), 3);\n}\n\nfn helper() -> u8 {\n    2\n}\n\n#[test]\nfn doubles() {\n    assert_eq!(fx::twice(helper()), 4);\n}\n";

#[m0_spec::row(B47)]
#[test]
fn a_rule_drafted_from_a_fix_applies_and_names_its_tests() {
    let fixture = Fixture::cargo(&[
        ("src/lib.rs", WRONG),
        ("tests/it.rs", "#[test]\nfn nothing() {}\n"),
    ]);
    fixture.write("src/lib.rs", RIGHT);
    fixture.write("tests/it.rs", TESTS);
    fixture.write("CHANGES.md", "sums\n");
    fixture.commit("Sums: add & twice are right");
    let drafted = fixture
        .command(&["from-fix", "HEAD"])
        .output()
        .expect("runs");
    assert!(drafted.status.success(), "{drafted:?}");
    let draft = String::from_utf8_lossy(&drafted.stdout).into_owned();
    for part in [
        "- id: sums-add-twice-are-right",
        "in: fn add",
        "in: fn twice",
        "    - {gate: unit, check: \"adds\"}",
        "    # - {gate: unit, check: \"doubles\"}",
    ] {
        assert!(draft.contains(part), "{part} in {draft}");
    }
    assert!(
        !draft.contains("helper") && !draft.contains("CHANGES"),
        "{draft}"
    );
    fixture.write("sabotage/rules/r.yaml", &draft);
    fixture.check(&[], 0, &[("sums-add-twice-are-right", "caught")]);
    let shown = fixture.run(&["show", "sums-add-twice-are-right"]).out;
    assert!(
        shown.contains("+    log();"),
        "what the fix took away is back: {shown}"
    );
    fixture.commit("a rule");
    let none = fixture.run(&["from-fix", "HEAD"]);
    assert_eq!(none.code, 7, "{}", none.out);
    assert_eq!(fixture.run(&["from-fix", "v9"]).code, 2);
}

#[m0_spec::row(B48, B2)]
#[test]
fn a_shell_sees_the_broken_copy_and_leaves_it_whole() {
    let fixture = Fixture::shell(CAUGHT);
    let before = fixture.state();
    let output = fixture
        .command(&["shell", "adds-wrong"])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("changed sum.sh") && text.contains("should go red: adds, by: sh t.sh"),
        "{text}"
    );
    let shell = |script: &str| {
        let answer = fixture
            .command(&["shell", "adds-wrong", "--", "sh", "-c", script])
            .output()
            .expect("runs");
        assert!(answer.status.success(), "{answer:?}");
        String::from_utf8_lossy(&answer.stdout).into_owned()
    };
    let out = shell("sh t.sh; pwd; echo more >> t.sh; exit 9");
    assert!(out.contains("not ok - adds"), "{out}");
    let copy = out.lines().last().expect("a directory");
    assert_eq!(
        std::fs::read_to_string(format!("{copy}/sum.sh")).expect("read"),
        super::fixture::SUM
    );
    assert!(
        shell("sh t.sh").contains("not ok - adds"),
        "what was written there is gone the next time"
    );
    assert_eq!(fixture.state(), before);
    assert_eq!(fixture.run(&["shell", "ads-wrong"]).code, 2);
    let gone = CAUGHT.replace("$1 + $2", "$1 * $2");
    fixture.write("sabotage/rules/r.yaml", &gone);
    let stale = fixture.run(&["shell", "adds-wrong"]);
    assert_eq!(stale.code, 3, "{}", stale.out);
}

#[m0_spec::row(B49)]
#[test]
fn a_gate_that_cannot_go_red_is_named() {
    let fixture = Fixture::shell(CAUGHT);
    fixture.write("blind.sh", "true\n");
    let good = fixture.run(&["doctor", "--prove-gates"]);
    assert_eq!(good.code, 0, "{}", good.out);
    assert!(
        good.out.contains("ok   tap goes red with every file empty"),
        "{}",
        good.out
    );
    let gates = format!("{SHELL_GATES}  blind: {{run: sh blind.sh || true, results: exit}}\n");
    fixture.write("sabotage/gates.yaml", &gates);
    let blind = fixture.run(&["doctor", "--prove-gates"]);
    assert_eq!(blind.code, 4, "{}", blind.out);
    for part in [
        "GATE blind: stays green whatever the files hold",
        "ok   tap goes red",
    ] {
        assert!(blind.out.contains(part), "{part} in {}", blind.out);
    }
    fixture.write(
        "sabotage/gates.yaml",
        &SHELL_GATES.replace("sh t.sh", "false"),
    );
    let red = fixture.run(&["doctor", "--prove-gates"]);
    assert_eq!(red.code, 4, "{}", red.out);
    assert!(
        red.out.contains("GATE tap: not green on the clean tree"),
        "{}",
        red.out
    );
    fixture.write("sabotage/gates.yaml", "gates: {}\n");
    assert_eq!(fixture.run(&["doctor", "--prove-gates"]).code, 7);
}
