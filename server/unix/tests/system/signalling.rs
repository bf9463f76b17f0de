//! Signals are read with their sender, whatever mask and dispositions were inherited; sending names who is gone.

use std::os::fd::AsFd;
use std::process::Command;

use m0_unix::signals::{KillError, Signal, SignalFd, block, kill, name};
use m0_unix::{Pid, process};

use crate::process::Actor;

/// Two signals from us and one from a shell, in the order in which they were sent.
fn read_by(thread: &str) {
    let mut actor = Actor::play(&["await-signals", thread]);
    assert_eq!(
        actor.line().as_deref(),
        Some("None"),
        "nothing is pending at first"
    );
    let us = process::pid();
    kill(actor.pid(), Signal::SIGTERM).expect("the actor runs");
    assert_eq!(actor.line(), Some(format!("SIGTERM from {us}")));
    let script = format!("echo $$; kill -TERM {}", actor.pid());
    let mut shell = Actor::start(Command::new("sh").args(["-c", &script]));
    let sender = shell.line().expect("the shell tells its pid");
    assert_eq!(actor.line(), Some(format!("SIGTERM from {sender}")));
    kill(actor.pid(), Signal::SIGUSR1).expect("the actor runs");
    assert_eq!(actor.line(), Some(format!("SIGUSR1 from {us}")));
    assert!(actor.end().success(), "no signal ended the actor");
}

#[m0_spec::row(U6)]
#[test]
fn a_signal_is_read_with_its_sender() {
    read_by("main");
}

#[m0_spec::row(U6)]
#[test]
fn a_thread_started_after_the_block_reads_signals_of_the_process() {
    read_by("another");
}

/// The bit of a signal in the masks of `/proc/PID/status`.
fn bit(signal: Signal) -> u64 {
    1 << (signal.number() - 1)
}

/// The masks that the scene `dispositions` told: blocked and ignored, before and after.
fn masks(lines: &[String]) -> [u64; 4] {
    let of = |start: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(start));
        u64::from_str_radix(
            line.unwrap_or_else(|| panic!("no {start} in {lines:?}"))
                .trim(),
            16,
        )
        .expect("hexadecimal")
    };
    [
        of("before SigBlk"),
        of("before SigIgn"),
        of("after SigBlk"),
        of("after SigIgn"),
    ]
}

#[m0_spec::row(U2)]
#[test]
fn an_inherited_mask_is_emptied() {
    let [blocked, _, after, _] = masks(&Actor::lines(&["exec-blocked"]));
    for signal in [Signal::SIGTERM, Signal::SIGCHLD, Signal::SIGUSR1] {
        assert_ne!(
            blocked & bit(signal),
            0,
            "{signal} was to be inherited blocked: {blocked:x}"
        );
    }
    assert_eq!(after, 0);
}

#[m0_spec::row(U2)]
#[test]
fn ignored_signals_are_set_back_but_for_an_ignored_hangup() {
    let ignored = [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGCHLD,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
        Signal::SIGCONT,
        Signal::SIGXCPU,
    ];
    for hangup in [None, Some(Signal::SIGHUP)] {
        let all: Vec<Signal> = ignored.into_iter().chain(hangup).collect();
        let numbers: Vec<String> = all
            .iter()
            .map(|signal| signal.number().to_string())
            .collect();
        let mut words = vec!["exec-ignoring"];
        words.extend(numbers.iter().map(String::as_str));
        let [_, before, _, after] = masks(&Actor::lines(&words));
        for signal in all {
            assert_ne!(
                before & bit(signal),
                0,
                "{signal} was to be inherited ignored: {before:x}"
            );
        }
        // The runner of this test may itself have been started by nohup: then SIGHUP is ignored both times.
        let kept = before & bit(Signal::SIGHUP);
        let untouched =
            before & (bit(Signal::SIGTTOU) | bit(Signal::SIGTTIN) | bit(Signal::SIGTSTP));
        assert_eq!(
            after & !untouched & LOW,
            kept | bit(Signal::SIGPIPE),
            "after the reset: {after:x}"
        );
        assert!(
            hangup.is_none() || kept != 0,
            "an ignored hangup stays ignored"
        );
    }
}

/// The signals that have names; the runtime of the C library keeps two real-time ones for itself.
const LOW: u64 = (1 << 31) - 1;

#[m0_spec::row(U24)]
#[test]
fn a_signal_to_a_reaped_process_tells_that_it_is_gone() {
    let mut actor = Actor::play(&["children"]);
    let pid = actor.pid();
    assert!(actor.end().success());
    let error = kill(pid, Signal::SIGTERM).expect_err("it was reaped");
    assert!(
        matches!(error, KillError::Gone(gone) if gone == pid),
        "{error:?}"
    );
}

#[m0_spec::row(U24)]
#[test]
fn groups_and_everyone_are_no_target() {
    // SIGCONT: were one of these sent after all, it would do no harm.
    for pid in [0, -1, -process::pid().as_raw()] {
        let error = kill(Pid::from_raw(pid), Signal::SIGCONT).expect_err("not one process");
        assert!(matches!(error, KillError::NotOne(_)), "{pid}: {error:?}");
    }
}

#[m0_spec::row(U31)]
#[test]
fn every_number_of_a_signal_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = (1..=64)
        .map(|number| name(Signal::from_number(number).expect("in range")))
        .collect();
    assert_eq!(names.len(), 64, "{names:?}");
    assert!(
        names
            .iter()
            .all(|name| name.starts_with("SIG") && !name.contains('?')),
        "{names:?}"
    );
    for (number, wanted) in [
        (1, "SIGHUP"),
        (9, "SIGKILL"),
        (15, "SIGTERM"),
        (34, "SIGRTMIN"),
        (64, "SIGRTMAX"),
    ] {
        assert_eq!(name(Signal::from_number(number).expect("in range")), wanted);
    }
    assert_eq!(
        [
            Signal::from_number(0),
            Signal::from_number(65),
            Signal::from_number(-9)
        ],
        [None; 3]
    );
}

#[m0_spec::row(U12)]
#[test]
fn what_cannot_be_blocked_or_read_is_refused_by_name() {
    let real_time = Signal::from_number(40).expect("in range");
    for error in [
        block(&[real_time]).expect_err("not offered"),
        SignalFd::new(&[real_time])
            .map(|made| made.as_fd().try_clone_to_owned())
            .expect_err("not offered"),
        process::set_death_signal(Some(real_time)).expect_err("not offered"),
    ] {
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("SIGRTMIN+6"), "{error}");
    }
}
