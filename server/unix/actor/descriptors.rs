//! Scenes of descriptors: closed, kept, inherited, counted.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

use m0_unix::fds::{Doorbell, ensure_standard, inherited_listeners, keep_on_exec, pipe};
use m0_unix::fork::{Forked, fork};
use m0_unix::output::Output;
use m0_unix::poll::Poller;
use m0_unix::process::{
    descriptor_limit, exit_now, limit_descriptors, open_descriptors, pid, raise_descriptor_limit,
};
use m0_unix::shared::SharedWords;
use m0_unix::signals::{Signal, SignalFd};
use m0_unix::sockets::{accept, accept_error, listen_tcp, listen_unix};
use nix::sys::wait::waitpid;

use crate::{await_readable, become_scene, say};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The numbers of all open descriptors but the one used to look.
fn open() -> Vec<RawFd> {
    let listed: Vec<RawFd> = fs::read_dir("/proc/self/fd")
        .expect("/proc is mounted")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    listed
        .into_iter()
        .filter(|fd| fs::read_link(format!("/proc/self/fd/{fd}")).is_ok())
        .collect()
}

/// Closes what a test runner left open above the standard three.
fn close_runners() {
    for fd in open().into_iter().filter(|fd| *fd > 2) {
        nix::unistd::close(fd).expect("it was listed as open");
    }
}

/// Closes the standard descriptors named by digits, opens them again by the guard, and writes what they are to a file.
pub(crate) fn ensure(closed: &str, report: &str) {
    let describe = |fd: RawFd| {
        let target = fs::read_link(format!("/proc/self/fd/{fd}"))
            .map_or("closed".into(), |to| to.display().to_string());
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
        let flags = info
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .unwrap_or("0")
            .trim()
            .to_owned();
        let cloexec =
            i64::from_str_radix(&flags, 8).expect("octal") & i64::from(nix::libc::O_CLOEXEC) != 0;
        format!(
            "{fd} {target}{}\n",
            if cloexec { " closed on exec" } else { "" }
        )
    };
    close_runners();
    for digit in closed.bytes() {
        nix::unistd::close(RawFd::from(digit - b'0')).expect("it is open");
    }
    let before: String = (0..3).map(describe).collect();
    ensure_standard().expect("/dev/null opens");
    let after: String = (0..3).map(describe).collect();
    let next = fs::File::open("/dev/null").expect("/dev/null opens");
    fs::write(
        report,
        format!("{before}{after}next {}\n", next.as_raw_fd()),
    )
    .expect("the report can be written");
}

/// Makes one of everything and becomes the scene that lists what is left open.
pub(crate) fn exec_clean() {
    close_runners();
    let directory = std::env::temp_dir().join(format!("m0-unix-actor-{}", pid()));
    let made = {
        let listener = listen_tcp(LOCAL, 8).expect("a port is free");
        let address = listener
            .local_addr()
            .expect("bound")
            .as_socket()
            .expect("TCP");
        let client = TcpStream::connect(address).expect("the listener has a queue");
        await_readable(&listener);
        let (connection, _) = accept(&listener).expect("accept works").expect("one waits");
        let unix = listen_unix(&directory, 8).expect("the path is free");
        fs::remove_file(&directory).expect("it was just made");
        let bell = Doorbell::new().expect("a descriptor is free");
        let copy = bell.try_clone().expect("a descriptor is free");
        let (reader, writer) = pipe().expect("descriptors are free");
        let copied = Output::of(std::os::fd::AsFd::as_fd(&client)).expect("a socket");
        let anew = Output::of(std::os::fd::AsFd::as_fd(&writer)).expect("a pipe");
        (
            (
                listener, client, connection, unix, bell, copy, reader, writer, copied, anew,
            ),
            Poller::new().expect("a descriptor is free"),
            SignalFd::new(&[Signal::SIGTERM]).expect("a descriptor is free"),
            SharedWords::create("scene", 1).expect("memory is free"),
        )
    };
    say(format!("before {:?}", open()));
    std::mem::forget(made);
    become_scene(&["list-descriptors"]);
}

/// Lists what is open.
pub(crate) fn list() {
    say(format!("after {:?}", open()));
}

