//! The program on repositories that it has never seen: Rust, Python, shell.
//!
//! Each repository is made in a directory of its own, its tests are run by its own runner, and what comes of it is
//! judged. Nothing of this repository is used but the program.

#![forbid(unsafe_code)]

mod commands;
mod hand;
mod past;
mod repository;

use std::path::Path;
use std::process::Command;

use repository::{check, commit, repository, trace, write};

const NONE: [String; 0] = [];
const PYTHON: &str = "import unittest\n\n\nclass TestSum(unittest.TestCase):\n    # proves: A1\n    def test_adds(self):\n        self.assertEqual(1 + 1, 2)\n\n    # proves: A2\n    def test_keeps(self):\n        self.assertEqual(sum([]), 0)\n\n\nif __name__ == '__main__':\n    unittest.main()\n";
const CONFIG: &str = "results:\n  - files: out/*\n    made_by: sh run.sh\nignore: ['run.sh']\n";
/// unittest has no report of its own: a runner of ten lines prints TAP.
const RUNNER: &str = "import sys, unittest\n\n\
    class Tap(unittest.TestResult):\n    def startTest(self, test):\n        super().startTest(test)\n        self.last = 'ok'\n\
    \x20   def addFailure(self, test, error):\n        super().addFailure(test, error)\n        self.last = 'not ok'\n\
    \x20   def stopTest(self, test):\n        super().stopTest(test)\n        print(f'{self.last} {self.testsRun} - {test._testMethodName}')\n\n\
    suite = unittest.defaultTestLoader.discover('tests')\nprint('TAP version 14')\n\
    print(f'# tree: {sys.argv[1]}')\nresult = Tap()\nsuite.run(result)\nprint(f'1..{result.testsRun}')\n";

/// Makes rows of these claims, from A1 on.
fn promise(root: &Path, claims: &[&str]) {
    for claim in claims {
        trace(root, &["new", "A", claim, "--why", "Sums are used."]);
    }
}

/// Runs the Python tests and keeps their TAP; the tree is the one that git knows.
fn run_python(root: &Path) {
    let tree = Command::new("git")
        .current_dir(root)
        .args(["rev-parse", "HEAD^{tree}"])
        .output()
        .expect("git runs");
    let tree = String::from_utf8_lossy(&tree.stdout).trim().to_owned();
    let output = Command::new("python3")
        .current_dir(root)
        .args(["-B", "tap.py", &tree])
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{output:?}");
    write(
        root,
        "out/results.tap",
        &String::from_utf8_lossy(&output.stdout),
    );
}

#[m0_spec::row(T14, T13)]
#[test]
fn a_python_repository_goes_from_nothing_to_kept_and_falls_when_it_breaks() {
    let repo = repository(&[
        (".gitignore", "/out\n"),
        ("tests/test_sum.py", PYTHON),
        ("tap.py", RUNNER),
        ("trace.yaml", CONFIG),
    ]);
    let root = repo.path();
    // Nothing is promised: nothing is kept.
    let (code, said) = trace(root, &["check"]);
    assert!(
        code == 2 && said.contains("`trace new` makes the first"),
        "there is no directory of rows: {said}"
    );
    for (claim, id) in [
        ("One and one are two.", "A1"),
        ("Nothing sums to zero.", "A2"),
    ] {
        let (code, said) = trace(
            root,
            &[
                "new",
                "A",
                claim,
                "--why",
                "Sums are used.",
                "--title",
                "Sums",
            ],
        );
        assert_eq!((code, said.contains(id)), (0, true), "{said}");
    }
    commit(root);
    // The tests have not run.
    let (code, found) = check(root);
    assert_eq!(
        (code, &found[..]),
        (3, &["out/*:1:1 results-missing".to_owned()][..])
    );
    run_python(root);
    let (code, found) = check(root);
    assert_eq!((code, found), (0, NONE.to_vec()));
    let (_, said) = trace(root, &["explain", "A1"]);
    assert!(
        said.contains("passed   test     tests.test_sum.TestSum test_adds"),
        "{said}"
    );
    // Another tree: the same results are stale, and nothing is concluded.
    write(
        root,
        "tests/test_sum.py",
        &PYTHON.replace("sum([]), 0", "sum([]), 1"),
    );
    commit(root);
    let (code, found) = check(root);
    assert_eq!(
        (code, &found[..]),
        (3, &["out/results.tap:1:1 results-stale".to_owned()][..])
    );
    // And run again, the broken promise shows.
    run_python(root);
    let (code, found) = check(root);
    assert_eq!(code, 1);
    assert_eq!(
        found,
        [
            "spec/A.yaml:10:9 below-floor",
            "tests/test_sum.py:10:5 test-failed"
        ]
    );
}

