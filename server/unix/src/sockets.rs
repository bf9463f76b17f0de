//! Listening sockets and the connections they give.
//!
//! Owns how a listener is made, how one connection is taken from it, and the options of a connection. Refuses to know
//! HTTP and when to accept.
//! Invariant: nothing here blocks, and every socket is closed on exec.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::{SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::SocketAddrAny;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::failed::During;

/// A nonblocking TCP listener at `addr`; port 0 lets the kernel choose one.
///
/// `SO_REUSEADDR` is set, so a restart does not wait for old connections in TIME_WAIT. `SO_REUSEPORT` is not: it would let
/// a second host bind the same port in silence, and connections queued at a socket die with its process. `backlog` is
/// cut by the kernel to `net.core.somaxconn` (`listen(2)`).
///
/// # Errors
/// `AddrInUse`, `AddrNotAvailable`, `PermissionDenied` (a port below 1024).
pub fn listen_tcp(addr: SocketAddr, backlog: i32) -> io::Result<Socket> {
    let socket = nonblocking(Domain::for_address(addr))?;
    listen_at(socket, addr, backlog)
}

/// The same at an IPv6 address, which leaves IPv4 to others (`IPV6_V6ONLY`, `ipv6(7)`): `[::]` else takes the port of
/// every IPv4 address too.
///
/// # Errors
/// Those of [`listen_tcp`].
pub fn listen_tcp6_only(addr: SocketAddrV6, backlog: i32) -> io::Result<Socket> {
    let socket = nonblocking(Domain::IPV6)?;
    socket.set_only_v6(true).during("setsockopt(IPV6_V6ONLY)")?;
    listen_at(socket, addr.into(), backlog)
}

fn listen_at(socket: Socket, addr: SocketAddr, backlog: i32) -> io::Result<Socket> {
    socket
        .set_reuse_address(true)
        .during("setsockopt(SO_REUSEADDR)")?;
    socket.bind(&addr.into()).during("bind")?;
    socket.listen(backlog).during("listen")?;
    Ok(socket)
}

/// How long another host that starts in the same directory is waited for.
const LOCK_PAUSE: Duration = Duration::from_millis(10);
const LOCK_TRIES: u32 = 100;

/// A nonblocking Unix stream listener at `path`.
///
/// A socket file left behind by a process that is gone is replaced; one at which somebody listens is not taken over, and
/// nothing that is not a socket is ever removed. Hosts that start at once in one directory take turns (a lock on the
/// directory), so two cannot both find the same stale file. The file stays when the socket is closed.
///
/// # Errors
/// `AddrInUse` when somebody listens there, `AlreadyExists` when something else is there, `TimedOut` when another host
/// holds the directory's lock for 1 s, `InvalidInput` for a path longer than a socket address holds (107 bytes).
pub fn listen_unix(path: impl AsRef<Path>, backlog: i32) -> io::Result<Socket> {
    let path = path.as_ref();
    let address = SockAddr::unix(path).during("socket address")?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let directory = File::open(directory).during("open the socket's directory")?;
    lock(&directory)?;
    remove_stale(path, &address)?;
    let socket = nonblocking(Domain::UNIX)?;
    socket.bind(&address).during("bind")?;
    socket.listen(backlog).during("listen")?;
    Ok(socket)
}

/// A stream socket, nonblocking and closed on exec.
fn nonblocking(domain: Domain) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::STREAM, None).during("socket")?;
    socket.set_nonblocking(true).during("fcntl(O_NONBLOCK)")?;
    Ok(socket)
}

fn lock(directory: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match directory.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "the directory of the socket is locked by another process",
    ))
}

/// Removes the socket file at `path` if nobody listens there.
fn remove_stale(path: &Path, address: &SockAddr) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !kind.is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something that is no socket is at this path",
        ));
    }
    // Nonblocking: a live listener whose queue is full answers EAGAIN instead of holding us.
    let probe = nonblocking(Domain::UNIX)?;
    match probe.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens at this path",
        )),
    }
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// An address on the network.
    Tcp(SocketAddr),
    /// A process on this machine, over a Unix socket.
    Unix,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Tcp(address) => address.fmt(f),
            Peer::Unix => f.write_str("unix"),
        }
    }
}

/// An accept that signals interrupt more often than this gives the error to the caller.
const INTERRUPTIONS: u32 = 16;

