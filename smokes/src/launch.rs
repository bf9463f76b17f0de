//! How a server is started: its environment, where its output goes, what its process inherits.
//!
//! Owns the command line and the environment. Knows nothing of what the server does afterwards.
//! Invariant: the child's environment holds no `M0_` variable that the phase did not set, and carries
//! the mark by which everything it starts is recognised.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::fcntl::{FcntlArg, fcntl};

use crate::helper::Preparation;
use crate::lines::Lines;
use crate::owned::{self, MARK};
use crate::run::Run;
use crate::server::Server;

/// Where an output of the server goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Into a file that is kept and checked.
    File,
    /// Into a pipe of 4 KiB that nobody reads (stderr: nobody reads behind the banner).
    UnreadPipe,
    /// Into a pipe whose reader has gone.
    BrokenPipe,
    /// The descriptor is closed when the server starts.
    Closed,
}

/// A server that is about to be started.
#[derive(Debug)]
pub struct Launch<'run> {
    run: &'run Run,
    workers: u32,
    env: Vec<(String, String)>,
    arguments: Vec<String>,
    stdout: Output,
    stderr: Output,
    preparation: Preparation,
    panics_allowed: bool,
    foreign_lines_allowed: bool,
    address: Option<SocketAddr>,
    adopted: Option<TcpListener>,
    unix: Option<PathBuf>,
}

impl<'run> Launch<'run> {
    pub(crate) fn new(run: &'run Run) -> Self {
        Self {
            run,
            workers: 1,
            env: Vec::new(),
            arguments: Vec::new(),
            stdout: Output::File,
            stderr: Output::File,
            preparation: Preparation {
                parent: Some(owned::own_pid()),
                ..Preparation::default()
            },
            panics_allowed: false,
            foreign_lines_allowed: false,
            address: None,
            adopted: None,
            unix: None,
        }
    }

