//! A change is taken back hunk by hunk: what its tests hold is told from what they do not.

use super::fixture::{Fixture, SHELL_GATES, SUM, TAP};

/// A repository whose last commit fixes two functions and tests one of them.
fn fixed() -> Fixture {
    let wrong = SUM
        .replace("$1 + $2", "$1 - $2")
        .replace("0 - $1", "0 + $1 + 0");
    let weak = TAP.replace("check adds \"$(add 2 3)\" 5\n", "check adds 1 1\n");
    let spaced = |text: &str| text.replace('\n', "\n#\n#\n#\n");
    let fixture = Fixture::new(&[
        ("sum.sh", &spaced(&wrong)),
        ("t.sh", &weak),
        ("sabotage/gates.yaml", SHELL_GATES),
    ]);
    fixture.write("sum.sh", &spaced(SUM));
    fixture.write("t.sh", TAP);
    fixture.commit("fix");
    fixture
}

#[m0_spec::row(B19)]
#[test]
fn each_hunk_is_held_or_not() {
    let fixture = fixed();
    let answer = fixture.run(&["prove", "HEAD"]);
    assert_eq!(answer.code, 1, "{}", answer.out);
    for part in [
        "sum.sh:1-1: held by tap: adds",
        "sum.sh:5-5: NOT HELD by any test",
        "the whole change: held by tap: adds",
        "2 hunks: 1 held, 0 held elsewhere, 1 not held",
    ] {
        assert!(answer.out.contains(part), "{part} in {}", answer.out);
    }
}

#[m0_spec::row(B19)]
#[test]
fn a_branch_is_proven_from_where_it_left() {
    let fixture = fixed();
    let answer = fixture.run(&["prove", "--base", "HEAD~1"]);
    assert_eq!(answer.code, 1, "{}", answer.out);
    fixture.write(
        "t.sh",
        &TAP.replace("adds \"$(add 2 3)\" 5", "adds \"$(add 2 3)\" 6"),
    );
    fixture.commit("a test that is wrong");
    let red = fixture.run(&["prove", "--base", "HEAD~2"]);
    assert_eq!(red.code, 4, "{}", red.out);
    assert!(red.out.contains("GATE red"), "{}", red.out);
}

#[m0_spec::row(B55)]
#[test]
fn an_import_beside_a_fix_is_not_called_held_by_no_test() {
    let lib = "pub fn zero() -> u8 {\n    1\n}\n\npub fn text() -> String {\n    String::new()\n}\n\n\n\n";
    let fixture = Fixture::cargo(&[("src/lib.rs", lib)]);
    let fixed = lib.replace("    1\n", "    0\n");
    fixture.write(
        "src/lib.rs",
        &format!("use std::fmt::Write as _;\n\n\n\n\n\n{fixed}"),
    );
    let test = "#[test]\nfn zero() {\n    assert_eq!(fx::zero(), 0);\n}\n";
    fixture.write("tests/it.rs", test);
    fixture.commit("fix");
    let answer = fixture.run(&["prove", "HEAD"]);
    assert_eq!(answer.code, 0, "{}", answer.out);
    for part in [
        "src/lib.rs:1-6: inconclusive: it is an import that nothing uses",
        "2 hunks: 1 held, 0 held elsewhere, 0 not held, 1 not separable",
    ] {
        assert!(answer.out.contains(part), "{part} in {}", answer.out);
    }
}

#[m0_spec::row(B53)]
#[test]
fn what_the_repository_names_as_tests_is_kept_and_what_stands_beside_it_is_not() {
    let gates = SHELL_GATES.replace("sh t.sh", "sh walks/way.sh");
    let way = |wanted: &str| {
        format!(
            ". ./walks/client.sh\necho 1..1\n[ \"$(ask)\" {wanted} ] && echo 'ok - answers' && exit 0\necho 'not ok - answers'\nexit 1\n"
        )
    };
    let changed = |named: &str| {
        let fixture = Fixture::new(&[
            ("walks/client.sh", "ask() { echo no; }\n"),
            ("walks/way.sh", &way("!= maybe")),
            ("sabotage/gates.yaml", &format!("{named}{gates}")),
        ]);
        fixture.write("walks/client.sh", "ask() { echo yes; }\n");
        fixture.write("walks/way.sh", &way("= yes"));
        fixture.commit("the client answers");
        fixture
    };
    let named = changed("tests: [walks/way.sh]\n").run(&["prove", "HEAD"]);
    assert_eq!(named.code, 0, "{}", named.out);
    for part in [
        "walks/client.sh:1-1: held by tap: answers",
        "1 hunks: 1 held, 0 held elsewhere, 0 not held",
    ] {
        assert!(named.out.contains(part), "{part} in {}", named.out);
    }
    let unnamed = changed("").run(&["prove", "HEAD"]);
    assert!(
        unnamed.out.contains("walks/way.sh:3-3: NOT HELD"),
        "{}",
        unnamed.out
    );
    let gone = changed("tests: [walks/*.sh, way/**]\n").run(&["lint"]);
    let place = "sabotage/gates.yaml:1:21: `tests`: no file is `way/**`";
    assert!(gone.out.contains(place), "{}", gone.out);
}
