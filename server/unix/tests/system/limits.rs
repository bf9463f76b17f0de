//! Limits of this process alone, and what it counts of itself.

use crate::process::Actor;

#[m0_spec::row(U17, U12)]
#[test]
fn a_limit_binds_the_process_that_set_it_and_rises_to_the_hard_one() {
    let lines = Actor::lines(&["limits"]);
    assert_eq!(lines[..2], ["child 20", "parent 100 true"]);
    assert!(
        lines[2].starts_with("above Err(\"setrlimit(RLIMIT_NOFILE): "),
        "{}",
        lines[2]
    );
    assert_eq!(lines[3..], ["raised true true", "opened 2", "opened 1"]);
}
