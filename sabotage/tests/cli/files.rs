//! What a run writes, and what it prints: all of it agrees.

use super::fixture::{CAUGHT, Fixture, MISSED, STALE};
use serde_json::Value;

#[m0_spec::row(B21)]
#[test]
fn reports_and_events_agree() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let (junit, md) = (
        fixture.cache().with_file_name("j.xml"),
        fixture.cache().with_file_name("m.md"),
    );
    let (junit_text, md_text) = (junit.display().to_string(), md.display().to_string());
    let (_, verdicts, answer) = fixture.verdicts(&["--junit", &junit_text, "--md", &md_text]);
    let xml = std::fs::read_to_string(junit).expect("JUnit");
    let table = std::fs::read_to_string(md).expect("Markdown");
    assert!(xml.contains("tests=\"3\" failures=\"2\""), "{xml}");
    let dir = answer
        .out
        .lines()
        .find_map(|line| line.strip_prefix("details: "))
        .expect("the run's directory");
    let read = |name: &str| std::fs::read_to_string(format!("{dir}/{name}")).expect("written");
    let events: Vec<Value> = read("events.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a fact"))
        .collect();
    let evidence: Value = serde_json::from_str(&read("evidence.json")).expect("JSON");
    for (index, (rule, verdict)) in verdicts.iter().enumerate() {
        let told = |event: &&Value| event["event"] == "verdict" && event["rule"] == rule.as_str();
        assert_eq!(
            events.iter().find(told).expect("a fact")["verdict"],
            verdict.as_str()
        );
        assert_eq!(evidence[index]["rule"], rule.as_str());
        assert_eq!(evidence[index]["verdict"], verdict.as_str());
        assert!(table.contains(&format!("| {rule} |")), "{table}");
        let case = xml
            .lines()
            .find(|line| line.contains(&format!("name=\"{rule}\"")))
            .expect("a case");
        assert_eq!(case.contains("<failure"), verdict != "caught", "{case}");
    }
    assert_eq!(events.first().expect("some")["event"], "run_start");
    assert_eq!(events.last().expect("some")["event"], "run_end");
    assert_eq!(events.last().expect("some")["exit"], 3);
    let printed = fixture.run(&["evidence"]);
    assert_eq!(
        serde_json::from_str::<Value>(&printed.out).expect("JSON"),
        evidence
    );
}

#[m0_spec::row(B26)]
#[test]
fn from_init_to_a_verdict_in_five_commands() {
    let fixture = Fixture::new(&[
        ("Makefile", "test:\n\tsh t.sh\n"),
        ("t.sh", super::fixture::TAP),
        ("sum.sh", super::fixture::SUM),
    ]);
    let init = fixture.command(&["init"]).output().expect("runs");
    assert!(init.status.success(), "{init:?}");
    fixture.write("sum.sh", &super::fixture::SUM.replace("$1 + $2", "$1 - $2"));
    let made = fixture
        .command(&["new", "adds-wrong", "--from-diff"])
        .output()
        .expect("runs");
    let rule =
        String::from_utf8_lossy(&made.stdout).replace("THE CHECK THAT SHOULD NOTICE", "exit");
    fixture.write("sabotage/rules/first.yaml", &rule);
    fixture.write("sum.sh", super::fixture::SUM);
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
}

#[m0_spec::row(B2, B4)]
#[test]
fn a_rule_is_applied_to_a_copy_and_never_to_the_tree() {
    let fixture = Fixture::shell(CAUGHT);
    let refused = fixture.run(&["apply", "adds-wrong", "--dir", "."]);
    assert_eq!(refused.code, 2, "{}", refused.out);
    let copy = fixture.cache().with_file_name("copy");
    std::fs::create_dir_all(&copy).expect("made");
    std::fs::write(copy.join("sum.sh"), super::fixture::SUM).expect("written");
    let applied = fixture.run(&["apply", "adds-wrong", "--dir", &copy.display().to_string()]);
    assert_eq!(applied.code, 0, "{}", applied.out);
    assert!(
        std::fs::read_to_string(copy.join("sum.sh"))
            .expect("read")
            .contains("$1 - $2")
    );
}

