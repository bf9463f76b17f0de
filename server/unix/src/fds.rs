//! Descriptors: the standard three, pipes, doorbells, and those handed to us across exec.
//!
//! Owns how descriptors are made (close-on-exec, nonblocking) and how they cross an exec on purpose.
//! Refuses to know what a byte or a ring means.
//! Invariant: every descriptor made here is closed on exec until [`keep_on_exec`] says otherwise, and none is 0, 1 or 2
//! once [`ensure_standard`] has run.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, read, write};

use crate::failed::During;

/// Opens `/dev/null` on each of the descriptors 0, 1 and 2 that is closed.
///
/// Without it the next socket would become "standard error" and a log line would go to a client. Call it before
/// anything else is opened. (std does the same before `main`; a host must not depend on having been started by it.)
///
/// # Errors
/// Whatever opening `/dev/null` gives.
pub fn ensure_standard() -> io::Result<()> {
    type Dup2 = fn(&std::fs::File) -> nix::Result<()>;
    let standard: [(bool, Dup2); 3] = [
        (is_open(io::stdin().as_fd())?, |null| dup2_stdin(null)),
        (is_open(io::stdout().as_fd())?, |null| dup2_stdout(null)),
        (is_open(io::stderr().as_fd())?, |null| dup2_stderr(null)),
    ];
    if standard.iter().all(|(open, _)| *open) {
        return Ok(());
    }
    let null = {
        // This one may itself get one of the three numbers, closed on exec; its copy above them outlives it.
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")
            .during("open /dev/null")?;
        std::fs::File::from(copy_above_standard(opened.as_fd())?)
    };
    for (open, duplicate) in standard {
        if !open {
            duplicate(&null).during("dup2")?;
        }
    }
    Ok(())
}

/// A copy of `fd`, closed on exec, with a number of 3 or more.
fn copy_above_standard(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let number = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(3)).during("fcntl(F_DUPFD_CLOEXEC)")?;
    // SAFETY: from_raw_fd needs an open descriptor that nobody else owns: fcntl(F_DUPFD_CLOEXEC) has just made this
    // number, its success is checked above, and the number was given to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Whether a descriptor is open.
fn is_open(fd: BorrowedFd<'_>) -> io::Result<bool> {
    match fcntl(fd, FcntlArg::F_GETFD) {
        Ok(_) => Ok(true),
        Err(Errno::EBADF) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// A pipe: the end to read, the end to write. Both closed on exec and nonblocking (`pipe2(2)`).
///
/// # Errors
/// `EMFILE`, `ENFILE`.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(target_os = "linux")]
    {
        nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).during("pipe2")
    }
    #[cfg(not(target_os = "linux"))]
    {
        let (reader, writer) = nix::unistd::pipe().during("pipe")?;
        for end in [&reader, &writer] {
            close_on_exec(end)?;
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).during("fcntl(F_SETFL)")?;
        }
        Ok((reader, writer))
    }
}

/// What one read of one byte gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRead {
    /// A byte.
    Byte(u8),
    /// Nothing now; a writer still exists.
    Nothing,
    /// Nothing ever: every writer is gone.
    Closed,
}

/// Reads one byte from a nonblocking pipe.
///
/// # Errors
/// Whatever `read(2)` gives beyond `EINTR` (retried) and `EAGAIN` ([`ByteRead::Nothing`]).
pub fn read_byte(fd: impl AsFd) -> io::Result<ByteRead> {
    let mut byte = [0_u8; 1];
    loop {
        return match read(fd.as_fd(), &mut byte) {
            Ok(0) => Ok(ByteRead::Closed),
            Ok(_) => Ok(ByteRead::Byte(byte[0])),
            Err(Errno::EAGAIN) => Ok(ByteRead::Nothing),
            Err(Errno::EINTR) => continue,
            Err(errno) => Err(errno.into()),
        };
    }
}

