//! Tests of the rows' reader, judge and writers, on planted faults and in a directory of their own.

use std::path::Path;

use super::{check, emit, read};

const HEAD: &str = "area: E\ntitle: Hosts\nfloor: proven\nrows:\n";

fn row(id: &str, rest: &str) -> String {
    format!("  - id: {id}\n    claim: A thing is so.\n    why: It is.\n    needs: [test]\n{rest}")
}

/// Parses and checks one file against a ledger; the findings as printed.
fn findings(rows: &str, ledger: &[&str]) -> Vec<String> {
    let text = format!("{HEAD}{rows}");
    let ledger: Vec<_> = ledger
        .iter()
        .enumerate()
        .map(|(at, id)| ((*id).to_owned(), at + 1))
        .collect();
    match read::area(Path::new("spec/E.yaml"), &text) {
        Ok(area) => check::check(Path::new("spec"), &[area], &ledger)
            .iter()
            .map(|fault| fault.finding.to_string())
            .collect(),
        Err(finding) => vec![finding.to_string()],
    }
}

fn one(rows: &str, ledger: &[&str], place: &str, part: &str) {
    let found = findings(rows, ledger);
    assert_eq!(found.len(), 1, "{rows}: {found:#?}");
    assert!(
        found[0].starts_with(place) && found[0].contains(part),
        "{rows}: {found:#?}"
    );
}

const ACTIVE: &str = "    state: active\n";

#[m0_spec::row(H9)]
#[test]
fn an_id_that_is_doubled_malformed_or_lost_is_found_where_it_stands() {
    let good = row("E1", ACTIVE);
    assert_eq!(findings(&good, &["E1"]), Vec::<String>::new());
    one(
        &format!("{good}{}", row("E1", ACTIVE)),
        &[],
        "spec/E.yaml:10:9:",
        "next free id is E2",
    );
    for bad in ["X1", "E01", "E", "E1a", "e1", "E0", "E+1"] {
        one(
            &row(bad, ACTIVE),
            &[],
            "spec/E.yaml:5:9:",
            "is no id of area E",
        );
    }
    one(&good, &["E1", "E7"], "spec/ids.lock:2:1:", "E7 is lost");
    one(&good, &["E1", "E1"], "spec/ids.lock:2:1:", "twice");
}

#[m0_spec::row(H10)]
#[test]
fn an_unknown_word_names_the_nearest_right_one() {
    one(
        &row("E1", "    state: actve\n"),
        &[],
        "spec/E.yaml:9:12:",
        "did you mean `active`",
    );
    one(
        &row("E1", "    state: active\n    becuase: x\n"),
        &[],
        "spec/E.yaml:10:5:",
        "unknown key `becuase`",
    );
    let near = row("E1", ACTIVE).replace("why:", "wy:");
    one(&near, &[], "spec/E.yaml:7:5:", "did you mean `why`");
    let kind = row("E1", ACTIVE).replace("[test]", "[test, smok]");
    one(&kind, &[], "spec/E.yaml:8:19:", "did you mean `smoke`");
    let missing = row("E1", ACTIVE).replace("    why: It is.\n", "");
    one(&missing, &[], "spec/E.yaml:8:5:", "`why` is missing");
}

#[m0_spec::row(H11)]
#[test]
fn a_claim_is_one_sentence() {
    let with = |claim: &str| row("E1", ACTIVE).replace("A thing is so.", claim);
    for good in [
        "A wait of 2.5 s ends.",
        "The answer is 503 with Retry-After.",
        "At 1. to 2. it holds.",
    ] {
        assert_eq!(findings(&with(good), &[]), Vec::<String>::new(), "{good}");
    }
    for (bad, part) in [
        ("A thing is so", "full stop"),
        ("A thing is so. It is.", "more than one"),
        ("Is it so? It is so.", "more than one"),
        ("So.", "no sentence"),
    ] {
        one(&with(bad), &[], "spec/E.yaml:6:12:", part);
    }
}

#[m0_spec::row(H12)]
#[test]
fn a_state_carries_what_it_must() {
    let retired = "    state: retired\n    reason: It split.\n    date: 2026-12-01\n";
    let successor = row("E2", ACTIVE);
    assert_eq!(
        findings(
            &format!(
                "{}{successor}",
                row("E1", &format!("{retired}    by: [E2]\n"))
            ),
            &[]
        ),
        Vec::<String>::new()
    );
    one(&row("E1", retired), &[], "spec/E.yaml:5:9:", "says no `by`");
    let far = format!(
        "{}{successor}",
        row("E1", &format!("{retired}    by: [E22]\n"))
    );
    one(&far, &[], "spec/E.yaml:12:10:", "did you mean E2?");
    one(
        &row("E1", &format!("{retired}    by: [E1]\n")),
        &[],
        "spec/E.yaml:12:10:",
        "succeed itself",
    );
    one(
        &row("E1", "    state: planned\n"),
        &[],
        "spec/E.yaml:5:9:",
        "says no `reason`",
    );
    let waiver = "    state: out-of-scope\n    reason: Not here.\n    expires: soon\n";
    one(&row("E1", waiver), &[], "spec/E.yaml:11:14:", "no day");
    let issue = "    state: known-issue\n    reason: x\n    expires: 2027-01-01\n    owner: y\n";
    one(
        &row("E1", issue),
        &[],
        "spec/E.yaml:5:9:",
        "says no `issue`",
    );
    one(
        &row("E1", "    state: active\n    by: []\n"),
        &[],
        "spec/E.yaml:5:9:",
        "not retired",
    );
}

#[m0_spec::row(H3)]
#[test]
fn a_retired_row_becomes_a_deprecated_constant_that_names_the_successor() {
    let retired =
        "    state: retired\n    reason: It split.\n    date: 2026-12-01\n    by: [E2, E3]\n";
    let rows = format!(
        "{HEAD}{}{}{}",
        row("E1", retired),
        row("E2", ACTIVE),
        row("E3", ACTIVE)
    );
    let area = read::area(Path::new("spec/E.yaml"), &rows).expect("the rows are right");
    let text = emit::constants(&[area]);
    assert!(
        text.contains("#[deprecated(note = \"retired; see E2, E3\")]\npub const E1: Row"),
        "{text}"
    );
    assert!(
        text.contains("ALL: &[Row] = &[\n    E2,\n    E3,\n]"),
        "{text}"
    );
}
