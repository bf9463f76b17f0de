//! The front door from outside: exit codes, help, completions, no colour where none is wanted.

#![forbid(unsafe_code)]

use std::process::{Command, Output, Stdio};

fn xtask(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .args(args)
        .env_remove("CLICOLOR_FORCE")
        .env_remove("NO_COLOR")
        .output()
        .expect("it runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Those that this program answers for; the others pass `--help` on.
const OWN: [&str; 9] = [
    "test",
    "ci",
    "tidy",
    "spec",
    "deny",
    "setup",
    "verify",
    "mutants",
    "completions",
];

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let help = stdout(&xtask(&["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let named = listed.take_while(|line| line.starts_with("  "));
    let word = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let all: Vec<String> = named
        .filter_map(word)
        .filter(|name| name != "help")
        .collect();
    assert!(all.len() > OWN.len(), "{help}");
    all
}

/// The long flags in a help text.
fn flags(help: &str) -> Vec<&str> {
    let words = help.split_whitespace();
    let flags = words.filter_map(|word| word.strip_prefix("--"));
    let name = |word: &str| {
        word.find(|c: char| !(c.is_ascii_lowercase() || c == '-'))
            .unwrap_or(word.len())
    };
    flags
        .map(|word| &word[..name(word)])
        .filter(|name| !name.is_empty())
        .collect()
}

#[m0_spec::row(H27)]
#[test]
fn help_names_every_command_and_each_has_its_own() {
    let listed = commands();
    for command in OWN {
        assert!(
            listed.iter().any(|name| name == command),
            "{command}: {listed:?}"
        );
        let own = xtask(&[command, "--help"]);
        assert!(
            own.status.success() && stdout(&own).contains("Usage:"),
            "{own:?}"
        );
    }
}

#[m0_spec::row(H27)]
#[test]
fn a_wrong_word_exits_2_and_names_the_nearest() {
    for (args, near) in [
        (&["tset"][..], "test"),
        (&["spec", "--chek"][..], "--check"),
        (&["test", "--stage", "lom"][..], "loom"),
    ] {
        let output = xtask(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(
            stderr(&output).contains(&format!("'{near}'")),
            "{args:?}: {}",
            stderr(&output)
        );
    }
    assert_eq!(xtask(&[]).status.code(), Some(2));
}

#[m0_spec::row(H53)]
#[test]
fn completions_know_every_command_and_every_flag() {
    let listed = commands();
    let helps = OWN.map(|command| stdout(&xtask(&[command, "--help"])));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = xtask(&["completions", shell]);
        let text = stdout(&output);
        assert!(output.status.success(), "{shell}: {output:?}");
        for name in &listed {
            assert!(text.contains(name.as_str()), "{shell}: {name}");
        }
        for flag in helps.iter().flat_map(|help| flags(help)) {
            // The text of a flag may speak of another program's.
            let ours = flag == "help"
                || helps
                    .iter()
                    .any(|help| help.contains(&format!("      --{flag}")));
            assert!(!ours || text.contains(flag), "{shell}: --{flag}");
        }
    }
}

#[m0_spec::row(H54)]
#[test]
fn completions_end_without_a_panic_when_their_reader_has_gone() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["completions", "bash"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("it runs");
    assert_eq!(stderr(&output), "");
    assert!(output.status.success(), "{output:?}");
}

/// A failure that this program tells itself, and not the parser of its command line: there is no workspace.
fn fails(vars: &[(&str, &str)]) -> String {
    let nowhere = tempfile::tempdir().expect("a directory for the test");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .arg("tidy")
        .env("CARGO_MANIFEST_DIR", nowhere.path())
        .env_remove("CLICOLOR_FORCE")
        .env_remove("NO_COLOR")
        .envs(vars.iter().copied());
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = stderr(&output);
    assert!(told.contains("cargo metadata failed"), "{told}");
    told
}

#[m0_spec::row(H19)]
#[test]
fn no_colour_reaches_a_pipe() {
    for args in [
        &["ci", "--only", "nothing"][..],
        &["--help"][..],
        &["setup", "--dry-run"][..],
    ] {
        let output = xtask(args);
        let text = stdout(&output) + &stderr(&output);
        assert!(
            !text.is_empty() && !text.contains('\u{1b}'),
            "{args:?}: {text:?}"
        );
    }
    assert!(fails(&[]).starts_with("error: "), "{:?}", fails(&[]));
}

#[m0_spec::row(H19)]
#[test]
fn colour_comes_when_it_is_forced_and_no_color_takes_it_away() {
    let forced = fails(&[("CLICOLOR_FORCE", "1")]);
    assert!(forced.contains("\u{1b}["), "{forced:?}");
    let without = fails(&[("NO_COLOR", "1")]);
    assert!(!without.contains('\u{1b}'), "{without:?}");
}

#[m0_spec::row(H16)]
#[test]
fn a_gate_that_does_not_exist_is_an_error_with_the_list_and_the_nearest() {
    let output = xtask(&["ci", "--only", "clipy"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        told.contains("fmt, spec, tidy, lint, clippy, test, smoke-host, trace, deny"),
        "{told}"
    );
    let (_, nearest) = told.split_once("tip:").expect("a nearest one");
    assert!(nearest.contains("'clippy'"), "{told}");
}
