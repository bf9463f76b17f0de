//! Scenes of processes that lose their parent.

use std::io::BufRead;

use m0_unix::Signal;
use m0_unix::fds::{pipe, read_byte};
use m0_unix::fork::{Forked, fork};
use m0_unix::process::{die_with, parent_pid, pid};

use crate::{await_readable, say};

/// Has a child that dies with it (`armed`), does not (`alone`), or asks to when it is too late (`late`).
pub(crate) fn parent(how: &str) {
    let parent = pid();
    let (for_ever, held) = pipe().expect("descriptors are free");
    match fork().expect("one thread") {
        Forked::Parent(_) => {
            drop(for_ever);
            // Nobody writes to this end's other side: the test ends this process.
            let (nothing, _held) = pipe().expect("descriptors are free");
            await_readable(&nothing);
        }
        Forked::Child => {
            drop(held);
            match how {
                "armed" => {
                    die_with(parent, Signal::SIGKILL).expect("SIGKILL can be a death signal")
                }
                "late" => {
                    say(format!("child {}", pid()));
                    await_readable(&for_ever);
                    while parent_pid() == parent {
                        std::thread::yield_now();
                    }
                    die_with(parent, Signal::SIGKILL).expect("SIGKILL can be a death signal");
                    say("survived");
                    return;
                }
                _ => {}
            }
            say(format!("child {}", pid()));
            for line in std::io::stdin().lock().lines() {
                say(format!("echo {}", line.expect("the test writes text")));
            }
        }
    }
}

/// Reads a pipe whose only writer is a child that the test kills.
pub(crate) fn lose_writer() {
    let (reader, writer) = pipe().expect("descriptors are free");
    match fork().expect("one thread") {
        Forked::Child => {
            drop(reader);
            let (nothing, _held) = pipe().expect("descriptors are free");
            await_readable(&nothing);
            drop(writer);
        }
        Forked::Parent(child) => {
            drop(writer);
            say(format!("{:?}", read_byte(&reader).expect("an open pipe")));
            say(format!("child {child}"));
            await_readable(&reader);
            say(format!("{:?}", read_byte(&reader).expect("an open pipe")));
        }
    }
}
