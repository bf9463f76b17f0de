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

/// Counts right after joining two threads, many times, and forks now and then.
pub(crate) fn join_then_fork(rounds: u32) {
    for round in 0..rounds {
        // Two that end at once, after a common start: of many ways tried, the one that is most often caught listed (1 in 1000).
        let gate = Arc::new(Barrier::new(3));
        let threads =
            [Arc::clone(&gate), Arc::clone(&gate)].map(|gate| thread::spawn(move || gate.wait()));
        gate.wait();
        for thread in threads {
            thread.join().expect("a thread that only waits");
        }
        let count = thread_count().expect("/proc is mounted");
        if count != 1 {
            return say(format!("round {round}: {count} threads"));
        }
        if round % 100 == 0 {
            match fork() {
                Ok(Forked::Child) => exit_now(0),
                Ok(Forked::Parent(child)) => {
                    waitpid(child, None).expect("the child is ours");
                }
                Err(refusal) => return say(format!("round {round}: {refusal}")),
            }
        }
    }
    say(format!("{rounds} rounds"));
}

/// What C code leaves behind to run at an orderly exit.
extern "C" fn at_exit() {
    say("handler");
}

/// A child inherits text that was not flushed and a handler for the exit, and leaves.
#[expect(unsafe_code, reason = "only C registers exit handlers")]
pub(crate) fn leave(how: &str) {
    // SAFETY: atexit(3) needs a function that may be called at any orderly exit: `at_exit` is one, of this program.
    assert_eq!(unsafe { nix::libc::atexit(at_exit) }, 0);
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
