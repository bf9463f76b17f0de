//! One connection: how it is taken, what its options do, and what an error of accept means.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use m0_unix::poll::wait_readable;
use m0_unix::sockets::{
    AcceptError, Peer, UNSENT_BYTES, accept, accept_error, bound_unsent, listen_tcp,
    reset_on_close, set_nodelay, set_user_timeout, shutdown_write, unacknowledged_bytes,
};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use socket2::Socket;

use crate::process::{Actor, PATIENCE};

/// A client and the connection taken for it.
fn pair() -> (TcpStream, Socket) {
    let listener = listen_tcp((Ipv4Addr::LOCALHOST, 0).into(), 8).expect("a port is free");
    assert!(
        accept(&listener)
            .expect("an empty queue is no error")
            .is_none()
    );
    let address = listener
        .local_addr()
        .expect("bound")
        .as_socket()
        .expect("TCP");
    let client = TcpStream::connect(address).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    assert!(wait_readable(&listener, Some(PATIENCE)).expect("ppoll works"));
    let (served, peer) = accept(&listener).expect("accept works").expect("one waits");
    assert_eq!(peer, Peer::Tcp(client.local_addr().expect("connected")));
    assert!(
        accept(&listener)
            .expect("an empty queue is no error")
            .is_none()
    );
    (client, served)
}

#[cfg(target_os = "linux")]
#[m0_spec::row(E141)]
#[test]
fn a_peer_that_reads_nothing_is_not_sent_to_beyond_the_bound() {
    let listener = listen_tcp((Ipv4Addr::LOCALHOST, 0).into(), 8).expect("a port is free");
    bound_unsent(&listener).expect("it is TCP");
    let address = listener.local_addr().expect("bound").as_socket();
    let client = TcpStream::connect(address.expect("TCP")).expect("it listens");
    assert!(wait_readable(&listener, Some(PATIENCE)).expect("ppoll works"));
    let (mut served, _) = accept(&listener).expect("accept works").expect("one waits");
    assert_eq!(served.tcp_notsent_lowat().expect("TCP"), UNSENT_BYTES);
    let piece = vec![0; 32 * 1024];
    let mut sent = 0;
    let error = loop {
        match served.write(&piece) {
            Ok(bytes) => sent += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    // The receiver's own buffer comes on top, and it does not grow for who reads nothing.
    assert!(sent < 1 << 20, "the kernels took {sent} bytes");
    drop(client);
    assert!(
        bound_unsent(
            socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)
                .expect("a socket")
        )
        .is_err()
    );
}

#[m0_spec::row(U28, U3)]
#[test]
fn a_taken_connection_is_nonblocking_and_closed_on_exec() {
    let (_client, served) = pair();
    let status = OFlag::from_bits_retain(fcntl(&served, FcntlArg::F_GETFL).expect("open"));
    assert!(status.contains(OFlag::O_NONBLOCK), "{status:?}");
    assert_eq!(
        fcntl(&served, FcntlArg::F_GETFD).expect("open"),
        libc::FD_CLOEXEC
    );
    let error = (&served).read(&mut [0; 1]).expect_err("nothing was sent");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[m0_spec::row(U30)]
#[test]
fn options_are_set_on_the_connection() {
    let (_client, served) = pair();
    set_nodelay(&served).expect("TCP");
    set_user_timeout(&served, Duration::from_millis(1500)).expect("TCP");
    assert!(served.tcp_nodelay().expect("TCP"));
    assert_eq!(
        served.tcp_user_timeout().expect("TCP"),
        Some(Duration::from_millis(1500))
    );
    let (end, _other) = std::os::unix::net::UnixStream::pair().expect("descriptors are free");
    assert!(
        set_nodelay(end.as_fd()).is_err(),
        "a Unix socket has no such option"
    );
}

#[m0_spec::row(U30)]
#[test]
fn an_aborted_connection_is_reset_even_with_bytes_unread() {
    let (mut client, served) = pair();
    (&served).write_all(b"never read").expect("room");
    reset_on_close(&served).expect("open");
    drop(served);
    let mut all = Vec::new();
    let error = client.read_to_end(&mut all).expect_err("the reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[m0_spec::row(U30)]
#[test]
fn after_the_write_side_is_shut_the_peer_reads_the_end_and_may_still_write() {
    let (mut client, served) = pair();
    (&served).write_all(b"last").expect("room");
    shutdown_write(&served).expect("connected");
    let mut all = String::new();
    client.read_to_string(&mut all).expect("an orderly end");
    assert_eq!(all, "last");
    client
        .write_all(b"thanks")
        .expect("the other direction is open");
    assert!(wait_readable(&served, Some(PATIENCE)).expect("ppoll works"));
    let mut thanks = [0; 6];
    (&served)
        .read_exact(&mut thanks)
        .expect("it was sent whole");
    assert_eq!(&thanks, b"thanks");
}

#[m0_spec::row(U22)]
#[test]
fn errors_of_accept_are_told_apart() {
    let of = |errno| accept_error(&Error::from_raw_os_error(errno));
    for errno in [
        libc::ECONNABORTED,
        libc::EPROTO,
        libc::EINTR,
        libc::EAGAIN,
        libc::EPERM,
        libc::ENETDOWN,
        libc::ENOPROTOOPT,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::EHOSTUNREACH,
        libc::EOPNOTSUPP,
        libc::ENETUNREACH,
        libc::ETIMEDOUT,
    ] {
        assert_eq!(of(errno), AcceptError::Retry, "{errno}");
    }
    for errno in [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM] {
        assert_eq!(of(errno), AcceptError::Starved, "{errno}");
    }
    for errno in [libc::EBADF, libc::EINVAL, libc::ENOTSOCK, libc::EFAULT] {
        assert_eq!(of(errno), AcceptError::Fatal, "{errno}");
    }
    assert_eq!(
        accept_error(&Error::other("not of the kernel")),
        AcceptError::Fatal
    );
}

#[m0_spec::row(U22, U28)]
#[test]
fn without_a_free_descriptor_accept_starves_and_the_connection_waits() {
    let lines = Actor::lines(&["starve"]);
    assert_eq!(lines, ["Ok(false)", "Starved Some(24)", "Ok(true)"]);
}

#[m0_spec::row(U22)]
#[test]
fn what_does_not_listen_is_a_broken_listener() {
    let (_client, served) = pair();
    let error = accept(&served).expect_err("a connection gives none");
    assert_eq!(accept_error(&error), AcceptError::Fatal, "{error}");
}

#[m0_spec::row(U34)]
#[test]
fn unacknowledged_bytes_fall_as_the_peer_reads() {
    let (mut client, served) = pair();
    assert_eq!(unacknowledged_bytes(&served).expect("TCP"), 0);
    // More than both buffers hold: what the peer's window has no room for stays here.
    let piece = vec![b'x'; 1 << 16];
    let mut sent = 0;
    loop {
        match (&served).write(&piece) {
            Ok(bytes) => sent += bytes,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                break;
            }
        }
    }
    let full = unacknowledged_bytes(&served).expect("TCP");
    // A buffer that takes no more holds at least what the smallest one does (tcp(7), tcp_wmem).
    assert!(full >= 4096 && full <= sent, "{full} of {sent}");
    let mut read = vec![0; sent];
    client.read_exact(&mut read).expect("all that was sent");
    // The last acknowledgement may be on its way: it is waited for, not timed.
    let waited = std::time::Instant::now();
    while unacknowledged_bytes(&served).expect("TCP") > 0 {
        assert!(waited.elapsed() < PATIENCE, "never acknowledged");
        std::thread::yield_now();
    }
}
