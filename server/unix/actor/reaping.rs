//! Scenes of children and what happens to them.

use m0_unix::fork::{Forked, fork};
use m0_unix::poll::wait_readable;
use m0_unix::process::{abort_now, exit_now, pid};
use m0_unix::reap::{Change, What, next_change};
use m0_unix::signals::{Signal, SignalFd, block};
use nix::sys::resource::{Resource, setrlimit};

use crate::{await_readable, say};

/// The next change of a child, waited for by SIGCHLD.
fn next(signals: &SignalFd) -> Change {
    loop {
        if let Some(change) = next_change().expect("waitpid works") {
            return change;
        }
        await_readable(signals);
        while signals.read().expect("an open signalfd").is_some() {}
    }
}

fn watch() -> SignalFd {
    block(&[Signal::SIGCHLD]).expect("SIGCHLD can be blocked");
    SignalFd::new(&[Signal::SIGCHLD]).expect("a descriptor is free")
}

/// Asks without having a child.
pub(crate) fn no_children() {
    say(format!("{:?}", next_change()));
}

/// Has one child that ends in the given way and tells each of its changes.
pub(crate) fn reap(how: &str) {
    let signals = watch();
    setrlimit(Resource::RLIMIT_CORE, 0, 0).expect("a limit can be lowered");
    let (held, release) = m0_unix::fds::pipe().expect("descriptors are free");
    let child = match fork().expect("one thread") {
        Forked::Parent(child) => child,
        Forked::Child => match how {
            "exit" => {
                wait_readable(&held, None).expect("an open pipe");
                exit_now(7)
            }
            "abort" => {
                wait_readable(&held, None).expect("an open pipe");
                abort_now()
            }
            _ => loop {
                wait_readable(&held, None).expect("an open pipe");
            },
        },
    };
    say(format!("child {child}"));
    say(format!(
        "running {:?}",
        next_change().expect("waitpid works")
    ));
    if how != "hold" {
        m0_unix::fds::write_byte(&release, 1).expect("the child holds the other end");
    }
    loop {
        let change = next(&signals);
        say(format!("{} {:?}", change.pid, change.what));
        if matches!(change.what, What::Exited(_) | What::Signaled { .. }) {
            break;
        }
    }
    say(format!("after {:?}", next_change().expect("waitpid works")));
}

/// Inherits the child of its child.
pub(crate) fn adopt_stranger() {
    let signals = watch();
    nix::sys::prctl::set_child_subreaper(true).expect("Linux 3.4");
    let (gone, held) = m0_unix::fds::pipe().expect("descriptors are free");
    match fork().expect("one thread") {
        Forked::Child => {
            let middle = pid();
            match fork().expect("one thread") {
                Forked::Child => {
                    drop(held);
                    await_readable(&gone);
                    while m0_unix::process::parent_pid() == middle {
                        std::thread::yield_now();
                    }
                    say(format!("stranger {}", pid()));
                    exit_now(9)
                }
                Forked::Parent(_) => exit_now(3),
            }
        }
        Forked::Parent(child) => {
            drop(held);
            let first = next(&signals);
            say(format!("known {} {:?}", first.pid == child, first.what));
            let second = next(&signals);
            say(format!("{} {:?}", second.pid, second.what));
        }
    }
}