/// Takes one connection, nonblocking and closed on exec (`accept4(2)`); `None` when none waits.
///
/// # Errors
/// Everything else, for [`accept_error`] to class.
pub fn accept(listener: &Socket) -> io::Result<Option<(Socket, Peer)>> {
    let mut interruptions = 0;
    loop {
        match take(listener) {
            Ok((connection, address)) => {
                let peer = address
                    .and_then(|address| SocketAddr::try_from(address).ok())
                    .map_or(Peer::Unix, Peer::Tcp);
                return Ok(Some((Socket::from(connection), peer)));
            }
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) if interruptions < INTERRUPTIONS => interruptions += 1,
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(target_os = "linux")]
fn take(listener: &Socket) -> rustix::io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    use rustix::net::{SocketFlags, acceptfrom_with};
    acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
}

#[cfg(not(target_os = "linux"))]
fn take(listener: &Socket) -> rustix::io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    let (connection, address) = rustix::net::acceptfrom(listener)?;
    rustix::io::fcntl_setfd(&connection, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&connection, true)?;
    Ok((connection, address))
}

/// What an error of [`accept`] asks of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptError {
    /// It concerned one connection, which is gone; the next may be fine. Try again at once, within the batch.
    Retry,
    /// The process or the machine lacks descriptors or memory. The connection still waits: trying at once would spin.
    Starved,
    /// The listener itself is unusable.
    Fatal,
}

/// Classes an error of [`accept`].
///
/// Linux hands errors that are pending on the new connection to accept; the manual page asks to treat those of TCP/IP
/// like "try again" (`accept(2)`, "Error handling").
pub fn accept_error(error: &io::Error) -> AcceptError {
    match Errno::from_io_error(error) {
        Some(
            Errno::CONNABORTED
            | Errno::INTR
            | Errno::AGAIN
            | Errno::PROTO
            | Errno::PERM
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH
            | Errno::TIMEDOUT
            | Errno::CONNRESET,
        ) => AcceptError::Retry,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => AcceptError::Starved,
        #[cfg(target_os = "linux")]
        Some(Errno::NONET) => AcceptError::Retry,
        _ => AcceptError::Fatal,
    }
}

/// Bytes sent on a TCP connection that its peer has not acknowledged (`SIOCOUTQ`, `tcp(7)`).
///
/// # Errors
/// `EINVAL` on a listener; `EOPNOTSUPP` or `ENOTTY` where the system has no such request.
pub fn unacknowledged_bytes(socket: impl AsFd) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    nix::ioctl_read_bad!(queued, nix::libc::TIOCOUTQ, nix::libc::c_int);
    let mut bytes: nix::libc::c_int = 0;
    // SAFETY: the descriptor is open, because it is borrowed here; the request writes one int to the address, which
    // is that of a live local variable of just that type.
    unsafe { queued(socket.as_fd().as_raw_fd(), &raw mut bytes) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Sends small writes at once (`TCP_NODELAY`, `tcp(7)`).
///
/// # Errors
/// `EOPNOTSUPP` on a Unix socket.
pub fn set_nodelay(socket: impl AsFd) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_nodelay(true)
}

/// Bytes of a TCP connection that the kernel holds unsent before it takes no more (`TCP_NOTSENT_LOWAT`, `tcp(7)`). Without
/// it that is up to the most of `net.ipv4.tcp_wmem`, 4 MiB, for a peer that reads nothing.
pub const UNSENT_BYTES: u32 = 128 * 1024;

/// Has the kernel hold at most [`UNSENT_BYTES`] unsent for each connection, beside what is under way to its peer. What is
/// set at a listener holds for the connections that come from it.
///
/// # Errors
/// `EOPNOTSUPP` on a Unix socket. Does nothing where the system has no such option.
pub fn bound_unsent(listener: impl AsFd) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        SockRef::from(&listener).set_tcp_notsent_lowat(UNSENT_BYTES)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = listener;
        Ok(())
    }
}

/// Drops the connection when sent data stays unacknowledged for so long (`TCP_USER_TIMEOUT`, whole milliseconds).
///
/// # Errors
/// `EOPNOTSUPP` on a Unix socket. Does nothing where the system has no such option.
pub fn set_user_timeout(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        SockRef::from(&socket).set_tcp_user_timeout(Some(timeout))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (socket, timeout);
        Ok(())
    }
}

/// Makes the coming close abort the connection: unsent data is dropped and the peer gets a reset (`SO_LINGER` of 0).
///
/// # Errors
/// None for a socket that is open.
pub fn reset_on_close(socket: impl AsFd) -> io::Result<()> {
    SockRef::from(&socket).set_linger(Some(Duration::ZERO))
}

/// Says that nothing more will be sent; reading goes on (`shutdown(2)`, `SHUT_WR`).
///
/// # Errors
/// `NotConnected` when the peer is gone already.
pub fn shutdown_write(socket: impl AsFd) -> io::Result<()> {
    SockRef::from(&socket).shutdown(std::net::Shutdown::Write)
}
