//! Commands that change rows, exit codes, and the forms for programs.

use serde_json::Value;

use super::repository::{check, repository, trace, write};

#[m0_spec::row(T15)]
#[test]
fn a_row_takes_the_next_free_id_and_retires_for_rows_that_exist() {
    let repo = repository(&[("trace.yaml", "")]);
    let root = repo.path();
    let new = |claim: &str| {
        trace(
            root,
            &[
                "new",
                "A",
                claim,
                "--why",
                "It is: so.",
                "--needs",
                "test,smoke",
            ],
        )
    };
    assert!(
        new("The first thing is so.")
            .1
            .contains("A1 in spec/A.yaml")
    );
    assert!(new("The second thing is so.").1.contains("A2 in"));
    let before = std::fs::read_to_string(root.join("spec/A.yaml")).expect("it is there");
    let (code, said) = new("No sentence");
    assert_eq!(code, 2, "{said}");
    let (code, said) = trace(
        root,
        &["retire", "A1", "--reason", "It grew.", "--by", "A3"],
    );
    assert!(code == 2 && said.contains("did you mean"), "{said}");
    let (code, said) = trace(root, &["retire", "A4", "--reason", "It grew."]);
    assert!(
        code == 2 && said.contains("there is no row A4, did you mean A"),
        "{said}"
    );
    let after = std::fs::read_to_string(root.join("spec/A.yaml")).expect("it is there");
    assert_eq!(before, after, "what is refused writes nothing");
    let (code, said) = trace(
        root,
        &[
            "retire",
            "A1",
            "--reason",
            "It grew.",
            "--by",
            "A2",
            "--date",
            "2026-12-01",
        ],
    );
    assert_eq!(code, 0, "{said}");
    assert!(trace(root, &["list"]).1.contains("A1     retired"));
    // The id of a row that was taken out by hand is lost, not free.
    let rows = std::fs::read_to_string(root.join("spec/A.yaml")).expect("it is there");
    let first = rows.find("  - id: A2").expect("it stands there");
    write(
        root,
        "spec/A.yaml",
        &rows[..first].replace("by: [A2]", "by: []"),
    );
    let (_, found) = check(root);
    assert!(
        found.iter().any(|found| found.ends_with("id-lost")),
        "{found:?}"
    );
}

#[m0_spec::row(T13, T5)]
#[test]
fn exit_codes_tell_what_a_gate_must_know() {
    let repo = repository(&[("trace.yaml", "results: [{files: r.tap}]\nsevrity: {}\n")]);
    let root = repo.path();
    let (code, said) = trace(root, &["check"]);
    assert!(
        code == 2
            && said.contains("trace.yaml:2:1: unknown key `sevrity`, did you mean `severity`"),
        "{said}"
    );
    assert_eq!(trace(root, &["check", "--floor", "golden"]).0, 2);
    let (code, said) = trace(root, &["check", "--planted"]);
    assert!(code == 0 && said.contains("0 not told"), "{said}");
    write(root, "trace.yaml", "results: [{files: r.tap}]\n");
    write(
        root,
        "spec/A.yaml",
        "area: A\ntitle: T\nfloor: passed\nrows: []\n",
    );
    let (code, found) = check(root);
    assert_eq!(code, 1, "measuring nothing is not green");
    assert!(
        found.iter().any(|found| found.ends_with("no-rows")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|found| found.ends_with("no-tests")),
        "{found:?}"
    );
    write(root, "spec/A.yaml", "area: A\nrows:\n  - id A1\n");
    assert_eq!(check(root).0, 2);
    for shell in ["bash", "zsh", "fish"] {
        let (code, said) = trace(root, &["completions", shell]);
        assert!(code == 0 && said.contains("retire"), "{said}");
    }
    let (_, schema) = trace(root, &["schema"]);
    let schema: Value = serde_json::from_str(&schema).expect("it is JSON");
    assert_eq!(
        schema["properties"]["severity"]["properties"]["hollow"]["default"],
        "error"
    );
}

#[m0_spec::row(T17)]
#[test]
fn each_form_for_programs_holds_code_severity_and_place() {
    let repo = repository(&[
        ("test_a.py", "def test_bare():\n    pass\n"),
        ("trace.yaml", "results: [{files: r.tap}]\n"),
    ]);
    let root = repo.path();
    trace(root, &["new", "A", "A thing | is so.", "--why", "It is."]);
    let (_, said) = trace(root, &["check", "--github"]);
    let line = "::error file=test_a.py,line=1,col=1,title=test-without-row::the test test_bare names no row";
    assert!(said.contains(line), "{said}");
    let (_, said) = trace(root, &["check", "--sarif"]);
    let log: Value = serde_json::from_str(&said).expect("it is JSON");
    let results = log["runs"][0]["results"].as_array().expect("a list");
    let bare = results
        .iter()
        .find(|result| result["ruleId"] == "test-without-row");
    let bare = bare.expect("it is told");
    assert_eq!(bare["level"], "error");
    let place = &bare["locations"][0]["physicalLocation"];
    assert_eq!(
        (
            &place["artifactLocation"]["uri"],
            &place["region"]["startLine"]
        ),
        (&"test_a.py".into(), &1.into())
    );
    let (_, said) = trace(root, &["check", "--md"]);
    assert!(
        said.contains("| test-without-row | test_a.py:1:1 |"),
        "{said}"
    );
    let (_, said) = trace(root, &["check"]);
    assert!(
        said.contains("test_a.py:1:1: error[test-without-row]: the test test_bare names no row"),
        "{said}"
    );
    assert!(said.trim_end().ends_with("falls short"), "{said}");
}

