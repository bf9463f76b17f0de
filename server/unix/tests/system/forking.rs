//! A fork happens with one thread or not at all; a child leaves without its parent's destructors.

use crate::process::Actor;
use m0_unix::fork::{ForkError, fork, thread_count};

#[m0_spec::row(U1, U15)]
#[test]
fn a_fork_is_refused_while_other_threads_run_and_allowed_before_and_after() {
    let lines = Actor::lines(&["thread-counts"]);
    assert_eq!(lines, ["1 forked", "4 refused 4", "1 forked"]);
}

#[m0_spec::row(U1)]
#[test]
fn the_refusal_tells_the_count_and_why() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let beside = std::thread::spawn(move || held.recv());
    let counted = thread_count().expect("/proc is mounted");
    assert!(counted >= 2, "{counted}");
    let refusal = fork().expect_err("this process runs threads");
    assert!(matches!(refusal, ForkError::Threads(2..)), "{refusal:?}");
    assert!(
        refusal
            .to_string()
            .contains("threads, a child would keep their locks"),
        "{refusal}"
    );
    drop(release);
    beside
        .join()
        .expect("it only waits")
        .expect_err("nothing was sent");
}

#[m0_spec::row(U27)]
#[test]
fn a_joined_thread_is_not_held_against_the_fork() {
    assert_eq!(Actor::lines(&["join-then-fork", "2000"]), ["2000 rounds"]);
}

#[m0_spec::row(U16)]
#[test]
fn a_child_that_leaves_at_once_runs_and_flushes_nothing_of_its_parent() {
    assert_eq!(Actor::lines(&["leave", "now"]), ["once", "handler"]);
    // The same child leaving the ordinary way: what the promise guards against.
    let doubled = ["oncehandler", "once", "handler"];
    assert_eq!(Actor::lines(&["leave", "ordinarily"]), doubled);
}
