//! Making a second process out of this one, and only when that is sound.
//!
//! Owns the call to `fork(2)` and the count of threads that decides whether it may happen.
//! Refuses to know what the child is for.
//! Invariant: no child is ever made by a process in which another thread might hold a lock.

use std::io;
#[cfg(target_os = "linux")]
use std::time::Duration;

use nix::unistd::{ForkResult, fork as raw_fork};

use crate::Pid;

/// Which of the two processes returned from [`fork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forked {
    /// The process that called; it holds the new child's pid.
    Parent(Pid),
    /// The new process, with one thread and a copy of everything else.
    Child,
}

/// Why no child was made.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The process has this many threads. A child would inherit their locks without the threads that free them.
    #[error(
        "refuses to fork: the process runs {0} threads, a child would keep their locks for ever"
    )]
    Threads(usize),
    /// The threads could not be counted (no `/proc`?), so it is not known that forking is sound.
    #[error("refuses to fork: cannot count the threads of this process")]
    Count(#[source] io::Error),
    /// The kernel refused (`EAGAIN`: process limit, `ENOMEM`).
    #[error("cannot fork")]
    Fork(#[source] io::Error),
}

/// Makes a child process, after making sure that this process has one thread.
///
/// Buffered output that was not flushed exists twice afterwards; flush before the call. Descriptors, the signal
/// mask and shared mappings are inherited; the death signal and pending signals are not (`fork(2)`).
///
/// # Errors
/// [`ForkError::Threads`] when other threads run, [`ForkError::Count`] when that cannot be told,
/// [`ForkError::Fork`] when the kernel refuses.
///
/// ```no_run
/// use m0_unix::fork::{Forked, fork};
/// match fork() {
///     Ok(Forked::Parent(child)) => println!("made {child}"),
///     Ok(Forked::Child) => m0_unix::process::exit_now(0),
///     Err(refusal) => eprintln!("{refusal}"),
/// }
/// ```
pub fn fork() -> Result<Forked, ForkError> {
    let threads = thread_count().map_err(ForkError::Count)?;
    if threads != 1 {
        return Err(ForkError::Threads(threads));
    }
    // SAFETY: fork's one precondition is that, in a process with several threads, the child calls nothing but
    // async-signal-safe functions until it execs (`fork(2)`, nix's own note). The count above was 1, and a process
    // whose only thread is here cannot start another one between the count and the call.
    match unsafe { raw_fork() } {
        Ok(ForkResult::Parent { child }) => Ok(Forked::Parent(child)),
        Ok(ForkResult::Child) => Ok(Forked::Child),
        Err(errno) => Err(ForkError::Fork(errno.into())),
    }
}

/// How often a count above one is looked at again, and how long apart.
#[cfg(target_os = "linux")]
const RECOUNTS: u32 = 200;
#[cfg(target_os = "linux")]
const RECOUNT_PAUSE: Duration = Duration::from_micros(500);

/// The number of threads of this process, at least 1.
///
/// A thread that was just joined stays listed for some microseconds: the kernel wakes the joiner before it takes the
/// thread off the list. So a count above one is looked at again for up to 100 ms before it is believed (measured:
/// 0.03 ms; longer where the ending thread has lost its processor).
///
/// # Errors
/// Whatever reading `/proc/self/task` gives (`proc_pid_task(5)`), e.g. where `/proc` is not mounted.
#[cfg(target_os = "linux")]
pub fn thread_count() -> io::Result<usize> {
    let count = || -> io::Result<usize> { Ok(std::fs::read_dir("/proc/self/task")?.count()) };
    for _ in 0..RECOUNTS {
        if count()? == 1 {
            return Ok(1);
        }
        std::thread::sleep(RECOUNT_PAUSE);
    }
    count()
}

/// Not counted on this system yet, so no fork is known to be sound.
///
/// # Errors
/// Always `Unsupported`.
#[cfg(not(target_os = "linux"))]
pub fn thread_count() -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
