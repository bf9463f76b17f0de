//! One running server: its processes, its address, its logs, its end.
//!
//! Owns the child and everything below it. What a good end is stands in `ends`.
//! Invariant: when this is dropped no process of the server is left, however the phase ended.

use std::io::PipeReader;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid as NixPid;
use serde_json::Value;

use crate::ends::{self, Ending};
use crate::launch::{BannerReader, Launch};
use crate::lines::Lines;
use crate::owned;
use crate::peer;
use crate::proc::{self, Pid, Stat};
use crate::run::Run;
use crate::until::{holds, until};

/// Longest that a server may take from SIGTERM to its exit: the drain's default bound of 5 s and the
/// margin in which SIGKILL ends the rest.
pub const EXIT_BOUND: Duration = Duration::from_secs(8);

pub(crate) struct Parts {
    pub(crate) child: Child,
    pub(crate) spawned: Instant,
    pub(crate) mark: String,
    pub(crate) log: Lines,
    pub(crate) out: Lines,
    pub(crate) workers: u32,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) pid_one: bool,
    pub(crate) panics_allowed: bool,
    pub(crate) foreign_lines_allowed: bool,
    pub(crate) log_is_whole: bool,
    pub(crate) unread: Option<PipeReader>,
    pub(crate) log_reader: Option<BannerReader>,
}

/// A server that was started.
pub struct Server<'run> {
    run: &'run Run,
    parts: Parts,
    address: Option<SocketAddr>,
    baseline_fds: Option<usize>,
    status: Option<ExitStatus>,
    done: bool,
}

/// How a server ended and how long that took.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// From the signal (or the call that awaited the end) to the exit.
    pub after: Duration,
    /// The exit code, or `None` after a signal.
    pub code: Option<i32>,
}

