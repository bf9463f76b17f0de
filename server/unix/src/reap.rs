//! What happened to the children.
//!
//! Owns `waitpid(2)` for every child of this process, known or inherited (as PID 1 or subreaper).
//! Refuses to know which child is a worker.
//! Invariant: it never waits; a change is reported once and no exit is lost, whatever signal ended the child.

use std::io;

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use crate::{Pid, Signal};

/// One change of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The child. After [`What::Exited`] and [`What::Signaled`] the kernel may give this pid to another process.
    pub pid: Pid,
    /// What it did.
    pub what: What,
}

/// What a child did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It left with this code, 0..=255.
    Exited(i32),
    /// A signal ended it.
    Signaled {
        /// That signal.
        signal: Signal,
        /// Whether the kernel wrote a core.
        core: bool,
    },
    /// A signal stopped it; it still exists.
    Stopped(Signal),
    /// SIGCONT set it going again.
    Continued,
}

/// The next change that a child has gone through and that nobody was told of; `None` when there is none now.
///
/// Call it until `None` after each SIGCHLD: several changes may stand behind one signal. Not for a process whose own
/// code waits for children of its own: it would lose their exit codes to this call.
///
/// # Errors
/// None that Linux documents beyond `EINTR` (retried) and `ECHILD` (`None`).
pub fn next_change() -> io::Result<Option<Change>> {
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
    loop {
        let (pid, status) = match wait(options) {
            Ok(Some(change)) => change,
            Ok(None) | Err(Errno::CHILD) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let what = if let Some(code) = status.exit_status() {
            What::Exited(code)
        } else if let Some(number) = status.terminating_signal() {
            What::Signaled {
                signal: Signal::from_wait_status(number),
                core: status.as_raw() & WCOREFLAG != 0,
            }
        } else if let Some(number) = status.stopping_signal() {
            What::Stopped(Signal::from_wait_status(number))
        } else {
            What::Continued
        };
        return Ok(Some(Change {
            pid: Pid::from_raw(pid.as_raw_nonzero().get()),
            what,
        }));
    }
}

/// The bit of a wait status that says "core dumped" (`WCOREDUMP`, the same on every Unix in use).
const WCOREFLAG: i32 = 0x80;
