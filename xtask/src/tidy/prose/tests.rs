//! A planted defect of each kind of fact, found with its place; and a small repository in which all is said.

use super::super::tree::{File, Tree};
use super::{FACTS, check};
use crate::repository::Package;

const SOURCES: [(&str, &str); 13] = [
    (
        "xtask/src/main.rs",
        "#[derive(Subcommand)]\nenum Command {\n    /// Runs.\n    Test(Options),\n    SmokeHost {\n        args: Vec<String>,\n    },\n}\n",
    ),
    (
        "xtask/src/test.rs",
        "struct Options {\n    #[arg(long, value_name = \"X\")]\n    pub(crate) filter: Option<String>,\n}\n",
    ),
    (
        "smokes/src/main.rs",
        "struct O {\n    #[arg(\n        long = \"phase\",\n        value_name = \"N\"\n    )]\n    phases: Vec<String>,\n    #[arg(long, hide = true)]\n    planted: bool,\n}\n",
    ),
    (
        "probes/src/main.rs",
        "struct O {\n    #[arg(long)]\n    /// Text.\n    bin_dir: Option<PathBuf>,\n}\n",
    ),
    (
        "sabotage/src/cli.rs",
        "#[derive(Debug, Subcommand)]\nenum Command {\n    Run(Box<O>),\n}\nstruct O {\n    #[arg(short, long)]\n    jobs: usize,\n}\n",
    ),
    (
        "sabotage/src/verdict.rs",
        "impl Exit {\n    pub fn code(self) -> u8 {\n        match self {\n            Self::Usage => 2,\n            Self::Declared => 0,\n        }\n    }\n}\n",
    ),
    (
        "traceability/src/cli.rs",
        "#[derive(Debug, Subcommand)]\nenum Command {\n    Check(Check),\n}\nstruct Check {\n    #[arg(long)]\n    brief: bool,\n}\n",
    ),
    (
        "traceability/src/judge.rs",
        "impl J {\n    pub fn exit(&self) -> u8 {\n        match self.a {\n            Some(A) => 3,\n            _ => 0,\n        }\n    }\n}\n",
    ),
    (
        "server/host/src/config.rs",
        "fn f() {\n    Arg::new(\"doctor\")\n        .long(\"doctor\")\n}\n",
    ),
    (
        "server/host/src/variables.rs",
        "const A: &str = \"M0_BIND\";\nconst B: &str = \"M0_BIND=x\";\n",
    ),
    (
        "server/apps/host_check/src/knobs.rs",
        "const OWN: [&str; 1] = [\n    \"M0_HOSTCHECK_BOOT_MS\",\n];\n",
    ),
    (
        "server/policy/src/lib.rs",
        "pub const EXIT_CLEAN: i32 = 0;\npub const EXIT_CRASH_LOOP: i32 = 70;\n",
    ),
    (
        ".github/workflows/ci.yml",
        "run: cargo xtask smoke-host\nrun: cargo xtask test\n",
    ),
];

const PAGES: [(&str, &str); 5] = [
    (
        "README.md",
        "# T\n\n```sh\ncargo xtask smoke-host   # a\ncargo xtask test         # b\n```\n\n| `server/host` | x |\n",
    ),
    (
        "xtask/README.md",
        "`test` `smoke-host` `--filter TEXT` `--phase` `--bin-dir`\n",
    ),
    (
        "sabotage/README.md",
        "`run --jobs 2`\n\n| 0 | a |\n| 2 | b |\n",
    ),
    (
        "traceability/README.md",
        "`check --brief`, exit 0: kept; exit 3\n",
    ),
    (
        "server/README.md",
        "`M0_BIND`, `--doctor`, `M0_HOSTCHECK_BOOT_MS`\n\n| 0 | a |\n| 70 | b |\n",
    ),
];

