//! Scenes of threads, forks and ends.

use std::sync::{Arc, Barrier};
use std::thread;

use m0_unix::fork::{ForkError, Forked, fork, thread_count};
use m0_unix::process::exit_now;
use nix::sys::wait::waitpid;

use crate::say;

/// Counts threads alone, beside three others, and after they were joined; tries to fork each time.
pub(crate) fn thread_counts() {
    let seen = || {
        let count = thread_count().expect("/proc is mounted");
        match fork() {
            Ok(Forked::Child) => exit_now(0),
            Ok(Forked::Parent(child)) => {
                waitpid(child, None).expect("the child is ours");
                say(format!("{count} forked"));
            }
            Err(ForkError::Threads(refused)) => say(format!("{count} refused {refused}")),
            Err(other) => say(format!("{count} {other}")),
        }
    };
    seen();
    let gate = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let gate = Arc::clone(&gate);
            thread::spawn(move || gate.wait())
        })
        .collect();
    seen();
    gate.wait();
    for thread in threads {
        thread.join().expect("a thread that only waits");
    }
    seen();
}

/// Forks right after joining a thread, many times.
pub(crate) fn join_then_fork(rounds: u32) {
    for round in 0..rounds {
        thread::spawn(|| {}).join().expect("an empty thread");
        match fork() {
            Ok(Forked::Child) => exit_now(0),
            Ok(Forked::Parent(child)) => {
                waitpid(child, None).expect("the child is ours");
            }
            Err(refusal) => return say(format!("round {round}: {refusal}")),
        }
    }
    say(format!("{rounds} forks"));
}

/// A child inherits text that was not flushed and leaves.
pub(crate) fn leave(how: &str) {
    print!("once");
    match fork().expect("one thread") {
        Forked::Child if how == "now" => exit_now(5),
        Forked::Child => std::process::exit(5),
        Forked::Parent(child) => {
            waitpid(child, None).expect("the child is ours");
        }
    }
    println!();
}
