//! What is checked about every server at its end, whatever the phase was about.
//!
//! Owns the list of checks; each answers findings as sentences. Sends no signal.
//! Invariant: each check can be seen to fail (`smokes --planted`, with a server that misbehaves).

use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::lines::Lines;
use crate::owned::{self, MARK};
use crate::proc::{self, Pid, Stat};
use crate::run::Run;
use crate::server::EXIT_BOUND;

/// Documented exit codes of the host.
pub mod code {
    /// Clean stop.
    pub const CLEAN: i32 = 0;
    /// Stopped, but a worker crashed in the drain or had to be killed.
    pub const DIRTY: i32 = 1;
    /// A slot crashed as often in a row as its limit.
    pub const CRASH_LOOP: i32 = 70;
    /// The operating system refused.
    pub const OS: i32 = 71;
    /// The configuration or the application refused.
    pub const CONFIG: i32 = 78;
}

/// The end that a phase expects.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Exit codes that are right.
    pub codes: Vec<i32>,
    /// A signal of which it may die as well; the only right end when there is no right code.
    pub signal: Option<i32>,
    /// Longest wait for the exit.
    pub bound: Duration,
    /// Longest that a process may outlive the supervisor. Zero but where it was SIGKILLed.
    pub grace: Duration,
}

impl Ending {
    /// Exit 0, nobody outlives.
    pub fn clean() -> Self {
        Self::code(code::CLEAN)
    }

    /// One exit code.
    pub fn code(code: i32) -> Self {
        Self {
            codes: vec![code],
            signal: None,
            bound: EXIT_BOUND,
            grace: Duration::ZERO,
        }
    }

    /// Death by a signal; what it leaves behind may live for `grace`.
    pub fn signal(signal: i32, grace: Duration) -> Self {
        Self {
            codes: Vec::new(),
            signal: Some(signal),
            bound: EXIT_BOUND,
            grace,
        }
    }

    /// Another bound of the wait.
    #[must_use]
    pub fn within(mut self, bound: Duration) -> Self {
        self.bound = bound;
        self
    }

    /// Death by this signal is right, too.
    #[must_use]
    pub fn or_signal(mut self, signal: i32) -> Self {
        self.signal = Some(signal);
        self
    }

    /// One more right exit code.
    #[must_use]
    pub fn or(mut self, code: i32) -> Self {
        self.codes.push(code);
        self
    }
}

/// The checks of a supervisor that still runs.
pub fn running(supervisor: Pid, baseline_fds: usize) -> Vec<String> {
    let mut findings = Vec::new();
    let Some(stat) = proc::stat(supervisor).filter(|stat| !stat.is_zombie()) else {
        return vec![format!("the supervisor {supervisor} is gone")];
    };
    for child in proc::children(supervisor) {
        if child.is_zombie() {
            findings.push(format!(
                "a zombie below the supervisor: {}",
                owned::describe(&child)
            ));
        }
    }
    let fds = proc::fds(supervisor);
    if fds.len() > baseline_fds {
        findings.push(format!(
            "the supervisor's descriptors grew from {baseline_fds} to {}: {:?}",
            fds.len(),
            fds.values().collect::<Vec<_>>()
        ));
    }
    if stat.threads != 1 {
        let names = proc::threads(supervisor);
        findings.push(format!(
            "the supervisor runs {} threads: {names:?}",
            stat.threads
        ));
    }
    findings
}

/// Compares the exit with the expected one.
pub fn exit_findings(status: ExitStatus, ending: &Ending) -> Vec<String> {
    let by_code = status
        .code()
        .is_some_and(|code| ending.codes.contains(&code));
    let by_signal = status.signal().is_some() && status.signal() == ending.signal;
    if by_code || by_signal {
        return Vec::new();
    }
    let mut wanted = format!("code {:?}", ending.codes);
    if let Some(signal) = ending.signal {
        wanted = format!("{wanted} or signal {signal}");
    }
    vec![format!("it ended with {status}, not with {wanted}")]
}

/// Processes that outlived the supervisor for longer than `grace`: those with the mark, and orphans that
/// came to us (we are their subreaper), dead or alive.
pub fn left_over(run: &Run, mark: &str, grace: Duration) -> Vec<String> {
    let deadline = Instant::now() + grace;
    loop {
        let found = orphans(run, mark);
        let past = Instant::now() >= deadline;
        if grace > Duration::ZERO {
            // With grace the dead are only to be reaped, and the living get their time.
            found
                .iter()
                .filter(|stat| stat.is_zombie())
                .for_each(|stat| {
                    owned::reap(stat.pid);
                });
            if found.iter().all(Stat::is_zombie) {
                return Vec::new();
            }
        }
        if found.is_empty() || past {
            let findings = found
                .iter()
                .map(|stat| {
                    format!(
                        "a process outlived the supervisor: {}",
                        owned::describe(stat)
                    )
                })
                .collect();
            found
                .iter()
                .filter(|stat| stat.is_zombie())
                .for_each(|stat| {
                    owned::reap(stat.pid);
                });
            return findings;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn orphans(run: &Run, mark: &str) -> Vec<Stat> {
    let mut found = run.adopted();
    for marked in proc::marked(MARK, mark) {
        if !found.iter().any(|stat| stat.pid == marked.pid) {
            found.push(marked);
        }
    }
    found
}

/// Whether the address can be bound again at once.
pub fn port_findings(address: SocketAddr) -> Vec<String> {
    match TcpListener::bind(address) {
        Ok(_) => Vec::new(),
        Err(error) => vec![format!("the port {address} is not free again: {error}")],
    }
}

/// What may stand in a log.
#[derive(Debug, Clone, Copy)]
pub struct LogRules {
    /// The phase made something panic.
    pub panics_allowed: bool,
    /// The phase made a process die with words that are not the host's.
    pub foreign_lines_allowed: bool,
    /// The whole log was kept.
    pub whole: bool,
}

/// No panic, and every line a JSON object; log lines carry time, level, event and pid.
pub fn log_findings(log: &Lines, out: &Lines, rules: LogRules) -> Vec<String> {
    let mut findings = Vec::new();
    if !rules.panics_allowed {
        let panics = log.events("panic");
        if let Some(first) = panics.first() {
            findings.push(format!("{} panics in the log: {first}", panics.len()));
        }
        if log.text().contains("panicked at") && panics.is_empty() {
            findings.push("a panic in the log".to_owned());
        }
    }
    if !rules.foreign_lines_allowed {
        for (what, lines) in [("log", log), ("access log", out)] {
            let strangers = lines.strangers();
            if let Some(first) = strangers.first() {
                let count = strangers.len();
                findings.push(format!(
                    "{count} lines of the {what} are not JSON objects: {first:?}"
                ));
            }
        }
    }
    let bare = log.objects().into_iter().find(|line| {
        ["time", "level", "event"]
            .iter()
            .any(|key| !line[key].is_string())
            || !line["pid"].is_u64()
    });
    if let Some(line) = bare.filter(|_| rules.whole) {
        findings.push(format!(
            "a log line without time, level, event or pid: {line}"
        ));
    }
    findings
}
