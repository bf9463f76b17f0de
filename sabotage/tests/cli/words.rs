//! What the tool prints, word for word: help of every command, and the answers of those that look.

use std::fmt::Write as _;
use std::process::Command;

use regex::Regex;

use super::fixture::{CAUGHT, Fixture, MISSED, SHELL_GATES, STALE};

/// Every command, as the program itself lists them.
fn commands(fixture: &Fixture) -> Vec<String> {
    let help = fixture.run(&["--help"]).out;
    let listed = help.split("Commands:\n").nth(1).expect("a list");
    listed
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn hold(name: &str, text: &str) {
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

/// Text without what differs from run to run: times, directories.
fn lasting(fixture: &Fixture, text: &str) -> String {
    let text = text.replace(&fixture.root().display().to_string(), "ROOT");
    let text = text.replace(&fixture.cache().display().to_string(), "CACHE");
    let time = Regex::new(r"\b\d+\.\d+ s\b").expect("a pattern");
    let run = Regex::new(r"CACHE/\S+").expect("a pattern");
    let text = time.replace_all(&text, "N s");
    run.replace_all(&text, "CACHE").into_owned()
}

#[m0_spec::row(B36)]
#[test]
fn help_of_every_command() {
    let fixture = Fixture::shell(CAUGHT);
    let commands = commands(&fixture);
    assert!(commands.len() > 15, "{commands:?}");
    let mut text = fixture.run(&["--help"]).out;
    for name in commands {
        let help = fixture.run(&[&name, "--help"]);
        assert_eq!(help.code, 0, "{}", help.out);
        let _ = write!(text, "\n$ sabotage {name} --help\n{}", help.out);
    }
    hold("help", &text);
}

#[m0_spec::row(B36)]
#[test]
fn completions_and_man_pages_know_every_command() {
    let fixture = Fixture::shell(CAUGHT);
    let commands = commands(&fixture);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = fixture.run(&["completions", shell]).out;
        for name in &commands {
            assert!(script.contains(name.as_str()), "{shell} lacks {name}");
        }
        assert!(script.contains("sarif"), "{shell} lacks --sarif");
    }
    let script = fixture.cache().with_file_name("sabotage.bash");
    std::fs::write(&script, fixture.run(&["completions", "bash"]).out).expect("written");
    // What bash itself offers after `sabotage ev`.
    let ask = format!(
        ". {}; COMP_WORDS=(sabotage ev); COMP_CWORD=1; _sabotage sabotage ev sabotage; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let output = Command::new("bash")
        .args(["-c", &ask])
        .output()
        .expect("bash runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "evidence",
        "{output:?}"
    );

    let page = fixture.run(&["man"]);
    assert!(page.out.contains(".TH sabotage 1"), "{}", page.out);
    let dir = fixture.cache().with_file_name("man");
    assert_eq!(
        fixture
            .run(&["man", "--dir", &dir.display().to_string()])
            .code,
        0
    );
    for name in &commands {
        let page = std::fs::read_to_string(dir.join(format!("sabotage-{name}.1")))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            page.contains(&format!("sabotage {}", name.replace('-', "\\-"))),
            "{page}"
        );
    }
}

#[m0_spec::row(B1, B21)]
#[test]
fn answers_of_the_commands_that_look() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let mut text = String::new();
    let mut ask = |args: &[&str]| {
        let answer = fixture.run(args);
        let out = lasting(&fixture, &answer.out);
        let _ = write!(
            text,
            "$ sabotage {}\n{out}exit {}\n\n",
            args.join(" "),
            answer.code
        );
    };
    ask(&["list"]);
    ask(&["list", "--json", "adds-*"]);
    ask(&["lint"]);
    ask(&["show", "adds-wrong"]);
    ask(&["run"]);
    ask(&["show", "negates-wrong"]);
    ask(&["report"]);
    ask(&["evidence", "verify"]);
    ask(&["run", "ads-wrong"]);
    ask(&["run", "--shard", "4/3"]);
    ask(&["report", "--form", "x"]);
    fixture.write(
        "sabotage/gates.yaml",
        &SHELL_GATES.replace("results: tap", "result: tap"),
    );
    ask(&["lint"]);
    fixture.write("sabotage/gates.yaml", SHELL_GATES);
    fixture.write(
        "sabotage/rules/r.yaml",
        &CAUGHT.replace("gate: tap", "gate: tab"),
    );
    ask(&["lint"]);
    hold("answers", &text);
}
