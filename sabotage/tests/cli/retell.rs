//! A run told again: report, merge and evidence, and which verdicts make the exit code.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fixture::{Answer, CAUGHT, Fixture, MISSED, STALE};

fn beside(fixture: &Fixture, name: &str) -> (PathBuf, String) {
    let path = fixture.cache().with_file_name(name);
    let text = path.display().to_string();
    (path, text)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[m0_spec::row(B29)]
#[test]
fn a_report_tells_the_last_run_again_and_runs_nothing() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let none = fixture.run(&["report"]);
    assert_eq!(none.code, 2, "{}", none.out);
    assert!(none.out.contains("no run has ended yet"), "{}", none.out);
    let forms = ["json", "junit", "md", "sarif", "html", "elements"];
    let write = |command: &str, from: &str| -> (Answer, Vec<String>) {
        let mut args = vec![command.to_owned()];
        let mut paths = Vec::new();
        for form in forms {
            let (path, text) = beside(&fixture, &format!("{from}.{form}"));
            args.extend([format!("--{form}"), text]);
            paths.push(path);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let answer = fixture.run(&args);
        (answer, paths.iter().map(|path| read(path)).collect())
    };
    let (ran, of_run) = write("run", "ran");
    // Nothing is run: the gate would make a file now.
    fixture.write("t.sh", "touch ran-again\nexit 1\n");
    let (told, of_report) = write("report", "told");
    assert_eq!((ran.code, told.code), (3, 3), "{}", told.out);
    assert_eq!(of_run, of_report);
    assert!(told.out.contains("MISSED negates-wrong"), "{}", told.out);
    assert!(!fixture.root().join("ran-again").exists());
    let results = beside(&fixture, "ran.json").1;
    let from = fixture.run(&["report", "--from", &results, "--md", "-"]);
    assert_eq!(from.code, 3);
    assert!(from.out.starts_with(&of_run[2]), "{}", from.out);
    let wrong = fixture.run(&["report", "--from", "sum.sh"]);
    assert_eq!(wrong.code, 2, "{}", wrong.out);
    assert!(wrong.out.contains("is no results.json"), "{}", wrong.out);
}

#[m0_spec::row(B31)]
#[test]
fn what_does_not_fail_is_chosen_and_a_run_without_a_measure_fails_always() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let code = |args: &[&str]| fixture.run(args).code;
    assert_eq!(code(&["run"]), 3);
    for (what, wanted) in [
        ("broken", 3),
        ("missed", 1),
        ("missed,broken", 3),
        ("inconclusive,pending,closed", 0),
    ] {
        assert_eq!(code(&["report", "--fail-on", what]), wanted, "{what}");
    }
    let zero = fixture.run(&["run", "--exit-zero"]);
    assert_eq!(zero.code, 0, "{}", zero.out);
    assert!(zero.out.contains("exit 3 (as asked: 0)"), "{}", zero.out);
    assert_eq!(code(&["run", "--fail-on", "everything"]), 2);
    fixture.write(
        "sabotage/rules/r.yaml",
        &format!("{CAUGHT}  skip: {{why: later, until: 2099-01-01}}\n"),
    );
    assert_eq!(code(&["run", "--exit-zero"]), 7);
    // The clean tree is red: add prints 0 before any rule.
    fixture.write("sum.sh", "add() { echo 0; }\nneg() { echo 0; }\n");
    let rule = CAUGHT.replace(
        "find: '$1 + $2', with: '$1 - $2'",
        "find: 'add() { echo 0', with: 'add() { echo 1'",
    );
    fixture.write("sabotage/rules/r.yaml", &rule);
    let red = fixture.run(&["run", "--exit-zero"]);
    assert_eq!(red.code, 4, "{}", red.out);
}

