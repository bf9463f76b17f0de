//! Who may listen where: never over somebody who does.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use m0_unix::failed::errno;
use m0_unix::sockets::{Peer, accept, listen_tcp, listen_tcp6_only, listen_unix};

use crate::process::PATIENCE;

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

#[m0_spec::row(U29)]
#[test]
fn a_port_is_bound_again_while_its_old_connections_linger() {
    let listener = listen_tcp(local(), 8).expect("a port is free");
    let address = listener
        .local_addr()
        .expect("bound")
        .as_socket()
        .expect("TCP");
    let client = TcpStream::connect(address).expect("it listens");
    m0_unix::poll::wait_readable(&listener, Some(PATIENCE)).expect("ppoll works");
    let (served, _) = accept(&listener).expect("accept works").expect("one waits");
    // The side that closes first keeps the port in TIME_WAIT.
    drop(served);
    drop(client);
    drop(listener);
    listen_tcp(address, 8).expect("the port can be had again at once");
}

#[m0_spec::row(U29, U12)]
#[test]
fn a_port_on_which_another_listens_is_refused_with_operation_and_errno() {
    let first = listen_tcp(local(), 8).expect("a port is free");
    let address = first.local_addr().expect("bound").as_socket().expect("TCP");
    let error = listen_tcp(address, 8).expect_err("it is taken");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().starts_with("bind: "), "{error}");
    assert_eq!(errno(&error), Some(nix::libc::EADDRINUSE));
    assert!(
        !first.reuse_port().expect("an option of TCP"),
        "SO_REUSEPORT would let it through in silence"
    );
}

#[m0_spec::row(U35)]
#[test]
fn an_ipv6_listener_alone_leaves_the_port_to_ipv4() {
    let four = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let first = listen_tcp(four, 8).expect("a port is free");
    let four = first.local_addr().expect("bound").as_socket().expect("TCP");
    let six = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, four.port(), 0, 0);
    let second = match listen_tcp6_only(six, 8) {
        Ok(second) => second,
        Err(error) if errno(&error) == Some(nix::libc::EAFNOSUPPORT) => return,
        // Not the error's own words: that a port is taken is said of machines, not of code.
        Err(error) => panic!("the two exclude each other: {:?}", errno(&error)),
    };
    drop(first);
    let again = listen_tcp(four, 8).expect("the other one leaves it free");
    TcpStream::connect((Ipv4Addr::LOCALHOST, four.port())).expect("it listens");
    let (_, peer) = accept(&again)
        .expect("accept works")
        .expect("at the IPv4 one");
    assert!(matches!(peer, Peer::Tcp(SocketAddr::V4(_))), "{peer}");
    assert!(accept(&second).expect("accept works").is_none());
}

#[m0_spec::row(U29)]
#[test]
fn the_newer_internet_protocol_is_listened_on_where_it_exists() {
    let address = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    match listen_tcp(address, 8) {
        Ok(listener) => {
            let address = listener
                .local_addr()
                .expect("bound")
                .as_socket()
                .expect("TCP");
            assert!(address.is_ipv6() && address.port() != 0, "{address}");
            let _client = TcpStream::connect(address).expect("it listens");
            m0_unix::poll::wait_readable(&listener, Some(PATIENCE)).expect("ppoll works");
            let (_, peer) = accept(&listener).expect("accept works").expect("one waits");
            assert!(
                matches!(peer, Peer::Tcp(peer) if peer.is_ipv6()),
                "{peer:?}"
            );
        }
        // A machine without it says so in one of these two ways.
        Err(error) => assert!(
            matches!(
                errno(&error),
                Some(nix::libc::EAFNOSUPPORT | nix::libc::EADDRNOTAVAIL)
            ),
            "{error}"
        ),
    }
}

/// Runs `check` with a path in a directory of its own.
fn at_path(check: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    check(&directory.path().join("m0.sock"));
}

#[m0_spec::row(U20)]
#[test]
fn a_free_path_is_listened_at() {
    at_path(|path| {
        let listener = listen_unix(path, 8).expect("the path is free");
        let _client = UnixStream::connect(path).expect("it listens");
        let (_, peer) = accept(&listener).expect("accept works").expect("one waits");
        assert_eq!(peer, Peer::Unix);
        assert_eq!(peer.to_string(), "unix");
    });
}

#[m0_spec::row(U20)]
#[test]
fn a_live_socket_is_not_taken_over() {
    at_path(|path| {
        let live = UnixListener::bind(path).expect("the path is free");
        live.set_nonblocking(true).expect("open");
        let error = listen_unix(path, 8).expect_err("somebody listens");
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        let _client = UnixStream::connect(path).expect("the first one still listens");
        // The probe was its first visitor, the client its second.
        live.accept().expect("the probe");
        live.accept().expect("the client");
    });
}

#[m0_spec::row(U20)]
#[test]
fn a_live_socket_whose_queue_is_full_is_not_taken_over() {
    at_path(|path| {
        let _live = listen_unix(path, 0).expect("the path is free");
        // A backlog of 0 holds one connection; the probe is then told to come again.
        let _first = UnixStream::connect(path).expect("the queue holds one");
        let error = listen_unix(path, 8).expect_err("somebody listens");
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    });
}

#[m0_spec::row(U20)]
#[test]
fn a_stale_socket_is_replaced() {
    at_path(|path| {
        drop(UnixListener::bind(path).expect("the path is free"));
        assert!(
            path.exists(),
            "std leaves the file behind, as a killed host does"
        );
        let _listener = listen_unix(path, 8).expect("nobody listens there");
        UnixStream::connect(path).expect("the new one listens");
    });
}

#[m0_spec::row(U20)]
#[test]
fn what_is_no_socket_is_neither_removed_nor_followed() {
    at_path(|path| {
        fs::write(path, "precious").expect("room");
        let error = listen_unix(path, 8).expect_err("a file is there");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        assert_eq!(fs::read_to_string(path).expect("still there"), "precious");
    });
    at_path(|path| {
        let target = path.with_extension("target");
        drop(UnixListener::bind(&target).expect("the path is free"));
        std::os::unix::fs::symlink(&target, path).expect("room");
        let error = listen_unix(path, 8).expect_err("a link is there");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        assert!(target.exists() && path.is_symlink(), "both are left alone");
    });
}

#[m0_spec::row(U20, U12)]
#[test]
fn a_path_that_cannot_be_had_is_an_error_that_says_so() {
    at_path(|path| {
        let missing = path.join("below").join("m0.sock");
        assert_eq!(
            listen_unix(&missing, 8)
                .expect_err("no such directory")
                .kind(),
            ErrorKind::NotFound
        );
        let long = path.with_file_name("s".repeat(200));
        assert_eq!(
            listen_unix(&long, 8).expect_err("too long").kind(),
            ErrorKind::InvalidInput
        );
    });
}

#[m0_spec::row(U20)]
#[test]
fn hosts_that_start_in_one_directory_take_turns_and_do_not_wait_for_ever() {
    at_path(|path| {
        let held = fs::File::open(path.parent().expect("a directory")).expect("readable");
        held.lock().expect("nobody else holds it");
        let start = Instant::now();
        let error = listen_unix(path, 8).expect_err("the directory is locked");
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert!(
            (Duration::from_millis(900)..PATIENCE).contains(&start.elapsed()),
            "{:?}",
            start.elapsed()
        );
        held.unlock().expect("held");
        listen_unix(path, 8).expect("the lock is free");
    });
}
