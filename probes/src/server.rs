//! One server under measurement: started, awaited, ended.
//!
//! Owns the child and the processes below it. Refuses to know what is measured.
//! Invariant: no process of it is left when this is dropped, and no variable of ours reaches it but those given.

use std::collections::VecDeque;
use std::fmt::Display;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Longest wait for a banner, an answer or an exit, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Log lines kept for the message of an error.
const LINES_KEPT: usize = 8;

/// What is started and how.
#[derive(Debug)]
pub struct Launch<'path> {
    binary: &'path Path,
    command: Command,
}

impl<'path> Launch<'path> {
    /// The binary, with every inherited `M0_` and `LISTEN_` variable removed.
    pub fn of(binary: &'path Path) -> Self {
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("M0_") || name.starts_with("LISTEN_") {
                command.env_remove(name);
            }
        }
        Self { binary, command }
    }

    /// One variable more.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Display) -> Self {
        self.command.env(name, value.to_string());
        self
    }

    /// One argument more.
    #[must_use]
    pub fn arg(mut self, value: impl Display) -> Self {
        self.command.arg(value.to_string());
        self
    }

    /// Starts it and awaits the line that names its address.
    pub fn start(mut self) -> Result<Server> {
        let name = self.binary.display().to_string();
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}; build it with `cargo xtask probe`"))?;
        let log = child.stderr.take().expect("stderr was asked for as a pipe");
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let banner = follow(log, Arc::clone(&tail));
        let mut server = Server {
            name,
            child,
            address: None,
            tail,
            status: None,
        };
        server.address = Some(server.await_banner(&banner)?);
        Ok(server)
    }
}

/// Reads the log to its end in a thread, keeps its tail, and sends the address out of the banner.
fn follow(
    log: impl std::io::Read + Send + 'static,
    tail: Arc<Mutex<VecDeque<String>>>,
) -> Receiver<SocketAddr> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            if let Some(address) = address_in(&line) {
                // Nobody waits for a second banner.
                let _ = send.send(address);
            }
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.push_back(line);
            if tail.len() > LINES_KEPT {
                tail.pop_front();
            }
        }
    });
    receive
}

/// The address in a `listening` line: `{"event":"listening","address":"http://127.0.0.1:8080",…}`.
fn address_in(line: &str) -> Option<SocketAddr> {
    let line: Value = serde_json::from_str(line).ok()?;
    let address = line["address"]
        .as_str()
        .filter(|_| line["event"] == "listening")?;
    address
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .parse()
        .ok()
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    name: String,
    child: Child,
    address: Option<SocketAddr>,
    tail: Arc<Mutex<VecDeque<String>>>,
    status: Option<ExitStatus>,
}

