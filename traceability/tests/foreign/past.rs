//! Commands that look back: what changed since a revision, what an edge was when it was accepted; and the badge.

use std::path::Path;

use serde_json::Value;

use super::repository::{check, commit, repository, trace, write};

const ROWS: &str = "area: A\ntitle: Sums\nfloor: passed\nrows:\n\
    \x20 - id: A1\n    claim: At 2 terms a sum is right.\n    why: Sums are used.\n    state: active\n    needs: [test]\n\
    \x20 - id: A2\n    claim: Nothing sums to zero.\n    why: Sums are used.\n    state: active\n    needs: [test]\n";
const TESTS: &str = "# proves: A1\ndef test_adds():\n    assert 1 + 1 == 2\n\n\n# proves: A2\ndef test_zero():\n    assert sum([]) == 0\n";
const RULES: &str = "- id: break-sum\n  rows: [A1]\n  expect: [{gate: test, check: test_adds}]\n";
const EVIDENCE: &str = "[{\"rule\":\"break-sum\",\"rows\":[\"A1\"],\"gate\":\"test\",\"check\":\"test_adds\",\"verdict\":\"CAUGHT\",\"message\":\"1 is not 2\"}]";

fn sums() -> tempfile::TempDir {
    let repo = repository(&[
        (".gitignore", "/out\n/site\n"),
        ("spec/A.yaml", ROWS),
        ("test_sum.py", TESTS),
        ("sabotage/rules/a.yaml", RULES),
        (
            "trace.yaml",
            "results:\n  - files: out/r.tap\n  - files: out/evidence.json\n    kind: sabotage\n",
        ),
    ]);
    let root = repo.path();
    assert_eq!(trace(root, &["spec"]).0, 0);
    commit(root);
    results(root);
    repo
}

fn results(root: &Path) {
    write(
        root,
        "out/r.tap",
        "1..2\nok 1 - test_adds\nok 2 - test_zero\n",
    );
    write(root, "out/evidence.json", EVIDENCE);
}

#[m0_spec::row(T21)]
#[test]
fn what_changed_since_a_revision_is_told_and_what_it_touches_must_be_proven() {
    let repo = sums();
    let root = repo.path();
    let (code, said) = trace(root, &["diff", "HEAD"]);
    assert!(
        code == 0 && said.starts_with("nothing that is promised or shown changed since "),
        "{said}"
    );
    let since = |root: &Path| trace(root, &["check", "--floor", "passed", "--since", "HEAD"]);
    assert_eq!(since(root).0, 0, "{}", since(root).1);
    // White space, comments and reasons touch nothing.
    write(
        root,
        "test_sum.py",
        &TESTS.replace("assert 1 + 1 == 2", "assert 1 + 1  == 2  # so it is"),
    );
    assert!(trace(root, &["diff", "HEAD"]).1.starts_with("nothing"));
    // A test and a number of a claim do, and a row that is new, and one whose test is gone.
    write(root, "test_sum.py", &TESTS.replace("sum([]) == 0", "True"));
    let rows = ROWS.replace("At 2 terms", "At 3 terms");
    let new = "  - id: A3\n    claim: Sums are fast enough.\n    why: Somebody waits.\n    state: planned\n    reason: Not yet.\n    needs: [test]\n";
    write(root, "spec/A.yaml", &format!("{rows}{new}"));
    write(
        root,
        "sabotage/rules/a.yaml",
        &RULES.replace("break-sum", "break-sums"),
    );
    trace(root, &["spec"]);
    results(root);
    let (code, said) = trace(root, &["diff", "HEAD"]);
    assert_eq!(code, 0, "{said}");
    let head = said
        .lines()
        .last()
        .and_then(|line| line.split(':').next())
        .unwrap_or_default();
    insta::assert_snapshot!("diff", said.replace(head, "since REV"));
    let (_, said) = trace(root, &["diff", "HEAD", "--json"]);
    let told: Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!(told["touched"], serde_json::json!(["A1", "A2", "A3"]));
    assert_eq!(told["tests"][0]["name"], "test_sum test_zero");
    // A1 is proven; A2 passed, which is no longer enough, and no sabotage breaks it.
    let (code, said) = since(root);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("error[row-without-sabotage]: no sabotage breaks A2"),
        "{said}"
    );
    assert!(!said.contains("breaks A1"), "{said}");
    let (code, said) = trace(root, &["diff", "--no-such", "x"]);
    assert_eq!(code, 2, "{said}");
    let (code, said) = trace(root, &["check", "--since", "gone"]);
    assert!(
        code == 2 && said.contains("`gone` names no commit"),
        "{said}"
    );
}

