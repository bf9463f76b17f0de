//! Nobody outlives a parent they were to die with, and a dead writer's pipe reads as closed.

use m0_unix::Signal;
use m0_unix::signals::{KillError, kill};

use crate::process::{Actor, PATIENCE};

/// Kills the parent and awaits its end; the child holds the other end of our pipes.
fn kill_parent(actor: &mut Actor) {
    kill(actor.pid(), Signal::SIGKILL).expect("the parent waits");
}

#[m0_spec::row(U5)]
#[test]
fn a_child_dies_when_its_parent_is_killed() {
    let mut actor = Actor::play(&["parent", "armed"]);
    let child = actor.pid_after("child");
    actor.tell("hello");
    assert_eq!(
        actor.line().as_deref(),
        Some("echo hello"),
        "the child lives while its parent does"
    );
    kill_parent(&mut actor);
    assert_eq!(
        actor.line(),
        None,
        "the child holds the pipe until it is gone"
    );
    await_gone(child);
}

#[m0_spec::row(U5)]
#[test]
fn without_the_death_signal_the_child_would_have_lived() {
    let mut actor = Actor::play(&["parent", "alone"]);
    let child = actor.pid_after("child");
    kill_parent(&mut actor);
    crate::process::await_state(actor.pid(), "Z");
    actor.tell("still there");
    assert_eq!(actor.line().as_deref(), Some("echo still there"));
    kill(child, Signal::SIGKILL).expect("the child lives");
}

#[m0_spec::row(U5)]
#[test]
fn a_child_that_asks_after_its_parent_died_dies_at_once() {
    let mut actor = Actor::play(&["parent", "late"]);
    let child = actor.pid_after("child");
    kill_parent(&mut actor);
    assert_eq!(
        actor.rest(),
        [""; 0],
        "the child must not say that it survived"
    );
    await_gone(child);
}

#[m0_spec::row(U14)]
#[test]
fn a_pipe_reads_as_closed_once_its_writer_was_killed() {
    let mut actor = Actor::play(&["lose-writer"]);
    actor.after("Nothing");
    let child = actor.pid_after("child");
    kill(child, Signal::SIGKILL).expect("the writer lives");
    assert_eq!(actor.rest(), ["Closed"]);
    assert!(actor.end().success());
}

/// Waits until a process that is not our child no longer runs: whoever inherits it may reap it late.
fn await_gone(pid: m0_unix::Pid) {
    let start = std::time::Instant::now();
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let ended = stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ");
        if ended || matches!(kill(pid, Signal::SIGCONT), Err(KillError::Gone(_))) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{pid} still runs: {stat}");
        std::thread::yield_now();
    }
}