#[m0_spec::row(T16)]
#[test]
fn the_report_has_a_page_a_row_and_runs_nothing_that_a_claim_says() {
    let bad = "A <script>alert(1)</script> & \"thing\" is so.";
    let repo = repository(&[
        (".gitignore", "/out\n"),
        ("test_a.py", "# proves: A1\ndef test_a():\n    pass\n"),
        ("out/r.tap", "1..1\nnot ok 1 - test_a\n"),
        ("trace.yaml", "results: [{files: out/r.tap}]\n"),
    ]);
    let root = repo.path();
    trace(root, &["new", "A", bad, "--why", "It's <b>so</b>."]);
    trace(
        root,
        &["new", "A", "Another thing is so.", "--why", "It is."],
    );
    let (code, said) = trace(root, &["report", "--html", "site"]);
    assert!(code == 0 && said.contains("3 pages"), "{said}");
    let read = |name: &str| std::fs::read_to_string(root.join("site").join(name)).expect(name);
    let (front, first, second) = (
        read("index.html"),
        read("rows/A1.html"),
        read("rows/A2.html"),
    );
    for page in [&front, &first, &second] {
        assert!(
            !page.contains("<script>alert") && !page.contains("<b>so"),
            "{page}"
        );
        for elsewhere in ["http:", "https:", "src=", "<link", "@import", "url("] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }
    assert!(
        front.contains("A &lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;thing&quot; is so.")
    );
    assert!(front.contains("href=\"rows/A2.html\"") && front.contains("test-failed"));
    assert!(
        first.contains("class=\"grade ran\"") && first.contains("test_a.py:1:11"),
        "{first}"
    );
    assert!(second.contains("Nothing shows it."));
}

#[m0_spec::row(T1)]
#[test]
fn results_under_target_are_found_where_cargo_builds() {
    let repo = repository(&[
        (".gitignore", "/target\n/elsewhere\n"),
        ("test_a.py", "# proves: A1\ndef test_a():\n    pass\n"),
        (
            "trace.yaml",
            "results: [{files: target/r.tap, made_by: make r}]\n",
        ),
    ]);
    let root = repo.path();
    trace(root, &["new", "A", "A thing is so.", "--why", "It is."]);
    let (code, said) = trace(root, &["check"]);
    assert!(
        code == 3 && said.contains("nothing is at target/r.tap; `make r` makes it"),
        "{said}"
    );
    write(root, "elsewhere/r.tap", "1..1\nok 1 - test_a\n");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_trace"))
        .args(["check", "--root"])
        .arg(root)
        .env("CARGO_TARGET_DIR", root.join("elsewhere"))
        .output()
        .expect("trace runs");
    assert!(output.status.success(), "{output:?}");
}

#[m0_spec::row(T17)]
#[test]
fn what_is_listed_and_explained_is_json_where_a_program_asks() {
    let repo = repository(&[
        (".gitignore", "/out\n"),
        ("test_a.py", "# proves: A1\ndef test_a():\n    pass\n"),
        ("out/r.tap", "1..1\nok 1 - test_a\n"),
        ("trace.yaml", "results: [{files: out/r.tap}]\n"),
    ]);
    let root = repo.path();
    trace(root, &["new", "A", "A thing is so.", "--why", "It is."]);
    let json = |args: &[&str]| -> Value {
        let (code, said) = trace(root, args);
        assert_eq!(code, 0, "{said}");
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    let row = json(&["explain", "A1", "--json"]);
    assert_eq!(
        (&row["reached"], &row["evidence"][0]["test"]),
        (&"passed".into(), &"test_a test_a".into())
    );
    let test = json(&["list", "tests", "--json"]);
    assert_eq!(
        (&test["rows"][0], &test["line"], &test["verdict"]),
        (&"A1".into(), &2.into(), &"passed".into())
    );
    assert_eq!(json(&["list", "--json"])[0]["claim"], "A thing is so.");
    assert_eq!(json(&["list", "results"])["standing"], "unattributed");
    // An id that is not there is refused with the nearest.
    let (code, said) = trace(root, &["explain", "A2"]);
    assert!(code == 2 && said.contains("did you mean A1?"), "{said}");
}
