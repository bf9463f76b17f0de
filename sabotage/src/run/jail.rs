//! The jail of one run: namespaces of processes, mounts, IPC and network, or what can be had instead.
//!
//! Owns what stands between the tool and a command: `outer` makes the namespaces, `init` is their first
//! process. Where namespaces are refused, `outer` is a subreaper that sweeps by an environment mark.
//! Invariant: when the tool, `outer` or `init` dies by any means, nothing of the run is left (in
//! namespaces); the end of the command is told in a file, so that no exit code can be mistaken for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use nix::sys::time::TimeValLike as _;
use nix::sys::wait::{WaitPidFlag, WaitStatus, wait, waitpid};
use nix::unistd::{Pid, getppid};
use serde::{Deserialize, Serialize};

use crate::source::weave::{CHOSEN, WITNESS};

/// The environment variable that marks every process of a run.
pub const MARK: &str = "SABOTAGE_MARK";
/// The first word of the command line that makes this program a jail.
pub const OUTER: &str = "__jail";
/// The first word of the command line of the jail's first process.
pub const INIT: &str = "__init";
/// How long processes that are ending already may take before they are called leaks.
const GRACE: Duration = Duration::from_millis(250);

/// What the jail is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    /// The tool, whose death ends the run.
    pub parent: i32,
    /// File for [`End`].
    pub end: PathBuf,
    /// Private process ids, mounts and IPC.
    pub pid: bool,
    /// Private network.
    pub net: bool,
    /// Value of [`MARK`].
    pub mark: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// What chooses a rule, for the command alone.
    pub chosen: BTreeMap<String, String>,
}

/// How the command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Exit code.
    pub code: Option<i32>,
    /// Or the signal it died by.
    pub signal: Option<i32>,
    /// Command lines of processes that outlived it.
    pub leaks: Vec<String>,
    /// Why the jail is less than was asked for.
    pub warning: Option<String>,
    /// Processor time of the run, in milliseconds.
    pub cpu_ms: u64,
}

/// The process that the tool starts.
pub fn outer(asked: &Asked) -> ExitCode {
    super::interrupt::listen();
    let bound = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if bound.is_err() || getppid().as_raw() != asked.parent {
        return ExitCode::from(70);
    }
    if !asked.pid {
        return bare(asked, None);
    }
    let mut flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    flags.set(CloneFlags::CLONE_NEWNET, asked.net);
    if let Err(errno) = unshare(flags) {
        return bare(
            asked,
            Some(format!(
                "no namespaces ({errno}): a process that leaves its group is swept by its mark"
            )),
        );
    }
    let Ok(me) = std::env::current_exe() else {
        return ExitCode::from(70);
    };
    let text = serde_json::to_string(asked).expect("a struct of texts is JSON");
    let status = Command::new(me).arg(INIT).arg(text).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::from(70),
    }
}

/// The first process of the namespaces.
pub fn init(asked: &Asked) -> ExitCode {
    let private = || -> nix::Result<()> {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(Some("proc"), "/proc", Some("proc"), safe, none)?;
        if asked.net { loopback_up() } else { Ok(()) }
    };
    let warning = private()
        .err()
        .map(|errno| format!("the jail is not whole: {errno}"));
    run(asked, warning, |_| others())
}

/// Without namespaces: a subreaper, and a sweep by the mark.
fn bare(asked: &Asked, warning: Option<String>) -> ExitCode {
    let warning = match nix::sys::prctl::set_child_subreaper(true) {
        Ok(()) => warning,
        Err(errno) => Some(format!(
            "no subreaper ({errno}): orphans are swept by their mark alone"
        )),
    };
    let code = run(asked, warning, marked);
    let until = Instant::now() + Duration::from_secs(2);
    // Again and again: what is killed may have forked just before.
    while Instant::now() < until {
        let left = marked(&asked.mark);
        for pid in &left {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        let childless = reap();
        if left.is_empty() && childless {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    code
}

/// Starts the command, waits for its end, tells it.
fn run(asked: &Asked, warning: Option<String>, left: impl Fn(&str) -> BTreeSet<i32>) -> ExitCode {
    let mut end = End {
        warning,
        ..End::default()
    };
    let (program, args) = asked
        .command
        .split_first()
        .expect("the tool names a program");
    let mut command = Command::new(program);
    command.args(args).env(MARK, &asked.mark);
    // What chose a rule of this very program, where it is under test itself, chooses none of the command's.
    command.env_remove(CHOSEN).env_remove(WITNESS);
    command.envs(&asked.chosen);
    if !asked.pid {
        command.process_group(0);
    }
    match command.spawn() {
        Ok(child) => {
            let status = wait_for(child.id() as i32);
            (end.code, end.signal) = (status.code(), status.signal());
        }
        Err(error) => {
            end.code = Some(127);
            eprintln!("{program}: {error}");
        }
    }
    end.leaks = leaks(&asked.mark, left);
    if let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) {
        let spent = usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds();
        end.cpu_ms = spent.unsigned_abs();
    }
    let text = serde_json::to_vec(&end).expect("a struct of texts is JSON");
    // A file that is there is whole: it gets its name when it is written.
    let fresh = asked.end.with_extension("new");
    let told = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &asked.end));
    if told.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(70)
    }
}

