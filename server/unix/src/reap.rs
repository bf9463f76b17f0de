//! What happened to the children.
//!
//! Owns `waitpid(2)` for every child of this process, known or inherited (as PID 1 or subreaper).
//! Refuses to know which child is a worker.
//! Invariant: it never waits; a change is reported once and no exit is lost, whatever signal ended the child.

use std::io;

use nix::libc::{WCOREDUMP, WEXITSTATUS, WIFEXITED, WIFSIGNALED, WIFSTOPPED, WSTOPSIG, WTERMSIG};
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
        let pid = Pid::from_raw(pid.as_raw_nonzero().get());
        return Ok(Some(Change {
            pid,
            what: decode(status.as_raw()),
        }));
    }
}

/// What a wait status says (`waitpid(2)`). rustix's own accessors leave out the core.
fn decode(status: i32) -> What {
    if WIFEXITED(status) {
        What::Exited(WEXITSTATUS(status))
    } else if WIFSIGNALED(status) {
        What::Signaled {
            signal: Signal::from_wait_status(WTERMSIG(status)),
            core: WCOREDUMP(status),
        }
    } else if WIFSTOPPED(status) {
        What::Stopped(Signal::from_wait_status(WSTOPSIG(status)))
    } else {
        What::Continued
    }
}

#[cfg(test)]
mod tests {
    use super::{Signal, What, decode};

    #[m0_spec::row(U4)]
    #[test]
    fn a_wait_status_says_one_thing() {
        // Literal numbers as Linux gives them: code << 8; signal; signal | 0x80 with a core; signal << 8 | 0x7f; 0xffff.
        for (status, what) in [
            (0x0000, What::Exited(0)),
            (0x4e00, What::Exited(78)),
            (0xff00, What::Exited(255)),
            (
                0x0009,
                What::Signaled {
                    signal: Signal::SIGKILL,
                    core: false,
                },
            ),
            (
                0x008b,
                What::Signaled {
                    signal: Signal::SIGSEGV,
                    core: true,
                },
            ),
            (
                0x00a3,
                What::Signaled {
                    signal: Signal::from_wait_status(35),
                    core: true,
                },
            ),
            (0x137f, What::Stopped(Signal::SIGSTOP)),
            (0x167f, What::Stopped(Signal::SIGTTOU)),
            (0xffff, What::Continued),
        ] {
            assert_eq!(decode(status), what, "{status:#06x}");
        }
    }
}
