//! Each form of the same run, as a snapshot, and what all forms agree on.

use std::path::Path;

use sabotage::report::told::Told;
use sabotage::report::{elements, github, html, json, junit, markdown, sarif, terminal};
use serde_json::Value;

use super::sample::{ALL, every_verdict, record, red_gate, run};
use sabotage::verdict::Verdict;

fn hold(name: &str, text: &str) {
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

/// Nowhere: no file is found there, so positions come from the records alone.
fn nowhere() -> &'static Path {
    Path::new("/nonexistent")
}

fn pretty(value: &Value) -> String {
    json::pretty(value).expect("JSON")
}

#[m0_spec::row(B21, B29)]
#[test]
fn text_forms() {
    for (name, told) in [("every-verdict", every_verdict()), ("red-gate", red_gate())] {
        let records: Vec<String> = told.wanting().into_iter().map(terminal::record).collect();
        let text = format!("{}\n{}\n", records.join("\n"), terminal::closing(&told));
        hold(
            &format!("{name}.terminal"),
            &anstream::adapter::strip_str(&text).to_string(),
        );
        hold(&format!("{name}.markdown"), &markdown::report(&told));
        hold(&format!("{name}.junit"), &junit::report(&told));
        hold(
            &format!("{name}.github"),
            &github::annotations(&told).join("\n"),
        );
    }
}

#[m0_spec::row(B21, B29)]
#[test]
fn json_forms() {
    let told = every_verdict();
    hold("sarif", &pretty(&sarif::log(&told)));
    hold("red-gate.sarif", &pretty(&sarif::log(&red_gate())));
    hold("elements", &pretty(&elements::report(&told, nowhere())));
    let three = run([Verdict::Caught, Verdict::Missed, Verdict::BrokenStale]
        .into_iter()
        .enumerate()
        .map(|(index, verdict)| record("one", verdict, index + 1))
        .collect());
    hold("results", &json::pretty(&three).expect("JSON"));
    hold(
        "evidence",
        &json::pretty(&json::evidence(&three)).expect("JSON"),
    );
    // Only what is made for this run; style, script and the elements above are held elsewhere.
    let page = html::page(&three, nowhere());
    let body = page.split_once("<body>").expect("a body").1;
    let body = body.split_once("<script").expect("data").0;
    hold("page", body);
}

#[m0_spec::row(B29)]
#[test]
fn what_is_written_reads_back_the_same() {
    for told in [every_verdict(), red_gate()] {
        let text = json::pretty(&told).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Told>(&text).expect("the same shape"),
            told
        );
    }
    let old = json::pretty(&every_verdict())
        .expect("JSON")
        .replace("\"exit\": 3", "\"exit\": 99");
    let error = serde_json::from_str::<Told>(&old).expect_err("no such exit code");
    assert!(error.to_string().contains("no exit code 99"), "{error}");
}

#[m0_spec::row(B21)]
#[test]
fn every_form_has_every_rule_that_needs_an_eye() {
    let told = every_verdict();
    let wanting = told.wanting();
    assert_eq!(
        wanting.len(),
        ALL.len() - 3,
        "all but CAUGHT, SKIPPED and KNOWN-GAP"
    );
    let forms = [
        markdown::report(&told),
        junit::report(&told),
        pretty(&sarif::log(&told)),
        pretty(&elements::report(&told, nowhere())),
        html::page(&told, nowhere()),
        json::pretty(&told).expect("JSON"),
    ];
    for record in wanting {
        for form in &forms {
            assert!(
                form.contains(&record.rule),
                "{} is not in\n{form}",
                record.rule
            );
        }
    }
}

#[m0_spec::row(B30)]
#[test]
fn nine_of_a_kind_worst_first_and_the_tenth_counts_the_rest() {
    let mut rules = Vec::new();
    for index in 0..14 {
        rules.push(record(
            &format!("missed-{index}"),
            Verdict::Missed,
            index + 1,
        ));
        rules.push(record(&format!("flaky-{index}"), Verdict::Flaky, index + 1));
    }
    rules.push(record("last", Verdict::BrokenInert, 40));
    let lines = github::annotations(&run(rules));
    let of = |kind: &str| -> Vec<&String> {
        lines.iter().filter(|line| line.starts_with(kind)).collect()
    };
    let (errors, warnings) = (of("::error"), of("::warning"));
    assert_eq!(
        (errors.len(), warnings.len(), of("::notice").len()),
        (10, 10, 1)
    );
    assert!(
        errors[0].contains("title=BROKEN%3A inert last"),
        "{}",
        errors[0]
    );
    assert!(errors[9].contains("6 more of this kind"), "{}", errors[9]);
    assert!(
        warnings[9].contains("5 more of this kind"),
        "{}",
        warnings[9]
    );
    assert!(lines.iter().all(|line| !line.contains('\n')));
}

#[m0_spec::row(B29)]
#[test]
fn a_viewer_gets_the_file_as_it_was_run_or_the_lines_that_are_known() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("src/sum.rs");
    std::fs::create_dir_all(file.parent().expect("src")).expect("made");
    let told = run(vec![record("one", Verdict::Missed, 2)]);
    let source = || {
        let report = elements::report(&told, dir.path());
        report["files"]["src/sum.rs"]["source"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    let whole = "fn sum() {\n    self.0 + other.0\n}\n";
    std::fs::write(&file, whole).expect("written");
    assert_eq!(source(), whole);
    // The tree has moved on: a text in which the patch stands elsewhere would be a lie.
    std::fs::write(&file, format!("// new\n{whole}")).expect("written");
    assert_eq!(source(), "\n    self.0 + other.0\n");
}
