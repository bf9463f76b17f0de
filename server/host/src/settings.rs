//! Valid settings: what every other file of the host works from.
//!
//! Owns the typed form of the variables and the contradictions between them. Refuses to know text:
//! `config` parses. Invariant: a `Settings` that exists has passed every check that needs no system.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use m0_wire::proxy::Networks;
use m0_wire::ws::handshake::Origins;

use crate::middleware::Middleware;
use crate::refusal::Refusal;

/// Where the host listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bind {
    /// A TCP address; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl Bind {
    fn is_unix(&self) -> bool {
        matches!(self, Bind::Unix(_))
    }

    /// Whether the port is left to the system, which never gives one twice.
    fn is_chosen_by_the_system(&self) -> bool {
        matches!(self, Bind::Tcp(address) if address.port() == 0)
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bind::Tcp(address) => address.fmt(f),
            Bind::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Least serious event that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A promise was broken or the process is about to end badly.
    Error,
    /// Something was lost, cut or refused.
    Warn,
    /// The life of processes.
    Info,
    /// Everything else.
    Debug,
}

impl Level {
    /// The word used in the log and in `M0_LOG`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

/// Settings of one host, valid as a whole. Durations and sizes have the ranges of `--help`.
#[derive(Debug, Clone)]
#[expect(
    missing_docs,
    reason = "each field is the variable of the same name; variables.rs holds the one help text"
)]
pub struct Settings {
    /// At least one, and none twice.
    pub bind: Vec<Bind>,
    /// Whether `M0_BIND` or `--bind` was given (adopted sockets exclude it).
    pub bind_given: bool,
    pub workers: usize,
    pub accept_share: bool,
    pub drain: Duration,
    pub access_log: bool,
    pub log: Level,
    pub health: bool,
    pub metrics: Option<String>,
    pub request_id: bool,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub http2: bool,
    pub http2_max_streams: u32,
    pub backlog: i32,
    pub first_byte_timeout: Duration,
    pub head_timeout: Duration,
    pub body_timeout: Duration,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
    pub linger: Duration,
    pub max_head_bytes: usize,
    pub max_uri_bytes: usize,
    pub max_headers: usize,
    pub max_body_bytes: u64,
    pub max_connections: usize,
    pub max_requests_per_connection: u64,
    pub max_streams: usize,
    pub outbox_bytes: usize,
    pub replay_bytes: usize,
    pub heartbeat: Duration,
    pub proxy_from: Networks,
    pub proxy_required: bool,
    /// Whether `M0_PROXY_REQUIRED` or `--proxy-required` was given (it is about the peers of `M0_PROXY_FROM`).
    pub proxy_required_given: bool,
    pub ws_max_message_bytes: usize,
    pub ws_max_frame_bytes: usize,
    pub ws_max_fragments: u32,
    pub ws_window_bytes: usize,
    pub ws_ping: Duration,
    pub ws_pong_timeout: Duration,
    pub ws_close_timeout: Duration,
    pub ws_origins: Origins,
    pub backoff: Duration,
    pub backoff_max: Duration,
    pub healthy: Duration,
    pub crash_limit: u32,
    pub journal: Option<PathBuf>,
    /// What the application's code asked for, which no variable sets.
    pub(crate) middleware: Middleware,
}

/// Paths that the host answers itself unless `M0_HEALTH` is 0.
pub(crate) const HEALTH_PATHS: [&str; 2] = ["/healthz", "/readyz"];

impl Settings {
    /// Pairs of settings that exclude each other.
    pub(crate) fn contradictions(&self) -> Vec<Refusal> {
        let mut found = Vec::new();
        let twice = |&(index, bind): &(usize, &Bind)| {
            !bind.is_chosen_by_the_system() && self.bind[..index].contains(bind)
        };
        if let Some((_, bind)) = self.bind.iter().enumerate().find(twice) {
            let all: Vec<String> = self.bind.iter().map(Bind::to_string).collect();
            found.push(Refusal::of(
                "M0_BIND",
                all.join(","),
                format!("names {bind} twice; want each address once"),
            ));
        }
        if self.backoff > self.backoff_max {
            found.push(Refusal::of(
                "M0_BACKOFF_MS",
                self.backoff.as_millis().to_string(),
                format!(
                    "is above M0_BACKOFF_MAX_MS={}; want it at or below",
                    self.backoff_max.as_millis()
                ),
            ));
        }
        if self.proxy_required_given && self.proxy_from.is_empty() {
            found.push(Refusal::of(
                "M0_PROXY_REQUIRED",
                u8::from(self.proxy_required).to_string(),
                "is about named proxies, of which there is none with M0_PROXY_FROM=: want both, or neither",
            ));
        }
        found.extend(self.tls_contradiction());
        if let Some(path) = &self.metrics
            && self.health
            && HEALTH_PATHS.contains(&path.as_str())
        {
            found.push(Refusal::of(
                "M0_METRICS",
                path.clone(),
                "is answered by the host already; want another path, or M0_HEALTH=0".to_owned(),
            ));
        }
        if self.max_uri_bytes >= self.max_head_bytes {
            found.push(Refusal::of(
                "M0_MAX_URI_BYTES",
                self.max_uri_bytes.to_string(),
                format!(
                    "leaves no room in a head of M0_MAX_HEAD_BYTES={}; want it below",
                    self.max_head_bytes
                ),
            ));
        }
        found.extend(self.middleware.refusals());
        found
    }

    fn tls_contradiction(&self) -> Option<Refusal> {
        let (name, path, why) = match (&self.tls_cert, &self.tls_key) {
            (Some(cert), None) => (
                "M0_TLS_CERT",
                cert,
                "is a certificate without its key; want M0_TLS_KEY too, or neither",
            ),
            (None, Some(key)) => (
                "M0_TLS_KEY",
                key,
                "is a key without its certificate; want M0_TLS_CERT too, or neither",
            ),
            // Whoever set them thinks that somebody is served over TLS.
            (Some(cert), Some(_)) if self.bind.iter().all(Bind::is_unix) => (
                "M0_TLS_CERT",
                cert,
                "is for TCP, and M0_BIND names unix sockets alone; want an address of TCP there, or no certificate",
            ),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(Refusal::of(name, path.display().to_string(), why))
    }
}
