//! Waiting for several descriptors at once.
//!
//! Owns `epoll(7)` and the wait for one descriptor. Refuses to know what a token means.
//! Invariant: a wait is never shorter than asked for because of rounding, and never an error because a signal came.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::failed::During;

/// How a descriptor is watched for being readable. An error or a hang-up always counts as readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Reported by every wait while it is readable.
    Level,
    /// Reported once each time something new arrives.
    Edge,
    /// As [`Interest::Level`], but of all the pollers that watch it so, the kernel wakes one or a few and not all
    /// (`EPOLLEXCLUSIVE`, `epoll_ctl(2)`).
    ExclusiveLevel,
}

/// A set of watched descriptors.
///
/// A registration belongs to the open file, not to the number: a descriptor that a child inherited keeps it alive
/// after this process closed its own. Make the poller after the fork, and remove before closing.
#[derive(Debug)]
pub struct Poller(OwnedFd);

/// Events taken from the kernel in one wait; what is left over comes with the next.
const BATCH: usize = 64;

impl Poller {
    /// An empty set; its descriptor is closed on exec.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new() -> io::Result<Poller> {
        Ok(Poller(
            epoll::create(CreateFlags::CLOEXEC).during("epoll_create")?,
        ))
    }

    /// Watches `fd`; waits report it as `token`.
    ///
    /// # Errors
    /// `AlreadyExists` when it is watched already, `PermissionDenied` for a regular file, which is never waited for.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let flags = match interest {
            Interest::Level => EventFlags::IN,
            Interest::Edge => EventFlags::IN | EventFlags::ET,
            Interest::ExclusiveLevel => EventFlags::IN | EventFlags::EXCLUSIVE,
        };
        epoll::add(&self.0, fd.as_fd(), EventData::new_u64(token), flags).during("epoll_ctl(ADD)")
    }

    /// Stops watching `fd`.
    ///
    /// # Errors
    /// `NotFound` when it is not watched.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.0, fd.as_fd()).during("epoll_ctl(DEL)")
    }

    /// Waits until something is readable or the time is over, and puts the tokens into `ready` (emptied first).
    ///
    /// `None` waits without end. A timeout is rounded up to whole milliseconds; only zero returns at once. A signal
    /// (or SIGSTOP and SIGCONT, which interrupt this call too) neither shortens nor lengthens the wait.
    ///
    /// # Errors
    /// None that the manual page leaves possible for a poller that is open.
    pub fn wait(&self, timeout: Option<Duration>, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let mut events = [const { MaybeUninit::<Event>::uninit() }; BATCH];
        let bound = Bound::new(timeout);
        loop {
            // rustix passes whole milliseconds to epoll_pwait(2), rounded up, which every kernel knows.
            match epoll::wait(&self.0, &mut events, bound.left().as_ref()) {
                Ok((reported, _)) => {
                    ready.extend(reported.iter().map(|event| event.data.u64()));
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until `fd` is readable (or has failed, or hung up): `true`; or until the time is over: `false`.
///
/// `None` waits without end. A signal handler that ran does not end the wait (`ppoll(2)`).
///
/// # Errors
/// `ENOMEM`.
pub fn wait_readable(fd: impl AsFd, timeout: Option<Duration>) -> io::Result<bool> {
    let fd = fd.as_fd();
    let bound = Bound::new(timeout);
    loop {
        match poll(
            &mut [PollFd::new(&fd, PollFlags::IN)],
            bound.left().as_ref(),
        ) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// How long a wait may take from the moment it was asked for.
struct Bound(Option<(Instant, Duration)>);

impl Bound {
    fn new(timeout: Option<Duration>) -> Bound {
        Bound(timeout.map(|timeout| (Instant::now(), timeout)))
    }

    /// What is left of it, as the kernel takes it; more seconds than it can count mean as many as it can.
    fn left(&self) -> Option<Timespec> {
        let (start, timeout) = self.0?;
        let left = timeout.saturating_sub(start.elapsed());
        Some(Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        })
    }
}
