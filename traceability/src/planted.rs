//! The tool sabotages itself: a small repository that is right, and for each code one change that is wrong.
//!
//! Owns the table of planted causes. `trace check --planted` runs it, and so do the tests. Refuses to touch
//! the repository at hand: everything happens in a directory of its own, which is removed.
//! Invariant: every code of [`Code::ALL`] has a cause here, and the untouched repository has no finding.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use crate::code::Code;
use crate::files;
use crate::judge::{Ask, judge};
use crate::rows::Rows;
use crate::rows::read::Grade;
use crate::tree::content_hash;
use crate::workspace::{Given, Workspace};

/// One change: a file, a text in it (empty: the whole file), and what stands there instead.
type Edit = (&'static str, &'static str, &'static str);

/// A cause: the code that must be told, its place, and the changes.
type Cause = (Code, &'static str, &'static [Edit]);

const ROWS: &str = "area: E\ntitle: Planted\nfloor: passed\nrows:\n\
    \x20 - id: E1\n    claim: One thing is so.\n    why: It is.\n    state: active\n    needs: [test]\n\
    \x20 - id: E2\n    claim: Two things are so.\n    why: They are.\n    state: active\n    needs: [test, property]\n\
    \x20 - id: E3\n    claim: A third thing will be so.\n    why: It will.\n    state: planned\n    needs: [test]\n    reason: Not yet.\n\
    \x20 - id: E4\n    claim: A fourth thing was so.\n    why: It was.\n    state: retired\n    needs: [test]\n    reason: It grew.\n    by: [E1]\n    date: 2026-11-01\n\
    \x20 - id: E5\n    claim: A fifth thing is elsewhere.\n    why: It is.\n    state: out-of-scope\n    needs: [test]\n    reason: Not here.\n    expires: 2999-01-01\n\
    \x20 - id: E6\n    claim: A sixth thing is not yet so.\n    why: It should.\n    state: known-issue\n    needs: [test]\n    reason: It fails.\n    issue: '6'\n    owner: planter\n    expires: 2999-01-01\n\
    \x20 - id: E7\n    claim: A seventh thing is so.\n    why: It is.\n    state: active\n    floor: proven\n    needs: [test]\n";

const SOURCE: &str = "mod tests {\n\
    \x20   #[row(E1)]\n    #[test]\n    fn one() { assert!(true); }\n\
    \x20   #[row(E2)]\n    #[test]\n    fn two() { assert!(true); }\n\
    \x20   proptest! {\n        #[row(E2)]\n        #[test]\n        fn any(x in 0..9) { assert!(x < 9); }\n    }\n\
    \x20   #[row(E6)]\n    #[test]\n    fn known() { assert!(false); }\n\
    \x20   #[row(E7)]\n    #[test]\n    fn seven() { assert!(true); }\n}\n";

const SCRIPT: &str = "# proves: E1\ndef test_script():\n    assert True\n";

const RESULTS: &str = "{\"event\":\"run\",\"tree\":\"{TREE}\"}\n\
    {\"event\":\"test\",\"binary\":\"planted\",\"test\":\"tests::one\",\"verdict\":\"passed\"}\n\
    {\"event\":\"test\",\"binary\":\"planted\",\"test\":\"tests::two\",\"verdict\":\"passed\"}\n\
    {\"event\":\"test\",\"binary\":\"planted\",\"test\":\"tests::any\",\"verdict\":\"passed\"}\n\
    {\"event\":\"test\",\"binary\":\"planted\",\"test\":\"tests::known\",\"verdict\":\"failed\"}\n\
    {\"event\":\"test\",\"binary\":\"planted\",\"test\":\"tests::seven\",\"verdict\":\"passed\"}\n\
    {\"event\":\"test\",\"binary\":\"\",\"test\":\"test_script\",\"verdict\":\"passed\"}\n";

const RULES: &str =
    "- id: break-seven\n  rows: [E7]\n  expect: [{gate: test, check: 'tests::seven'}]\n";

const EVIDENCE: &str = "[{\"rule\":\"break-seven\",\"rows\":[\"E7\"],\"gate\":\"test\",\"check\":\"tests::seven\",\
    \"verdict\":\"caught\",\"message\":\"it broke\",\"tree\":\"{TREE}\"}]\n";

const CONFIG: &str = "results:\n  - files: target/results.jsonl\n  - files: target/evidence.json\n    kind: sabotage\n\
    least: {rows: 6, tests: 6, results: 6, sabotages: 1}\n";

const BASE: [(&str, &str); 8] = [
    ("Cargo.toml", "[package]\nname = \"planted\"\n"),
    ("spec/E.yaml", ROWS),
    ("src/lib.rs", SOURCE),
    ("test_script.py", SCRIPT),
    ("sabotage/rules/all.yaml", RULES),
    ("trace.yaml", CONFIG),
    ("target/results.jsonl", RESULTS),
    ("target/evidence.json", EVIDENCE),
];

/// Files that are written after the others: they name the tree, or are generated.
const LATE: [&str; 5] = [
    "target/results.jsonl",
    "target/evidence.json",
    "spec/SPEC.md",
    "spec/ids.lock",
    "spec/trace.lock",
];

const E: &str = "spec/E.yaml";
const RS: &str = "src/lib.rs";
const PY: &str = "test_script.py";
const RULE: &str = "sabotage/rules/all.yaml";
const RUN: &str = "target/results.jsonl";
const EVID: &str = "target/evidence.json";

/// Every code's cause, in the order of the codes.
pub const CAUSES: &[Cause] = &[
    (
        Code::RowUnreadable,
        "spec/E.yaml:8:12",
        &[(E, "state: active", "state: actve")],
    ),
    (
        Code::RuleUnreadable,
        "sabotage/rules/all.yaml:2:3",
        &[(RULE, "- id: break-seven\n  rows", "- rows:")],
    ),
    (
        Code::SourceUnreadable,
        "src/lib.rs:4:31",
        &[(
            RS,
            "fn one() { assert!(true); }",
            "fn one() { assert!(true); )",
        )],
    ),
    (
        Code::ResultsUnreadable,
        "target/results.jsonl:2:2",
        &[(
            RUN,
            "{\"event\":\"test\",\"binary\":\"planted\",\"test\":\"tests::one\"",
            "[",
        )],
    ),
    (
        Code::LockUnreadable,
        "spec/trace.lock:1:1",
        &[("spec/trace.lock", "", "E1\tplanted tests::one\n")],
    ),
    (
        Code::NoRows,
        "spec:1:1",
        &[(E, "", "area: E\ntitle: Planted\nfloor: passed\nrows: []\n")],
    ),
    (
        Code::IdMalformed,
        "spec/E.yaml:10:9",
        &[(E, "id: E2", "id: E02")],
    ),
    (
        Code::IdDuplicate,
        "spec/E.yaml:10:9",
        &[(E, "id: E2", "id: E1")],
    ),
    (
        Code::IdLost,
        "spec/ids.lock:1:1",
        &[("spec/ids.lock", "", "E9\n")],
    ),
    (
        Code::ClaimNoSentence,
        "spec/E.yaml:6:12",
        &[(E, "One thing is so.", "One thing is so")],
    ),
    (
        Code::RowIncomplete,
        "spec/E.yaml:15:9",
        &[(E, "    reason: Not yet.\n", "")],
    ),
    (
        Code::SuccessorUnknown,
        "spec/E.yaml:27:10",
        &[(E, "by: [E1]", "by: [E11]")],
    ),
    (
        Code::GeneratedStale,
        "spec/SPEC.md:1:1",
        &[("spec/SPEC.md", "", "by hand\n")],
    ),
    (
        Code::NoTests,
        "trace.yaml:1:1",
        &[
            (RS, "", "mod tests {}\n"),
            (PY, "", "pass\n"),
            (RUN, "", "{\"event\":\"run\"}\n"),
        ],
    ),
    (
        Code::FewerThanRecorded,
        "trace.yaml:1:1",
        &[("trace.yaml", "rows: 6", "rows: 60")],
    ),
    (
        Code::TestWithoutRow,
        "src/lib.rs:4:5",
        &[(RS, "    #[row(E1)]\n    #[test]", "\n    #[test]")],
    ),
    (
        Code::RowUnknown,
        "src/lib.rs:2:11",
        &[(RS, "row(E1)", "row(E11)")],
    ),
    (
        Code::RowPlanned,
        "src/lib.rs:2:15",
        &[(RS, "row(E1)", "row(E1, E3)")],
    ),
    (
        Code::RowRetired,
        "src/lib.rs:2:15",
        &[(RS, "row(E1)", "row(E1, E4)")],
    ),
    (
        Code::RowOutOfScope,
        "src/lib.rs:2:15",
        &[(RS, "row(E1)", "row(E1, E5)")],
    ),
    (
        Code::TagMisplaced,
        "test_script.py:4:1",
        &[(PY, "    assert True\n", "    assert True\n# proves: E1\n")],
    ),
    (
        Code::NotCompiled,
        "src/orphan.rs:1:1",
        &[("src/orphan.rs", "", "#[row(E1)]\n#[test]\nfn orphan() {}\n")],
    ),
    (
        Code::RowWithoutEvidence,
        "spec/E.yaml:5:9",
        &[(RS, "row(E1)", "row(E2)"), (PY, "E1", "E2")],
    ),
    (
        Code::RowWithoutKind,
        "spec/E.yaml:10:9",
        &[(RS, "proptest!", "plain!")],
    ),
    (
        Code::BelowFloor,
        "spec/E.yaml:10:9",
        &[(
            RUN,
            "\"tests::any\",\"verdict\":\"passed\"",
            "\"tests::any\",\"verdict\":\"ignored\"",
        )],
    ),
    (
        Code::Hollow,
        "src/lib.rs:16:11",
        &[(EVID, "\"caught\"", "\"missed\"")],
    ),
    (
        Code::EdgeStale,
        "src/lib.rs:2:11",
        &[(
            "spec/trace.lock",
            "",
            "E1\tplanted tests::one\t0\t0\t-\tlooked\n",
        )],
    ),
    (
        Code::LockStale,
        "spec/trace.lock:1:1",
        &[(
            "spec/trace.lock",
            "",
            "E1\tplanted tests::gone\t0\t0\t-\tlooked\n",
        )],
    ),
    (
        Code::SabotageWithoutRow,
        "sabotage/rules/all.yaml:1:7",
        &[(RULE, "[E7]", "[]")],
    ),
    (
        Code::SabotageWithoutCheck,
        "sabotage/rules/all.yaml:1:7",
        &[(RULE, "[{gate: test, check: 'tests::seven'}]", "[]")],
    ),
    (
        Code::SabotageUnclaimed,
        "sabotage/rules/all.yaml:2:10",
        &[(RULE, "tests::seven", "tests::one")],
    ),
    (
        Code::RowWithoutSabotage,
        "spec/E.yaml:45:9",
        &[(RULE, "[E7]", "[E1]")],
    ),
    (
        Code::KnownIssuePasses,
        "spec/E.yaml:36:9",
        &[(RUN, "failed", "passed")],
    ),
    (
        Code::WaiverExpired,
        "spec/E.yaml:35:14",
        &[(
            E,
            "reason: Not here.\n    expires: 2999-01-01",
            "reason: Not here.\n    expires: 2026-11-28",
        )],
    ),
    (
        Code::TestFailed,
        "src/lib.rs:2:6",
        &[(
            RUN,
            "\"tests::one\",\"verdict\":\"passed\"",
            "\"tests::one\",\"verdict\":\"failed\"",
        )],
    ),
    (
        Code::TestFlaky,
        "src/lib.rs:2:6",
        &[(
            RUN,
            "\"tests::one\",\"verdict\":\"passed\"",
            "\"tests::one\",\"verdict\":\"flaky\"",
        )],
    ),
    (
        Code::NeverRan,
        "src/lib.rs:2:6",
        &[(RUN, "\"tests::one\"", "\"tests::other\"")],
    ),
    (
        Code::ResultAmbiguous,
        "target/results.jsonl:1:1",
        &[(
            "test_twin.py",
            "",
            "# proves: E1\ndef test_script():\n    pass\n",
        )],
    ),
    (
        Code::NoResults,
        "target/results.jsonl:1:1",
        &[(RUN, "", "{\"event\":\"run\",\"tree\":\"{TREE}\"}\n")],
    ),
    (
        Code::ResultsMissing,
        "target/none.jsonl:1:1",
        &[("trace.yaml", "target/results.jsonl", "target/none.jsonl")],
    ),
    (
        Code::ResultsStale,
        "target/results.jsonl:1:1",
        &[(RUN, "{TREE}", "0123")],
    ),
    (
        Code::ResultsUnattributed,
        "target/results.jsonl:1:1",
        &[(RUN, "\"tree\":\"{TREE}\"", "\"toolchain\":\"x\"")],
    ),
];

/// Writes the repository with some changes.
pub fn plant(root: &Path, edits: &[Edit]) -> Result<()> {
    let changed = |name: &str, text: &str| {
        let own = edits.iter().filter(|(file, _, _)| *file == name);
        own.fold(text.to_owned(), |text, (_, from, to)| {
            if from.is_empty() {
                (*to).to_owned()
            } else {
                text.replacen(from, to, 1)
            }
        })
    };
    let write = |name: &str, text: &str| -> Result<()> {
        let path = root.join(name);
        let dir = path.parent().context("it is under the root")?;
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    for (name, text) in BASE.iter().filter(|(name, _)| !LATE.contains(name)) {
        write(name, &changed(name, text))?;
    }
    let new = |name: &str| BASE.iter().all(|(known, _)| *known != name) && !LATE.contains(&name);
    for (name, _, text) in edits.iter().filter(|(name, _, _)| new(name)) {
        write(name, text)?;
    }
    let (rows, _) = Rows::read(root, Path::new("spec"))?;
    for (path, text) in rows.generated(None) {
        let name = path.to_string_lossy().into_owned();
        write(&name, &changed(&name, &text))?;
    }
    let lock = changed("spec/trace.lock", "");
    if !lock.is_empty() {
        write("spec/trace.lock", &lock)?;
    }
    let tree = content_hash(root, &files::list(root)?).context("cannot hash the planted tree")?;
    for (name, text) in BASE.iter().filter(|(name, _)| LATE.contains(name)) {
        write(name, &changed(name, text).replace("{TREE}", &tree))?;
    }
    Ok(())
}

/// What is found in the repository with some changes, as `place [code]` and the message.
pub fn found(root: &Path, edits: &[Edit]) -> Result<Vec<(String, Code, String)>> {
    plant(root, edits)?;
    let workspace = Workspace::read(root, &Given::default())?;
    let ask = Ask {
        floor: Grade::Proven,
        touched: BTreeSet::new(),
        today: "2026-11-29".into(),
    };
    let judged = judge(&workspace, &ask);
    Ok(judged
        .found
        .into_iter()
        .map(|(_, fault)| {
            let at = fault.finding.at.to_string();
            (at, fault.code, fault.finding.message)
        })
        .collect())
}

/// Plants every cause; each that is not told, with what was told instead.
pub fn missed(dir: &Path) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    let clean = found(&dir.join("right"), &[])?;
    if !clean.is_empty() {
        missed.push(format!(
            "the repository that is right has findings: {clean:?}"
        ));
    }
    for code in Code::ALL {
        let Some((_, place, edits)) = CAUSES.iter().find(|(cause, _, _)| cause == code) else {
            missed.push(format!("{code} has no planted cause"));
            continue;
        };
        let told = found(&dir.join(code.word()), edits)?;
        let is = |(at, got, _): &(String, Code, String)| got == code && at == place;
        if !told.iter().any(is) {
            missed.push(format!("{code} is not told at {place}: {told:?}"));
        }
    }
    Ok(missed)
}