/// Passes a descriptor as a service manager would: `what` to pid `to`, announcing `count`.
pub(crate) fn activate(what: &str, to: &str, count: &str) {
    close_runners();
    let passed = match what {
        "listener" => listen_tcp(LOCAL, 8).expect("a port is free").into(),
        "pipe" => pipe().expect("descriptors are free").0,
        "connection" => {
            let (one, other) =
                std::os::unix::net::UnixStream::pair().expect("descriptors are free");
            std::mem::forget(other);
            one.into()
        }
        _ => std::os::fd::OwnedFd::from(fs::File::open("/dev/null").expect("/dev/null opens")),
    };
    assert_eq!(
        passed.as_raw_fd(),
        3,
        "the scene starts with the standard three"
    );
    if what != "nothing" {
        keep_on_exec(&passed).expect("an open descriptor");
    }
    std::mem::forget(passed);
    let to = if to == "us" {
        pid().to_string()
    } else {
        to.to_owned()
    };
    let text = |text: String| std::ffi::CString::new(text).expect("no NUL");
    let program = text(
        std::env::current_exe()
            .expect("known")
            .display()
            .to_string(),
    );
    let environment = [
        text(format!("LISTEN_PID={to}")),
        text(format!("LISTEN_FDS={count}")),
    ];
    let arguments = [program.clone(), text("take-listeners".to_owned())];
    let error = nix::unistd::execve(&program, &arguments, &environment)
        .expect_err("it returns only an error");
    panic!("execve: {error}");
}

/// Takes what [`activate`] passed, twice.
pub(crate) fn take_listeners() {
    for _ in 0..2 {
        match inherited_listeners() {
            Ok(taken) => {
                let flags = |fd: &std::os::fd::OwnedFd| {
                    nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_GETFD).expect("open")
                        == nix::libc::FD_CLOEXEC
                };
                say(format!(
                    "took {} {:?}",
                    taken.len(),
                    taken.iter().map(flags).collect::<Vec<_>>()
                ));
                std::mem::forget(taken);
            }
            Err(error) => say(format!("{:?}: {error}", error.kind())),
        }
    }
}

/// Accepts without a free descriptor, then with one.
pub(crate) fn starve() {
    close_runners();
    let listener = listen_tcp(LOCAL, 8).expect("a port is free");
    let address = listener
        .local_addr()
        .expect("bound")
        .as_socket()
        .expect("TCP");
    say(format!(
        "{:?}",
        accept(&listener).map(|taken| taken.is_some())
    ));
    let _client = TcpStream::connect(address).expect("the listener has a queue");
    await_readable(&listener);
    let (soft, _) = descriptor_limit().expect("known");
    limit_descriptors(open().len() as u64).expect("a limit can be lowered");
    let error = accept(&listener).expect_err("no descriptor is free");
    say(format!(
        "{:?} {:?}",
        accept_error(&error),
        error.raw_os_error()
    ));
    limit_descriptors(soft).expect("a soft limit can be raised");
    say(format!(
        "{:?}",
        accept(&listener).map(|taken| taken.is_some())
    ));
}

/// A child lowers its limit; its parent's stays.
pub(crate) fn limits() {
    let (_, hard) = descriptor_limit().expect("known");
    limit_descriptors(100).expect("a limit can be lowered");
    match fork().expect("one thread") {
        Forked::Child => {
            limit_descriptors(20).expect("a limit can be lowered");
            say(format!("child {:?}", descriptor_limit().expect("known").0));
            exit_now(0)
        }
        Forked::Parent(child) => {
            waitpid(child, None).expect("the child is ours");
        }
    }
    let (soft, still) = descriptor_limit().expect("known");
    say(format!("parent {soft} {}", still == hard));
    let error = limit_descriptors(hard.saturating_add(1)).map_err(|error| error.to_string());
    say(format!("above {error:?}"));
    let raised = raise_descriptor_limit().expect("the hard limit is allowed");
    let (soft, _) = descriptor_limit().expect("known");
    say(format!("raised {} {}", raised == hard, soft == hard));
    let before = open_descriptors().expect("/proc is mounted");
    let (reader, _writer) = pipe().expect("descriptors are free");
    say(format!(
        "opened {}",
        open_descriptors().expect("/proc is mounted") - before
    ));
    drop(reader);
    say(format!(
        "opened {}",
        open_descriptors().expect("/proc is mounted") - before
    ));
}

/// A child rings the bell that its parent answers.
pub(crate) fn ring_child() {
    let bell = Doorbell::new().expect("a descriptor is free");
    match fork().expect("one thread") {
        Forked::Child => {
            for _ in 0..3 {
                bell.ring().expect("an open bell");
            }
            exit_now(0)
        }
        Forked::Parent(child) => {
            waitpid(child, None).expect("the child is ours");
        }
    }
    await_readable(&bell);
    say(format!(
        "{} {}",
        bell.answer().expect("an open bell"),
        bell.answer().expect("an open bell")
    ));
}