impl<'run> Server<'run> {
    /// Describes a server to start.
    pub fn launch(run: &'run Run) -> Launch<'run> {
        Launch::new(run)
    }

    pub(crate) fn new(run: &'run Run, parts: Parts) -> Self {
        Self {
            run,
            address: parts.address,
            parts,
            baseline_fds: None,
            status: None,
            done: false,
        }
    }

    fn child_pid(&self) -> Pid {
        Pid::try_from(self.parts.child.id()).expect("the kernel's pids fit in 31 bits")
    }

    /// Awaits the banner, learns the address, and takes the baseline of the supervisor's descriptors.
    pub fn await_ready(&mut self, bound: Duration) -> Result<SocketAddr> {
        let log = self.parts.log.clone();
        let address = until("the listening line", bound, || {
            if let Some(banner) = log.events("listening").first() {
                return Ok(Ok(banner["address"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()));
            }
            if self.has_exited() {
                return Ok(Err(format!(
                    "the server ended before it listened: {:?}",
                    self.status
                )));
            }
            Err(format!("{} log lines", log.objects().len()))
        })?
        .map_err(anyhow::Error::msg)?;
        let plain = address.trim_start_matches("http://").trim_end_matches('/');
        // The first of several that is one of TCP.
        if let Some(first) = plain.split(',').find(|each| !each.starts_with("unix:")) {
            self.address = Some(
                first
                    .parse()
                    .with_context(|| format!("the banner's address {address:?}"))?,
            );
        }
        self.baseline_fds = Some(proc::fds(self.pid()).len());
        self.address.context("no TCP address in the banner")
    }

    /// Awaits the moment in which the server's own program has begun, behind whatever prepared its
    /// process.
    pub fn await_exec(&mut self) -> Result<()> {
        let program = self.run.server_bin().to_owned();
        let link = format!("/proc/{}/exe", self.child_pid());
        until(
            "the server's program to begin",
            Duration::from_secs(10),
            || {
                let running = std::fs::read_link(&link).map_err(|error| error.to_string())?;
                holds(running == program, || format!("{} runs", running.display()))
            },
        )
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.address
            .expect("start() awaits the banner, which names the address")
    }

    /// The supervisor, or the only process at one worker; in a pid namespace its process 1, by its
    /// number out here.
    pub fn pid(&self) -> Pid {
        let mut pid = self.child_pid();
        if self.parts.pid_one {
            pid = proc::children(pid).first().map_or(pid, |stat| stat.pid);
        }
        pid
    }

    /// How many workers it was asked for.
    pub fn workers(&self) -> u32 {
        self.parts.workers
    }

    /// Whether it forks its workers: with more than one, and as process 1.
    fn supervises(&self) -> bool {
        self.parts.workers > 1 || self.parts.pid_one
    }

    /// The live workers: the supervisor's children, or the process itself at one worker.
    pub fn worker_pids(&self) -> Vec<Pid> {
        if !self.supervises() {
            return vec![self.pid()];
        }
        proc::children(self.pid())
            .into_iter()
            .filter(|stat| !stat.is_zombie())
            .map(|stat| stat.pid)
            .collect()
    }

    /// The pid of the worker in a slot, by the host's own statistics.
    pub fn pid_of_slot(&self, slot: u32) -> Result<Pid> {
        let stats = self.stats()?;
        share(&stats, slot)?["pid"]
            .as_i64()
            .and_then(|pid| Pid::try_from(pid).ok())
            .filter(|&pid| pid > 1)
            .with_context(|| format!("no pid for slot {slot} in {stats}"))
    }

    /// `/stats` by any worker.
    pub fn stats(&self) -> Result<Value> {
        let answer = peer::get(self.addr(), "/stats")?.expect(200)?;
        serde_json::from_slice(&answer.body)
            .with_context(|| format!("/stats is {:?}", answer.text()))
    }

    /// Its log.
    pub fn log(&self) -> &Lines {
        &self.parts.log
    }

    /// Its access log.
    pub fn out(&self) -> &Lines {
        &self.parts.out
    }

    /// Every process of this server, dead ones included.
    pub fn processes(&self) -> Vec<Stat> {
        owned::of(Some(self.child_pid()), &self.parts.mark)
    }

    /// Time since the process was started.
    pub fn age(&self) -> Duration {
        self.parts.spawned.elapsed()
    }

    /// Awaits a log line of this event that pleases `wanted`.
    pub fn await_log(
        &self,
        event: &str,
        bound: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        until(&format!("the log line {event:?}"), bound, || {
            let lines = self.parts.log.events(event);
            lines
                .iter()
                .find(|line| wanted(line))
                .cloned()
                .ok_or_else(|| format!("{} lines {event:?}, none that fits", lines.len()))
        })
    }

    /// Awaits the worker that fills a slot after `dead` held it, alive and ready.
    pub fn await_heir(&self, slot: u32, dead: Pid, bound: Duration) -> Result<Pid> {
        until(&format!("the next worker of slot {slot}"), bound, || {
            let ready = self.parts.log.events("worker-ready");
            let pids: Vec<Pid> = ready
                .iter()
                .filter(|line| line["slot"] == slot)
                .filter_map(|line| Pid::try_from(line["pid"].as_i64()?).ok())
                .collect();
            pids.iter()
                .rev()
                .copied()
                .find(|&pid| pid != dead && proc::stat(pid).is_some_and(|stat| !stat.is_zombie()))
                .ok_or_else(|| format!("workers {pids:?} of it so far, {dead} died"))
        })
    }

    /// Sends a signal to the supervisor alone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.pid();
        kill(NixPid::from_raw(pid), signal).with_context(|| format!("{signal} to {pid}"))
    }

    /// Sends a signal to the server's whole process group.
    pub fn signal_group(&self, signal: Signal) -> Result<()> {
        let group = self.child_pid();
        killpg(NixPid::from_raw(group), signal)
            .with_context(|| format!("{signal} to group {group}"))
    }

    /// Whether it has ended.
    pub fn has_exited(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.parts.child.try_wait().ok().flatten();
            if self.status.is_some() {
                self.run.untrack(self.child_pid());
            }
        }
        self.status.is_some()
    }

