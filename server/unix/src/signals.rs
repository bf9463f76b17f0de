//! Signals as values that are read, never as handlers that interrupt.
//!
//! Owns the signal mask, dispositions, the descriptor that signals are read from, and sending.
//! Refuses to know what a signal means to the server.
//! Invariant: no code of ours ever runs inside a signal handler.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal as nix_signal;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow};

use crate::Pid;
use crate::failed::During;

/// A signal by number, real-time signals included.
///
/// Not nix's type of that name: that one has no real-time signals, and a child can be killed by one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signal(i32);

/// Associated constants for the named signals, and the table of their names.
macro_rules! named_signals {
    ($($name:ident),* $(,)?) => {
        impl Signal {
            $(
                #[doc = concat!("`", stringify!($name), "` (`signal(7)`).")]
                pub const $name: Signal = Signal(nix_signal::Signal::$name as i32);
            )*
        }
        const NAMED: &[(Signal, &str)] = &[$((Signal::$name, stringify!($name))),*];
    };
}

named_signals!(
    SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV,
    SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGURG, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGSYS,
);

impl Signal {
    /// The lowest and highest number a signal can have.
    const RANGE: std::ops::RangeInclusive<i32> = 1..=64;

    /// The signal with this number, if there can be one (1..=64).
    pub fn from_number(number: i32) -> Option<Signal> {
        Signal::RANGE.contains(&number).then_some(Signal(number))
    }

    /// Its number, 1..=64, as `kill -l` counts.
    pub fn number(self) -> i32 {
        self.0
    }

    /// From a wait status, which holds seven bits of signal.
    pub(crate) fn from_wait_status(number: i32) -> Signal {
        Signal(number)
    }

    /// As nix names it.
    pub(crate) fn named(self) -> io::Result<nix_signal::Signal> {
        nix_signal::Signal::try_from(self.0).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} cannot be used here", name(self)),
            )
        })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(*self))
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(*self))
    }
}

/// The name of a signal: `SIGTERM`; `SIGRTMIN+3` as glibc counts real-time signals; `SIG?` for no signal.
pub fn name(signal: Signal) -> &'static str {
    if let Some((_, name)) = NAMED.iter().find(|(named, _)| *named == signal) {
        return name;
    }
    #[cfg(target_os = "linux")]
    match signal.0 {
        16 => return "SIGSTKFLT",
        30 => return "SIGPWR",
        32 => return "SIGCANCEL",
        33 => return "SIGSETXID",
        34..=64 => return REAL_TIME[(signal.0 - 34) as usize],
        _ => {}
    }
    "SIG?"
}

/// Names of the signals 34 to 64, counted from the lower end.
#[cfg(target_os = "linux")]
const REAL_TIME: [&str; 31] = [
    "SIGRTMIN",
    "SIGRTMIN+1",
    "SIGRTMIN+2",
    "SIGRTMIN+3",
    "SIGRTMIN+4",
    "SIGRTMIN+5",
    "SIGRTMIN+6",
    "SIGRTMIN+7",
    "SIGRTMIN+8",
    "SIGRTMIN+9",
    "SIGRTMIN+10",
    "SIGRTMIN+11",
    "SIGRTMIN+12",
    "SIGRTMIN+13",
    "SIGRTMIN+14",
    "SIGRTMIN+15",
    "SIGRTMIN+16",
    "SIGRTMIN+17",
    "SIGRTMIN+18",
    "SIGRTMIN+19",
    "SIGRTMIN+20",
    "SIGRTMIN+21",
    "SIGRTMIN+22",
    "SIGRTMIN+23",
    "SIGRTMIN+24",
    "SIGRTMIN+25",
    "SIGRTMIN+26",
    "SIGRTMIN+27",
    "SIGRTMIN+28",
    "SIGRTMIN+29",
    "SIGRTMAX",
];

/// The signals whose inherited disposition is thrown away.
const RESET: [nix_signal::Signal; 10] = [
    nix_signal::SIGTERM,
    nix_signal::SIGINT,
    nix_signal::SIGQUIT,
    nix_signal::SIGCHLD,
    nix_signal::SIGUSR1,
    nix_signal::SIGUSR2,
    nix_signal::SIGALRM,
    nix_signal::SIGCONT,
    nix_signal::SIGXCPU,
    nix_signal::SIGHUP,
];

/// Undoes what the process that ran us left behind: an empty signal mask, and default dispositions for SIGTERM,
/// SIGINT, SIGQUIT, SIGCHLD, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGXCPU and SIGHUP.
///
/// Two exceptions. SIGPIPE is ignored, so that writing to a closed pipe is an error and not the end. SIGHUP stays
/// ignored where it was inherited ignored: that is how `nohup(1)` asks to survive the terminal.
///
/// Call it first thing, with one thread: it changes the mask of the calling thread, which later threads inherit.
/// An inherited ignored SIGCHLD would make the kernel reap children itself, with their exit codes lost.
///
/// # Errors
/// None that the manual pages leave possible (`sigaction(2)`, `sigprocmask(2)`).
pub fn reset_inherited() -> io::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    for signal in RESET {
        let before = set_action(signal, &default)?;
        if signal == nix_signal::SIGHUP && matches!(before.handler(), SigHandler::SigIgn) {
            set_action(signal, &ignore)?;
        }
    }
    set_action(nix_signal::SIGPIPE, &ignore)?;
    unblock_all()
}

