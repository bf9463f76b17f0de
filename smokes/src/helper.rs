//! What must happen in a process before it becomes the server.
//!
//! The harness has no unsafe code, so nothing can run between fork and exec. Instead the smokes binary
//! is started in this hidden mode, changes itself, and executes the next program of the chain.
//! Invariant: it ends in the next program or in exit 125 with a reason on stderr.

use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::getppid;

use crate::proc;

/// Exit code of a helper that could not do its part.
pub const HELPER_FAILED: u8 = 125;

/// How the server's process is prepared, in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparation {
    /// Die with the process of this pid, which must be our parent.
    pub parent: Option<proc::Pid>,
    /// Become process 1 of a pid namespace of its own.
    pub pid_one: bool,
    /// Block TERM, INT, HUP, CHLD, USR1 and USR2.
    pub block_signals: bool,
    /// Fail unless SIGCHLD is ignored already (the shell before us does it).
    pub require_ignored_child: bool,
    /// Listen at these (`NAME@ADDRESS`, `NAME@unix:PATH`) and hand the sockets over (sd_listen_fds(3)).
    pub listen: Vec<String>,
    /// `LISTEN_FDNAMES`, where it is not to be the names of the above.
    pub names: Option<String>,
}

impl Preparation {
    /// The arguments that ask for this preparation, before the program to execute.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["helper".to_owned()];
        if let Some(parent) = self.parent {
            arguments.push(format!("parent={parent}"));
        }
        for (wanted, word) in [
            (self.pid_one, "pid-one"),
            (self.block_signals, "block-signals"),
            (self.require_ignored_child, "require-ignored-child"),
        ] {
            if wanted {
                arguments.push(word.to_owned());
            }
        }
        arguments.extend(self.listen.iter().map(|each| format!("listen={each}")));
        arguments.extend(self.names.iter().map(|names| format!("names={names}")));
        arguments.push("--".to_owned());
        arguments
    }

    fn parse(arguments: &[String]) -> Result<(Self, &[String])> {
        let end = arguments
            .iter()
            .position(|word| word == "--")
            .context("no -- in arguments")?;
        let mut preparation = Self::default();
        for word in &arguments[..end] {
            match word.split_once('=') {
                Some(("parent", pid)) => preparation.parent = Some(pid.parse()?),
                Some(("listen", each)) => preparation.listen.push(each.to_owned()),
                Some(("names", names)) => preparation.names = Some(names.to_owned()),
                None if word == "pid-one" => preparation.pid_one = true,
                None if word == "block-signals" => preparation.block_signals = true,
                None if word == "require-ignored-child" => preparation.require_ignored_child = true,
                _ => bail!("unknown preparation {word}"),
            }
        }
        Ok((preparation, &arguments[end + 1..]))
    }
}

/// Runs the helper mode with the arguments behind the word `helper`.
pub fn main(arguments: &[String]) -> ExitCode {
    match prepare(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("smokes helper: {error:#}");
            ExitCode::from(HELPER_FAILED)
        }
    }
}

fn prepare(arguments: &[String]) -> Result<ExitCode> {
    let (preparation, command) = Preparation::parse(arguments)?;
    let (program, rest) = command.split_first().context("no program")?;
    if let Some(parent) = preparation.parent {
        set_pdeathsig(Signal::SIGKILL)?;
        // Across a pid namespace the parent is shown as 0.
        let seen = getppid().as_raw();
        ensure!(
            seen == parent || seen == 0,
            "the parent {parent} has gone, it is {seen} now"
        );
    }
    if preparation.pid_one {
        return as_process_one(&preparation, command);
    }
    if preparation.require_ignored_child {
        let own = crate::owned::own_pid();
        ensure!(
            proc::signal_in(own, "SigIgn", Signal::SIGCHLD as i32) == Some(true),
            "SIGCHLD is not ignored"
        );
    }
    if preparation.block_signals {
        let mut mask = SigSet::empty();
        for signal in [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGHUP,
            Signal::SIGCHLD,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ] {
            mask.add(signal);
        }
        mask.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    }
    let mut command = Command::new(program);
    command.args(rest);
    if !preparation.listen.is_empty() {
        hand_over(&preparation, &mut command)?;
    }
    Err(command.exec()).with_context(|| format!("execute {program}"))
}

