//! The process that the tests of this crate start, to watch it from outside.
//!
//! Owns one scene a verb: it does something to itself or to children of its own and says on standard output, line by line,
//! what it saw. Refuses to judge: expectations stand in `tests/`.
//! Invariant: it has one thread unless a scene says otherwise, and no scene waits without somebody at the other end of
//! standard input or output who ends it.
#![deny(unsafe_code)]

mod descriptors;
mod dying;
mod forking;
mod reaping;
mod sharing;
mod signalling;
mod waiting;

use std::ffi::CString;
use std::io::Write;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["thread-counts"] => forking::thread_counts(),
        ["join-then-fork", rounds] => forking::join_then_fork(number(rounds)),
        ["leave", how] => forking::leave(how),
        ["children"] => reaping::no_children(),
        ["reap", how] => reaping::reap(how),
        ["adopt-stranger"] => reaping::adopt_stranger(),
        ["await-signals", thread] => signalling::await_signals(thread),
        ["dispositions"] => signalling::dispositions(),
        ["exec-blocked"] => signalling::exec_blocked(),
        ["exec-ignoring", numbers @ ..] => signalling::exec_ignoring(numbers),
        ["parent", how] => dying::parent(how),
        ["lose-writer"] => dying::lose_writer(),
        ["share-fork"] => sharing::share_fork(),
        ["share-exec"] => sharing::share_exec(),
        ["share-adopt", fd] => sharing::share_adopt(number(fd)),
        ["ensure", closed, report] => descriptors::ensure(closed, report),
        ["exec-clean"] => descriptors::exec_clean(),
        ["list-descriptors"] => descriptors::list(),
        ["activate", what, to, count] => descriptors::activate(what, to, count),
        ["take-listeners"] => descriptors::take_listeners(),
        ["starve"] => descriptors::starve(),
        ["limits"] => descriptors::limits(),
        ["ring-child"] => descriptors::ring_child(),
        ["wait", how, millis] => waiting::wait(how, number(millis)),
        ["shout", report] => waiting::shout(report),
        _ => panic!("no such scene: {words:?}"),
    }
}

/// Says one line, at once.
fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("the test reads standard output");
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// Becomes another scene, in this process: no signal mask or disposition is touched on the way, as std would.
fn become_scene(words: &[&str]) -> ! {
    let program = std::env::current_exe().expect("the actor knows its own file");
    let text = |word: &str| CString::new(word).expect("no NUL in a scene");
    let program = text(program.to_str().expect("the target directory is UTF-8"));
    let mut arguments = vec![program.clone()];
    arguments.extend(words.iter().map(|word| text(word)));
    let error = nix::unistd::execv(&program, &arguments).expect_err("execv returns only an error");
    panic!("execv: {error}");
}

/// Waits until the other end of `fd` has something or is gone.
fn await_readable(fd: impl std::os::fd::AsFd) {
    m0_unix::poll::wait_readable(fd, None).expect("ppoll of an open descriptor");
}
