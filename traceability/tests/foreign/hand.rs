//! Evidence taken away by hand, one way at a time: each is found where it was taken.

use std::path::Path;

use super::repository::{check, commit, git_line, repository, trace, write};

const ROWS: &str = "area: A\ntitle: Sums\nfloor: proven\nrows:\n\
    \x20 - id: A1\n    claim: Two and 2 are four.\n    why: Sums are used.\n    state: active\n    needs: [test]\n\
    \x20 - id: A2\n    claim: Sums were slow.\n    why: It was so.\n    state: retired\n    needs: [test]\n    reason: They are fast.\n    by: [A1]\n    date: 2026-11-01\n\
    \x20 - id: A3\n    claim: Sums are served at once.\n    why: Somebody waits.\n    state: active\n    needs: [smoke]\n";
const SOURCE: &str = "pub fn sum(a: u8, b: u8) -> u8 { a + b }\n#[cfg(test)]\nmod tests {\n    use my_spec::row;\n\
    \x20   #[row(A1)]\n    #[test]\n    fn it_adds() { assert_eq!(super::sum(2, 2), 4); }\n\
    \x20   #[row(A1)]\n    #[test]\n    fn it_adds_nothing() { assert_eq!(super::sum(2, 0), 2); }\n}\n";
const RULES: &str = "- id: break-sum\n  rows: [A1]\n  expect: [{gate: test, check: 'tests::it_adds'}]\n\
    - id: break-serve\n  rows: [A3]\n  expect: [{gate: smoke, check: 'smoke::serves'}]\n";
const CONFIG: &str = "results:\n  - files: out/junit.xml\n  - files: out/smoke.jsonl\n    kind: smoke\n  - files: out/evidence.json\n    kind: sabotage\n    optional: true\n\
    least: {rows: 2, tests: 2, results: 3, sabotages: 2}\n";

/// What the runners left behind; `{TREE}` is the tree that they ran on.
#[derive(Clone)]
struct Run {
    junit: String,
    smoke: String,
    /// None when the sabotages did not run again.
    evidence: Option<String>,
}

impl Run {
    fn good() -> Self {
        let entry = |rule: &str, row: &str, check: &str| {
            format!(
                "{{\"rule\":\"{rule}\",\"rows\":[\"{row}\"],\"gate\":\"g\",\"check\":\"{check}\",\"verdict\":\"CAUGHT\",\"message\":\"it broke\",\"tree\":\"{{TREE}}\"}}"
            )
        };
        Self {
            junit: "<testsuites><properties><property name=\"tree\" value=\"{TREE}\"/></properties><testsuite name=\"sums\">\
                <testcase classname=\"sums\" name=\"tests::it_adds\"/><testcase classname=\"sums\" name=\"tests::it_adds_nothing\"/></testsuite></testsuites>"
                .into(),
            smoke: "{\"event\":\"verdict\",\"test\":\"smoke::serves\",\"passed\":true,\"rows\":[\"A3\"],\"tree\":\"{TREE}\"}\n".into(),
            evidence: Some(format!(
                "[{},{}]",
                entry("break-sum", "A1", "tests::it_adds"),
                entry("break-serve", "A3", "smoke::serves")
            )),
        }
    }

    /// Commits what is there and writes what the runners say of it.
    fn of(&self, root: &Path) {
        commit(root);
        let tree = git_line(root, &["rev-parse", "HEAD^{tree}"]);
        let fill = |text: &str| text.replace("{TREE}", &tree);
        write(root, "out/junit.xml", &fill(&self.junit));
        write(root, "out/smoke.jsonl", &fill(&self.smoke));
        let path = root.join("out/evidence.json");
        match &self.evidence {
            Some(text) => write(root, "out/evidence.json", &fill(text)),
            None => std::fs::remove_file(path).expect("it was there"),
        }
    }
}

/// A repository in which every row is proven and written down.
fn proven() -> tempfile::TempDir {
    let repo = repository(&[
        (".gitignore", "/out\n"),
        (
            "Cargo.toml",
            "[package]\nname = \"sums\"\nedition = \"2024\"\n",
        ),
        ("src/lib.rs", SOURCE),
        ("spec/A.yaml", ROWS),
        ("sabotage/rules/a.yaml", RULES),
        ("trace.yaml", CONFIG),
    ]);
    let root = repo.path();
    assert_eq!(trace(root, &["spec"]).0, 0);
    let run = Run::good();
    run.of(root);
    let (code, said) = trace(root, &["accept", "--proven"]);
    assert!(code == 0 && said.contains("2 edges"), "{said}");
    run.of(root);
    let (code, found) = check(root);
    assert_eq!((code, &found[..]), (0, &[][..]), "the repository is right");
    repo
}

/// One way: what is changed in the files, what the runners then say, and what must be told.
type Way = (
    &'static str,
    &'static [(&'static str, &'static str, &'static str)],
    fn(&mut Run),
    &'static [&'static str],
);

const RS: &str = "src/lib.rs";
const YAML: &str = "spec/A.yaml";

