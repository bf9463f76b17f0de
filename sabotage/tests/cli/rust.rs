//! Rust with cargo test: anchors by tokens, compile errors told from failed tests, inert rules.

use super::fixture::Fixture;

const LIB: &str = "//! Sums.\n\npub struct Sum(pub i32);\n\nimpl Sum {\n    /// Adds.\n    pub fn add(&self, other: i32) -> i32 {\n        \
    // the sum\n        self.0 + other\n    }\n\n    pub fn twice(&self) -> i32 {\n        self.0 + self.0\n    }\n}\n\n\
    pub fn negative(n: i32) -> bool {\n    if n < 0 {\n        return true;\n    }\n    false\n}\n";
const TESTS: &str = "use fx::{Sum, negative};\n\n#[test]\nfn adds() {\n    assert_eq!(Sum(2).add(3), 5, \"wrong sum\");\n}\n\n\
    #[test]\nfn doubles() {\n    assert_eq!(Sum(2).twice(), 4);\n}\n\n#[test]\nfn signs() {\n    assert!(negative(-1));\n    assert!(!negative(1));\n}\n";

fn rule(id: &str, inside: &str, find: &str, with: &str, check: &str) -> String {
    format!(
        "- id: {id}\n  promise: It holds.\n  edits:\n    - file: src/lib.rs\n      in: {inside}\n      find: \"{find}\"\n      with: \"{with}\"\n  \
         expect: [{{gate: unit, check: {check}}}]\n"
    )
}

fn fixture(rules: &str) -> Fixture {
    Fixture::cargo(&[
        ("src/lib.rs", LIB),
        ("tests/it.rs", TESTS),
        ("sabotage/rules/r.yaml", rules),
    ])
}

#[m0_spec::row(B3, B5, B6, B13, B15, B18)]
#[test]
fn caught_missed_and_each_kind_of_broken_in_both_ways() {
    let rules = [
        rule(
            "adds-wrong",
            "impl Sum",
            "self . 0+other",
            "self.0 - other",
            "adds",
        ),
        rule(
            "twice-wrong",
            "fn Sum::twice",
            "self.0 + self.0",
            "self.0 * self.0",
            "it::doubles",
        ),
        rule(
            "uncompilable",
            "fn negative",
            "return true;",
            "return 1;",
            "signs",
        ),
        rule(
            "comment-only",
            "fn add",
            "self.0 + other",
            "self.0 /* more */ + other",
            "adds",
        ),
        rule("twice-there", "impl Sum", "self.0 +", "self.0 -", "adds"),
        rule("no-such-fn", "fn ad", "self.0 + other", "0", "adds"),
        rule(
            "signs-wrong",
            "fn negative",
            "if n < 0 {",
            "if n < 1 && n != 1 && n >= 0 {",
            "signs",
        ),
    ];
    let wanted = [
        ("adds-wrong", "caught"),
        ("twice-wrong", "missed"),
        ("uncompilable", "broken-uncompilable"),
        ("comment-only", "broken-inert"),
        ("twice-there", "broken-stale"),
        ("no-such-fn", "broken-stale"),
        ("signs-wrong", "caught"),
    ];
    let fixture = fixture(&rules.concat());
    for (way, built) in [
        (&["--per-rule"][..], "built alone"),
        (&[], "built together"),
    ] {
        let answer = fixture.check(way, 3, &wanted);
        let place = "src/lib.rs:19:16: mismatched types (inside the patch)";
        assert!(answer.out.contains(place), "{}", answer.out);
        assert!(answer.out.contains("did you mean `add`?"), "{}", answer.out);
        // Said before anything is built.
        let token = "the edits change no token of `src/lib.rs`";
        assert!(answer.out.contains(token), "{}", answer.out);
        assert!(answer.out.contains(built), "{}", answer.out);
    }
    let answer = fixture.run(&["run", "--no-cache", "twice-wrong", "adds-wrong"]);
    assert!(
        answer.out.contains("unnoticed: the patch ran"),
        "{}",
        answer.out
    );
    // A check that does not come to the patch cannot notice it.
    let rules = rules.concat().replace("check: signs", "check: adds");
    fixture.write("sabotage/rules/r.yaml", &rules);
    let answer = fixture.run(&[
        "run",
        "--no-cache",
        "signs-wrong",
        "adds-wrong",
        "--no-elsewhere",
    ]);
    assert!(
        answer
            .out
            .contains("unreached: no expected check runs the patch"),
        "{}",
        answer.out
    );
}

#[m0_spec::row(B18)]
#[test]
fn what_chose_a_rule_of_the_tool_itself_chooses_none_of_its_gates() {
    let both = [
        rule("adds-wrong", "fn add", "self.0 + other", "0", "adds"),
        rule(
            "twice-wrong",
            "fn twice",
            "self.0 + self.0",
            "self.0",
            "doubles",
        ),
    ];
    let fixture = fixture(&both.concat());
    // And a name in a body, whichever, is the body's own.
    let named = LIB.replace("other", "chosen");
    fixture.write("src/lib.rs", &named);
    let rules = both.concat().replace("other", "chosen");
    fixture.write("sabotage/rules/r.yaml", &rules);
    let output = fixture
        .command(&["run"])
        .env("SABOTAGE_RULE", "1")
        .env("SABOTAGE_WITNESS", fixture.cache().with_file_name("seen"))
        .output()
        .expect("the tool runs");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("2 rules: 2 caught, 0 missed"), "{output:?}");
    assert!(out.contains("one build for 2 rules"), "{output:?}");
}