#[m0_spec::row(B32)]
#[test]
fn shards_are_put_together_and_none_is_missing_doubled_or_of_another_tree() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let shard = |part: &str, name: &str| {
        let text = beside(&fixture, name).1;
        fixture.run(&["run", "--shard", part, "--json", &text]);
        text
    };
    let (one, two, three) = (shard("1/3", "1"), shard("2/3", "2"), shard("3/3", "3"));
    let all = fixture.run(&["merge", &one, &three, &two]);
    assert_eq!(all.code, 3, "{}", all.out);
    assert!(
        all.out.contains("3 rules: 1 caught, 2 missed"),
        "{}",
        all.out
    );
    let evidence: Value = serde_json::from_str(&fixture.run(&["evidence"]).out).expect("JSON");
    let rules: Vec<&str> = evidence
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|proof| proof["rule"].as_str())
        .collect();
    assert_eq!(rules, ["adds-wrong", "negates-wrong", "gone"]);

    let (out, dir) = beside(&fixture, "merged");
    let missing = fixture.run(&["merge", &one, "--out", &dir]);
    assert_eq!(missing.code, 8, "{}", missing.out);
    for part in ["shard 2/3 is missing", "shard 3/3 is missing"] {
        assert!(missing.out.contains(part), "{}", missing.out);
    }
    let told: Value = serde_json::from_str(&read(&out.join("results.json"))).expect("JSON");
    assert_eq!(told["exit"], 8);
    // What a part says is more serious than that another part is missing.
    assert_eq!(fixture.run(&["merge", &one, &two]).code, 1);

    let refused = |args: &[&str], why: &str| {
        let answer = fixture.run(args);
        assert_eq!(answer.code, 2, "{}", answer.out);
        assert!(answer.out.contains(why), "{}", answer.out);
    };
    refused(&["merge", &one, &two, &one], "shard 1/3 is there twice");
    let half = shard("1/2", "half");
    refused(&["merge", &two, &half], "is one of 3 shards");
    let text = beside(&fixture, "whole").1;
    fixture.run(&["run", "--json", &text]);
    refused(&["merge", &text], "is no shard");
    let text = beside(&fixture, "selected").1;
    fixture.run(&["run", "adds-*", "--shard", "1/3", "--json", &text]);
    refused(&["merge", &text, &two], "shards of different selections");
    fixture.write("sum.sh", &format!("# more\n{}", super::fixture::SUM));
    let other = shard("2/3", "other");
    refused(&["merge", &one, &other], "verdicts of different trees");
}

#[m0_spec::row(B33)]
#[test]
fn evidence_is_of_this_tree_or_stale() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED].concat());
    fixture.run(&["run"]);
    let (file, path) = beside(&fixture, "evidence.json");
    std::fs::write(&file, fixture.run(&["evidence"]).out).expect("written");
    let verify = |args: &[&str], code: i32, word: &str| {
        let answer = fixture.run(&[&["evidence", "verify"], args].concat());
        assert_eq!(answer.code, code, "{}", answer.out);
        assert!(answer.out.starts_with(word), "{}", answer.out);
    };
    verify(&[], 0, "VALID: 2 rules of this tree, 1 caught");
    verify(&[&path], 0, "VALID");
    fixture.run(&["run", "adds-wrong"]);
    verify(&[], 8, "INCOMPLETE: 1 of 2 rules");
    fixture.write("new.txt", "one more file\n");
    verify(&[&path], 6, "STALE");
    std::fs::remove_file(fixture.root().join("new.txt")).expect("removed");
    verify(&[&path], 0, "VALID");
    std::fs::write(&file, "[]").expect("written");
    verify(&[&path], 7, "EMPTY");
    std::fs::write(&file, "{}").expect("written");
    verify(&[&path], 2, "sabotage: ");
}

#[m0_spec::row(B30)]
#[test]
fn annotations_are_printed_and_the_summary_is_appended() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let (summary, _) = beside(&fixture, "summary.md");
    std::fs::write(&summary, "# Before\n").expect("written");
    let output = fixture
        .command(&["run", "--quiet", "--github"])
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .expect("runs");
    let out = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = out.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(
        lines[0].starts_with(
            "::error file=sabotage/rules/r.yaml,line=9,col=7,title=BROKEN%3A stale gone::"
        ),
        "{out}"
    );
    assert!(
        lines[1].starts_with(
            "::error file=sum.sh,line=2,col=18,title=MISSED negates-wrong::neg negates."
        ),
        "{out}"
    );
    let text = read(&summary);
    assert!(text.starts_with("# Before\n## Sabotage\n"), "{text}");
    assert!(text.contains("| negates-wrong |"), "{text}");
}
