//! What a probe is given: the binaries, the number of rounds, a place to show progress.
//!
//! Owns the paths of what is driven. Refuses to build: `cargo xtask probe` does, and all of it at once.
//! Invariant: every binary comes from one directory, so the peers are built as what stands beside them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::callgrind::{self, VALGRIND};
use crate::server::{Launch, Server};

/// A period so long that a producer beats once.
pub const NEVER_MS: u64 = 3_600_000;

/// What one probe runs with.
#[derive(Debug)]
pub struct Session {
    bin_dir: PathBuf,
    rounds: usize,
    seconds: Option<u16>,
    shots: Option<PathBuf>,
    bar: ProgressBar,
}

impl Session {
    /// Binaries of this directory, so many rounds, so many seconds where a probe measures for a time, pictures into
    /// `shots` where there is one; progress is shown where standard error is a terminal.
    pub fn new(
        bin_dir: PathBuf,
        rounds: usize,
        seconds: Option<u16>,
        shots: Option<PathBuf>,
    ) -> Self {
        let bar = ProgressBar::new(rounds as u64);
        let style = ProgressStyle::with_template("{spinner} {pos}/{len} rounds {msg} [{elapsed}]");
        bar.set_style(style.expect("the template is right"));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self {
            bin_dir,
            rounds,
            seconds,
            shots,
            bar,
        }
    }

    /// The numbers of the rounds, shown as they begin.
    pub fn rounds(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rounds).inspect(|&round| self.bar.set_position(round as u64))
    }

    /// How long a probe measures that measures for a time: as the command line says, or else the probe's own number.
    pub fn seconds(&self, own: u16) -> u16 {
        self.seconds.unwrap_or(own)
    }

    /// Shows what is being done.
    pub fn shows(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Keeps a picture, a PNG, where pictures are wanted.
    ///
    /// # Errors
    ///
    /// When the directory or the file cannot be written.
    pub fn shot(&self, name: &str, png: &[u8]) -> Result<()> {
        let Some(dir) = &self.shots else {
            return Ok(());
        };
        let path = dir.join(format!("{name}.png"));
        std::fs::create_dir_all(dir)
            .and_then(|()| std::fs::write(&path, png))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Ends the progress line.
    pub fn close(&self) {
        self.bar.finish_and_clear();
    }

    /// host_check with so many workers and a port of its own; `also` adds variables.
    pub fn host_check(
        &self,
        workers: usize,
        also: impl FnOnce(Launch<'_>) -> Launch<'_>,
    ) -> Result<Server> {
        self.host("host_check", workers, also)
    }

    /// An example of `m0-host` under `serve_service`, one worker: `router`, or `service` without a router.
    pub fn example(&self, name: &str) -> Result<Server> {
        self.host(&format!("examples/{name}"), 1, |launch| launch)
    }

    /// Where a program stands that is no server.
    pub fn binary(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }

    fn host(
        &self,
        name: &str,
        workers: usize,
        also: impl FnOnce(Launch<'_>) -> Launch<'_>,
    ) -> Result<Server> {
        let path = self.bin_dir.join(name);
        let launch = Launch::of(&path)
            .env("M0_BIND", "127.0.0.1:0")
            .env("M0_WORKERS", workers);
        also(launch).start()
    }

    /// A peer that beats every so many milliseconds.
    pub fn peer(&self, peer: Peer, period_ms: u64) -> Result<Server> {
        let path = self.bin_dir.join(peer.binary());
        let mut launch = Launch::of(&path).arg(period_ms);
        if peer == Peer::Nchan {
            launch = launch.arg("nchan");
        }
        launch.start()
    }

    /// A program whose instructions valgrind counts into the file `out`; one worker, and a beat at its start alone.
    ///
    /// # Errors
    ///
    /// When the program or valgrind is not there, or it does not listen.
    pub fn counted(&self, program: Program, out: &Path) -> Result<Server> {
        let path = match program {
            Program::HostCheck => self.bin_dir.join("host_check"),
            Program::Example(name) => self.bin_dir.join("examples").join(name),
            Program::Peer(peer) => self.bin_dir.join(peer.binary()),
        };
        ensure!(
            path.exists(),
            "cannot start {}; build it with `cargo xtask probe`",
            path.display()
        );
        callgrind::ensure_installed(VALGRIND)?;
        let [tool, file] = callgrind::arguments(out);
        let launch = Launch::of(Path::new(VALGRIND))
            .arg(tool)
            .arg(file)
            .arg(path.display());
        let launch = match program {
            Program::Peer(_) => launch.arg(NEVER_MS),
            Program::HostCheck => alone(launch).env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS),
            Program::Example(_) => alone(launch),
        };
        launch.start()
    }
}

/// A host with one worker and a port of its own.
fn alone(launch: Launch<'_>) -> Launch<'_> {
    launch.env("M0_BIND", "127.0.0.1:0").env("M0_WORKERS", 1)
}

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The application of the smokes.
    HostCheck,
    /// An example of `m0-host`.
    Example(&'static str),
    /// A peer.
    Peer(Peer),
}

/// What we are measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// `axum::serve` with its defaults on one thread.
    Axum,
    /// actix-web with one worker.
    Actix,
    /// ntex on tokio with one worker.
    Ntex,
    /// nginx with one worker, where it is installed.
    Nginx,
    /// The same with its module for streams, nchan, where that is installed, too.
    Nchan,
    /// A bare epoll loop with answers that stand ready: the floor.
    Raw,
}

impl Peer {
    /// Its name in a table.
    ///
    /// ```
    /// assert_eq!(probes::session::Peer::Raw.name(), "raw epoll");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Axum => "axum",
            Self::Actix => "actix-web",
            Self::Ntex => "ntex",
            Self::Nginx => "nginx",
            Self::Nchan => "nchan",
            Self::Raw => "raw epoll",
        }
    }

    fn binary(self) -> &'static str {
        match self {
            Self::Axum => "peer_axum",
            Self::Actix => "peer_actix",
            Self::Ntex => "peer_ntex",
            Self::Nginx | Self::Nchan => "peer_nginx",
            Self::Raw => "peer_raw",
        }
    }
}

/// Raises the limit of open descriptors as far as this process may; what it starts inherits it.
pub fn raise_descriptor_limit() -> Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("getrlimit")?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("setrlimit")
}
