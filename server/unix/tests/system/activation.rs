//! Sockets that a service manager passes are taken when they are ours, and only then.

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

use m0_unix::failed::errno;
use m0_unix::fds::{keep_on_exec, pipe, take_inherited};

use crate::process::Actor;

/// What the two attempts to take them said.
fn take(what: &str, to: &str, count: &str) -> [String; 2] {
    let lines = Actor::lines(&["activate", what, to, count]);
    lines.try_into().expect("two attempts")
}

#[m0_spec::row(U21, U3)]
#[test]
fn a_listener_passed_to_us_is_taken_once_and_closed_on_exec() {
    let [first, second] = take("listener", "us", "1");
    assert_eq!(first, "took 1 [true]");
    assert!(
        second.contains("descriptor 3: opened by this process"),
        "{second}"
    );
}

#[m0_spec::row(U21)]
#[test]
fn what_is_addressed_to_another_process_is_left_alone() {
    assert_eq!(take("listener", "1", "1"), ["took 0 []", "took 0 []"]);
}

#[m0_spec::row(U21)]
#[test]
fn none_announced_is_none_taken() {
    assert_eq!(take("listener", "us", "0"), ["took 0 []", "took 0 []"]);
}

#[m0_spec::row(U21)]
#[test]
fn what_does_not_listen_or_is_not_there_is_refused_by_number() {
    for (what, count, why) in [
        ("pipe", "1", "inherited descriptor 3: "),
        ("file", "1", "inherited descriptor 3: "),
        (
            "connection",
            "1",
            "inherited descriptor 3: not a listening stream socket",
        ),
        ("nothing", "1", "inherited descriptor 3: fcntl(F_GETFD): "),
        ("listener", "2", "inherited descriptor 4: fcntl(F_GETFD): "),
        ("listener", "65", "LISTEN_FDS=65 is not within 0..=64"),
        ("listener", "-1", "LISTEN_FDS=-1 is not within 0..=64"),
        ("listener", "one", "LISTEN_FDS=one is not a number"),
        (
            "listener",
            "99999999999",
            "LISTEN_FDS=99999999999 is not a number",
        ),
    ] {
        let [first, _] = take(what, "us", count);
        assert!(
            first.starts_with("InvalidData: ") && first.contains(why),
            "{what} {count}: {first}"
        );
    }
}

#[m0_spec::row(U21)]
#[test]
fn what_this_process_opened_is_never_taken_from_its_owner() {
    let (reader, writer) = pipe().expect("descriptors are free");
    // One closed on exec, and one that was opened to the next program on purpose: both have an owner here.
    let kept = keep_on_exec(&writer).expect("open");
    for number in [reader.as_raw_fd(), kept] {
        // As a number: dropping a second owner of it would end the process before the assertion.
        let taken = take_inherited(number).map(OwnedFd::into_raw_fd);
        let error = taken.expect_err("it has an owner");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }
    for number in [-1, 0, 1, 2] {
        let error = take_inherited(number).expect_err("no such number is handed on");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    let error = take_inherited(i32::MAX).expect_err("closed");
    assert_eq!(errno(&error), Some(nix::libc::EBADF), "{error}");
}
