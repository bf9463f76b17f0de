//! What the tool prints, word for word: help of every command, and the answers of those that look.

use std::fmt::Write as _;
use std::process::Command;

use regex::Regex;

use super::fixture::{CAUGHT, Fixture, MISSED, SHELL_GATES, STALE, SUM, TAP};

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

/// A line for each thing asked and answered.
struct Transcript<'f> {
    fixture: &'f Fixture,
    text: String,
}

impl Transcript<'_> {
    /// Asks what may not change the tree.
    fn ask(&mut self, args: &[&str]) {
        let answer = self.fixture.run(args);
        self.add(args, &answer.out, answer.code);
    }

    /// Asks what makes or renews files below `sabotage/`.
    fn let_write(&mut self, args: &[&str]) {
        let output = self.fixture.command(args).output().expect("the tool runs");
        let out = [&output.stdout[..], &output.stderr[..]].concat();
        let code = output.status.code().unwrap_or(-1);
        self.add(args, &String::from_utf8_lossy(&out), code);
    }

    fn add(&mut self, args: &[&str], out: &str, code: i32) {
        let out = lasting(self.fixture, out);
        let args = lasting(self.fixture, &args.join(" "));
        let _ = write!(self.text, "$ sabotage {args}\n{out}exit {code}\n\n");
    }
}

#[m0_spec::row(B1, B21)]
#[test]
fn answers_of_the_commands_that_look() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED, STALE].concat());
    let mut told = Transcript {
        fixture: &fixture,
        text: String::new(),
    };
    for args in [
        &["list"][..],
        &["list", "--json", "adds-*"],
        &["lint"],
        &["show", "adds-wrong"],
        &["evidence"],
        &["run"],
        &["show", "negates-wrong"],
        &["report"],
        &["evidence", "verify"],
        &["run", "ads-wrong"],
        &["run", "--shard", "4/3"],
        &["report", "--form", "x"],
    ] {
        told.ask(args);
    }
    let gates = SHELL_GATES.replace("results: tap", "result: tap");
    fixture.write("sabotage/gates.yaml", &gates);
    told.ask(&["lint"]);
    fixture.write("sabotage/gates.yaml", SHELL_GATES);
    let rules = CAUGHT.replace("gate: tap", "gate: tab");
    fixture.write("sabotage/rules/r.yaml", &rules);
    told.ask(&["lint"]);
    hold("answers", &told.text);
}

#[m0_spec::row(B2, B26, B28)]
#[test]
fn answers_of_the_commands_that_make_something() {
    let fixture = Fixture::new(&[
        ("Makefile", "test:\n\tsh t.sh\n"),
        ("sum.sh", SUM),
        ("t.sh", TAP),
    ]);
    let mut told = Transcript {
        fixture: &fixture,
        text: String::new(),
    };
    told.let_write(&["init"]);
    told.ask(&["list"]);
    told.let_write(&["init"]);
    told.ask(&["new", "sums-are-wrong"]);
    told.ask(&["new", "sums-are-wrong", "--from-diff"]);
    fixture.commit("the tool's files");
    fixture.write("sum.sh", &SUM.replace("$1 + $2", "$1 - $2"));
    told.ask(&["new", "sums-are-wrong", "--from-diff"]);
    fixture.write("sum.sh", SUM);
    fixture.write(
        "sabotage/rules/first.yaml",
        &CAUGHT.replace(
            "{gate: tap, check: adds, message: 'got -1, want 5'}",
            "{gate: tests, check: exit}",
        ),
    );
    told.let_write(&["accept"]);
    told.ask(&["lint"]);
    let copy = fixture.cache().join("copy");
    std::fs::create_dir_all(&copy).expect("made");
    std::fs::write(copy.join("sum.sh"), SUM).expect("written");
    let copy = copy.display().to_string();
    told.ask(&["apply", "adds-wrong", "--dir", &copy]);
    told.ask(&["apply", "adds-wrong", "--dir", &copy]);
    told.ask(&["apply", "adds-wrong", "--dir", "."]);
    told.ask(&[
        "run",
        "--shard",
        "1/2",
        "--json",
        &format!("{copy}/part.json"),
    ]);
    told.ask(&["merge", &format!("{copy}/part.json")]);
    told.ask(&["clean"]);
    hold("makes", &told.text);
}
