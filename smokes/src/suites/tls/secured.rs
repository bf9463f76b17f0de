//! A server over TLS that can also be asked in clear.
//!
//! Owns its two files, and the unix socket beside its port. Knows no phase. Invariant: what is asked in clear is asked at
//! the unix socket.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::launch::Launch;
use crate::peer::{PATIENCE, Peer};
use crate::run::Run;
use crate::server::{Server, sum};
use crate::suites::http::launch;
use crate::suites::supervise::short_dir;
use crate::tls::{Client, Files, Pair};
use crate::until::{holds, until};

/// What a server over TLS is given: a certificate for TCP, and a unix socket at which it can be asked in clear.
pub(in crate::suites) struct Secured {
    dir: TempDir,
    pub(in crate::suites) files: Files,
    pub(in crate::suites) pair: Pair,
}

impl Secured {
    pub(in crate::suites) fn new() -> Result<Self> {
        let (dir, pair) = (short_dir()?, Pair::new()?);
        let files = Files::with(dir.path(), &pair)?;
        Ok(Self { dir, files, pair })
    }

    /// A server with its certificate, wherever it listens.
    pub(super) fn given<'run>(&self, run: &'run Run) -> Launch<'run> {
        launch(run)
            .env("M0_TLS_CERT", self.files.cert.display())
            .env("M0_TLS_KEY", self.files.key.display())
    }

    pub(in crate::suites) fn launch<'run>(&self, run: &'run Run) -> Launch<'run> {
        let list = format!("{}:0,unix:{}", Run::own_address(0), self.path().display());
        self.given(run).env("M0_BIND", list)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    /// A connection in clear.
    pub(in crate::suites) fn in_clear(&self) -> Result<Peer> {
        Peer::connect_unix(&self.path())
    }

    pub(in crate::suites) fn stats(&self) -> Result<Value> {
        let answer = self.in_clear()?.get("/stats")?.expect(200)?;
        serde_json::from_slice(&answer.body).context("/stats")
    }

    /// Awaits that so many handshakes are counted as failed.
    pub(in crate::suites) fn await_failed(&self, wanted: u64) -> Result<()> {
        until("the failed handshakes to be counted", PATIENCE, || {
            let stats = self.stats().map_err(|error| format!("{error:#}"))?;
            let failed = sum(&stats, "tls_failed").map_err(|error| format!("{error:#}"))?;
            holds(failed == wanted, || format!("{failed} of {wanted}"))
        })
    }

    /// Awaits that so many requests were taken up, of a server that nobody has asked for its figures before.
    pub(in crate::suites) fn await_requests(&self, wanted: u64) -> Result<()> {
        let mut looks = 0;
        until("the requests to be taken up", PATIENCE, || {
            looks += 1;
            let all = self.requests().map_err(|error| format!("{error:#}"))?;
            holds(all >= wanted + looks, || {
                format!("{all} requests, {looks} of them looks")
            })
        })
    }

    fn requests(&self) -> Result<u64> {
        sum(&self.stats()?, "requests")
    }

    pub(in crate::suites) fn publish(&self, note: &str) -> Result<()> {
        self.in_clear()?
            .post("/publish", note.as_bytes())?
            .expect(200)?;
        Ok(())
    }

    pub(in crate::suites) fn client(&self) -> Result<Client> {
        Client::of(&self.pair)
    }

    pub(in crate::suites) fn connect(&self, server: &Server<'_>) -> Result<Peer> {
        Peer::connect_tls(server.addr(), &self.client()?)
    }
}
