//! This process: its name, its limits, its end.
//!
//! Owns what a process can ask or set about itself. Refuses to know why it ends or which limit is right.
//! Invariant: nothing here touches another process.

use std::ffi::CString;
use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::failed::During;
use crate::{Pid, Signal};

/// This process's pid. Asked of the kernel each time, so it is right after a fork.
pub fn pid() -> Pid {
    nix::unistd::getpid()
}

/// The pid of the process that made this one, or of the reaper that inherited it (`getppid(2)`).
///
/// 0 when the parent is outside this pid namespace.
pub fn parent_pid() -> Pid {
    nix::unistd::getppid()
}

/// Sets a variable of this process's environment, for the children that it will make.
///
/// # Errors
/// `Unsupported` when other threads run: reading the environment from one of them, which no lock of ours could
/// stop, would race (`environ(7)`, `setenv(3)`: "MT-Unsafe").
pub fn set_variable(name: &str, value: &str) -> io::Result<()> {
    if crate::fork::thread_count()? != 1 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "other threads run and may be reading the environment",
        ));
    }
    // SAFETY: no other thread reads or writes the environment, because there is none: the count above is of this
    // process, and only a thread of this process could start another one.
    unsafe { std::env::set_var(name, value) };
    Ok(())
}

/// Ends the process at once with `code` (0..=255 reach the parent): no destructor, no `atexit` handler, no flush.
///
/// The right end for a forked child, whose copies of buffers and handlers belong to its parent (`_exit(2)`).
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit has no precondition: it takes any int, reads no memory of ours and does not return. Nothing of
    // ours relies on destructors running for soundness.
    unsafe { nix::libc::_exit(code) }
}

/// Ends the process by SIGABRT, with a core where the limits allow one (`abort(3)`).
pub fn abort_now() -> ! {
    std::process::abort()
}

/// Asks the kernel to send `signal` to this process when the thread that made it ends; `None` takes that back.
///
/// The setting is lost in a child by fork and by running a set-user-id program. A parent that died before the call
/// is not noticed: compare [`parent_pid`] afterwards (`PR_SET_PDEATHSIG(2const)`). Does nothing off Linux.
///
/// # Errors
/// `InvalidInput` for a real-time signal; the kernel refuses nothing else.
pub fn set_death_signal(signal: Option<Signal>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let named = signal.map(Signal::named).transpose()?;
        nix::sys::prctl::set_pdeathsig(named).during("prctl(PR_SET_PDEATHSIG)")?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = signal;
    Ok(())
}

/// Makes this process end with its parent: as [`set_death_signal`], and where `parent` was gone before the kernel
/// could be asked, the signal is sent at once.
///
/// `parent` is the pid that the caller's maker had, read before the fork. Does nothing off Linux.
///
/// # Errors
/// As [`set_death_signal`].
///
/// ```no_run
/// use m0_unix::{Signal, fork, process};
/// let supervisor = process::pid();
/// if let Ok(fork::Forked::Child) = fork::fork() {
///     process::die_with(supervisor, Signal::SIGKILL).expect("SIGKILL can be a death signal");
/// }
/// ```
pub fn die_with(parent: Pid, signal: Signal) -> io::Result<()> {
    set_death_signal(Some(signal))?;
    if cfg!(target_os = "linux") && parent_pid() != parent {
        crate::signals::kill(pid(), signal).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Sets the soft limit of open descriptors to `n`; the hard limit stays (`RLIMIT_NOFILE`, `getrlimit(2)`).
///
/// Descriptors already open above the limit stay open.
///
/// # Errors
/// `InvalidInput` when `n` is above the hard limit.
pub fn limit_descriptors(n: u64) -> io::Result<()> {
    let (_, hard) = descriptor_limit()?;
    setrlimit(Resource::RLIMIT_NOFILE, n, hard).during("setrlimit(RLIMIT_NOFILE)")
}

/// The soft and the hard limit of open descriptors.
///
/// # Errors
/// None on a kernel that knows `RLIMIT_NOFILE`.
pub fn descriptor_limit() -> io::Result<(u64, u64)> {
    getrlimit(Resource::RLIMIT_NOFILE).during("getrlimit(RLIMIT_NOFILE)")
}

/// Raises the soft limit of open descriptors to the hard one and returns it.
///
/// # Errors
/// As [`limit_descriptors`].
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = descriptor_limit()?;
    if soft < hard {
        limit_descriptors(hard)?;
    }
    Ok(hard)
}

/// How many descriptors this process has open, not counting the one used to look.
///
/// # Errors
/// Whatever listing `/proc/self/fd` gives, e.g. `EMFILE` when not even one descriptor is free.
pub fn open_descriptors() -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    const LIST: &str = "/proc/self/fd";
    #[cfg(not(target_os = "linux"))]
    const LIST: &str = "/dev/fd";
    Ok(std::fs::read_dir(LIST)
        .during("list descriptors")?
        .count()
        .saturating_sub(1))
}

/// Names the calling thread for `ps`, `top` and cores.
///
/// The kernel keeps 15 bytes: a longer name is cut before the character that does not fit, a NUL ends it
/// (`PR_SET_NAME(2const)`). Called by the main thread it names the process. Does nothing off Linux.
pub fn name_thread(name: &str) {
    const KEPT: usize = 15;
    let shown = name.split('\0').next().unwrap_or_default();
    let cut = (0..=shown.len().min(KEPT))
        .rev()
        .find(|&at| shown.is_char_boundary(at))
        .unwrap_or(0);
    let name = CString::new(&shown[..cut]).expect("the text was cut before its first NUL");
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_name(&name)
        .expect("PR_SET_NAME fails only for an address that cannot be read");
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}