/// Writes one byte to a nonblocking pipe.
///
/// # Errors
/// `WouldBlock` when the pipe is full, `BrokenPipe` when every reader is gone.
pub fn write_byte(fd: impl AsFd, byte: u8) -> io::Result<()> {
    write_all_nonblocking(fd, &[byte])
}

/// The longest write to a pipe that is never mixed with another writer's (`PIPE_BUF`, POSIX's least value is 512).
pub const PIPE_BUF: usize = nix::libc::PIPE_BUF;

/// Writes all of `bytes` to a nonblocking pipe, or nothing.
///
/// # Errors
/// `WouldBlock` when the pipe has no room for all of it, `BrokenPipe` when every reader is gone, `InvalidInput` above
/// [`PIPE_BUF`] bytes (the kernel then promises no all-or-nothing, `pipe(7)`).
pub fn write_all_nonblocking(fd: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() > PIPE_BUF {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "more bytes than one pipe write keeps together",
        ));
    }
    loop {
        return match write(fd.as_fd(), bytes) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::EINTR) => continue,
            Err(errno) => Err(errno.into()),
        };
    }
}

/// Numbers that [`keep_on_exec`] opened to the next program: they look inherited, and this process owns them.
static KEPT: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

/// Lets a descriptor survive an exec (clears close-on-exec) and returns its number, which the next program needs.
///
/// # Errors
/// None for a descriptor that is open.
pub fn keep_on_exec(fd: impl AsFd) -> io::Result<RawFd> {
    let fd = fd.as_fd();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty())).during("fcntl(F_SETFD)")?;
    kept.insert(fd.as_raw_fd());
    Ok(fd.as_raw_fd())
}

/// Takes ownership of a descriptor that the program before this one left open for us, and sets it to close on exec.
///
/// The number comes from outside (an environment variable), so it is checked: 3 or more, open, and not closed on exec.
/// The last is what tells an inherited descriptor from one that this process opened: std and this crate open every
/// descriptor closed on exec, and those that [`keep_on_exec`] changed are remembered. A number is given once.
///
/// # Errors
/// `InvalidInput` for 0, 1, 2 and negative numbers, `EBADF` when it is closed, `InvalidData` when this process opened
/// it or has taken it before.
pub fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    take_checked(number, |_| Ok(()))
}

/// As [`take_inherited`], if `check` agrees; else it stays where it is.
fn take_checked(
    number: RawFd,
    check: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    if number < FIRST_INHERITED {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no number of an inherited descriptor",
        ));
    }
    // Held until close-on-exec is set: of two threads that take one number, the second finds it set.
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: borrow_raw needs a number that is not -1 (it is 3 or more, checked above) and that stays open while
    // borrowed: where it is inherited, nobody in this process owns it, so nobody closes it; where it is not, the borrow
    // ends at the flag checked below, and until then only reads flags, which answers EBADF for a closed number.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl(borrowed, FcntlArg::F_GETFD).during("fcntl(F_GETFD)")?;
    if FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC) || kept.contains(&number) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "opened by this process, not inherited",
        ));
    }
    check(borrowed)?;
    close_on_exec(borrowed)?;
    // SAFETY: from_raw_fd needs an open descriptor that nobody else owns.
    // - Open: fcntl has answered for this number, above.
    // - Nobody else: close-on-exec was clear and the number is not in KEPT, so no code of std or this crate opened it in
    //   this process: it came over exec and waits for an owner. It is given once: close-on-exec is set now, and the lock
    //   is held from the look at it until here.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Descriptors that a program hands to the next one come after the standard three (`sd_listen_fds(3)`).
const FIRST_INHERITED: RawFd = 3;

/// The opposite of [`keep_on_exec`].
pub(crate) fn close_on_exec(fd: impl AsFd) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).during("fcntl(F_SETFD)")?;
    Ok(())
}

/// Something to wake another process or thread by: rung any number of times, answered once (`eventfd(2)`).
///
/// Copies ([`Doorbell::try_clone`]) and children by fork share one bell. Rings before an answer add up.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Doorbell(OwnedFd);

