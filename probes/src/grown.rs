//! A repository of any size, grown for the traceability tool: rows, tests that name them, results, sabotages.
//!
//! Owns its shape: for each unit of size 1,000 rows in ten areas, 300 files of ten tests in Rust, Python and
//! TypeScript, each test naming one row, 3,000 results and 300 sabotages that were caught. Refuses to measure.
//! Invariant: the same size gives the same files, and all of them are as they should be: a check finds nothing.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Rows of one unit of size.
pub const ROWS: usize = 1000;
/// Tests of one unit, one tag each.
pub const TESTS: usize = 3000;
/// Files with tests of one unit.
pub const FILES: usize = 300;
/// Sabotages of one unit.
pub const SABOTAGES: usize = 300;
const ROWS_OF_AREA: usize = 100;
const TESTS_OF_FILE: usize = TESTS / FILES;
const FILES_OF_CRATE: usize = 10;

/// Grows a repository of `size` units in an empty directory, commits it, and writes the results beside it.
///
/// # Errors
///
/// When a file cannot be written or git does not answer.
pub fn grow(root: &Path, size: usize) -> Result<()> {
    let area_count = size * ROWS / ROWS_OF_AREA;
    for area in 0..area_count {
        write(root, &format!("spec/{}.yaml", letters(area)), &rows(area))?;
        write(
            root,
            &format!("sabotage/rules/{}.yaml", letters(area).to_lowercase()),
            &rules(area, area_count, size),
        )?;
    }
    for file in 0..size * FILES {
        source(root, file, area_count)?;
    }
    write(root, ".gitignore", "/out\n/site\n")?;
    write(
        root,
        "trace.yaml",
        "results:\n  - files: out/junit.xml\n  - files: out/evidence.json\n    kind: sabotage\n",
    )?;
    git(root, &["init", "--quiet"])?;
    git(root, &["add", "--all"])?;
    git(root, &["commit", "--quiet", "-m", "grown"])?;
    results(root, size)
}

/// Writes the results anew, of the tree as it is committed.
///
/// # Errors
///
/// As [`grow`].
pub fn results(root: &Path, size: usize) -> Result<()> {
    let tree = git(root, &["rev-parse", "HEAD^{tree}"])?;
    let mut junit = format!(
        "<?xml version=\"1.0\"?>\n<testsuites>\n<properties><property name=\"tree\" value=\"{tree}\"/></properties>\n"
    );
    for file in 0..size * FILES {
        for test in 0..TESTS_OF_FILE {
            let (suite, name) = named(file, test);
            let _ = writeln!(
                junit,
                "<testsuite name=\"{suite}\"><testcase classname=\"{suite}\" name=\"{name}\" time=\"0.00{test}\"/></testsuite>"
            );
        }
    }
    junit.push_str("</testsuites>\n");
    write(root, "out/junit.xml", &junit)?;
    let area_count = size * ROWS / ROWS_OF_AREA;
    let evidence: Vec<serde_json::Value> = (0..size * SABOTAGES)
        .map(|number| {
            let (file, test) = broken(number);
            serde_json::json!({
                "rule": format!("break-{number}"), "rows": [row(file, test, area_count)],
                "gate": "tests", "check": named(file, test).1, "verdict": "CAUGHT",
                "message": format!("assertion failed: left == right, {number} is not {number}"), "tree": tree,
            })
        })
        .collect();
    write(
        root,
        "out/evidence.json",
        &serde_json::Value::from(evidence).to_string(),
    )
}

/// `A` to `Z`, then `AA` and so on: the letters of an area.
fn letters(area: usize) -> String {
    let letter = |at: usize| char::from(b'A' + (at % 26) as u8);
    if area < 26 {
        letter(area).to_string()
    } else {
        format!("{}{}", letter(area / 26 - 1), letter(area))
    }
}

/// The row that a test names: tests go through all rows, one after the other.
fn row(file: usize, test: usize, area_count: usize) -> String {
    let number = (file * TESTS_OF_FILE + test) % (area_count * ROWS_OF_AREA);
    format!(
        "{}{}",
        letters(number / ROWS_OF_AREA),
        number % ROWS_OF_AREA + 1
    )
}

/// The test that a sabotage must make fail.
fn broken(number: usize) -> (usize, usize) {
    (number / 3, number % 3)
}

/// Suite and name of a test, as its runner prints them.
fn named(file: usize, test: usize) -> (String, String) {
    match file % 3 {
        0 => {
            let number = file / 3;
            let krate = number / FILES_OF_CRATE;
            (
                format!("crate{krate}::file_{file}"),
                format!("cases::case_{file}_{test}"),
            )
        }
        1 => (
            format!("python.test_{file}"),
            format!("test_case_{file}_{test}"),
        ),
        _ => (
            format!("script/file_{file}.test.ts"),
            format!("case {file} of {test}"),
        ),
    }
}

fn rows(area: usize) -> String {
    let letters = letters(area);
    let mut text = format!("area: {letters}\ntitle: Area {letters}\nfloor: passed\nrows:\n");
    for number in 1..=ROWS_OF_AREA {
        let _ = write!(
            text,
            "  - id: {letters}{number}\n    claim: At {number} workers every held stream of part {letters} carries every beat, once, in order.\n    \
             why: A producer that publishes to one channel leaves half of {number} tabs dark, with a clean log.\n    \
             state: active\n    needs: [test]\n"
        );
    }
    text
}

