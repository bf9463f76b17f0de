//! The two repositories: their texts, how their tests are run, and what must be found in them.
//!
//! Owns the texts and the places in them. Refuses to judge. Invariant: each holds a row that is shown, a test that
//! fails, a tag of a row that nobody promised and a row without a test; and once mended none of it.

use anyhow::{Context, Result, ensure};

use super::tools::Tools;
use super::{Place, done};

/// A repository of one language.
pub(super) struct Repository {
    pub(super) language: &'static str,
    /// Path and text.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// The command that runs its tests into `out/junit.xml`.
    pub(super) runner: fn(&Tools) -> Result<Vec<String>>,
    /// The tag of a row that nobody promised, which no run cures.
    pub(super) unknown: &'static str,
    /// What is found while a test fails.
    pub(super) broken: &'static [&'static str],
    /// Path, text and what stands in its place once mended.
    pub(super) mended: &'static [(&'static str, &'static str, &'static str)],
    /// What is found then.
    pub(super) kept: &'static [&'static str],
}

impl Repository {
    /// Runs the tests, which must end with this code and leave a report of their own.
    pub(super) fn test(&self, place: &Place<'_>, runner: &[String], code: i32) -> Result<()> {
        let report = place.root.join("out/junit.xml");
        // A report of before would be judged in the place of one that was not written.
        let _ = std::fs::remove_file(&report);
        place.write("out/.made", "")?;
        let (program, args) = runner.split_first().context("a runner has a name")?;
        let mut command = std::process::Command::new(program);
        // What steers the runner of whoever measures is not ours.
        let strange = ["NODE_OPTIONS", "PYTEST_ADDOPTS", "NODE_TEST_CONTEXT"];
        for name in strange {
            command.env_remove(name);
        }
        command
            .args(args)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(place.root);
        done(&mut command, code)?;
        ensure!(
            report.is_file(),
            "the tests of {} left no report",
            self.language
        );
        Ok(())
    }
}

const CONFIG: &str = "results:\n  - files: out/*.xml\n    made_by: the runner of this repository\n";

/// pytest says the tree of its results, by its own means: a property of the whole run.
const CONFTEST: &str = r#"import subprocess

import pytest


@pytest.fixture(scope="session", autouse=True)
def tree(record_testsuite_property):
    words = ["git", "rev-parse", "HEAD^{tree}"]
    tree = subprocess.run(words, capture_output=True, text=True, check=True)
    record_testsuite_property("tree", tree.stdout.strip())
"#;

pub(super) const PYTHON: Repository = Repository {
    language: "Python",
    files: &[
        (".gitignore", "/out\n"),
        ("trace.yaml", CONFIG),
        ("conftest.py", CONFTEST),
        (
            "sums.py",
            "def add(*numbers):\n    return sum(numbers)\n\n\ndef mean(numbers):\n    return sum(numbers) // len(numbers)\n",
        ),
        (
            "tests/test_sums.py",
            r#"import pytest

from sums import add, mean


class TestAdd:
    # proves: A1
    @pytest.mark.parametrize("more", [0, 1])
    def test_adds(self, more):
        assert add(1, more) == 1 + more


# proves: A2
def test_means():
    assert mean([1, 2]) == 1.5


# proves: A9
def test_nothing():
    assert add() == 0
"#,
        ),
    ],
    runner: |tools| {
        let python = tools.python()?.display().to_string();
        let words = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
        let mut command = vec![python];
        command.extend(words.map(str::to_owned));
        command.push("--junitxml=out/junit.xml".to_owned());
        Ok(command)
    },
    unknown: "tests/test_sums.py:18:11 row-unknown",
    broken: &[
        "spec/A.yaml:10:9 below-floor",
        "spec/A.yaml:15:9 row-without-evidence",
        "tests/test_sums.py:14:1 test-failed",
        "tests/test_sums.py:18:11 row-unknown",
    ],
    mended: &[
        ("sums.py", " // ", " / "),
        ("tests/test_sums.py", "A9", "A3"),
    ],
    kept: &[],
};

pub(super) const TYPESCRIPT: Repository = Repository {
    language: "TypeScript",
    files: &[
        (".gitignore", "/out\n"),
        ("trace.yaml", CONFIG),
        (
            "package.json",
            "{\"type\": \"module\", \"private\": true}\n",
        ),
        (
            "src/sums.ts",
            "export type Numbers = readonly number[];\n\nexport function add(...numbers: Numbers): number {\n  return numbers.reduce((sum: number, more: number): number => sum + more, 0);\n}\n\nexport function mean(numbers: Numbers): number {\n  return Math.floor(add(...numbers) / numbers.length);\n}\n",
        ),
        (
            "tests/sums.test.ts",
            r#"import assert from "node:assert";
import { describe, it, test } from "node:test";
import { add, mean, type Numbers } from "../src/sums.ts";

const both: Numbers = [1, 2];

// proves: A1
test("a sum holds both parts", (): void => {
  assert.equal(add(...both), 3);
});

describe("means", () => {
  // proves: A2
  it("lies between", async (): Promise<void> => {
    assert.equal(mean(both), 1.5);
  });
});

// proves: A9
test("nothing is zero", () => assert.equal(add(), 0 as number));
"#,
        ),
    ],
    runner: |tools| {
        let (node, loader) = tools.node()?;
        let node = node.display().to_string();
        let loader = format!("--import=file://{}", loader.display());
        let report = [
            "--test-reporter=junit",
            "--test-reporter-destination=out/junit.xml",
        ];
        let mut command = vec![node, loader, "--test".to_owned()];
        command.extend(report.map(str::to_owned));
        command.push("tests/sums.test.ts".to_owned());
        Ok(command)
    },
    unknown: "tests/sums.test.ts:19:12 row-unknown",
    broken: &[
        "spec/A.yaml:10:9 below-floor",
        "spec/A.yaml:15:9 row-without-evidence",
        "tests/sums.test.ts:14:3 test-failed",
        "tests/sums.test.ts:19:12 row-unknown",
        "out/junit.xml:1:1 results-unattributed",
    ],
    mended: &[
        (
            "src/sums.ts",
            "Math.floor(add(...numbers) / numbers.length)",
            "add(...numbers) / numbers.length",
        ),
        ("tests/sums.test.ts", "A9", "A3"),
    ],
    // node's report has no place for a tree; that is told, and fails nothing.
    kept: &["out/junit.xml:1:1 results-unattributed"],
};