const WAYS: [Way; 11] = [
    (
        "an attribute is removed",
        &[(
            RS,
            "    #[row(A1)]\n    #[test]\n    fn it_adds_nothing",
            "    #[test]\n    fn it_adds_nothing",
        )],
        |_| (),
        &["src/lib.rs:9:5 test-without-row"],
    ),
    (
        "a test is renamed",
        &[(RS, "it_adds()", "it_sums()")],
        |run| run.junit = run.junit.replace("it_adds\"", "it_sums\""),
        &[
            "sabotage/rules/a.yaml:2:10 sabotage-unclaimed",
            "spec/trace.lock:3:1 lock-stale",
        ],
    ),
    (
        "a test is ignored",
        &[(
            RS,
            "#[test]\n    fn it_adds()",
            "#[test]\n    #[ignore]\n    fn it_adds()",
        )],
        |run| {
            run.junit = run
                .junit
                .replace("it_adds\"/>", "it_adds\"><skipped/></testcase>");
        },
        &["src/lib.rs:5:6 never-ran"],
    ),
    (
        "a test's body is emptied and sabotages run again",
        &[(RS, "{ assert_eq!(super::sum(2, 2), 4); }", "{}")],
        |run| {
            run.evidence = run
                .evidence
                .take()
                .map(|text| text.replacen("CAUGHT", "MISSED", 1));
        },
        &["src/lib.rs:5:11 edge-stale", "src/lib.rs:5:11 hollow"],
    ),
    (
        "a test's body is emptied and they do not",
        &[(RS, "{ assert_eq!(super::sum(2, 2), 4); }", "{}")],
        |run| run.evidence = None,
        &["src/lib.rs:5:11 edge-stale"],
    ),
    (
        "one number in a claim changes",
        &[(YAML, "Two and 2", "Two and 3")],
        |run| run.evidence = None,
        &[
            "spec/SPEC.md:12:1 generated-stale",
            "src/lib.rs:5:11 edge-stale",
        ],
    ),
    (
        "an id is used again",
        &[(YAML, "id: A3", "id: A2")],
        |_| (),
        &["spec/A.yaml:18:9 id-duplicate"],
    ),
    (
        "a retired row is named",
        &[(
            RS,
            "row(A1)]\n    #[test]\n    fn it_adds_nothing",
            "row(A2)]\n    #[test]\n    fn it_adds_nothing",
        )],
        |_| (),
        &["src/lib.rs:8:11 row-retired"],
    ),
    (
        "a sabotage is deleted",
        &[(
            "sabotage/rules/a.yaml",
            "- id: break-serve\n  rows: [A3]\n  expect: [{gate: smoke, check: 'smoke::serves'}]\n",
            "",
        )],
        |run| {
            run.evidence = run
                .evidence
                .take()
                .map(|text| text.replace("break-serve", "break-gone"));
        },
        &[
            "spec/A.yaml:18:9 row-without-sabotage",
            "trace.yaml:1:1 fewer-than-recorded",
        ],
    ),
    (
        "a phase is weakened, so that it no longer notices",
        &[],
        |run| {
            run.evidence = run.evidence.take().map(|text| {
                text.replace(
                    "serves\",\"verdict\":\"CAUGHT",
                    "serves\",\"verdict\":\"MISSED",
                )
            });
        },
        &["out/smoke.jsonl:1:1 hollow"],
    ),
    (
        "no result is handed in",
        &[],
        |run| run.junit = "<testsuites/>".into(),
        &["out/junit.xml:1:1 no-results"],
    ),
];

#[m0_spec::row(T24, T5)]
#[test]
fn each_way_to_lose_evidence_is_found_where_it_was_lost() {
    let repo = proven();
    let root = repo.path();
    let kept: Vec<(&str, String)> = [RS, YAML, "sabotage/rules/a.yaml", "spec/SPEC.md"]
        .into_iter()
        .map(|name| (name, std::fs::read_to_string(root.join(name)).expect(name)))
        .collect();
    for (way, edits, runs, wanted) in WAYS {
        for (name, text) in &kept {
            write(root, name, text);
        }
        write(root, "out/evidence.json", "[]");
        for (name, from, to) in edits {
            let text = std::fs::read_to_string(root.join(name)).expect("it is there");
            assert!(text.contains(from), "{way}: {name} has no {from}");
            write(root, name, &text.replacen(from, to, 1));
        }
        let mut run = Run::good();
        runs(&mut run);
        run.of(root);
        let (code, found) = check(root);
        assert_eq!(code, 1, "{way}: {found:?}");
        for wanted in wanted {
            assert!(
                found.iter().any(|found| found == wanted),
                "{way}: {wanted} is not in {found:?}"
            );
        }
    }
}

#[m0_spec::row(T6, T9)]
#[test]
fn a_proof_that_is_asked_for_cannot_do_without_its_results() {
    let repo = proven();
    let root = repo.path();
    std::fs::remove_file(root.join("out/evidence.json")).expect("it was there");
    let (code, found) = check(root);
    assert_eq!(
        (code, &found[..]),
        (3, &["trace.yaml:1:1 results-missing".to_owned()][..])
    );
    let (_, said) = trace(root, &["check"]);
    assert!(
        said.contains("2 rows must be proven and cannot be without out/evidence.json"),
        "{said}"
    );
    // Where no more than a pass is asked, they are optional.
    assert_eq!(trace(root, &["check", "--floor", "passed"]).0, 0);
}

#[m0_spec::row(T24, T4)]
#[test]
fn results_of_another_commit_are_named_stale_with_exit_3() {
    let repo = proven();
    let root = repo.path();
    write(root, RS, &SOURCE.replace("a + b", "b + a"));
    commit(root);
    let (code, found) = check(root);
    assert_eq!(code, 3);
    assert_eq!(
        found,
        [
            "out/evidence.json:1:1 results-stale",
            "out/junit.xml:1:1 results-stale",
            "out/smoke.jsonl:1:1 results-stale"
        ]
    );
    let (_, said) = trace(root, &["check"]);
    assert!(
        said.contains("stale, 2 results are not counted: of tree"),
        "{said}"
    );
    assert!(said.trim_end().ends_with("inconclusive"), "{said}");
}
