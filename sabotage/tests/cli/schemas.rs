//! What the tool writes, held against the schemas that it prints.

use serde_json::Value;

use super::fixture::{CAUGHT, Fixture, MISSED, STALE};
use super::valid::complaint as wrong;

/// The first complaint of the printed schema `which` about a value; none when it is valid.
fn complaint(fixture: &Fixture, which: &str, value: &Value) -> Option<String> {
    let printed = fixture.run(&["schema", which]);
    assert_eq!(printed.code, 0, "{}", printed.out);
    let schema: Value = serde_json::from_str(&printed.out).expect("JSON");
    wrong(&schema, &schema, value, which)
}

#[m0_spec::row(B35)]
#[test]
fn what_a_run_writes_is_valid() {
    let gap = MISSED.replace("negates-wrong", "gap")
        + "  known_gap: {why: nobody looked, until: 2099-01-01}\n";
    let skipped =
        CAUGHT.replace("adds-wrong", "skipped") + "  skip: {why: not today, until: 2099-01-01}\n";
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE, &gap, &skipped].concat());
    let answer = fixture.run(&["run", "--shard", "1/1"]);
    let dir = answer
        .out
        .lines()
        .find_map(|line| line.strip_prefix("details: "))
        .expect("the run's directory");
    let read = |name: &str| std::fs::read_to_string(format!("{dir}/{name}")).expect("written");
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (mut results, mut evidence) = (json(&read("results.json")), json(&read("evidence.json")));
    assert_eq!(results["rules"].as_array().map(Vec::len), Some(5));
    assert_eq!(complaint(&fixture, "results", &results), None);
    assert_eq!(complaint(&fixture, "evidence", &evidence), None);
    let events = read("events.jsonl");
    for line in events.lines() {
        assert_eq!(complaint(&fixture, "events", &json(line)), None, "{line}");
    }
    for kind in ["run_start", "doing", "verdict", "run_end"] {
        assert!(events.contains(&format!("\"event\":\"{kind}\"")), "{kind}");
    }
    // The schema is one that can say no.
    results["rules"][0]["verdict"] = "fine".into();
    evidence[0]["more"] = "x".into();
    let started = json(events.lines().next().expect("a first fact"));
    let mut without = started.clone();
    without.as_object_mut().expect("an object").remove("tree");
    for (which, wrong) in [
        ("results", &results),
        ("evidence", &evidence),
        ("events", &without),
    ] {
        assert!(
            complaint(&fixture, which, wrong).is_some(),
            "{which}: {wrong}"
        );
    }
}

#[m0_spec::row(B35)]
#[test]
fn a_run_whose_gate_is_red_writes_what_is_valid() {
    let fixture = Fixture::shell(CAUGHT);
    fixture.write("t.sh", "echo 1..1\necho 'not ok - adds'\nexit 1\n");
    let path = fixture.cache().with_file_name("results.json");
    let answer = fixture.run(&["run", "--json", &path.display().to_string()]);
    assert_eq!(answer.code, 4, "{}", answer.out);
    let text = std::fs::read_to_string(path).expect("written");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(results["gates"][0]["is"], "red");
    assert_eq!(complaint(&fixture, "results", &results), None);
}