#[m0_spec::row(T14)]
#[test]
fn pytest_reports_are_joined_by_module_class_and_name() {
    let junit = "<?xml version=\"1.0\"?><testsuites><testsuite name=\"pytest\">\
        <testcase classname=\"tests.test_sum.TestSum\" name=\"test_adds\" time=\"0.001\"/>\
        <testcase classname=\"tests.test_sum.TestSum\" name=\"test_keeps[0]\" time=\"0.001\"/></testsuite></testsuites>";
    let repo = repository(&[
        (".gitignore", "/out\n"),
        ("tests/test_sum.py", PYTHON),
        ("trace.yaml", CONFIG),
    ]);
    let root = repo.path();
    promise(root, &["One and one are two.", "Nothing sums to zero."]);
    write(root, "out/junit.xml", junit);
    let (code, found) = check(root);
    // It says nothing of its tree: that is told, and does not fail the check.
    assert_eq!(
        (code, &found[..]),
        (
            0,
            &["out/junit.xml:1:1 results-unattributed".to_owned()][..]
        )
    );
}

/// As node 22 writes it.
const NODE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<testsuites>\n\
    \t<testcase name=\"adds one\" time=\"0.001485\" classname=\"test\"/>\n\
    \t<testsuite name=\"more\" time=\"0.000509\" tests=\"1\" failures=\"0\" skipped=\"0\" hostname=\"vm\">\n\
    \t\t<testcase name=\"keeps nothing\" time=\"0.000160\" classname=\"test\"/>\n\t</testsuite>\n\
    \t<testcase name=\"later\" time=\"0.000130\" classname=\"test\"><skipped type=\"skipped\" message=\"true\"/></testcase>\n\
    \t<!-- tests 3 -->\n</testsuites>\n";

#[m0_spec::row(T14, T8)]
#[test]
fn a_typescript_repository_is_judged_by_the_report_of_nodes_runner() {
    let source = "import test, { describe, it } from 'node:test';\n\
        // proves: A1\ntest('adds one', () => {});\ndescribe('more', () => {\n\
        \x20 // proves: A2\n  it('keeps nothing', () => {});\n});\n// proves: A2\ntest.skip('later', () => {});\n";
    let repo = repository(&[
        (".gitignore", "/out\n"),
        ("tests/sum.test.ts", source),
        ("trace.yaml", CONFIG),
        ("out/junit.xml", NODE),
    ]);
    let root = repo.path();
    promise(root, &["One and one are two.", "Nothing stays nothing."]);
    // What is skipped is told, and raises nothing.
    let (code, found) = check(root);
    assert_eq!(code, 1);
    assert_eq!(
        found,
        [
            "tests/sum.test.ts:9:1 never-ran",
            "out/junit.xml:1:1 results-unattributed"
        ]
    );
    let (_, said) = trace(root, &["explain", "A2"]);
    assert!(
        said.contains("declared test     tests/sum.test.ts later"),
        "{said}"
    );
    assert!(
        said.contains("passed   test     tests/sum.test.ts keeps nothing"),
        "{said}"
    );
}

#[m0_spec::row(T14)]
#[test]
fn a_shell_repository_with_tap_is_judged() {
    let script = "#!/bin/sh\n# proves: A1\ntest_true() {\n  true\n}\n\n# proves: A1\ntest_false() {\n  ! false\n}\n\n\
        n=0\nfor t in test_true test_false; do\n  n=$((n + 1))\n  if $t; then echo \"ok $n - $t\"; else echo \"not ok $n - $t\"; fi\ndone\necho \"1..$n\"\n";
    let repo = repository(&[
        (".gitignore", "/out\n"),
        ("test.sh", script),
        ("trace.yaml", CONFIG),
    ]);
    let root = repo.path();
    trace(
        root,
        &["new", "A", "True is true.", "--why", "Shells rely on it."],
    );
    let output = Command::new("sh").current_dir(root).arg("test.sh").output();
    let output = output.expect("sh runs");
    write(
        root,
        "out/results.tap",
        &String::from_utf8_lossy(&output.stdout),
    );
    let (code, found) = check(root);
    assert_eq!(
        (code, &found[..]),
        (
            0,
            &["out/results.tap:1:1 results-unattributed".to_owned()][..]
        )
    );
    let (_, said) = trace(root, &["matrix"]);
    assert!(said.contains("A1     passed    passed"), "{said}");
}

