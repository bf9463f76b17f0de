//! SIGKILL of the tool at the worst moment: the tree is as it was, and the next run goes on.

use std::time::{Duration, Instant};

use super::fixture::{CAUGHT, Fixture, MISSED, TAP};
use super::traps::alive;

#[m0_spec::row(B2, B12, B17)]
#[test]
fn killed_in_the_middle_the_tree_is_unchanged_and_resume_goes_on() {
    let word = format!("61{}", std::process::id());
    let fixture = Fixture::shell(&[CAUGHT, MISSED].concat());
    // The second rule's gate waits until it is killed, as long as the file is there.
    let wait = format!(
        "bad=0\n[ \"$(add 1 1)\" = 2 ] || echo run >> {0}.ran\nif [ \"$(neg 1)\" = 1 ] && [ -e {0} ]; then touch {0}.seen; sleep {word}; fi\n",
        fixture.cache().join("wait").display()
    );
    std::fs::create_dir_all(fixture.cache()).expect("made");
    std::fs::write(fixture.cache().join("wait"), "").expect("written");
    fixture.write("t.sh", &TAP.replace("bad=0\n", &wait));
    let before = fixture.state();
    let mut tool = fixture.command(&["run"]).spawn().expect("the tool starts");
    let until = Instant::now() + Duration::from_mins(1);
    while !fixture.cache().join("wait.seen").exists() {
        assert!(Instant::now() < until, "the second rule never ran");
        std::thread::sleep(Duration::from_millis(5));
    }
    tool.kill().expect("killed");
    tool.wait().expect("reaped");
    assert_eq!(fixture.state(), before);
    let until = Instant::now() + Duration::from_secs(10);
    while alive(&word) > 0 {
        assert!(Instant::now() < until, "the gate outlives the tool");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_file(fixture.cache().join("wait")).expect("removed");
    let answer = fixture.check(
        &["--resume"],
        1,
        &[("adds-wrong", "caught"), ("negates-wrong", "missed")],
    );
    assert!(
        answer
            .out
            .contains("the last run ended with `negates-wrong` applied"),
        "{}",
        answer.out
    );
    let ran = std::fs::read_to_string(fixture.cache().join("wait.ran")).expect("it ran");
    assert_eq!(ran.lines().count(), 1, "the first rule was not run again");
}