#[cfg(target_os = "linux")]
impl Doorbell {
    /// A bell that nobody has rung: nonblocking, closed on exec.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new() -> io::Result<Doorbell> {
        use nix::sys::eventfd::{EfdFlags, EventFd};
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .during("eventfd")?;
        Ok(Doorbell(OwnedFd::from(event)))
    }

    /// Rings. `false` when the bell was rung 2^64 - 2 times unanswered and takes no more: it is ringing all the same.
    ///
    /// # Errors
    /// None that the manual page leaves possible for a descriptor that is open.
    pub fn ring(&self) -> io::Result<bool> {
        loop {
            return match write(&self.0, &1_u64.to_ne_bytes()) {
                Ok(_) => Ok(true),
                Err(Errno::EAGAIN) => Ok(false),
                Err(Errno::EINTR) => continue,
                Err(errno) => Err(errno.into()),
            };
        }
    }

    /// How many rings came since the last answer, and silences the bell; 0 when nobody rang.
    ///
    /// # Errors
    /// None that the manual page leaves possible for a descriptor that is open.
    pub fn answer(&self) -> io::Result<u64> {
        let mut count = [0_u8; 8];
        loop {
            return match read(&self.0, &mut count) {
                Ok(_) => Ok(u64::from_ne_bytes(count)),
                Err(Errno::EAGAIN) => Ok(0),
                Err(Errno::EINTR) => continue,
                Err(errno) => Err(errno.into()),
            };
        }
    }

    /// Another descriptor of the same bell.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn try_clone(&self) -> io::Result<Doorbell> {
        Ok(Doorbell(
            self.0.try_clone().during("fcntl(F_DUPFD_CLOEXEC)")?,
        ))
    }
}

#[cfg(target_os = "linux")]
impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// More than anyone passes; a bound on what an environment variable can make us look at.
const LISTENERS_MOST: RawFd = 64;

/// The listening sockets that a service manager passed to this process (`LISTEN_FDS`, `LISTEN_PID`,
/// `sd_listen_fds(3)`).
///
/// Empty when nothing was passed, or when what was passed is for another pid (a child of the addressed process inherits
/// the variables). Each socket is set to close on exec, and is given once ([`take_inherited`]).
///
/// # Errors
/// `InvalidData` when a variable does not parse, when more than 64 are announced, when one of the descriptors is closed,
/// is not a listening stream socket or was taken before; it names the descriptor.
pub fn inherited_listeners() -> io::Result<Vec<OwnedFd>> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let number = |variable: &str| -> io::Result<Option<i32>> {
        let Some(value) = std::env::var_os(variable) else {
            return Ok(None);
        };
        let parsed = value.to_str().and_then(|text| text.parse().ok());
        parsed
            .map(Some)
            .ok_or_else(|| invalid(format!("{variable}={} is not a number", value.display())))
    };
    let (Some(pid), Some(count)) = (number("LISTEN_PID")?, number("LISTEN_FDS")?) else {
        return Ok(Vec::new());
    };
    if pid != crate::process::pid().as_raw() {
        return Ok(Vec::new());
    }
    if !(0..=LISTENERS_MOST).contains(&count) {
        return Err(invalid(format!(
            "LISTEN_FDS={count} is not within 0..={LISTENERS_MOST}"
        )));
    }
    (FIRST_INHERITED..FIRST_INHERITED + count)
        .map(|fd| {
            take_checked(fd, check_listener)
                .map_err(|why| invalid(format!("inherited descriptor {fd}: {why}")))
        })
        .collect()
}

fn check_listener(fd: BorrowedFd<'_>) -> io::Result<()> {
    let socket = socket2::SockRef::from(&fd);
    if socket.r#type()? == socket2::Type::STREAM && socket.is_listener()? {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not a listening stream socket",
        ))
    }
}

impl std::os::fd::AsRawFd for Doorbell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
