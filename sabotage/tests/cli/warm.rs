//! The clean program answers for the broken one: by a warm build, an old time, a shared directory, an old server.

use std::process::Command;
use std::time::{Duration, SystemTime};

use super::fixture::{CAUGHT, Fixture, TAP, collect};

const MAIN: &str =
    "fn answer() -> u8 {\n    41 + 1\n}\n\nfn main() {\n    println!(\"{}\", answer());\n}\n";
const TEST: &str = "#[test]\nfn answers() {\n    let out = std::process::Command::new(env!(\"CARGO_BIN_EXE_fx\")).output().unwrap();\n    \
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), \"42\");\n}\n";
const RULES: &str = "- id: answers-wrong\n  promise: It answers.\n  edits: [{file: src/main.rs, in: fn answer, find: '41 + 1', with: '41 + 2'}]\n  \
    expect: [{gate: unit, check: answers, message: '43'}]\n\
    - id: answers-nothing\n  promise: It answers.\n  edits: [{file: src/main.rs, in: fn main, delete: 'println!(\"{}\", answer());'}]\n  \
    expect: [{gate: unit, check: answers}]\n";

/// A crate whose test starts its program.
fn program() -> Fixture {
    Fixture::cargo(&[
        ("src/main.rs", MAIN),
        ("tests/it.rs", TEST),
        ("sabotage/rules/r.yaml", RULES),
    ])
}

#[m0_spec::row(B46)]
#[test]
fn neither_a_warm_build_nor_a_shared_directory_answers_for_the_rule() {
    let fixture = program();
    let shared = fixture.cache().with_file_name("shared");
    // The repository's own build and one in a directory that the environment names, both of the clean tree.
    for target in [fixture.root().join("target"), shared.clone()] {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(fixture.root())
            .args(["test", "--offline", "--no-run", "--quiet"]);
        assert!(
            cargo
                .env("CARGO_TARGET_DIR", target)
                .status()
                .expect("cargo runs")
                .success()
        );
    }
    let files = || {
        let mut files = Vec::new();
        collect(&shared, &mut files);
        files.sort();
        files
    };
    let before = (fixture.state(), files());
    for way in [&["run", "--per-rule"][..], &["run"]] {
        let output = fixture
            .command(way)
            .env("CARGO_TARGET_DIR", &shared)
            .env("CARGO_BUILD_TARGET_DIR", &shared)
            .env("CARGO_BIN_EXE_fx", shared.join("debug/fx"))
            .output()
            .expect("the tool runs");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(
            out.contains("2 rules: 2 caught, 0 missed"),
            "{way:?}: {output:?}"
        );
    }
    // Whoever builds there at the same moment must not meet us.
    assert_eq!((fixture.state(), files()), before);
}

#[m0_spec::row(B46)]
#[test]
fn a_file_with_an_old_time_is_built_anew() {
    let fixture = program();
    let wanted = [("answers-wrong", "caught"), ("answers-nothing", "caught")];
    fixture.check(&["--per-rule"], 0, &wanted);
    // A weak test, dated long before the build that is there.
    fixture.write("tests/it.rs", &TEST.replace("assert_eq!(", "let _ = ("));
    let path = fixture.root().join("tests/it.rs");
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("opened");
    let old = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 31);
    file.set_modified(old).expect("dated");
    let wanted = [("answers-wrong", "missed"), ("answers-nothing", "missed")];
    fixture.check(&["--per-rule"], 1, &wanted);
}

#[m0_spec::row(B25, B24)]
#[test]
fn a_server_that_an_earlier_run_left_does_not_answer() {
    for jail in [&[][..], &["--no-jail"]] {
        let fixture = Fixture::shell(CAUGHT);
        // The gate starts a server that says what `add` says now, leaves it, and asks whoever listens.
        let port = 20000 + std::process::id() % 20000;
        let server = format!(
            "sum=$(add 2 3)\nsetsid python3 -c \"import socket; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); \
             s.bind(('127.0.0.1', {port})); s.listen(); [c.sendall(b'$sum') or c.close() for c in iter(lambda: s.accept()[0], 0)]\" >/dev/null 2>&1 &\n\
             ask() {{ python3 -c \"import socket,time\nwhile 1:\n try: c=socket.create_connection(('127.0.0.1', {port})); break\n except OSError: time.sleep(0.01)\nprint(c.recv(9).decode())\"; }}\n"
        );
        let text = TAP
            .replace("bad=0\n", &format!("bad=0\n{server}"))
            .replace("\"$(add 2 3)\"", "\"$(ask)\"");
        fixture.write("t.sh", &text);
        let answer = fixture.check(jail, 0, &[("adds-wrong", "caught")]);
        assert!(
            answer.out.contains("leaves a process behind"),
            "{}",
            answer.out
        );
    }
}