/// Reaps everything until the command itself has ended.
fn wait_for(main: i32) -> ExitStatus {
    loop {
        match wait() {
            Ok(WaitStatus::Exited(pid, code)) if pid.as_raw() == main => {
                return ExitStatus::from_raw(code << 8);
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid.as_raw() == main => {
                return ExitStatus::from_raw(signal as i32);
            }
            Err(Errno::EINTR) | Ok(_) => {}
            // Nobody is left to wait for, and the command's own end was not seen.
            Err(_) => return ExitStatus::from_raw(127 << 8),
        }
    }
}

/// Reaps what has ended; true when there is no child any more.
fn reap() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return false,
            Err(Errno::ECHILD) => return true,
            Err(Errno::EINTR) | Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// Command lines of what still lives after the grace.
fn leaks(mark: &str, left: impl Fn(&str) -> BTreeSet<i32>) -> Vec<String> {
    let named = || left(mark).into_iter().filter_map(command_line).collect();
    settled(reap, named)
}

/// What is named when nobody is left, or else after the grace. A process has no command line, nor its mark, for the
/// moment in which it becomes another program: only who is childless too has left nothing behind.
fn settled(childless: impl Fn() -> bool, named: impl Fn() -> Vec<String>) -> Vec<String> {
    let until = Instant::now() + GRACE;
    loop {
        let childless = childless();
        let alive = named();
        if (childless && alive.is_empty()) || Instant::now() >= until {
            return alive;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The command line of a process that is no zombie.
fn command_line(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = bytes
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .collect();
    let text = words.join(" ").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Every process of the namespace but this one.
fn others() -> BTreeSet<i32> {
    let me = std::process::id() as i32;
    pids().filter(|pid| *pid != me).collect()
}

/// Every process that carries the mark, but this one.
pub fn marked(mark: &str) -> BTreeSet<i32> {
    let me = std::process::id() as i32;
    let needle = format!("{MARK}={mark}");
    let carries = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|entry| entry == needle.as_bytes())
    };
    pids().filter(|pid| *pid != me).filter(carries).collect()
}

/// Sets loopback up in a fresh network: one netlink message (rtnetlink(7)), as `ip link set lo up`.
fn loopback_up() -> nix::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let link = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        flags,
        SockProtocol::NetlinkRoute,
    )?;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(16_u16.to_ne_bytes()); // RTM_NEWLINK
    message.extend(5_u16.to_ne_bytes()); // NLM_F_REQUEST | NLM_F_ACK
    message.extend(1_u32.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend([0; 4]); // any family, any type
    message.extend(1_i32.to_ne_bytes()); // lo has index 1 in every network
    message.extend(1_u32.to_ne_bytes()); // IFF_UP
    message.extend(1_u32.to_ne_bytes()); // of the flags, change that one
    send(link.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut answer = [0; 64];
    let length = recv(link.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    match answer.get(16..20).filter(|_| length >= 20) {
        Some(&[a, b, c, d]) => match i32::from_ne_bytes([a, b, c, d]) {
            0 => Ok(()),
            error => Err(Errno::from_raw(-error)),
        },
        _ => Err(Errno::EBADMSG),
    }
}

/// Whether namespaces can be made here; the reason when not.
pub fn namespaces() -> Result<(), String> {
    let probe = Command::new("unshare")
        .args([
            "--pid",
            "--net",
            "--mount",
            "--ipc",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "true",
        ])
        .output();
    match probe {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}

/// Reads what the tool asks for from the command line.
pub fn asked(text: &str) -> Option<Asked> {
    serde_json::from_str(text).ok()
}

/// Reads how a command ended; none when nobody told.
pub fn end(path: &Path) -> Option<End> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::settled;

    #[m0_spec::row(B12)]
    #[test]
    fn a_process_that_has_no_name_yet_is_waited_for() {
        let looks = Cell::new(0);
        let named = || {
            let before = looks.replace(looks.get() + 1);
            ["sleep 60".to_owned()]
                .into_iter()
                .skip(usize::from(before == 0))
                .collect()
        };
        assert_eq!(settled(|| false, named), ["sleep 60"]);
        looks.set(0);
        let nobody = || {
            looks.set(looks.get() + 1);
            Vec::new()
        };
        assert!(settled(|| true, nobody).is_empty());
        assert_eq!(looks.get(), 1, "nobody is left: nothing is waited for");
    }
}