#[m0_spec::row(T23)]
#[test]
fn a_stale_edge_is_shown_with_the_words_that_changed() {
    let repo = sums();
    let root = repo.path();
    let (code, said) = trace(root, &["accept", "A1", "--why", "read it"]);
    assert_eq!(code, 0, "{said}");
    commit(root);
    write(
        root,
        "spec/A.yaml",
        &ROWS.replace("At 2 terms", "At 3 terms"),
    );
    write(
        root,
        "test_sum.py",
        &TESTS.replace("1 + 1 == 2", "1 + 1 + 1 == 3"),
    );
    trace(root, &["spec"]);
    write(
        root,
        "out/r.tap",
        "1..2\nok 1 - test_adds\nok 2 - test_zero\n",
    );
    std::fs::remove_file(root.join("out/evidence.json")).expect("it was there");
    let (_, said) = trace(root, &["explain", "A1"]);
    for line in [
        "stale: the claim and the test changed since spec/trace.lock:3",
        "the claim: At [-2-]{+3+} terms a sum is right.",
        "the test:     assert 1 + 1 {++ 1 +}== [-2-]{+3+}",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    trace(root, &["report", "--html", "site"]);
    let page = std::fs::read_to_string(root.join("site/rows/A1.html")).expect("it is written");
    assert!(page.contains("At <del>2</del><ins>3</ins> terms"), "{page}");
}

#[m0_spec::row(T22)]
#[test]
fn the_badge_is_of_results_that_are_there() {
    let repo = sums();
    let root = repo.path();
    let (code, said) = trace(root, &["badge"]);
    assert!(
        code == 0 && said.starts_with("<svg") && said.contains("proven: 50 %"),
        "{said}"
    );
    std::fs::remove_file(root.join("out/evidence.json")).expect("it was there");
    let (code, said) = trace(root, &["badge", "--out", "badge.svg"]);
    assert_eq!((code, said.as_str()), (3, ""));
    let svg = std::fs::read_to_string(root.join("badge.svg")).expect("it is written");
    assert!(svg.contains("proven: unknown"), "{svg}");
}

#[m0_spec::row(T25, T15)]
#[test]
fn a_row_is_split_into_rows_that_need_what_it_needed() {
    let repo = sums();
    let root = repo.path();
    let before = std::fs::read_to_string(root.join("spec/A.yaml")).expect("it is there");
    for into in [
        &["One part is right."][..],
        &["One part is right.", "No sentence"],
    ] {
        let mut args = vec!["split", "A1", "--reason", "It grew.", "--into"];
        args.extend(into);
        assert_eq!(trace(root, &args).0, 2);
    }
    let after = std::fs::read_to_string(root.join("spec/A.yaml")).expect("it is there");
    assert_eq!(before, after, "what is refused writes nothing");
    let args = [
        "split",
        "A1",
        "--reason",
        "It grew.",
        "--into",
        "Two terms sum right.",
        "Three terms sum right.",
    ];
    let (code, said) = trace(root, &args);
    assert_eq!((code, said.trim()), (0, "A1 is retired for A3, A4"));
    let (_, said) = trace(root, &["explain", "A4", "--json"]);
    let row: Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!(
        (&row["why"], &row["needs"][0][0]),
        (&"Sums are used.".into(), &"test".into())
    );
    // Its tests are told with the rows that they may name now.
    let (_, found) = check(root);
    assert!(
        found.contains(&"test_sum.py:1:11 row-retired".to_owned()),
        "{found:?}"
    );
    let (_, said) = trace(root, &["check"]);
    assert!(said.contains("A1 is retired: name A3, A4"), "{said}");
}

#[m0_spec::row(T17)]
#[test]
fn what_people_read_is_as_it_was() {
    let repo = sums();
    let root = repo.path();
    write(
        root,
        "test_sum.py",
        &format!("{TESTS}\ndef test_bare():\n    pass\n"),
    );
    results(root);
    for (name, args) in [
        ("check", &["check"][..]),
        ("check-md", &["check", "--md"]),
        ("matrix", &["matrix"]),
        ("explain", &["explain", "A1"]),
        ("list-tests", &["list", "tests"]),
        ("codes", &["list", "codes"]),
    ] {
        insta::assert_snapshot!(name, trace(root, args).1);
    }
}
