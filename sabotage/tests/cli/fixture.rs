//! Repositories that a test makes, and the tool run in them.
//!
//! Invariant: a fixture's cache lies beside it, so that tests share nothing; the directory goes with it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A git repository with a cache of its own.
pub(crate) struct Fixture {
    dir: tempfile::TempDir,
}

/// What the tool answered.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
}

impl Fixture {
    /// A repository of these files, committed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let fixture = Self { dir };
        std::fs::create_dir_all(fixture.root().join("sabotage/rules")).expect("made");
        fixture.git(&["init", "--quiet"]);
        for (path, text) in files {
            fixture.write(path, text);
        }
        fixture.commit("first");
        fixture
    }

    /// The shell fixture: `sum.sh` with two promises, tested by TAP, of which one test is weak.
    pub(crate) fn shell(rules: &str) -> Self {
        Self::new(&[
            ("sum.sh", SUM),
            ("t.sh", TAP),
            ("sabotage/gates.yaml", SHELL_GATES),
            ("sabotage/rules/r.yaml", rules),
        ])
    }

    /// A crate `fx` with these files, whose tests are the gate `unit`; of two files with one path the later stands.
    pub(crate) fn cargo(files: &[(&str, &str)]) -> Self {
        let crate_files = [
            ("Cargo.toml", CRATE),
            (
                "Cargo.lock",
                "version = 4\n\n[[package]]\nname = \"fx\"\nversion = \"0.1.0\"\n",
            ),
            (".gitignore", "target/\n"),
            (
                "sabotage/gates.yaml",
                "gates:\n  unit: {cargo_test: --offline, timeout: 60s}\n",
            ),
        ];
        Self::new(&[&crate_files[..], files].concat())
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let full = self.root().join(path);
        std::fs::create_dir_all(full.parent().expect("a file has a directory")).expect("made");
        std::fs::write(full, text).expect("written");
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        std::fs::create_dir_all(self.root()).expect("made");
        let output = Command::new("git")
            .current_dir(self.root())
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.invalid",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(args)
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// The tool, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sabotage"));
        command
            .current_dir(self.root())
            .args(args)
            .env("SABOTAGE_CACHE", self.cache());
        command
    }

    /// Runs the tool; the tree must be as it was, whatever it answers.
    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        let before = self.state();
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(args).output().expect("the tool runs");
        assert_eq!(self.state(), before, "the working tree is as it was");
        let out = format!(
            "{}{}",
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr)
        );
        Answer {
            code: status.code().unwrap_or(-1),
            out,
        }
    }

    /// Status and every file's bytes and time.
    pub(crate) fn state(&self) -> String {
        let mut files = Vec::new();
        collect(&self.root(), &mut files);
        files.sort();
        format!(
            "{}{}",
            self.git(&["status", "--porcelain"]),
            files.join("\n")
        )
    }

    /// Runs all rules and returns code and verdicts by rule.
    pub(crate) fn verdicts(&self, args: &[&str]) -> (i32, Vec<(String, String)>, Answer) {
        let json = self.dir.path().join("results.json");
        let mut all = vec!["run"];
        all.extend(args);
        let path = json.display().to_string();
        all.extend(["--json", &path]);
        let answer = self.run(&all);
        let text =
            std::fs::read_to_string(&json).unwrap_or_else(|_| panic!("no results: {}", answer.out));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let rules = value["rules"].as_array().expect("a list of rules");
        let pair = |rule: &Value| {
            let word = |key: &str| rule[key].as_str().expect("a word").to_owned();
            (word("rule"), word("verdict"))
        };
        (answer.code, rules.iter().map(pair).collect(), answer)
    }

    /// Checks exit code and verdicts of a run.
    #[track_caller]
    pub(crate) fn check(&self, args: &[&str], code: i32, wanted: &[(&str, &str)]) -> Answer {
        let (got, verdicts, answer) = self.verdicts(args);
        let wanted: Vec<(String, String)> = wanted
            .iter()
            .map(|(rule, verdict)| ((*rule).into(), (*verdict).into()))
            .collect();
        assert_eq!((got, verdicts), (code, wanted), "{}", answer.out);
        answer
    }
}

/// Every file below a directory, with its time and the hash of its bytes.
pub(crate) fn collect(dir: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).expect("listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            // The index and its lock are git's own affair; the objects must not grow.
            collect(&path, files);
        } else if path.file_name().is_some_and(|name| name != "index") {
            let time = entry
                .metadata()
                .and_then(|meta| meta.modified())
                .expect("a time");
            let bytes = std::fs::read(&path).expect("read");
            files.push(format!(
                "{} {time:?} {}",
                path.display(),
                sabotage::tree::hash_of(&bytes)
            ));
        }
    }
}

/// The manifest of a crate without dependencies.
pub(crate) const CRATE: &str =
    "[package]\nname = \"fx\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
pub(crate) const SUM: &str = "add() { echo $(( $1 + $2 )); }\nneg() { echo $(( 0 - $1 )); }\n";
pub(crate) const TAP: &str = r##". ./sum.sh
echo 1..2
bad=0
check() { if [ "$2" = "$3" ]; then echo "ok - $1"; else echo "not ok - $1"; echo "# got $2, want $3"; bad=1; fi; }
check adds "$(add 2 3)" 5
check negates "$(neg 0)" 0
exit $bad
"##;
pub(crate) const SHELL_GATES: &str = "gates:\n  tap:\n    run: sh t.sh\n    results: tap\n    exit: {pass: [0], fail: [1]}\n    timeout: 20s\n";
/// A rule of the shell fixture that is caught.
pub(crate) const CAUGHT: &str = "- id: adds-wrong\n  promise: add adds.\n  edits: [{file: sum.sh, find: '$1 + $2', with: '$1 - $2'}]\n  expect: [{gate: tap, check: adds, message: 'got -1, want 5'}]\n";
/// One that its weak test misses.
pub(crate) const MISSED: &str = "- id: negates-wrong\n  promise: neg negates.\n  edits: [{file: sum.sh, find: '0 - $1', with: '0 + $1'}]\n  expect: [{gate: tap, check: negates}]\n";
/// One whose anchor is gone.
pub(crate) const STALE: &str = "- id: gone\n  promise: Nothing.\n  edits: [{file: sum.sh, delete: '$1 * $2'}]\n  expect: [{gate: tap, check: adds}]\n";
