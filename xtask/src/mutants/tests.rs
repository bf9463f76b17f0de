//! Survivors against the list, on planted sweeps; and the list of this repository by itself.

use std::path::Path;

use super::judge::{Judged, judge};
use super::sweep::{Fate, Mutant, Sweep, outcomes};
use super::{LEDGER, PACKAGES, close, ledger, shard};
use crate::repository::Repository;

const FILE: &str = "server/policy/src/a.rs";

fn mutant(line: usize, what: &str) -> Mutant {
    Mutant {
        file: FILE.into(),
        line,
        column: 5,
        what: what.into(),
    }
}

/// A sweep of all that is known, but for what another shard tries.
fn sweep(fates: &[(usize, &str, Option<Fate>)]) -> Sweep {
    let known = fates.iter().map(|(line, what, _)| mutant(*line, what));
    let tried = fates
        .iter()
        .filter_map(|(line, what, fate)| Some((mutant(*line, what), (*fate)?)));
    Sweep {
        package: "m0-policy".into(),
        dir: "server/policy".into(),
        known: known.collect(),
        mutants: tried.collect(),
        seconds: 2.0,
    }
}

fn listed(text: &str, sweep: Sweep) -> Judged {
    let entries = ledger::parse(Path::new("list.yaml"), text).expect("the list is right");
    judge(&[sweep], &entries)
}

fn told(judged: &Judged) -> Vec<String> {
    judged.findings.iter().map(ToString::to_string).collect()
}

fn entry(what: &str, times: usize) -> String {
    format!("- {{file: {FILE}, mutants: [{what}], times: {times}, why: it makes no difference}}\n")
}

const GONE: Option<Fate> = Some(Fate::Caught);
const LEFT: Option<Fate> = Some(Fate::Survived);

#[m0_spec::row(H47)]
#[test]
fn a_survivor_is_a_finding_at_its_place_unless_it_is_listed() {
    let swept = || {
        sweep(&[
            (3, "m", LEFT),
            (7, "n", GONE),
            (9, "o", Some(Fate::TimedOut)),
        ])
    };
    let bare = listed("", swept());
    assert_eq!(
        told(&bare),
        [
            "server/policy/src/a.rs:3:5: no test notices `m`: write the test, or list it with the reason"
        ]
    );
    close(&[swept()], &bare, true).expect_err("a survivor is red");
    let explained = listed(&entry("m", 1), swept());
    assert_eq!((told(&explained).len(), explained.explained.len()), (0, 1));
    close(&[swept()], &explained, true).expect("all is explained");
}

#[m0_spec::row(H47)]
#[test]
fn a_second_survivor_with_the_same_words_is_not_covered_by_the_first() {
    let judged = listed(&entry("m", 1), sweep(&[(3, "m", LEFT), (8, "m", LEFT)]));
    let told = told(&judged);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[1].starts_with("server/policy/src/a.rs:8:5: "),
        "{told:?}"
    );
    assert!(
        told[1].contains("2 such survive and list.yaml:1:44 says 1"),
        "{told:?}"
    );
}

#[m0_spec::row(H47)]
#[test]
fn an_entry_whose_mutant_is_noticed_or_gone_is_a_finding() {
    for fate in [Fate::Caught, Fate::TimedOut, Fate::Unviable] {
        let judged = listed(&entry("m", 1), sweep(&[(3, "m", Some(fate))]));
        let told = told(&judged);
        assert!(
            told.len() == 1 && told[0].contains("is noticed now"),
            "{fate:?}: {told:?}"
        );
        assert!(told[0].starts_with("list.yaml:1:"), "{told:?}");
    }
    let gone = told(&listed(&entry("m", 1), sweep(&[(3, "other", GONE)])));
    assert!(gone[0].contains("0 such mutants exist"), "{gone:?}");
    let fewer = told(&listed(
        &entry("m", 2),
        sweep(&[(3, "m", LEFT), (4, "m", GONE)]),
    ));
    assert!(
        fewer.len() == 1 && fewer[0].contains("lower `times`"),
        "{fewer:?}"
    );
}