    /// `M0_WORKERS`. With one the process itself serves, with more it supervises.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// One variable more.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.env.push((name.to_owned(), value.to_string()));
        self
    }

    /// Arguments of the server.
    #[must_use]
    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|&each| each.to_owned()));
        self
    }

    /// Binds this address instead of one that the kernel chooses.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Binds a unix socket of this path.
    #[must_use]
    pub fn bind_unix(mut self, path: &Path) -> Self {
        self.unix = Some(path.to_owned());
        self
    }

    /// Hands over a listener as descriptor 3 with `LISTEN_FDS` and `LISTEN_PID` (sd_listen_fds(3)), and
    /// sets no `M0_BIND`.
    #[must_use]
    pub fn adopt(mut self, listener: TcpListener) -> Self {
        self.adopted = Some(listener);
        self
    }

    /// Hands over listeners (`NAME@ADDRESS`, `NAME@unix:PATH`) as [`adopt`](Self::adopt) does, with `LISTEN_FDNAMES`:
    /// their names, or these.
    #[must_use]
    pub fn activate(mut self, listeners: &[String], names: Option<&str>) -> Self {
        self.preparation.listen = listeners.to_vec();
        self.preparation.names = names.map(str::to_owned);
        self
    }

    /// Where stdout goes.
    #[must_use]
    pub fn stdout(mut self, output: Output) -> Self {
        self.stdout = output;
        self
    }

    /// Where stderr goes.
    #[must_use]
    pub fn stderr(mut self, output: Output) -> Self {
        self.stderr = output;
        self
    }

    /// Starts the server as process 1 of a pid namespace.
    #[must_use]
    pub fn as_process_one(mut self) -> Self {
        self.preparation.pid_one = true;
        self
    }

    /// Starts it with TERM, INT, HUP, CHLD, USR1 and USR2 blocked.
    #[must_use]
    pub fn with_blocked_signals(mut self) -> Self {
        self.preparation.block_signals = true;
        self
    }

    /// Starts it with SIGCHLD ignored, which the kernel keeps across exec (execve(2)).
    #[must_use]
    pub fn with_ignored_child_signal(mut self) -> Self {
        self.preparation.require_ignored_child = true;
        self
    }

    /// This phase makes handlers panic, so a panic in the log is no finding.
    #[must_use]
    pub fn panics_allowed(mut self) -> Self {
        self.panics_allowed = true;
        self
    }

    /// This phase makes the process die of a signal or a refusal of the runtime, whose last words are
    /// not the host's.
    #[must_use]
    pub fn foreign_lines_allowed(mut self) -> Self {
        self.foreign_lines_allowed = true;
        self
    }

    /// Starts the server and awaits its banner.
    pub fn start(self) -> Result<Server<'run>> {
        let mut server = self.spawn()?;
        server.await_ready(Duration::from_secs(10))?;
        Ok(server)
    }

    /// Starts the server and awaits nothing.
    pub fn spawn(self) -> Result<Server<'run>> {
        let index = self.run.next_index();
        let own = Run::own_address(index);
        let mark = owned::new_mark(index);
        let log = Lines::at(self.run.dir().join(format!("server-{index}.log")));
        let out = Lines::at(self.run.dir().join(format!("server-{index}.out")));
        let (stdout, out_reader) = Self::open(self.stdout, &out)?;
        let (stderr, log_reader) = Self::open(self.stderr, &log)?;
        let log_reader = log_reader
            .map(|reader| read_to_banner(reader, &log))
            .transpose()?;

        let mut chain: Vec<String> = Vec::new();
        let shell = match (&self.adopted, self.stdout, self.stderr) {
            // The listener comes as stdin; the shell's pid stays through every exec behind it.
            (Some(_), ..) => "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\" 3<&0 </dev/null",
            (None, Output::Closed, Output::Closed) => "exec \"$@\" >&- 2>&-",
            (None, Output::Closed, _) => "exec \"$@\" >&-",
            (None, _, Output::Closed) => "exec \"$@\" 2>&-",
            (None, ..) => "",
        };
        // The helper stands behind them: it dies with our process, and so does the server.
        if !shell.is_empty() {
            chain.extend(["/bin/sh", "-c", shell, "sh"].map(str::to_owned));
        }
        if self.preparation.require_ignored_child {
            // Not the shell's trap: dash takes SIGCHLD for its own.
            chain.extend(["/usr/bin/env", "--ignore-signal=CHLD"].map(str::to_owned));
        }
        chain.push(self.run.helper_bin().to_string_lossy().into_owned());
        chain.extend(self.preparation.arguments());
        chain.push(self.run.server_bin().to_string_lossy().into_owned());
        chain.extend(self.arguments.iter().cloned());
        let stdin = match &self.adopted {
            Some(listener) => OwnedFd::from(listener.try_clone()?).into(),
            None => Stdio::null(),
        };
        let mut command = Command::new(&chain[0]);
        command
            .args(&chain[1..])
            .process_group(0)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);

        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("M0_") {
                command.env_remove(name);
            }
        }
        let bind = match (&self.unix, self.address) {
            (Some(path), _) => format!("unix:{}", path.display()),
            (None, Some(address)) => address.to_string(),
            (None, None) => format!("{own}:0"),
        };
        if self.adopted.is_none() && self.preparation.listen.is_empty() {
            command.env("M0_BIND", bind);
        }
        command
            .env_remove("RUST_BACKTRACE")
            .env("M0_WORKERS", self.workers.to_string())
            .env(MARK, &mark)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        let spawned = Instant::now();
        let child = self
            .run
            .spawn(&mut command)
            .with_context(|| format!("start {}", self.run.server_bin().display()))?;
        drop(command);
        Ok(Server::new(
            self.run,
            crate::server::Parts {
                child,
                spawned,
                mark,
                log,
                out,
                workers: self.workers,
                address: self.address,
                pid_one: self.preparation.pid_one,
                panics_allowed: self.panics_allowed,
                foreign_lines_allowed: self.foreign_lines_allowed,
                log_is_whole: self.stderr == Output::File,
                unread: out_reader,
                log_reader,
            },
        ))
    }

    /// The child's end of one output, and our end of a pipe that we hold without reading.
    fn open(output: Output, lines: &Lines) -> Result<(Stdio, Option<PipeReader>)> {
        match output {
            Output::File | Output::Closed => {
                let file = File::create(lines.path())
                    .with_context(|| format!("create {}", lines.path().display()))?;
                Ok((file.into(), None))
            }
            Output::UnreadPipe => {
                let (reader, writer) = pipe()?;
                fcntl(writer.as_fd(), FcntlArg::F_SETPIPE_SZ(4096)).context("F_SETPIPE_SZ")?;
                Ok((writer.into(), Some(reader)))
            }
            Output::BrokenPipe => {
                let (reader, writer) = pipe()?;
                drop(reader);
                Ok((writer.into(), None))
            }
        }
    }
}

/// A thread that copies a log pipe into the file until the banner has come, and then holds the pipe
/// without reading on.
#[derive(Debug)]
pub(crate) struct BannerReader {
    stop: std::sync::mpsc::Sender<()>,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn read_to_banner(pipe: PipeReader, log: &Lines) -> Result<BannerReader> {
    use std::io::Write as _;
    let mut file = File::create(log.path())?;
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let mut reader = BufReader::with_capacity(1, pipe);
        let mut line = Vec::new();
        while reader
            .read_until(b'\n', &mut line)
            .is_ok_and(|count| count > 0)
        {
            // A log that cannot be kept shows as a banner that never came.
            let _ = file.write_all(&line);
            if line.windows(11).any(|window| window == b"\"listening\"") {
                break;
            }
            line.clear();
        }
        // Ends when the server's handle is dropped; until then the pipe stays open and unread.
        let _ = stopped.recv();
    });
    Ok(BannerReader {
        stop,
        thread: Some(thread),
    })
}

impl Drop for BannerReader {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A port of `address` that is free at this moment; nobody else uses that address.
pub fn free_port(address: Ipv4Addr) -> Result<SocketAddr> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?)
}