/// The repository in which all is said, with a change to one file.
fn tree(path: &str, change: impl Fn(&str) -> String) -> Tree {
    let ci = (".ci/run", "#!/bin/sh\nexec cargo xtask ci\n");
    let all = SOURCES.into_iter().chain(PAGES).chain([ci]);
    let file = |(name, text): (&str, &str)| File {
        path: name.into(),
        text: if name == path {
            change(text)
        } else {
            text.to_owned()
        },
    };
    Tree {
        files: all.map(file).collect(),
        packages: vec![Package {
            name: "m0-host".into(),
            manifest_path: "server/host/Cargo.toml".into(),
            dependencies: Vec::new(),
        }],
        others: vec!["LICENSE".into()],
    }
}

fn told(tree: &Tree) -> Vec<String> {
    check(tree).iter().map(ToString::to_string).collect()
}

/// One finding, which begins so and says so, once `old` is `new` in `path`.
fn planted(path: &str, old: &str, new: &str, wanted: &[&str]) {
    let changed = tree(path, |text| {
        assert!(text.contains(old), "{path} has no {old}");
        text.replacen(old, new, 1)
    });
    let found = told(&changed);
    assert_eq!(found.len(), 1, "{path}: {old} => {new}: {found:#?}");
    assert!(found[0].starts_with(wanted[0]), "{found:?}");
    assert!(
        wanted.iter().all(|part| found[0].contains(part)),
        "{wanted:?}: {found:?}"
    );
}

#[m0_spec::row(H52)]
#[test]
fn a_repository_in_which_all_is_said_has_no_finding() {
    assert_eq!(told(&tree("", str::to_owned)), Vec::<String>::new());
}

#[m0_spec::row(H52)]
#[test]
fn what_exists_and_is_not_named_is_told_where_it_is_defined() {
    for (path, old, new, wanted) in [
        (
            "xtask/src/main.rs",
            "    Test(",
            "    Tidy,\n    Test(",
            ["xtask/src/main.rs:4:1: ", "command of cargo xtask tidy"],
        ),
        (
            "xtask/src/test.rs",
            "filter:",
            "package:",
            ["xtask/src/test.rs:2:1: ", "flag of cargo xtask --package"],
        ),
        (
            "smokes/src/main.rs",
            "\"phase\"",
            "\"repeat\"",
            ["smokes/src/main.rs:2:1: ", "flag of the smokes --repeat"],
        ),
        (
            "probes/src/main.rs",
            "bin_dir:",
            "rounds:",
            ["probes/src/main.rs:2:1: ", "flag of the probes --rounds"],
        ),
        (
            "sabotage/src/cli.rs",
            "    Run(",
            "    Prove,\n    Run(",
            ["sabotage/src/cli.rs:3:1: ", "command of sabotage prove"],
        ),
        (
            "sabotage/src/cli.rs",
            "jobs:",
            "shard:",
            ["sabotage/src/cli.rs:6:1: ", "flag of sabotage --shard"],
        ),
        (
            "sabotage/src/verdict.rs",
            "=> 2",
            "=> 7",
            ["sabotage/src/verdict.rs:4:1: ", "exit code of sabotage 7"],
        ),
        (
            "traceability/src/cli.rs",
            "brief:",
            "sarif:",
            ["traceability/src/cli.rs:6:1: ", "flag of trace --sarif"],
        ),
        (
            "traceability/src/judge.rs",
            "=> 3",
            "=> 4",
            ["traceability/src/judge.rs:4:1: ", "exit code of trace 4"],
        ),
        (
            "server/host/src/variables.rs",
            "\"M0_BIND\"",
            "\"M0_BINDS\"",
            [
                "server/host/src/variables.rs:1:1: ",
                "M0_BINDS is not named in server/README.md",
            ],
        ),
        (
            "server/apps/host_check/src/knobs.rs",
            "BOOT_MS",
            "NOFILE",
            [
                "server/apps/host_check/src/knobs.rs:2:1: ",
                "M0_HOSTCHECK_NOFILE",
            ],
        ),
        (
            "server/policy/src/lib.rs",
            "= 70",
            "= 71",
            ["server/policy/src/lib.rs:2:1: ", "exit code of the host 71"],
        ),
        (
            "README.md",
            "`server/host`",
            "`server/`",
            [
                "server/host/Cargo.toml:1:1: ",
                "member of the workspace server/host",
            ],
        ),
    ] {
        let changed = tree(path, |text| text.replacen(old, new, 1));
        let found = told(&changed);
        let hit = found
            .iter()
            .any(|line| line.starts_with(wanted[0]) && line.contains(wanted[1]));
        assert!(hit, "{path}: {old} => {new}: {found:#?}");
    }
}