#[m0_spec::row(H47)]
#[test]
fn of_what_another_shard_or_package_tries_nothing_is_said() {
    let part = told(&listed(
        &entry("m", 1),
        sweep(&[(3, "m", None), (4, "n", GONE)]),
    ));
    assert_eq!(part, Vec::<String>::new());
    let elsewhere = entry("m", 1).replace("server/policy/", "server/policyholder/");
    let other = told(&listed(&elsewhere, sweep(&[(4, "n", GONE)])));
    assert_eq!(other, Vec::<String>::new());
    // One of two is tried and noticed, though both should survive: that is enough.
    let half = told(&listed(
        &entry("m", 2),
        sweep(&[(3, "m", None), (4, "m", GONE)]),
    ));
    assert!(
        half.len() == 1 && half[0].contains("is noticed now"),
        "{half:?}"
    );
}

#[m0_spec::row(H15, H47)]
#[test]
fn a_sweep_of_no_mutants_is_red() {
    let nothing = [sweep(&[(3, "m", None)])];
    let error = close(&nothing, &Judged::default(), true).expect_err("nothing was tried");
    assert!(error.to_string().contains("no mutant was tried"), "{error}");
}

#[m0_spec::row(H47)]
#[test]
fn an_entry_without_a_reason_or_twice_is_refused_with_its_place() {
    let refused = |text: &str| {
        let error = ledger::parse(Path::new("list.yaml"), text).expect_err(text);
        error.to_string()
    };
    let twice = entry("m", 1) + &entry("m", 1);
    let bare = format!("- {{file: {FILE}, mutants: [m], why: fine}}\n");
    for (text, place, part) in [
        (twice, "list.yaml:2:", "stands at list.yaml:1:"),
        (bare, "list.yaml:1:", "gives no reason"),
        (entry("m", 0), "list.yaml:1:", "`times` is 0"),
        (
            format!("- {{file: {FILE}, mutants: [m], wy: it makes no difference}}\n"),
            "list.yaml:1:",
            "why",
        ),
    ] {
        let message = refused(&text);
        assert!(
            message.starts_with(place) && message.contains(part),
            "{text}: {message}"
        );
    }
}

#[m0_spec::row(H47)]
#[test]
fn fates_are_read_from_the_outcomes_of_cargo_mutants() {
    let span = r#"{"start":{"line":3,"column":5},"end":{"line":3,"column":9}}"#;
    let scenario = format!(
        r#"{{"Mutant":{{"name":"{FILE}:3:5: replace f with ()","package":"p","file":"{FILE}","function":null,"span":{span},"replacement":"()","genre":"FnValue"}}}}"#
    );
    let text = |summary: &str| {
        let baseline = r#"{"scenario":"Baseline","summary":"Success","log_path":"l"}"#;
        format!(
            r#"{{"outcomes":[{baseline},{{"scenario":{scenario},"summary":"{summary}"}}],"missed":1}}"#
        )
    };
    for (summary, fate) in [
        ("MissedMutant", Fate::Survived),
        ("CaughtMutant", Fate::Caught),
        ("Timeout", Fate::TimedOut),
        ("Unviable", Fate::Unviable),
    ] {
        let got = outcomes(&text(summary)).expect("it is as expected");
        assert_eq!(got, [(mutant(3, "replace f with ()"), fate)]);
    }
    outcomes(&text("Success")).expect_err("a mutant whose tests did not run is no verdict");
    outcomes("{}").expect_err("nothing is there");
}

#[m0_spec::row(H47)]
#[test]
fn the_list_and_the_packages_are_of_this_repository() {
    let repository = Repository::own().expect("this is a workspace");
    let entries = ledger::read(&repository.root, Path::new(LEDGER)).expect("the list is right");
    for entry in &entries {
        assert!(
            repository.root.join(&entry.file).is_file(),
            "{}: {} is gone",
            entry.at,
            entry.file
        );
    }
    for package in PACKAGES {
        assert!(
            repository
                .packages
                .iter()
                .any(|known| known.name == package),
            "{package}"
        );
    }
    assert!(shard("1/3").is_ok() && shard("3/3").is_ok());
    for wrong in ["0/3", "4/3", "1", "a/b", ""] {
        shard(wrong).expect_err(wrong);
    }
}
