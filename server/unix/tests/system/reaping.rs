//! Every change of a child is told once, as what it is.

use crate::process::{Actor, await_state};
use m0_unix::Signal;
use m0_unix::signals::kill;

/// The changes that a child tells when it ends by itself in this way.
fn changes(how: &str) -> Vec<String> {
    let mut actor = Actor::play(&["reap", how]);
    let child = actor.pid_after("child");
    let told = actor.rest();
    assert!(actor.end().success());
    told.iter()
        .map(|line| line.replace(&format!("{child} "), "it "))
        .collect()
}

#[m0_spec::row(U4)]
#[test]
fn an_exit_tells_its_code() {
    assert_eq!(
        changes("exit"),
        ["running None", "it Exited(7)", "after None"]
    );
}

#[m0_spec::row(U4)]
#[test]
fn an_abort_tells_its_signal() {
    let told = [
        "running None",
        "it Signaled { signal: SIGABRT, core: false }",
        "after None",
    ];
    assert_eq!(changes("abort"), told);
}

#[m0_spec::row(U4)]
#[test]
fn without_children_there_is_no_change_and_no_error() {
    assert_eq!(Actor::lines(&["children"]), ["Ok(None)"]);
}

#[m0_spec::row(U4)]
#[test]
fn a_stop_and_a_continue_are_told_before_the_end() {
    let mut actor = Actor::play(&["reap", "hold"]);
    let child = actor.pid_after("child");
    actor.after("running None");
    for (signal, state, told) in [
        (Signal::SIGSTOP, "T", "Stopped(SIGSTOP)"),
        (Signal::SIGCONT, "SR", "Continued"),
        (Signal::SIGTSTP, "T", "Stopped(SIGTSTP)"),
        (Signal::SIGCONT, "SR", "Continued"),
    ] {
        kill(child, signal).expect("the child is there");
        await_state(child, state);
        assert_eq!(actor.after(&child.to_string()), told);
    }
    kill(child, Signal::SIGKILL).expect("the child is there");
    assert_eq!(
        actor.after(&child.to_string()),
        "Signaled { signal: SIGKILL, core: false }"
    );
    assert_eq!(actor.rest(), ["after None"]);
}

#[m0_spec::row(U4, U31)]
#[test]
fn a_death_by_a_real_time_signal_is_told_too() {
    let mut actor = Actor::play(&["reap", "hold"]);
    let child = actor.pid_after("child");
    actor.after("running None");
    let shell =
        Actor::start(std::process::Command::new("sh").args(["-c", &format!("kill -37 {child}")]))
            .end();
    assert!(shell.success());
    assert_eq!(
        actor.after(&child.to_string()),
        "Signaled { signal: SIGRTMIN+3, core: false }"
    );
}

#[m0_spec::row(U4)]
#[test]
fn an_inherited_stranger_is_reaped_under_its_own_pid() {
    let lines = Actor::lines(&["adopt-stranger"]);
    let stranger = lines
        .iter()
        .find_map(|line| line.strip_prefix("stranger "))
        .expect("it spoke");
    let mut told: Vec<_> = lines
        .iter()
        .filter(|line| !line.starts_with("stranger"))
        .cloned()
        .collect();
    told.sort();
    let mut wanted = [
        "known true Exited(3)".to_owned(),
        format!("{stranger} Exited(9)"),
    ];
    wanted.sort();
    assert_eq!(told, wanted);
}
