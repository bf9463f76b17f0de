//! How a run can end before it is done, and what half an answer is called.

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::fixture::{CAUGHT, Fixture, MISSED, TAP};
use super::traps::alive;

#[m0_spec::row(B44)]
#[test]
fn repeats_that_disagree_are_flaky() {
    let fixture = Fixture::shell(&CAUGHT.replace("  expect:", "  repeats: 2\n  expect:"));
    let flip = fixture.cache().with_file_name("flip");
    // With the rule, every second run is green.
    let text = format!(
        "bad=0\nif [ \"$(add 1 1)\" != 2 ]; then if [ -e {0} ]; then rm {0}; add() {{ echo 5; }}; else touch {0}; fi; fi\n",
        flip.display()
    );
    fixture.write("t.sh", &TAP.replace("bad=0\n", &text));
    let answer = fixture.check(&[], 5, &[("adds-wrong", "flaky")]);
    assert!(
        answer
            .out
            .contains("CAUGHT in one run and MISSED in another"),
        "{}",
        answer.out
    );
}

#[m0_spec::row(B44)]
#[test]
fn what_the_budget_does_not_reach_is_pending() {
    let fixture = Fixture::shell(&[CAUGHT, MISSED].concat());
    let wanted = [("adds-wrong", "pending"), ("negates-wrong", "pending")];
    let answer = fixture.check(&["--budget", "0s"], 8, &wanted);
    assert!(
        answer.out.contains("the budget was used up"),
        "{}",
        answer.out
    );
}

#[m0_spec::row(B43, B2)]
#[test]
fn a_signal_ends_the_run_with_what_it_has() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let word = format!("62{}", std::process::id());
        let fixture = Fixture::shell(&[CAUGHT, MISSED].concat());
        let seen = fixture.cache().with_file_name("seen");
        let wait = format!(
            "bad=0\nif [ \"$(neg 1)\" = 1 ]; then touch {}; sleep {word}; fi\n",
            seen.display()
        );
        fixture.write("t.sh", &TAP.replace("bad=0\n", &wait));
        let before = fixture.state();
        let json = fixture.cache().with_file_name("results.json");
        let tool = fixture
            .command(&["run", "--json", &json.display().to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        let until = Instant::now() + Duration::from_mins(1);
        while !seen.exists() {
            assert!(Instant::now() < until, "the second rule never ran");
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(Pid::from_raw(tool.id() as i32), signal).expect("it is alive");
        let output = tool.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{signal}: {output:?}");
        assert_eq!(fixture.state(), before);
        assert_eq!(alive(&word), 0, "the gate outlives the tool");
        let text = std::fs::read_to_string(json).expect("results are written");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let verdicts: Vec<_> = value["rules"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|rule| &rule["verdict"])
            .collect();
        assert_eq!(verdicts, ["caught", "pending"]);
        // Nothing of the rule is left in the copy, and the verdict that was told is kept.
        fixture.write("t.sh", TAP);
        let again = fixture.check(
            &[],
            1,
            &[("adds-wrong", "caught"), ("negates-wrong", "missed")],
        );
        assert!(
            !again.out.contains("the last run ended with"),
            "{}",
            again.out
        );
    }
}

#[m0_spec::row(B39, B22)]
#[test]
fn the_clean_tree_is_looked_at_every_so_many_rules() {
    let third = CAUGHT
        .replace("adds-wrong", "third")
        .replace("'$1 - $2'", "'$1 - $2 - 0'");
    let wears = CAUGHT
        .replace("adds-wrong", "wears")
        .replace("'$1 - $2'", "'$1 - $2 + 0'");
    let last = CAUGHT
        .replace("adds-wrong", "last")
        .replace("'$1 - $2'", "'0 - 1'");
    let fixture = Fixture::shell(&[CAUGHT, &wears, &third, &last].concat());
    // From the second rule on, the clean tree is red.
    let worn = fixture.cache().with_file_name("worn");
    let wear = format!(
        "grep -q '[+] 0' sum.sh && touch {0}\n[ -e {0} ] && [ \"$(add 1 1)\" = 2 ] && neg() {{ echo 9; }}\nbad=0\n",
        worn.display()
    );
    fixture.write("t.sh", &TAP.replace("bad=0\n", &wear));
    let wanted = |all: [&'static str; 4]| {
        [
            ("adds-wrong", all[0]),
            ("wears", all[1]),
            ("third", all[2]),
            ("last", all[3]),
        ]
    };
    let each = fixture.check(
        &["--sentinel", "1"],
        5,
        &wanted(["caught", "infra", "pending", "pending"]),
    );
    assert!(
        each.out
            .contains("not begun: gate tap is red on the clean tree since"),
        "{}",
        each.out
    );
    std::fs::remove_file(&worn).expect("the rule wore it out");
    fixture.check(
        &["--sentinel", "2", "--no-cache"],
        5,
        &wanted(["infra", "infra", "pending", "pending"]),
    );
    std::fs::remove_file(&worn).expect("the rule wore it out");
    fixture.check(&["--sentinel", "0", "--no-cache"], 5, &wanted(["infra"; 4]));
    // What a red look withdrew is not resumed.
    std::fs::remove_file(&worn).expect("the rule wore it out");
    fixture.check(
        &["--resume", "--no-cache", "--sentinel", "1"],
        5,
        &wanted(["caught", "infra", "pending", "pending"]),
    );
}
