//! A server that misbehaves on request, to show that each end check can fail.
//!
//! It supervises one child that only waits, prints the banner, and does on SIGTERM what it should, but
//! for the one defect that `FAKE_DEFECT` names. Knows nothing of HTTP.
//! Invariant: without a defect it ends as a good server does.

use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// Name of the variable that chooses the defect.
pub const DEFECT: &str = "FAKE_DEFECT";

/// `fake` is the supervisor, `fake wait` its child.
pub fn main(words: &[String]) -> ExitCode {
    let done = match words.first().map(String::as_str) {
        Some("wait") => wait_for_end().map(|()| ExitCode::SUCCESS),
        _ => supervise(),
    };
    done.unwrap_or_else(|error| {
        eprintln!("fake: {error:#}");
        ExitCode::from(71)
    })
}

fn stop_signals() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGUSR1);
    set
}

fn wait_for_end() -> Result<()> {
    let set = stop_signals();
    set.thread_block()?;
    set.wait()?;
    Ok(())
}

fn child(stdin: Stdio) -> Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["fake", "wait"])
        .stdin(stdin)
        .spawn()
        .context("the child")
}

fn say(event: &str, more: &str) {
    let pid = std::process::id();
    eprintln!("{{\"time\":\"now\",\"level\":\"info\",\"event\":\"{event}\",\"pid\":{pid}{more}}}");
}

fn supervise() -> Result<ExitCode> {
    let defect = std::env::var(DEFECT).unwrap_or_default();
    let defect = defect.as_str();
    let set = stop_signals();
    set.thread_block()?;
    let listener = TcpListener::bind(std::env::var("M0_BIND").context("M0_BIND")?)?;
    let address = listener.local_addr()?;
    let mut worker = child(match defect {
        "port" => OwnedFd::from(listener.try_clone()?).into(),
        _ => Stdio::null(),
    })?;
    let second = if defect == "second-thread" {
        Some(std::thread::spawn(|| {
            std::thread::park_timeout(Duration::from_hours(1));
        }))
    } else {
        None
    };
    match defect {
        "no-banner" => {}
        "early-exit" => {
            worker.kill()?;
            worker.wait()?;
            return Ok(ExitCode::FAILURE);
        }
        _ => say(
            "listening",
            &format!(",\"address\":\"{address}\",\"workers\":2"),
        ),
    }
    // Told by SIGUSR1 to do now what must not be there at the end.
    let mut kept = Vec::new();
    while set.wait()? == Signal::SIGUSR1 {
        match defect {
            "descriptors" => kept.push(File::open("/dev/null")?),
            "zombie" => {
                let mut short = Command::new("/bin/true").stdin(Stdio::null()).spawn()?;
                // Its end is awaited but not collected: from here on it is a zombie until we end.
                short.stdin.take();
                let pid = Pid::from_raw(short.id().cast_signed());
                waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
            }
            _ => {}
        }
        say("did-it", "");
    }
    match defect {
        "panic" => say("panic", ",\"message\":\"planted\",\"location\":\"here\""),
        "plain-panic" => eprintln!("thread 'main' panicked at src/main.rs:1:1:\nplanted"),
        "plain-line" => eprintln!("this is not JSON"),
        "bare-line" => eprintln!("{{\"event\":\"stopped\"}}"),
        "access-line" => std::io::stdout().write_all(b"GET / 200\n")?,
        "deaf" => loop {
            set.wait()?;
        },
        _ => {}
    }
    match defect {
        "leftover" | "port" => {}
        // Killed, but its end is not awaited: whoever adopts our orphans sees it.
        "unreaped" => worker.kill()?,
        _ => {
            worker.kill()?;
            worker.wait()?;
        }
    }
    drop((kept, second, listener));
    match defect {
        "exit-code" => Ok(ExitCode::from(3)),
        "signal" => {
            nix::sys::signal::kill(nix::unistd::getpid(), Signal::SIGKILL)?;
            Ok(ExitCode::FAILURE)
        }
        "orphan-without-mark" => {
            Command::new(std::env::current_exe()?)
                .args(["fake", "wait"])
                .env_clear()
                .stdin(Stdio::null())
                .process_group(0)
                .spawn()?;
            Ok(ExitCode::SUCCESS)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