impl Server {
    fn await_banner(&mut self, banner: &Receiver<SocketAddr>) -> Result<SocketAddr> {
        match banner.recv_timeout(PATIENCE) {
            Ok(address) => Ok(address),
            Err(RecvTimeoutError::Timeout) => {
                bail!(
                    "{} names no address in {PATIENCE:?}: {}",
                    self.name,
                    self.tail()
                )
            }
            // Its log has ended, so it has, or is about to.
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().context("its exit status")?;
                self.status = Some(status);
                bail!(
                    "{} ended before it listened ({status}): {}",
                    self.name,
                    self.tail()
                )
            }
        }
    }

    /// The last lines of its log.
    pub fn tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.is_empty() {
            return "it logged nothing".to_owned();
        }
        tail.iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" | ")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
            .expect("start() returns a server with its address")
    }

    /// The process that was started: the supervisor, or the only one.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process that was started and its children that live.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = vec![self.pid()];
        pids.extend(children(self.pid()));
        pids
    }

    /// Sends SIGTERM to the process that was started and awaits its end, by the signal or by an exit code.
    ///
    /// # Errors
    ///
    /// When it does not end within the patience of the probe, and is killed.
    pub fn end(mut self) -> Result<()> {
        signal(self.pid(), Signal::SIGTERM)?;
        let watchdog = Watchdog::over(self.pid());
        self.status = Some(self.child.wait().context("its exit status")?);
        if watchdog.ends() {
            bail!("{} did not end by SIGTERM: {}", self.name, self.tail());
        }
        Ok(())
    }

    /// Sends SIGTERM to the process that was started and measures the time until it has exited.
    pub fn stop(mut self) -> Result<Duration> {
        let asked = Instant::now();
        signal(self.pid(), Signal::SIGTERM)?;
        // A wait, not a poll: its end is the moment that is measured. The watchdog bounds it.
        let watchdog = Watchdog::over(self.pid());
        let status = self.child.wait().context("its exit status")?;
        let took = asked.elapsed();
        let overdue = watchdog.ends();
        self.status = Some(status);
        if overdue || !status.success() {
            bail!(
                "{} did not stop in order ({status}): {}",
                self.name,
                self.tail()
            );
        }
        Ok(took)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.status.is_some() {
            return;
        }
        // Workers of a host whose supervisor is killed end by themselves; they are killed all the same,
        // because what is measured may not keep that promise.
        let pids = self.pids();
        // The child may have ended between the look and the signal.
        let _ = self.child.kill();
        for &pid in &pids[1..] {
            let _ = signal(pid, Signal::SIGKILL);
        }
        let _ = self.child.wait();
        // A killed process still runs until the kernel has ended it.
        let end = Instant::now() + PATIENCE;
        while pids.iter().any(|&pid| runs(pid)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Kills a process that outlives the patience of the probe.
struct Watchdog {
    done: std::sync::mpsc::Sender<()>,
    thread: std::thread::JoinHandle<bool>,
}

impl Watchdog {
    fn over(pid: u32) -> Self {
        let (done, ended) = channel();
        let thread = std::thread::spawn(move || {
            let overdue = ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
            if overdue {
                let _ = signal(pid, Signal::SIGKILL);
            }
            overdue
        });
        Self { done, thread }
    }

    /// Whether it had to kill.
    fn ends(self) -> bool {
        let _ = self.done.send(());
        self.thread.join().unwrap_or(true)
    }
}

/// Sends a signal to one process.
pub fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).context("the kernel's pids fit in 31 bits")?;
    kill(Pid::from_raw(pid), signal).with_context(|| format!("{signal} to {pid}"))
}

/// Whether a process is there and no zombie; one whose parent died is reaped by whoever adopts it.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, behind)| behind.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The children of a process that live, by `/proc/PID/task/PID/children` (proc(5)).
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Launch, address_in, runs};
    use std::path::Path;

    #[m0_spec::row(H38)]
    #[test]
    fn the_address_is_read_from_the_banner_alone() {
        let cases = [
            (
                "{\"event\":\"listening\",\"address\":\"http://127.0.0.1:80\"}",
                true,
            ),
            (
                "{\"event\":\"listening\",\"address\":\"127.0.0.1:80\",\"workers\":2}",
                true,
            ),
            (
                "{\"event\":\"stopping\",\"address\":\"http://127.0.0.1:80\"}",
                false,
            ),
            (
                "{\"event\":\"listening\",\"address\":\"unix:/run/m0\"}",
                false,
            ),
            ("listening on 127.0.0.1:80", false),
        ];
        for (line, wanted) in cases {
            assert_eq!(address_in(line).is_some(), wanted, "{line}");
        }
    }

    #[m0_spec::row(H37)]
    #[test]
    fn a_server_that_does_not_start_or_ends_at_once_is_an_error_that_says_so() {
        let missing = Launch::of(Path::new("/nonexistent/server")).start();
        let message = missing
            .err()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default();
        assert!(
            message.contains("cannot start /nonexistent/server"),
            "{message}"
        );
        let ends = Launch::of(Path::new("/bin/sh"))
            .arg("-c")
            .arg("echo no >&2; exit 3")
            .start();
        let message = ends
            .err()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default();
        assert!(
            message.contains("exit status: 3") && message.ends_with(": no"),
            "{message}"
        );
    }

    #[m0_spec::row(H37)]
    #[test]
    fn a_server_that_is_dropped_leaves_no_process() {
        let script =
            "sleep 60 & echo '{\"event\":\"listening\",\"address\":\"127.0.0.1:1\"}' >&2; wait";
        let server = Launch::of(Path::new("/bin/sh"))
            .arg("-c")
            .arg(script)
            .start();
        let server = server.expect("a shell that names an address");
        let pids = server.pids();
        drop(server);
        assert_eq!(pids.len(), 2, "the shell and what it waits for");
        assert!(!pids.iter().any(|&pid| runs(pid)), "one of {pids:?} runs");
        assert!(runs(std::process::id()), "this process does");
    }
}
