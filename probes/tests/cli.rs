//! The command as a person meets it: what it answers when it can measure nothing.
//!
//! Refuses to measure the real server: that is what the command is for, and not for a test.
//! Invariant: nothing here asserts a time.

use std::path::Path;
use std::process::{Command, Output};

fn probes(bin_dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_probes"));
    command.arg("--bin-dir").arg(bin_dir).args(args);
    // What this test run leaves as its own evidence is not the child's to write.
    command.env_remove("TRACE_EVENTS").env("NO_COLOR", "1");
    command.output().expect("the command starts")
}

const NAMES: [&str; 13] = [
    "respawn",
    "accept_spread",
    "drain",
    "memory",
    "rps",
    "access_log",
    "fanout",
    "crowd",
    "loris",
    "instructions",
    "trace_scale",
    "report_search",
    "trace_runners",
];

#[m0_spec::row(H37)]
#[test]
fn a_probe_without_its_server_fails_and_writes_no_figure() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let json = dir.path().join("figures");
    let file = json.to_str().expect("a path of ASCII");
    for name in NAMES {
        let output = probes(dir.path(), &[name, "--rounds", "1", "--json", file]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
        assert!(
            errors.contains(&format!("error: {name}: cannot start")),
            "{name}: {errors}"
        );
        // What is left is the verdict: nothing was measured.
        let left = std::fs::read_to_string(&json).expect("it was opened");
        let verdict: serde_json::Value = serde_json::from_str(&left).expect("one line of JSON");
        let failure = verdict["failure"].as_str().unwrap_or_default();
        assert!(
            verdict["passed"] == false && failure.starts_with("cannot start"),
            "{name}: {left}"
        );
        std::fs::remove_file(&json).expect("it was there");
    }
}

#[m0_spec::row(H56)]
#[test]
fn the_page_says_what_was_not_measured_and_a_page_that_cannot_be_written_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let page = dir.path().join("figures.md");
    let path = page.to_str().expect("a path of ASCII");
    let output = probes(dir.path(), &["rps", "--md", path]);
    assert_eq!(output.status.code(), Some(1));
    let text = std::fs::read_to_string(&page).expect("it was written");
    assert!(
        text.starts_with("### `rps`: not measured\n\ncannot start "),
        "{text}"
    );
    let nowhere = probes(dir.path(), &["rps", "--md", "/nonexistent/figures.md"]);
    let errors = String::from_utf8_lossy(&nowhere.stderr);
    assert!(
        errors.contains("error: cannot write /nonexistent/figures.md"),
        "{errors}"
    );
    // A list is no measurement, and leaves the page as it was.
    let list = probes(dir.path(), &["list", "--md", path]);
    assert_eq!(list.status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&page).expect("it is there"), text);
}

#[m0_spec::row(H37)]
#[test]
fn a_server_that_answers_nothing_is_no_figure() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().expect("a directory for the test");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    // Names an address on which nobody listens.
    let script = format!(
        "#!/bin/sh\necho '{{\"event\":\"listening\",\"address\":\"http://{address}\"}}' >&2\nexec sleep 60\n"
    );
    let path = dir.path().join("host_check");
    std::fs::write(&path, script).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    for name in [
        "respawn",
        "drain",
        "accept_spread",
        "memory",
        "fanout",
        "crowd",
        "loris",
    ] {
        let output = probes(dir.path(), &[name, "--rounds", "1"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
        assert!(output.stdout.is_empty(), "{name}: {output:?}");
    }
}

#[m0_spec::row(H39)]
#[test]
fn the_list_names_each_probe_with_its_rows_and_help_names_the_exit_codes() {
    let here = Path::new("/nonexistent");
    let list = String::from_utf8(probes(here, &["list"]).stdout).expect("it is text");
    for name in NAMES {
        assert!(
            list.lines().any(|line| line.starts_with(name)),
            "{name} is not in {list}"
        );
    }
    assert!(
        list.contains("[S20]") && list.contains("[E87]") && list.contains("[S18]"),
        "{list}"
    );
    let help = String::from_utf8(probes(here, &["--help"]).stdout).expect("it is text");
    assert!(
        help.contains("cargo xtask probe drain") && help.contains("Exit: 0"),
        "{help}"
    );
    let wrong = probes(here, &["drian"]);
    let errors = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2), "{errors}");
    assert!(errors.contains("drain"), "{errors}");
    assert_eq!(
        probes(here, &["drain", "--rounds", "0"]).status.code(),
        Some(2)
    );
}

#[m0_spec::row(H37)]
#[test]
fn a_peak_is_that_of_the_command_alone() {
    let probes = Path::new(env!("CARGO_BIN_EXE_probes"));
    let here = Path::new(".");
    let of =
        |program: &str, args: &[&str]| probes::peak::of(probes, Path::new(program), args, here);
    let little = of("sh", &["-c", "exit 0"]).expect("measured");
    // The shell holds the whole of what it reads in a variable.
    let much = of(
        "sh",
        &["-c", "x=$(head -c 30000000 /dev/zero | tr '\\0' x); : $x"],
    );
    let much = much.expect("measured");
    assert!(little < 20_000_000 && much > 30_000_000, "{little} {much}");
    // What another child held before is not in it.
    assert!(of("sh", &["-c", "exit 0"]).expect("measured") < 20_000_000);
    let refused = of("sh", &["-c", "exit 3"]).expect_err("it failed");
    assert!(
        refused.to_string().contains("no peak was measured"),
        "{refused}"
    );
}