#[m0_spec::row(B8, B18)]
#[test]
fn a_test_that_fails_every_second_time_is_flaky_also_where_one_build_holds_the_rules() {
    let both = [
        rule("adds-wrong", "fn add", "self.0 + other", "0", "adds"),
        rule("adds-worse", "fn add", "self.0 + other", "1", "adds"),
    ];
    let fixture = fixture(&both.concat());
    let flip = fixture.cache().with_file_name("flip");
    let flips = format!(
        "fn adds() {{\n    let flip = \"{}\";\n    assert!(std::fs::remove_file(flip).is_err(), \"the second time\");\n    \
         std::fs::write(flip, \"\").unwrap();\n",
        flip.display()
    );
    fixture.write("tests/it.rs", &TESTS.replace("fn adds() {\n", &flips));
    let (code, verdicts, answer) = fixture.verdicts(&[]);
    assert_eq!((code, verdicts.len()), (4, 0), "{}", answer.out);
    assert!(answer.out.contains("GATE flaky unit"), "{}", answer.out);
}

#[m0_spec::row(B54)]
#[test]
fn a_check_that_is_red_with_no_rule_chosen_has_its_own_rules_built_alone_and_no_others() {
    let all = [
        rule("adds-wrong", "fn add", "self.0 + other", "0", "adds"),
        rule(
            "twice-wrong",
            "fn twice",
            "self.0 + self.0",
            "self.0",
            "doubles",
        ),
        rule("twice-none", "fn twice", "self.0 + self.0", "0", "doubles"),
    ];
    let fixture = fixture(&all.concat());
    // Red wherever several rules are built in, after what it is about.
    let reads = "    assert!(!include_str!(\"../src/lib.rs\").contains(\"SABOTAGE_RULE\"), \"woven\");\n}\n";
    let (before, after) = TESTS.split_once("fn adds() {\n").expect("the test");
    let (body, after) = after.split_once("}\n").expect("its end");
    fixture.write(
        "tests/it.rs",
        &format!("{before}fn adds() {{\n{body}{reads}{after}"),
    );
    let json = fixture.cache().with_file_name("red.json");
    let path = json.display().to_string();
    let answer = fixture.run(&["run", "--no-cache", "--json", &path]);
    assert_eq!(answer.code, 0, "{}", answer.out);
    assert!(answer.out.contains("3 rules: 3 caught"), "{}", answer.out);
    let told = "none chosen, `it::adds` of gate unit is not green (Failed(";
    assert!(answer.out.contains(told), "{}", answer.out);
    let text = std::fs::read_to_string(json).expect("written");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let built = |rule: &str| {
        let records = results["rules"].as_array().expect("a list");
        let record = records.iter().find(|record| record["rule"] == rule);
        record.expect("judged")["built"].as_str().map(str::to_owned)
    };
    let built = ["adds-wrong", "twice-wrong", "twice-none"].map(built);
    assert_eq!(
        built.map(Option::unwrap_or_default),
        ["alone", "together", "together"]
    );
}

#[m0_spec::row(B7)]
#[test]
fn a_filter_that_matches_no_test_is_a_broken_expectation() {
    let rules = rule("adds-wrong", "fn add", "self.0 + other", "0", "addz");
    let fixture = fixture(&rules);
    let wanted = [("adds-wrong", "broken-expectation")];
    let answer = fixture.check(&["--per-rule"], 3, &wanted);
    let near = "has no check `addz` that runs clean, did you mean `adds`?";
    assert!(answer.out.contains(near), "{}", answer.out);
    // Where nothing is near, as in a rule that `sabotage new` has just made, the names are shown.
    let made = rules.replace("addz", "THE CHECK THAT SHOULD NOTICE");
    fixture.write("sabotage/rules/r.yaml", &made);
    let answer = fixture.check(&[], 3, &wanted);
    let all = "that runs clean; it lists `it::adds`, `it::doubles`, `it::signs`";
    assert!(answer.out.contains(all), "{}", answer.out);
}

#[m0_spec::row(B5)]
#[test]
fn code_that_no_executable_holds_is_inert() {
    let fixture = fixture(&rule("dead", "fn dead", "1 + 1", "1 + 2", "adds"));
    fixture.write(
        "src/lib.rs",
        &format!("{LIB}\n#[cfg(any())]\npub fn dead() -> i32 {{\n    1 + 1\n}}\n"),
    );
    let answer = fixture.check(&["--per-rule"], 3, &[("dead", "broken-inert")]);
    assert!(
        answer
            .out
            .contains("has the hash that it has without the rule"),
        "{}",
        answer.out
    );
}

#[m0_spec::row(B8)]
#[test]
fn a_clean_tree_that_does_not_compile_gives_no_verdict() {
    let fixture = fixture(&rule("adds-wrong", "fn add", "self.0 + other", "0", "adds"));
    fixture.write("tests/it.rs", &TESTS.replace("5, \"wrong sum\"", "five"));
    let (code, verdicts, answer) = fixture.verdicts(&[]);
    assert_eq!((code, verdicts.len()), (4, 0), "{}", answer.out);
    assert!(
        answer.out.contains("does not build: tests/it.rs:5:"),
        "{}",
        answer.out
    );
}