#[m0_spec::row(B1)]
#[test]
fn the_schema_knows_every_key_that_the_parser_knows() {
    let fixture = Fixture::shell(CAUGHT);
    for (which, parsed, at) in [
        ("rules", "r", "/$defs/rule/properties"),
        ("gates", "g", "/$defs/gate/properties"),
    ] {
        let schema: Value =
            serde_json::from_str(&fixture.run(&["schema", which]).out).expect("JSON");
        let keys = schema
            .pointer(at)
            .and_then(Value::as_object)
            .expect("properties");
        // An unknown key makes the parser say which ones it knows.
        let wrong = match parsed {
            "r" => format!("{CAUGHT}  zzzzzz: 1\n"),
            _ => format!("{}    zzzzzz: 1\n", super::fixture::SHELL_GATES),
        };
        let fixture = Fixture::shell(CAUGHT);
        fixture.write(
            if parsed == "r" {
                "sabotage/rules/r.yaml"
            } else {
                "sabotage/gates.yaml"
            },
            &wrong,
        );
        let out = fixture.run(&["lint"]).out;
        let known = out
            .split("(one of ")
            .nth(1)
            .and_then(|rest| rest.split(')').next())
            .expect("a list of keys");
        for key in known.split(", ") {
            assert!(
                keys.contains_key(key),
                "the schema of {which} lacks `{key}`"
            );
        }
        assert_eq!(known.split(", ").count(), keys.len(), "{known}");
    }
}

#[m0_spec::row(B28, B37)]
#[test]
fn a_rule_whose_surroundings_changed_is_told_until_it_is_accepted() {
    let rule = "- id: one\n  promise: It holds.\n  edits: [{file: a.rs, in: fn a, find: '1', with: '2'}]\n  expect: [{gate: tap, check: adds}]\n";
    let fixture = Fixture::shell(rule);
    let lint = |text: &str, told: Option<&str>| {
        fixture.write("a.rs", text);
        let answer = fixture.run(&["lint"]);
        assert_eq!(
            answer.code,
            if told.is_some() { 6 } else { 0 },
            "{}",
            answer.out
        );
        for word in ["DRIFTED", "UNPINNED", "LEFT OVER"] {
            let wanted = told.is_some_and(|told| told.starts_with(word));
            assert_eq!(answer.out.contains(word), wanted, "{}", answer.out);
        }
        assert!(
            answer.out.contains(told.unwrap_or_default()),
            "{}",
            answer.out
        );
    };
    lint("fn a() -> u8 { 1 }\n", None);
    let accept = || fixture.command(&["accept"]).output().expect("runs");
    assert!(String::from_utf8_lossy(&accept().stdout).contains("1 rules pinned, 1 of them anew"));
    // Neither a comment, nor what rustfmt does, nor a neighbour.
    lint("fn a() -> u8 {\n    // why\n    1\n}\nfn b() {}\n", None);
    lint(
        "fn a() -> u8 { b(); 1 }\nfn b() {}\n",
        Some(
            "DRIFTED one (sabotage/rules/r.yaml:1:7): what surrounds its edits has changed; look whether it still breaks its promise (sabotage show one), then sabotage accept one",
        ),
    );
    assert!(accept().status.success());
    lint("fn a() -> u8 { b(); 1 }\n", None);
    fixture.write(
        "sabotage/rules/r.yaml",
        &[rule, &rule.replace("id: one", "id: two")].concat(),
    );
    lint(
        "fn a() -> u8 { b(); 1 }\n",
        Some(
            "UNPINNED two (sabotage/rules/r.yaml:5:7): sabotage/known.lock does not know it; sabotage accept two",
        ),
    );
    fixture.write("sabotage/rules/r.yaml", &rule.replace("id: one", "id: two"));
    assert!(
        fixture
            .command(&["accept", "two"])
            .output()
            .expect("runs")
            .status
            .success()
    );
    lint("fn a() -> u8 { b(); 1 }\n", None);
    fixture.write(
        "sabotage/rules/r.yaml",
        &[rule, &rule.replace("id: one", "id: two")].concat(),
    );
    assert!(accept().status.success());
    fixture.write("sabotage/rules/r.yaml", rule);
    lint(
        "fn a() -> u8 { b(); 1 }\n",
        Some(
            "LEFT OVER two: sabotage/known.lock pins it, and no rule has that id; sabotage accept",
        ),
    );
}
