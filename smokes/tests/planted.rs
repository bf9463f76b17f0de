//! The harness tested: each end check, the vacuity rule and the runner's bound are seen to fail.
//!
//! Starts the real binary on phases whose server has a planted defect, and reads its reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn smokes(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_smokes"))
        .args(arguments)
        .env_remove("TRACE_EVENTS")
        .output()
        .expect("the binary starts")
}

fn failures(json: &Path) -> BTreeMap<String, Option<String>> {
    std::fs::read_to_string(json)
        .expect("the JSON lines")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"))
        .filter(|line| line["event"] == "verdict")
        .map(|line| {
            let name = line["phase"].as_str().expect("a phase").to_owned();
            (name, line["failure"].as_str().map(str::to_owned))
        })
        .collect()
}

/// What each planted phase must say.
const WANTED: &[(&str, &str)] = &[
    ("planted-leftover", "a process outlived the supervisor"),
    ("planted-unreaped", "a process outlived the supervisor"),
    (
        "planted-orphan-without-mark",
        "a process outlived the supervisor",
    ),
    ("planted-port", "is not free again"),
    ("planted-exit-code", "exit status: 3, not with code [0]"),
    ("planted-signal", "signal: 9"),
    ("planted-descriptors", "the supervisor's descriptors grew"),
    ("planted-zombie", "a zombie below the supervisor"),
    ("planted-second-thread", "the supervisor runs 2 threads"),
    ("planted-panic", "1 panics in the log"),
    ("planted-plain-panic", "a panic in the log"),
    (
        "planted-plain-line",
        "1 lines of the log are not JSON objects: \"this is not JSON\"",
    ),
    ("planted-bare-line", "a log line without time"),
    (
        "planted-access-line",
        "1 lines of the access log are not JSON objects",
    ),
    ("planted-early-exit", "the server ended before it listened"),
    (
        "planted-no-banner",
        "waited 200 ms for the listening line; last seen: 0 log lines",
    ),
    (
        "planted-deaf",
        "waited 200 ms for the server to exit; last seen: still there: smokes",
    ),
    ("planted-vacuous", "vacuous: kills: none"),
    ("planted-nothing-started", "vacuous: no server was started"),
    (
        "planted-unfinished",
        "1 servers started and the end of 0 checked",
    ),
    (
        "planted-panicking-phase",
        "ended (exit status: 101) without a word",
    ),
    (
        "planted-hanging-phase",
        "waited 2000 ms for the phase to end",
    ),
];

#[m0_spec::row(H20, H21, H22, H23, H44)]
#[test]
fn every_planted_defect_is_found_and_the_good_server_passes() {
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("lines.json");
    let output = smokes(&["--planted", "--json", json.to_str().expect("UTF-8")]);
    let text = String::from_utf8_lossy(&output.stdout);
    let failures = failures(&json);
    assert_eq!(failures.get("planted-good"), Some(&None), "{text}");
    for (name, wanted) in WANTED {
        let failure = failures
            .get(*name)
            .and_then(Option::as_deref)
            .unwrap_or("it passed");
        // Not all that was printed: other planted defects speak of held ports, and that is not why this one fails.
        assert!(failure.contains(wanted), "{name}: {failure}");
    }
    assert_eq!(
        failures.len(),
        WANTED.len() + 1,
        "every planted phase is listed here"
    );
    assert_eq!(
        output.status.code(),
        Some(1),
        "a failed phase is exit code 1"
    );
    let closing = format!("1 passed, {} failed", WANTED.len());
    assert_eq!(text.lines().last(), Some(closing.as_str()));
    assert!(text.contains("logs kept in"), "{text}");
}

#[m0_spec::row(H21, H44)]
#[test]
fn no_process_of_a_run_is_left_however_its_phases_ended() {
    let output = Command::new(env!("CARGO_BIN_EXE_smokes"))
        .args([
            "--planted",
            "--phase=planted-hanging-phase",
            "--phase=planted-unfinished",
        ])
        .args([
            "--phase=planted-panicking-phase",
            "--phase=planted-leftover",
        ])
        .env("SMOKES_TEST", "nothing-is-left")
        .output()
        .expect("the binary starts");
    assert_eq!(output.status.code(), Some(1));
    let left = smokes::proc::marked("SMOKES_TEST", "nothing-is-left");
    assert!(left.is_empty(), "{left:?}");
}

#[m0_spec::row(H45)]
#[test]
fn usage_errors_are_exit_code_two() {
    for arguments in [
        &["--phase", "no-such-phase"][..],
        &["--no-such-flag"],
        &["--server-bin", "/no/such/server"],
        &["--repeat", "0"],
    ] {
        let output = smokes(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?} says why");
    }
}

#[m0_spec::row(H45)]
#[test]
fn the_list_names_phases_with_their_rows() {
    let output = smokes(&["--list", "--phase", "beat-*"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    let line = text
        .lines()
        .find(|line| line.starts_with("beat-at-one-worker "))
        .expect("listed");
    assert!(line.contains("E19"), "{line}");
}

#[m0_spec::row(H24)]
#[test]
fn reports_agree_and_each_round_is_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    let (json, junit) = (file("lines.json"), file("junit.xml"));
    let output = smokes(&[
        "--planted",
        "--phase=planted-good",
        "--phase=planted-exit-code",
        "--repeat=2",
        "--tap",
        "--json",
        &json,
        "--junit",
        &junit,
    ]);
    let tap = String::from_utf8_lossy(&output.stdout);
    let people = String::from_utf8_lossy(&output.stderr);
    assert_eq!(people.lines().last(), Some("2 passed, 2 failed"));
    assert_eq!(
        tap.lines().filter(|line| line.starts_with("ok ")).count(),
        2,
        "{tap}"
    );
    assert_eq!(
        tap.lines()
            .filter(|line| line.starts_with("not ok "))
            .count(),
        2,
        "{tap}"
    );
    let lines = std::fs::read_to_string(&json).expect("the JSON lines");
    assert_eq!(
        lines
            .lines()
            .filter(|line| line.contains("\"passed\":true"))
            .count(),
        2
    );
    let xml = std::fs::read_to_string(&junit).expect("the JUnit file");
    assert!(xml.contains("tests=\"2\" failures=\"1\""), "{xml}");
    assert!(people.contains("spread over all rounds"), "{people}");
}

#[m0_spec::row(H4, H6)]
#[test]
fn a_phase_leaves_its_line_in_the_events_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let events = dir.path().join("events");
    let run = |declare: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_smokes"));
        command
            .args(["--planted", "--phase=planted-good"])
            .env("TRACE_EVENTS", &events);
        if declare {
            command.env("TRACE_DECLARE", "1");
        }
        command.output().expect("the binary starts")
    };
    assert_eq!(run(true).status.code(), Some(0));
    assert!(run(false).stdout.ends_with(b"\n1 passed, 0 failed\n"));
    let text = std::fs::read_to_string(&events).expect("the events");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect();
    let seen: Vec<_> = lines
        .iter()
        .map(|line| line["event"].as_str().expect("an event"))
        .collect();
    assert_eq!(seen, ["declared", "ran"]);
    for line in &lines {
        assert_eq!(line["test"], "smoke::planted-good");
        assert_eq!(line["rows"], serde_json::json!(["H23"]));
    }
}