#[m0_spec::row(H52)]
#[test]
fn what_a_page_names_and_does_not_exist_is_told_at_its_place() {
    let page = "server/README.md";
    for (text, wanted) in [
        (
            "Set `M0_BINDD`.",
            [
                "server/README.md:6:6: ",
                "no variable M0_BINDD, did you mean M0_BIND?",
            ],
        ),
        (
            "Or --x, `--bindd`.",
            [
                "server/README.md:6:10: ",
                "no flag --bindd, did you mean --bind?",
            ],
        ),
        (
            "Run `cargo xtask tset`.",
            [
                "server/README.md:6:18: ",
                "no command tset of xtask, did you mean test?",
            ],
        ),
        (
            "`sabotage runn`",
            ["server/README.md:6:11: ", "no command runn of sabotage"],
        ),
        (
            "`cargo xtask test --filtre a`",
            [
                "server/README.md:6:19: ",
                "no flag --filtre, did you mean --filter?",
            ],
        ),
        (
            "```sh\ntrace chek\n```",
            ["server/README.md:7:7: ", "no command chek of trace"],
        ),
        (
            "See `host/src/variable.rs`.",
            ["server/README.md:6:6: ", "no file host/src/variable.rs"],
        ),
        (
            "See [it](../xtask/src/mian.rs).",
            ["server/README.md:6:10: ", "no file ../xtask/src/mian.rs"],
        ),
    ] {
        planted(
            page,
            "| 70 | b |\n",
            &format!("| 70 | b |\n\n{text}\n"),
            &wanted,
        );
    }
}

#[m0_spec::row(H52)]
#[test]
fn what_is_somebody_elses_or_an_example_is_left_alone() {
    let text = "`python3 -m pytest --junitxml=x`, `/readyz`, `target/m0/x.json`, `K/N`, `server/host/**`, any `M0_` name,\n\
                `--bind`, `cargo xtask test --help`, `host/src/variables.rs`, [w](https://a.b/c), `sabotage` the word\n\
                ```yaml\nrun: npx --reporter a/b\n```\n```console\n$ git log --oneline   # --nothing\n```\n\n\
                ## What is not there yet\n\n`--later`, `cargo xtask later`\n";
    let quiet = tree("server/README.md", |old| format!("{old}\n{text}"));
    assert_eq!(told(&quiet), Vec::<String>::new());
}

#[m0_spec::row(H52)]
#[test]
fn the_two_commands_of_the_front_page_are_what_continuous_integration_runs() {
    planted(
        "README.md",
        "cargo xtask test ",
        "cargo test ",
        &["README.md:1:1: ", "names 1 commands"],
    );
    planted(
        ".ci/run",
        "xtask ci",
        "xtask test",
        &[".ci/run:1:1: ", "exec cargo xtask ci"],
    );
    planted(
        ".github/workflows/ci.yml",
        "xtask smoke-host",
        "xtask smoke",
        &[".github/workflows/ci.yml:1:1: ", "smoke-host"],
    );
    let other = tree("README.md", |text| {
        text.replace("xtask test ", "xtask tidy ")
            .replace("xtask smoke-host", "xtask spec")
    });
    let found = told(&other);
    assert!(
        found
            .iter()
            .any(|line| line.contains("`cargo xtask spec` is no gate")),
        "{found:#?}"
    );
}

#[m0_spec::row(H52)]
#[test]
fn a_definition_that_moved_empties_no_check_in_silence() {
    for fact in &FACTS {
        let mut bare = tree("", str::to_owned);
        bare.files
            .retain(|file| PAGES.iter().any(|(page, _)| file.is(page)));
        bare.packages.clear();
        let wanted = format!("no {} was found in the source", fact.what);
        let found = told(&bare);
        assert!(
            found.iter().any(|line| line.contains(&wanted)),
            "{wanted}: {found:#?}"
        );
    }
}