/// `sigaction(2)` with "default" or "ignore", never with a function.
fn set_action(signal: nix_signal::Signal, action: &SigAction) -> io::Result<SigAction> {
    debug_assert!(matches!(
        action.handler(),
        SigHandler::SigDfl | SigHandler::SigIgn
    ));
    // SAFETY: sigaction's preconditions concern the handler: it must be async-signal-safe and stay callable. Both
    // callers' actions are SIG_DFL or SIG_IGN (built in `reset_inherited`, asserted above): no function is installed.
    // The previous action is only compared, never called.
    unsafe { nix_signal::sigaction(signal, action) }.during("sigaction")
}

/// Holds these signals back from the calling thread, and from threads and children it makes from now on.
///
/// Threads inherit the mask of the thread that starts them: block before starting any, so that no thread is left
/// that a signal could be delivered to instead of waiting for [`SignalFd`].
///
/// # Errors
/// `InvalidInput` for a real-time signal.
pub fn block(signals: &[Signal]) -> io::Result<()> {
    let set = set_of(signals)?;
    nix_signal::pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&set), None).during("sigmask")
}

/// Empties the signal mask of the calling thread; what was pending is delivered before this returns.
///
/// # Errors
/// None that the manual page leaves possible (`pthread_sigmask(3)`).
pub fn unblock_all() -> io::Result<()> {
    nix_signal::pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
        .during("sigmask")
}

fn set_of(signals: &[Signal]) -> io::Result<SigSet> {
    let mut set = SigSet::empty();
    for signal in signals {
        set.add(signal.named()?);
    }
    Ok(set)
}

/// A signal that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Which signal.
    pub signal: Signal,
    /// Who sent it: the sender's pid for `kill(2)`, the child's for SIGCHLD, 0 when the kernel itself sent it (a key
    /// on the terminal) or the sender lives outside this pid namespace.
    pub sender: Pid,
}

/// A descriptor that becomes readable when one of its signals is pending (`signalfd(2)`).
///
/// The signals must be blocked ([`block`]) in every thread, else they are delivered instead of read. Any thread may
/// read; a process-wide signal goes to whoever reads first. A child by fork that inherits the descriptor reads its
/// *own* signals through it, yet a poll made before the fork watches the *parent's*: make a new one in the child.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct SignalFd(nix::sys::signalfd::SignalFd);

#[cfg(target_os = "linux")]
impl SignalFd {
    /// A descriptor for these signals: nonblocking, closed on exec.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`; `InvalidInput` for a real-time signal.
    pub fn new(signals: &[Signal]) -> io::Result<SignalFd> {
        use nix::sys::signalfd::{SfdFlags, SignalFd as Inner};
        let set = set_of(signals)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(SignalFd(Inner::with_flags(&set, flags).during("signalfd")?))
    }

    /// The next pending signal, or `None` when there is none now. Equal signals pending at once count as one.
    ///
    /// # Errors
    /// None that the manual page leaves possible for a descriptor that is open.
    pub fn read(&self) -> io::Result<Option<Received>> {
        Ok(self.0.read_signal()?.map(|info| Received {
            signal: Signal(info.ssi_signo.cast_signed()),
            sender: Pid::from_raw(info.ssi_pid.cast_signed()),
        }))
    }
}

#[cfg(target_os = "linux")]
impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Why a signal was not sent.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    /// No process has this pid (any more).
    #[error("no process {0}")]
    Gone(Pid),
    /// Not one process: 0 and negative pids name whole groups, and -1 everyone.
    #[error("{0} does not name one process")]
    NotOne(Pid),
    /// The kernel refused (`EPERM`), or the signal cannot be sent from here.
    #[error("cannot send {signal} to process {pid}")]
    Refused {
        /// To whom.
        pid: Pid,
        /// What.
        signal: Signal,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

/// Sends one signal to one process (`kill(2)`).
///
/// A child that has ended but was not reaped still takes signals without effect, so a parent that has not seen
/// [`crate::reap::next_change`] report the end cannot hit a stranger who got the same pid.
///
/// # Errors
/// [`KillError::Gone`] where there is no such process, [`KillError::NotOne`] for a pid below 1.
pub fn kill(pid: Pid, signal: Signal) -> Result<(), KillError> {
    if pid.as_raw() < 1 {
        return Err(KillError::NotOne(pid));
    }
    let refused = |source| KillError::Refused {
        pid,
        signal,
        source,
    };
    let named = signal.named().map_err(refused)?;
    match nix_signal::kill(pid, named) {
        Ok(()) => Ok(()),
        Err(nix::errno::Errno::ESRCH) => Err(KillError::Gone(pid)),
        Err(errno) => Err(refused(errno.into())),
    }
}