#[m0_spec::row(T14, T2)]
#[test]
fn a_rust_crate_is_judged_by_the_report_of_its_runner() {
    let source = "pub fn two() -> u8 { 2 }\n#[cfg(test)]\nmod tests {\n    use my_spec::row;\n    #[row(A1)]\n    #[test]\n    fn it_is_two() { assert_eq!(super::two(), 2); }\n}\n";
    let junit = "<testsuites><testsuite name=\"two\"><testcase classname=\"two\" name=\"tests::it_is_two\"/></testsuite></testsuites>";
    let repo = repository(&[
        (".gitignore", "/out\n"),
        (
            "Cargo.toml",
            "[package]\nname = \"two\"\nedition = \"2024\"\n",
        ),
        ("src/lib.rs", source),
        ("trace.yaml", CONFIG),
        ("out/junit.xml", junit),
    ]);
    let root = repo.path();
    trace(root, &["new", "A", "Two is two.", "--why", "It is used."]);
    assert_eq!(check(root).0, 0);
    // A crate that has no such attribute keeps it from the compiler.
    let apart = source
        .replace("    use my_spec::row;\n", "    //\n")
        .replace("#[row(A1)]", "#[cfg_attr(any(), row(A1))]");
    write(root, "src/lib.rs", &apart);
    write(root, "out/junit.xml", junit);
    let (code, said) = trace(root, &["check"]);
    assert!(code == 0 && said.contains("passed 1"), "{code}: {said}");
    // Each of these is found with its own code and place.
    let skipped = junit.replace("is_two\"/>", "is_two\"><skipped/></testcase>");
    for (from, to, report, wanted) in [
        (
            "    #[row(A1)]\n",
            "",
            junit,
            "src/lib.rs:6:5 test-without-row",
        ),
        (
            "fn it_is_two",
            "fn it_was_two",
            junit,
            "src/lib.rs:5:6 never-ran",
        ),
        (
            "#[test]",
            "#[test] #[ignore]",
            &skipped,
            "src/lib.rs:5:6 never-ran",
        ),
        ("row(A1)", "row(A11)", junit, "src/lib.rs:5:11 row-unknown"),
    ] {
        write(root, "src/lib.rs", &source.replace(from, to));
        write(root, "out/junit.xml", report);
        let (code, found) = check(root);
        assert_eq!(code, 1, "{from}: {found:?}");
        assert!(
            found.iter().any(|found| found == wanted),
            "{from}: {found:?}"
        );
    }
}

#[m0_spec::row(T12)]
#[test]
fn an_accepted_edge_is_stale_when_its_test_or_claim_changes() {
    let repo = repository(&[
        (".gitignore", "/out\n"),
        ("tests/test_sum.py", PYTHON),
        ("tap.py", RUNNER),
        ("trace.yaml", CONFIG),
    ]);
    let root = repo.path();
    promise(root, &["One and one are two.", "Nothing sums to zero."]);
    let again = || {
        commit(root);
        run_python(root);
        check(root)
    };
    let (code, said) = trace(root, &["accept", "A1"]);
    assert_eq!(code, 2, "without a reason nothing is accepted: {said}");
    let (code, said) = trace(root, &["accept", "A1", "--why", "read it"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(again(), (0, NONE.to_vec()));
    // White space and comments are no change.
    let spaced = PYTHON.replace("1 + 1, 2)", "1 + 1,  2)  # so it is");
    write(root, "tests/test_sum.py", &spaced);
    assert_eq!(again(), (0, NONE.to_vec()));
    // Another assertion is.
    write(
        root,
        "tests/test_sum.py",
        &PYTHON.replace("1 + 1, 2", "2, 2"),
    );
    let (code, found) = again();
    assert_eq!(code, 1);
    assert_eq!(
        found,
        [
            "spec/A.yaml:5:9 below-floor",
            "tests/test_sum.py:5:15 edge-stale"
        ]
    );
    trace(root, &["accept", "A1", "--why", "two is two"]);
    assert_eq!(again(), (0, NONE.to_vec()));
    // And so is another claim.
    let rows = std::fs::read_to_string(root.join("spec/A.yaml")).expect("it is there");
    write(root, "spec/A.yaml", &rows.replace("are two.", "are three."));
    trace(root, &["spec"]);
    let (_, found) = again();
    assert!(
        found.iter().any(|found| found.ends_with("edge-stale")),
        "{found:?}"
    );
}
