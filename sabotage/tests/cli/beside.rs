//! Gates that wait run beside each other, exclusive ones do not; and the run says what that came to.

use std::fmt::Write as _;

use serde_json::Value;

use super::fixture::Fixture;

/// Eight rules on one function, and a gate that waits and notices when it is not alone.
fn waiting(exclusive: bool) -> Fixture {
    let mut rules = String::new();
    for number in 1..=8 {
        let _ = write!(
            rules,
            "- id: wrong-{number}\n  promise: It is zero.\n  edits: [{{file: src/lib.rs, in: fn zero, find: '0', with: '{number}'}}]\n  expect: [{{gate: unit, check: zero}}]\n"
        );
    }
    let fixture = Fixture::cargo(&[
        ("src/lib.rs", "pub fn zero() -> u8 {\n    0\n}\n"),
        (
            "sabotage/gates.yaml",
            &format!(
                "gates:\n  unit: {{cargo_test: --offline, timeout: 60s, exclusive: {exclusive}}}\n"
            ),
        ),
        ("sabotage/rules/r.yaml", &rules),
    ]);
    let place = fixture.cache().with_file_name("inside");
    let place = place.display();
    let test = format!(
        "#[test]\nfn zero() {{\n    let inside = \"{place}\";\n    if std::fs::create_dir(inside).is_err() {{\n        std::fs::write(format!(\"{{inside}}-two\"), \"\").unwrap();\n    }}\n    \
         std::thread::sleep(std::time::Duration::from_millis(700));\n    let _ = std::fs::remove_dir(inside);\n    assert_eq!(fx::zero(), 0);\n}}\n"
    );
    fixture.write("tests/it.rs", &test);
    fixture
}

/// What the run says of its gates, and whether two of them ran at once.
fn run(fixture: &Fixture, args: &[&str]) -> (Value, bool, String) {
    let json = fixture.cache().with_file_name("beside.json");
    let path = json.display().to_string();
    let args: Vec<&str> = ["run", "--no-cache", "--json", &path]
        .iter()
        .chain(args)
        .copied()
        .collect();
    let answer = fixture.run(&args);
    assert_eq!(answer.code, 0, "{}", answer.out);
    assert!(answer.out.contains("8 rules: 8 caught"), "{}", answer.out);
    let text = std::fs::read_to_string(json).expect("written");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    let two = fixture.cache().with_file_name("inside-two");
    let met = two.exists();
    let _ = std::fs::remove_file(two);
    (results["pace"].clone(), met, answer.out)
}

#[m0_spec::row(B45)]
#[test]
fn gates_that_wait_run_beside_each_other_and_the_run_says_so() {
    let fixture = waiting(false);
    let (pace, met, out) = run(&fixture, &[]);
    let number = |key: &str| pace[key].as_f64().expect("a number");
    assert!(met && number("jobs") > 1.0, "{pace}");
    assert!(number("wall") < 0.8 * number("gates"), "{pace}");
    assert!(number("gates") >= 8.0 * 0.7, "{pace}");
    assert!(
        out.contains("one build for 8 rules: gates ") && out.contains(" s a rule"),
        "{out}"
    );
    let (pace, met, _) = run(&fixture, &["--jobs", "1"]);
    assert_eq!((pace["jobs"].as_u64(), met), (Some(1), false), "{pace}");
}

#[m0_spec::row(B45)]
#[test]
fn an_exclusive_gate_runs_alone_whatever_is_asked() {
    let fixture = waiting(true);
    let (pace, met, _) = run(&fixture, &["--jobs", "8"]);
    assert_eq!((pace["jobs"].as_u64(), met), (Some(1), false), "{pace}");
}