fn rules(area: usize, area_count: usize, size: usize) -> String {
    let mut text = String::from("# Sabotages of this area.\n");
    let each = size * SABOTAGES / area_count;
    for number in area * each..(area + 1) * each {
        let (file, test) = broken(number);
        let _ = write!(
            text,
            "- id: break-{number}\n  promise: The sum of part {number} is right.\n  rows: [{}]\n  edits:\n    - file: crate0/src/lib.rs\n      \
             before: |\n        left + right\n      after: |\n        left + right + {number}\n  expect: [{{gate: tests, check: '{}'}}]\n",
            row(file, test, area_count),
            named(file, test).1
        );
    }
    text
}

fn source(root: &Path, file: usize, area_count: usize) -> Result<()> {
    let mut text = String::new();
    let tests = (0..TESTS_OF_FILE).map(|test| (row(file, test, area_count), test));
    match file % 3 {
        0 => {
            let number = file / 3;
            let krate = format!("crate{}", number / FILES_OF_CRATE);
            if number.is_multiple_of(FILES_OF_CRATE) {
                let manifest = format!("[package]\nname = \"{krate}\"\nedition = \"2024\"\n");
                write(root, &format!("{krate}/Cargo.toml"), &manifest)?;
                let library = "//! Sums.\n\npub fn sum(left: u64, right: u64) -> u64 {\n    left + right\n}\n";
                write(root, &format!("{krate}/src/lib.rs"), library)?;
            }
            text.push_str("//! Cases.\n\nmod cases {\n    use spec::row;\n\n");
            for (row, test) in tests {
                let _ = write!(
                    text,
                    "    #[row({row})]\n    #[test]\n    fn case_{file}_{test}() {{\n        // What is added is there.\n        \
                     let (left, right) = ({file}, {test});\n        let text = format!(\"{{left}} and {{right}}\");\n        \
                     assert!(text.contains(\"and\"), \"{{text}}\");\n        assert_eq!({krate}::sum(left, right), left + right);\n    }}\n\n"
                );
            }
            text.push_str("}\n");
            write(root, &format!("{krate}/tests/file_{file}.rs"), &text)
        }
        1 => {
            text.push_str("\"\"\"Cases.\"\"\"\n\nimport sums\n\n");
            for (row, test) in tests {
                let _ = write!(
                    text,
                    "\n# proves: {row}\ndef test_case_{file}_{test}():\n    # What is added is there.\n    left, right = {file}, {test}\n    \
                     text = f\"{{left}} and {{right}}\"\n    assert \"and\" in text, text\n    assert sums.sum(left, right) == left + right\n\n"
                );
            }
            write(root, &format!("python/test_{file}.py"), &text)
        }
        _ => {
            text.push_str("import test from 'node:test';\nimport assert from 'node:assert';\nimport { sum } from './sums.ts';\n\n");
            for (row, test) in tests {
                let _ = write!(
                    text,
                    "// proves: {row}\ntest('case {file} of {test}', () => {{\n  // What is added is there.\n  const [left, right] = [{file}, {test}];\n  \
                     const text = `${{left}} and ${{right}}`;\n  assert.match(text, /and/);\n  assert.equal(sum(left, right), left + right);\n}});\n\n"
                );
            }
            write(root, &format!("script/file_{file}.test.ts"), &text)
        }
    }
}

fn write(root: &Path, name: &str, text: &str) -> Result<()> {
    let path = root.join(name);
    let dir = path.parent().context("it is under the root")?;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn git(root: &Path, args: &[&str]) -> Result<String> {
    let identity = [
        "-c",
        "user.name=probe",
        "-c",
        "user.email=probe@example.invalid",
    ];
    let mut command = Command::new("git");
    let output = command.current_dir(root).args(identity).args(args).output();
    let output = output.context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{FILES, ROWS, TESTS_OF_FILE, broken, letters, named, row};

    #[m0_spec::row(T18)]
    #[test]
    fn each_row_of_one_unit_has_three_tests_of_different_names() {
        let area_count = ROWS / super::ROWS_OF_AREA;
        let all = || (0..FILES).flat_map(|file| (0..TESTS_OF_FILE).map(move |test| (file, test)));
        let names: BTreeSet<(String, String)> =
            all().map(|(file, test)| named(file, test)).collect();
        assert_eq!(names.len(), super::TESTS);
        let rows: Vec<String> = all()
            .map(|(file, test)| row(file, test, area_count))
            .collect();
        let each: BTreeSet<&String> = rows.iter().collect();
        assert_eq!(each.len(), ROWS);
        let first = rows.iter().filter(|row| *row == "A1").count();
        assert_eq!(first, 3);
        assert_eq!(
            (letters(25), letters(26), letters(99)),
            ("Z".into(), "AA".into(), "CV".into())
        );
        let broken: BTreeSet<(usize, usize)> = (0..super::SABOTAGES).map(broken).collect();
        assert_eq!(broken.len(), super::SABOTAGES);
    }
}