    /// Awaits the exit of the process that we started.
    pub fn await_exit(&mut self, bound: Duration) -> Result<Ended> {
        let start = Instant::now();
        let status = until("the server to exit", bound, || {
            self.has_exited();
            self.status.ok_or_else(|| {
                let left: Vec<String> = self.processes().iter().map(owned::describe).collect();
                format!("still there: {}", left.join(", "))
            })
        })?;
        Ok(Ended {
            after: start.elapsed(),
            code: status.code(),
        })
    }

    /// Checks the running server, sends SIGTERM to the supervisor alone, awaits the exit and checks the
    /// end, which must be code 0. The usual last line of a phase.
    pub fn stop(self) -> Result<Ended> {
        self.stop_with(&Ending::clean())
    }

    /// [`stop`](Self::stop) with another end.
    pub fn stop_with(self, ending: &Ending) -> Result<Ended> {
        self.check_running()?;
        self.signal(Signal::SIGTERM)?;
        self.finish(ending)
    }

    /// The checks of a server that still serves: no zombie below the supervisor, no descriptor more
    /// than at the banner, one thread.
    pub fn check_running(&self) -> Result<()> {
        if !self.supervises() {
            return Ok(());
        }
        let pid = self.pid();
        let baseline = self.baseline_fds.unwrap_or(usize::MAX);
        until(
            "the running supervisor to be in order",
            Duration::from_secs(2),
            || {
                let findings = ends::running(pid, baseline);
                holds(findings.is_empty(), || findings.join("; "))
            },
        )
    }

    /// Awaits the end of a server that was told to end, or ends by itself, and checks it.
    pub fn finish(mut self, ending: &Ending) -> Result<Ended> {
        let ended = self.await_exit(ending.bound)?;
        self.done = true;
        let status = self.status.context("it has exited")?;
        let mut findings = ends::exit_findings(status, ending);
        findings.extend(ends::left_over(self.run, &self.parts.mark, ending.grace));
        if let Some(address) = self.address {
            findings.extend(ends::port_findings(address));
        }
        findings.extend(ends::log_findings(
            &self.parts.log,
            &self.parts.out,
            ends::LogRules {
                panics_allowed: self.parts.panics_allowed,
                foreign_lines_allowed: self.parts.foreign_lines_allowed,
                whole: self.parts.log_is_whole,
            },
        ));
        owned::end(None, &self.parts.mark)?;
        self.run.server_finished();
        ensure!(
            findings.is_empty(),
            "end of {} (ended {}): {}",
            self.parts
                .log
                .path()
                .file_name()
                .unwrap_or_default()
                .to_string_lossy(),
            status.code().map_or_else(
                || format!("by signal {:?}", status.signal()),
                |code| format!("with code {code}")
            ),
            findings.join("; ")
        );
        Ok(ended)
    }

    /// Holds the reading end of a pipe that nobody reads, for as long as the server lives.
    pub fn has_unread_pipe(&self) -> bool {
        self.parts.unread.is_some() || self.parts.log_reader.is_some()
    }
}

/// One worker's entry of `/stats`.
pub fn share(stats: &Value, slot: u32) -> Result<&Value> {
    let Some(shares) = stats["shares"].as_array() else {
        bail!("no shares in {stats}")
    };
    shares
        .iter()
        .find(|each| each["slot"] == slot)
        .with_context(|| format!("no slot {slot} in {stats}"))
}

/// The sum of one counter over all workers of `/stats`.
pub fn sum(stats: &Value, counter: &str) -> Result<u64> {
    let Some(shares) = stats["shares"].as_array() else {
        bail!("no shares in {stats}")
    };
    shares
        .iter()
        .map(|each| {
            each[counter]
                .as_u64()
                .with_context(|| format!("no {counter} in {each}"))
        })
        .sum()
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // The phase failed before its end check; what it said matters more than what we meet here.
        let _ = owned::end(Some(self.child_pid()), &self.parts.mark);
        let _ = self.parts.child.wait();
        self.run.untrack(self.child_pid());
    }
}
