//! The standard three are open, and nothing else crosses an exec.

use crate::process::Actor;

#[m0_spec::row(U11)]
#[test]
fn the_guard_opens_whichever_of_the_three_is_closed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for closed in ["", "0", "1", "2", "01", "02", "12", "012"] {
        let report = directory.path().join(format!("closed-{closed}"));
        let path = report.to_str().expect("UTF-8");
        assert!(
            Actor::play(&["ensure", closed, path]).end().success(),
            "{closed:?}"
        );
        let told = std::fs::read_to_string(&report).expect("the actor wrote it");
        let lines: Vec<&str> = told.lines().collect();
        let (before, after) = (&lines[..3], &lines[3..6]);
        for fd in 0..3 {
            if closed.contains(&fd.to_string()) {
                assert_eq!(
                    before[fd],
                    format!("{fd} closed"),
                    "the scene is the one asked for:\n{told}"
                );
                assert_eq!(after[fd], format!("{fd} /dev/null"), "{told}");
            } else {
                assert_ne!(
                    before[fd],
                    format!("{fd} closed"),
                    "the scene is the one asked for:\n{told}"
                );
                assert_eq!(
                    after[fd], before[fd],
                    "what was open stays as it was:\n{told}"
                );
            }
        }
        assert_eq!(
            lines[6], "next 3",
            "nothing is left open above the three:\n{told}"
        );
    }
}

#[m0_spec::row(U3)]
#[test]
fn of_everything_that_can_be_made_nothing_crosses_an_exec() {
    let lines = Actor::lines(&["exec-clean"]);
    let before = lines[0].strip_prefix("before ").expect("the first scene");
    assert!(
        before.split(',').count() >= 16,
        "one of everything: {before}"
    );
    assert_eq!(lines[1], "after [0, 1, 2]");
}
