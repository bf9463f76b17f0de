//! The editor server as an editor meets it: the real program, the real protocol over standard input and output.

#![forbid(unsafe_code)]

mod editor;

use editor::Editor;
use serde_json::{Value, json};

const ROWS: &str = "area: A\ntitle: Sums\nfloor: passed\nrows:\n\
    \x20 - id: A1\n    claim: One and one are two.\n    why: Sums are used.\n    state: active\n    needs: [test]\n\
    \x20 - id: A2\n    claim: Nothing sums to zero.\n    why: Sums are used.\n    state: active\n    needs: [test]\n\
    \x20 - id: A3\n    claim: Two sums were one.\n    why: It was so.\n    state: retired\n    needs: [test]\n    reason: It grew.\n    by: [A1]\n    date: 2026-11-01\n";
const TEST: &str = "# proves: A1\ndef test_adds():\n    assert 1 + 1 == 2\n\n\n# proves: A2\ndef test_zero():\n    assert sum([]) == 0\n";
const RULES: &str = "- id: break-one\n  rows: [A1]\n  expect: [{gate: test, check: test_adds}]\n";
const RESULTS: &str = "1..2\nok 1 - test_adds\nok 2 - test_zero\n";

fn editor() -> Editor {
    Editor::open(&[
        (".gitignore", "/out\n"),
        ("spec/A.yaml", ROWS),
        ("test_sum.py", TEST),
        ("sabotage/rules/a.yaml", RULES),
        ("trace.yaml", "results: [{files: out/r.tap}]\n"),
        ("out/r.tap", RESULTS),
    ])
}

/// Code and place of each finding, `code line:column`.
fn told(diagnostics: &Value) -> Vec<String> {
    let one = |one: &Value| {
        let start = &one["range"]["start"];
        let code = one["code"].as_str().expect("a code");
        format!("{code} {}:{}", start["line"], start["character"])
    };
    diagnostics
        .as_array()
        .expect("a list")
        .iter()
        .map(one)
        .collect()
}

#[m0_spec::row(T20)]
#[test]
fn a_row_id_is_explained_and_leads_to_row_tests_and_sabotages() {
    let mut editor = editor();
    // The id of line 1, `# proves: A1`.
    let hover = editor.ask("textDocument/hover", "test_sum.py", 0, 11, &json!({}));
    let text = hover["contents"]["value"].as_str().expect("a text");
    for part in [
        "**A1** One and one are two.",
        "*Why:* Sums are used.",
        "active: reached **passed**, floor passed (test passed)",
        "- passed test `test_sum test_adds`",
        "- sabotage `break-one`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let places = |answer: &Value| -> Vec<String> {
        let one = |one: &Value| {
            let uri = one["uri"].as_str().expect("an address");
            let name = uri.rsplit('/').next().expect("a name");
            let start = &one["range"]["start"];
            format!("{name} {}:{}", start["line"], start["character"])
        };
        match answer {
            Value::Array(list) => list.iter().map(one).collect(),
            single => vec![one(single)],
        }
    };
    let row = editor.ask("textDocument/definition", "test_sum.py", 0, 10, &json!({}));
    assert_eq!(places(&row), ["A.yaml 4:8"]);
    // From the row in its YAML to its tests.
    let tests = editor.ask(
        "textDocument/implementation",
        "spec/A.yaml",
        4,
        9,
        &json!({}),
    );
    assert_eq!(places(&tests), ["test_sum.py 0:10"]);
    let context = json!({"context": {"includeDeclaration": true}});
    let all = editor.ask(
        "textDocument/references",
        "sabotage/rules/a.yaml",
        1,
        10,
        &context,
    );
    assert_eq!(
        places(&all),
        ["A.yaml 4:8", "test_sum.py 0:10", "a.yaml 1:9"]
    );
    // Where no row is, there is no answer, and that is no error.
    let none = editor.ask("textDocument/hover", "test_sum.py", 2, 4, &json!({}));
    assert_eq!(none, Value::Null);
    editor.close();
}

#[m0_spec::row(T20)]
#[test]
fn ids_are_completed_with_their_claims_and_without_those_that_are_retired() {
    let mut editor = editor();
    editor.types("test_sum.py", "# proves: \ndef test_adds():\n    pass\n");
    let items = editor.ask("textDocument/completion", "test_sum.py", 0, 10, &json!({}));
    let of = |item: &Value, key: &str| item[key].as_str().expect("a text").to_owned();
    let items = items.as_array().expect("a list");
    let labels: Vec<String> = items.iter().map(|item| of(item, "label")).collect();
    assert_eq!(labels, ["A1", "A2"]);
    assert_eq!(of(&items[1], "detail"), "Nothing sums to zero.");
    let none = editor.ask("textDocument/completion", "test_sum.py", 2, 4, &json!({}));
    assert_eq!(none, json!([]));
    editor.close();
}

#[m0_spec::row(T20, T10)]
#[test]
fn findings_follow_what_is_typed_before_it_is_saved() {
    let mut editor = editor();
    assert_eq!(editor.findings("test_sum.py"), None, "it is right as it is");
    // A typing error in the id.
    editor.types("test_sum.py", &TEST.replace("proves: A1", "proves: A11"));
    let found = editor.findings("test_sum.py").expect("it is told");
    assert_eq!(told(&found), ["row-unknown 0:10"]);
    assert_eq!(
        found[0]["range"]["end"],
        json!({"line": 0, "character": 13})
    );
    let message = found[0]["message"].as_str().expect("a text");
    assert!(message.contains("did you mean A1?"), "{message}");
    // A tag on nothing, then all is right again and the findings are gone.
    editor.types("test_sum.py", &format!("{TEST}# proves: A1\n"));
    let found = editor.findings("test_sum.py").expect("it is told");
    assert_eq!(told(&found), ["tag-misplaced 8:0"]);
    editor.types("test_sum.py", TEST);
    assert_eq!(editor.findings("test_sum.py"), Some(json!([])));
    // The YAML, too.
    editor.types(
        "spec/A.yaml",
        &ROWS.replacen("state: active", "state: actve", 1),
    );
    let found = editor.findings("spec/A.yaml").expect("it is told");
    assert_eq!(told(&found), ["row-unreadable 7:11"]);
    // What is not saved is no more when the file is closed without.
    editor.note(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": editor.uri("spec/A.yaml")}}),
    );
    assert_eq!(editor.findings("spec/A.yaml"), Some(json!([])));
    editor.close();
}

#[m0_spec::row(T20)]
#[test]
fn what_is_not_served_is_an_error_and_the_server_goes_on() {
    let mut editor = editor();
    let error = editor.refused("textDocument/formatting", &json!({}));
    assert_eq!(error["code"], -32601);
    let error = editor.refused("textDocument/hover", &json!({"position": "here"}));
    assert_eq!(error["code"], -32602);
    editor.types("trace.yaml", "resluts: []\n");
    let hover = editor.ask("textDocument/hover", "test_sum.py", 0, 11, &json!({}));
    assert_ne!(hover, Value::Null);
    editor.close();
}
