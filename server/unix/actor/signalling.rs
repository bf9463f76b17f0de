//! Scenes of masks, dispositions and signals that are read.

use m0_unix::signals::{Signal, SignalFd, block, reset_inherited};
use nix::sys::signal::SigHandler;

use crate::{await_readable, become_scene, number, say};

/// Reads SIGTERM and SIGUSR1 on the main thread or on another one and tells who sent them; SIGUSR1 ends it.
pub(crate) fn await_signals(thread: &str) {
    let read = [Signal::SIGTERM, Signal::SIGUSR1];
    block(&read).expect("both can be blocked");
    let tell = move || {
        let signals = SignalFd::new(&read).expect("a descriptor is free");
        say(format!("{:?}", signals.read().expect("an open signalfd")));
        loop {
            await_readable(&signals);
            while let Some(received) = signals.read().expect("an open signalfd") {
                say(format!("{} from {}", received.signal, received.sender));
                if received.signal == Signal::SIGUSR1 {
                    return;
                }
            }
        }
    };
    if thread == "main" {
        tell();
    } else {
        std::thread::spawn(tell)
            .join()
            .expect("the thread tells and returns");
    }
}

/// Tells the mask and the ignored signals before and after the reset. SIGPIPE, which std ignores before `main`, is set
/// to its default first.
pub(crate) fn dispositions() {
    set_handler(nix::sys::signal::SIGPIPE, SigHandler::SigDfl);
    tell_dispositions("before");
    reset_inherited().expect("sigaction works");
    tell_dispositions("after");
}

#[expect(
    unsafe_code,
    reason = "nix has no safe form, and shells do not hand on an ignored SIGCHLD"
)]
fn set_handler(signal: nix::sys::signal::Signal, handler: SigHandler) {
    assert!(matches!(handler, SigHandler::SigDfl | SigHandler::SigIgn));
    // SAFETY: signal(2) needs a handler that is async-signal-safe; the two that pass the assertion are no functions.
    unsafe { nix::sys::signal::signal(signal, handler) }.expect("it can be set");
}

fn tell_dispositions(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    for field in ["SigBlk", "SigIgn"] {
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .expect("proc_pid_status(5)");
        say(format!(
            "{when} {field} {}",
            value.trim_start_matches([':', '\t'])
        ));
    }
}

/// Becomes `dispositions` with a mask that is not empty.
pub(crate) fn exec_blocked() {
    block(&[Signal::SIGTERM, Signal::SIGCHLD, Signal::SIGUSR1]).expect("all can be blocked");
    become_scene(&["dispositions"]);
}

/// Becomes `dispositions` with these signals ignored: what a careless parent hands to its child.
pub(crate) fn exec_ignoring(numbers: &[&str]) {
    for signal in numbers {
        let signal =
            nix::sys::signal::Signal::try_from(number::<i32>(signal)).expect("a named signal");
        set_handler(signal, SigHandler::SigIgn);
    }
    become_scene(&["dispositions"]);
}
