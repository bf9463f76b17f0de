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
    settled(
        || Ok(std::fs::read_dir("/proc/self/task")?.count()),
        || std::thread::sleep(RECOUNT_PAUSE),
    )
}

/// A count of one as soon as there is one, else the last of `RECOUNTS` counts.
#[cfg(target_os = "linux")]
fn settled(
    mut count: impl FnMut() -> io::Result<usize>,
    mut pause: impl FnMut(),
) -> io::Result<usize> {
    for _ in 1..RECOUNTS {
        if count()? == 1 {
            return Ok(1);
        }
        pause();
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{RECOUNTS, settled};

    /// What is believed when the counts come like this and the last stays, and after how many looks.
    fn believed(counts: &[usize]) -> (usize, u32) {
        let mut looks = 0;
        let count = || {
            let seen = counts[(looks as usize).min(counts.len() - 1)];
            looks += 1;
            Ok(seen)
        };
        let count = settled(count, || {}).expect("no count fails");
        (count, looks)
    }

    #[m0_spec::row(U27, U15)]
    #[test]
    fn a_thread_that_is_about_to_go_is_waited_for_and_one_that_stays_is_counted() {
        assert_eq!(believed(&[1]), (1, 1));
        assert_eq!(believed(&[3, 2, 2, 1]), (1, 4));
        assert_eq!(believed(&[2]), (2, RECOUNTS));
        assert_eq!(believed(&[2, 5]), (5, RECOUNTS));
    }

    #[m0_spec::row(U15)]
    #[test]
    fn a_count_that_fails_is_an_error_and_not_one() {
        let error =
            settled(|| Err(std::io::ErrorKind::NotFound.into()), || {}).expect_err("no /proc");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}