/// Listens, and leaves the sockets open to the next program under the numbers that it expects.
fn hand_over(preparation: &Preparation, command: &mut Command) -> Result<()> {
    let mut names = Vec::new();
    for (number, each) in (3..).zip(&preparation.listen) {
        let (name, address) = each.split_once('@').context("no NAME@")?;
        let listener: OwnedFd = match address.strip_prefix("unix:") {
            Some(path) => UnixListener::bind(path)?.into(),
            None => TcpListener::bind(address)?.into(),
        };
        ensure!(
            listener.as_raw_fd() == number,
            "descriptor {} is not the next one, {number}",
            listener.as_raw_fd()
        );
        fcntl(&listener, FcntlArg::F_SETFD(FdFlag::empty()))?;
        // It is the next program's from here on.
        std::mem::forget(listener);
        names.push(name);
    }
    let names = names.join(":");
    command
        .env("LISTEN_PID", crate::owned::own_pid().to_string())
        .env("LISTEN_FDS", preparation.listen.len().to_string())
        .env(
            "LISTEN_FDNAMES",
            preparation.names.as_ref().unwrap_or(&names),
        );
    Ok(())
}

/// Makes a pid namespace whose first process is the rest of the chain, and stays outside to carry its
/// exit code (128 + signal for a signal, as a shell does).
fn as_process_one(preparation: &Preparation, command: &[String]) -> Result<ExitCode> {
    if unshare(CloneFlags::CLONE_NEWPID).is_err() {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)
            .context("a pid namespace (neither root nor user namespaces)")?;
    }
    let inner = Preparation {
        parent: Some(crate::owned::own_pid()),
        pid_one: false,
        ..preparation.clone()
    };
    let status = Command::new(std::env::current_exe()?)
        .args(inner.arguments())
        .args(command)
        .status()
        .context("the first process of the namespace")?;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(ExitCode::from(u8::try_from(
        code.unwrap_or(i32::from(HELPER_FAILED)),
    )?))
}

/// Runs the hidden mode `stranger PID SECONDS`: leaves a process in the pid namespace of `PID` whose parent
/// is that namespace's process 1, and which ends after that many seconds.
pub fn stranger(arguments: &[String]) -> ExitCode {
    match leave_stranger(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("smokes stranger: {error:#}");
            ExitCode::from(HELPER_FAILED)
        }
    }
}

fn leave_stranger(arguments: &[String]) -> Result<()> {
    let [pid, seconds] = arguments else {
        bail!("PID SECONDS wanted")
    };
    let namespace = std::fs::File::open(format!("/proc/{pid}/ns/pid"))?;
    setns(namespace, CloneFlags::CLONE_NEWPID).context("enter the pid namespace")?;
    // The shell is in the namespace; what it leaves behind becomes a child of process 1.
    let status = Command::new("/bin/sh")
        .args(["-c", "sleep \"$1\" & exit 0", "sh", seconds])
        .status()
        .context("the shell in the namespace")?;
    ensure!(status.success(), "the shell in the namespace: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(H21)]
    #[test]
    fn a_preparation_survives_the_command_line() {
        let all = Preparation {
            parent: Some(7),
            pid_one: true,
            block_signals: true,
            require_ignored_child: true,
            listen: vec!["web@127.0.0.1:0".to_owned(), "b@unix:/run/a=b".to_owned()],
            names: Some("a:b".to_owned()),
        };
        for wanted in [Preparation::default(), all] {
            let mut words = wanted.arguments();
            assert_eq!(words.remove(0), "helper");
            words.extend(["prog".to_owned(), "--flag".to_owned()]);
            let (read, command) = Preparation::parse(&words).expect("well-formed");
            assert_eq!(read, wanted);
            assert_eq!(command, ["prog", "--flag"]);
        }
    }

    #[m0_spec::row(H21)]
    #[test]
    fn an_unknown_word_or_no_program_is_an_error() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(Preparation::parse(&words("fly -- prog")).is_err());
        assert!(Preparation::parse(&words("pid-one")).is_err());
        assert!(prepare(&words("--")).is_err());
    }
}
