//! One command, from the tool's side: started, bounded, its end and its output read from files.
//!
//! Owns the bound and the kill. Refuses to judge an exit code. Invariant: when [`run`] returns, the
//! command is over; no orphan can hold it up, since output goes to files and the end is told by the jail.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::interrupt;
use super::jail::{self, Asked, MARK, OUTER};
use crate::schema::gate::Isolate;
use crate::source::weave::{CHOSEN, WITNESS};
use crate::tree::hash_of;

/// A command to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working directory.
    pub dir: PathBuf,
    /// Variables set on top of the tool's own.
    pub env: BTreeMap<String, String>,
    /// Bound on its time.
    pub timeout: Duration,
    /// A fresh directory for output and results.
    pub out: PathBuf,
    /// What is private.
    pub isolate: Isolate,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited.
    Code(i32),
    /// It died by a signal that we did not send.
    Signal(i32),
    /// Our deadline passed, and we killed it.
    TimedOut,
    /// The jail ended without telling.
    Lost,
}

/// What became of it.
#[derive(Debug, Clone)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// Time from start to end.
    pub wall: Duration,
    /// Processor time.
    pub cpu: Duration,
    /// Command lines of processes that outlived it.
    pub leaks: Vec<String>,
    /// Why the jail was less than asked for.
    pub warning: Option<String>,
    /// The program that was run.
    pub program: Option<String>,
    /// The job's directory; holds `stdout` and `stderr`.
    pub out: PathBuf,
}

impl Ended {
    /// What it printed on stdout.
    pub fn stdout(&self) -> String {
        text(&self.out.join("stdout"))
    }

    /// What it printed on stderr.
    pub fn stderr(&self) -> String {
        text(&self.out.join("stderr"))
    }
}

/// A file as text, of which at most 16 MiB are read.
pub fn text(path: &Path) -> String {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What cannot be read is as good as not written; the verdict is INFRA then.
        let _ = file.take(16 << 20).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Distinguishes the runs of one tool process.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Runs a job to its end; [`interrupt::Interrupted`] when somebody asked for the end of all.
pub fn run(job: &Job) -> Result<Ended> {
    interrupt::check()?;
    let _ = fs::remove_dir_all(&job.out);
    let tmp = scratch(&job.out);
    let _ = fs::remove_dir_all(&tmp);
    for dir in [&job.out, &tmp] {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let mark = format!(
        "{}-{}",
        std::process::id(),
        RUNS.fetch_add(1, Ordering::Relaxed)
    );
    let end = job.out.join("end.json");
    let (chosen, env) = job
        .env
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .partition(|(name, _)| name == CHOSEN || name == WITNESS);
    let env: BTreeMap<String, String> = env;
    let asked = Asked {
        parent: std::process::id() as i32,
        end: end.clone(),
        pid: job.isolate.pid,
        net: job.isolate.net,
        mark: mark.clone(),
        command: job.command.clone(),
        chosen,
    };
    let me = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(me);
    command
        .arg(OUTER)
        .arg(serde_json::to_string(&asked)?)
        .current_dir(&job.dir)
        .stdin(Stdio::null())
        .stdout(File::create(job.out.join("stdout"))?)
        .stderr(File::create(job.out.join("stderr"))?)
        .process_group(0);
    ours(&mut command);
    command.envs(env).env(MARK, &mark).env("TMPDIR", &tmp);
    let start = Instant::now();
    let mut child = command.spawn().context("cannot start the jail")?;
    let group = Pid::from_raw(child.id() as i32);
    let mut pause = Duration::from_micros(500);
    let timed_out = loop {
        if child.try_wait()?.is_some() {
            break false;
        }
        if start.elapsed() >= job.timeout || interrupt::asked() {
            break true;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    let _ = killpg(group, Signal::SIGKILL);
    if timed_out {
        // The jail is dead now, and with it its namespaces; without them the mark finds the rest.
        let _ = child.wait();
        sweep(&mark);
    }
    interrupt::check()?;
    let told = jail::end(&end);
    let wall = start.elapsed();
    let _ = fs::remove_dir_all(&tmp);
    let ended = match &told {
        _ if timed_out => End::TimedOut,
        Some(jail::End {
            signal: Some(signal),
            ..
        }) => End::Signal(*signal),
        Some(jail::End {
            code: Some(code), ..
        }) => End::Code(*code),
        _ => End::Lost,
    };
    let told = told.unwrap_or_default();
    Ok(Ended {
        end: ended,
        wall,
        cpu: Duration::from_millis(told.cpu_ms),
        leaks: told.leaks,
        warning: told.warning,
        program: job.command.first().cloned(),
        out: job.out.clone(),
    })
}

/// Most bytes of a directory for temporary files: the path of a Unix socket has at most 107, and a test puts
/// a directory of its own and a name behind it.
const SHORT: usize = 60;

/// Where a run has its temporary files: in `out`, unless that path is too long for a socket in it. Then it is
/// one of its own for each `out`, so that a run that was killed leaves nothing that the next does not remove.
fn scratch(out: &Path) -> PathBuf {
    let inside = out.join("tmp");
    if inside.as_os_str().len() <= SHORT {
        return inside;
    }
    let name = hash_of(out.as_os_str().as_encoded_bytes());
    std::env::temp_dir().join(format!("sabotage-{}", &name[..12]))
}

/// Kills what carries a mark until nothing does.
pub fn sweep(mark: &str) {
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        let left = jail::marked(mark);
        if left.is_empty() {
            return;
        }
        for pid in left {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Takes away what an outer cargo, test runner or tracer left in the environment, and sets what is ours.
fn ours(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let foreign = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
            "NEXTEST",
            "TRACE_",
            "GIT_",
        ];
        if foreign.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    for name in [
        "CARGO",
        "CARGO_PRIMARY_PACKAGE",
        "CARGO_TARGET_TMPDIR",
        "OUT_DIR",
        "LD_LIBRARY_PATH",
        "CARGO_BUILD_TARGET_DIR",
    ] {
        command.env_remove(name);
    }
    command
        .env("INSTA_UPDATE", "no")
        .env("RUST_BACKTRACE", "0")
        .env("CARGO_TERM_COLOR", "never");
}
