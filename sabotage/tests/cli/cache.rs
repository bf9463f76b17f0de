//! CAUGHT is taken from an earlier run where all that it rests on is the same, and nothing else is.

use serde_json::Value;

use super::fixture::{CAUGHT, Fixture, MISSED, SHELL_GATES, SUM, TAP};

/// A fixture whose gate writes a line for each of its runs, outside the tree.
fn counted(rules: &str, gates: &str) -> Fixture {
    let fixture = Fixture::shell(rules);
    let count = format!(
        "echo run >> {}\nbad=0\n",
        fixture.cache().with_file_name("runs").display()
    );
    fixture.write("t.sh", &TAP.replace("bad=0\n", &count));
    fixture.write("sabotage/gates.yaml", gates);
    fixture.commit("counts its runs");
    fixture
}

/// How often the gate ran since this was asked last.
fn runs(fixture: &Fixture) -> usize {
    let path = fixture.cache().with_file_name("runs");
    let count = std::fs::read_to_string(&path)
        .unwrap_or_default()
        .lines()
        .count();
    let _ = std::fs::remove_file(path);
    count
}

fn last(fixture: &Fixture, name: &str) -> Value {
    let dir = fixture
        .cache()
        .read_dir()
        .expect("a cache")
        .flatten()
        .next()
        .expect("a home");
    let last = std::fs::read_to_string(dir.path().join("last")).expect("a run ended");
    let text = std::fs::read_to_string(format!("{last}/{name}")).expect("written");
    if name.ends_with("jsonl") {
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a fact"))
            .collect()
    } else {
        serde_json::from_str(&text).expect("JSON")
    }
}

#[m0_spec::row(B38)]
#[test]
fn a_caught_rule_is_not_run_again_and_says_where_it_was_caught() {
    let fixture = counted(CAUGHT, SHELL_GATES);
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
    // Two clean runs, the rule, the sentinel.
    assert_eq!(runs(&fixture), 4);
    let first = last(&fixture, "evidence.json");
    assert_eq!(first[0]["cached"], Value::Null);
    fixture.write("notes.md", "none of its business\n");
    let inputs = format!("{SHELL_GATES}    inputs: [\"*.sh\"]\n");
    fixture.write("sabotage/gates.yaml", &inputs);
    fixture.commit("inputs are declared");
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
    assert_eq!(
        runs(&fixture),
        4,
        "another definition of the gate is another key"
    );
    let obtained = last(&fixture, "evidence.json")[0].clone();

    fixture.write("notes.md", "changed\n");
    fixture.commit("a change outside the inputs");
    let answer = fixture.check(&[], 0, &[("adds-wrong", "caught")]);
    assert_eq!(runs(&fixture), 0, "nothing is left to judge");
    assert!(
        answer.out.contains("1 rules: 1 caught, 0 missed, 1 cached"),
        "{}",
        answer.out
    );
    let now = last(&fixture, "evidence.json")[0].clone();
    assert_ne!(now["commit"], obtained["commit"]);
    assert_eq!(now["cached"]["commit"], obtained["commit"]);
    assert_eq!(now["cached"]["tree"], obtained["tree"]);
    assert_eq!(now["message"], obtained["message"]);
    assert_eq!(
        last(&fixture, "results.json")["rules"][0]["cached"],
        now["cached"]
    );
    let events = last(&fixture, "events.jsonl");
    let told = |event: &&Value| event["event"] == "verdict";
    let event = events
        .as_array()
        .expect("facts")
        .iter()
        .find(told)
        .expect("a verdict");
    assert_eq!(event["cached"], now["cached"]);

    fixture.check(&["--no-cache"], 0, &[("adds-wrong", "caught")]);
    assert_eq!(runs(&fixture), 4);
}

#[m0_spec::row(B38)]
#[test]
fn everything_that_a_verdict_rests_on_is_in_its_key() {
    let inputs = format!("{SHELL_GATES}    inputs: [sum.sh, t.sh, data/**]\n");
    let fixture = counted(CAUGHT, &inputs);
    let fresh = |why: &str, args: &[&str]| {
        fixture.check(args, 0, &[("adds-wrong", "caught")]);
        assert_eq!(runs(&fixture), 4, "{why}");
        fixture.check(args, 0, &[("adds-wrong", "caught")]);
        assert_eq!(runs(&fixture), 0, "{why}: the second time");
    };
    fresh("the first run", &[]);
    fixture.write("data/deep/table", "1\n");
    fresh("a new input", &[]);
    fixture.write("sum.sh", &format!("{SUM}# more\n"));
    fresh("the edited file", &[]);
    fixture.write(
        "sabotage/rules/r.yaml",
        &CAUGHT.replace("$1 - $2", "$1 - $2 + 0"),
    );
    fresh("the rule", &[]);
    fixture.write("sabotage/gates.yaml", &inputs.replace("20s", "21s"));
    fresh("a limit", &[]);
    fixture.write("poetry.lock", "1\n");
    fresh("a lock file", &[]);
    fixture.check(&["--repeat", "2"], 0, &[("adds-wrong", "caught")]);
    assert_eq!(runs(&fixture), 5, "more repeats");
    // What does not decide is not in it: the promise's words, another rule, the place in the file.
    let words = CAUGHT
        .replace("$1 - $2", "$1 - $2 + 0")
        .replace("add adds", "Sums are right");
    fixture.write("sabotage/rules/r.yaml", &format!("# moved\n\n{words}"));
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
    assert_eq!(runs(&fixture), 0);
    let rule = &last(&fixture, "results.json")["rules"][0];
    assert_eq!(rule["promise"], "Sums are right.");
    assert_eq!(rule["at"], "sabotage/rules/r.yaml:3:7");
}

#[m0_spec::row(B38)]
#[test]
fn only_caught_is_kept_and_only_what_the_clean_tree_confirmed() {
    let fixture = counted(&[CAUGHT, MISSED].concat(), SHELL_GATES);
    let wanted = [("adds-wrong", "caught"), ("negates-wrong", "missed")];
    fixture.check(&["--no-elsewhere"], 1, &wanted);
    assert_eq!(runs(&fixture), 5);
    fixture.check(&["--no-elsewhere"], 1, &wanted);
    assert_eq!(
        runs(&fixture),
        4,
        "the missed rule is asked again, between clean runs"
    );

    // The rule's run wears the tree out; what the red sentinel withdrew is not kept.
    let fixture = Fixture::shell(CAUGHT);
    let worn = fixture.cache().with_file_name("worn");
    let wear = format!(
        "[ \"$(add 1 1)\" = 2 ] || touch {0}\n[ -e {0} ] && [ \"$(add 1 1)\" = 2 ] && neg() {{ echo 9; }}\nbad=0\n",
        worn.display()
    );
    fixture.write("t.sh", &TAP.replace("bad=0\n", &wear));
    fixture.check(&[], 5, &[("adds-wrong", "infra")]);
    std::fs::remove_file(&worn).expect("the rule wore it out");
    fixture.check(&[], 5, &[("adds-wrong", "infra")]);
}
