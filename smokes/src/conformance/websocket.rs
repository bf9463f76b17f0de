//! The Autobahn cases of PyPI's kosoku against `/ws`.
//!
//! Owns which cases are left out and why. Refuses to judge a case: kosoku does. Invariant: each case that
//! is left out is said.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::part::{Failure, Part};
use super::tools::Tools;
use crate::peer;
use crate::run::Run;
use crate::server::Server;

/// permessage-deflate, which this host refuses: a peer that offers it is answered without it, and kosoku
/// calls that unimplemented.
const LEFT_OUT: [&str; 2] = ["12.*", "13.*"];
/// The cases that are left, as kosoku of the pinned version has them.
const LEAST: usize = 301;
/// The largest message of the cases, 16 MiB, and some to spare.
const MESSAGE_BYTES: u64 = 17 << 20;

#[derive(Deserialize)]
struct Told {
    case: String,
    passed: bool,
    behavior: String,
    close: String,
    expected: String,
    got: String,
}

/// Runs every case that is not left out.
///
/// # Errors
/// A server that does not start, or lines that are none of the client's.
pub fn run(run: &Run, tools: &Tools) -> Result<Part> {
    const NAME: &str = "websocket";
    let server = Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 1000)
        .env("M0_WS_MAX_MESSAGE_BYTES", MESSAGE_BYTES)
        .env("M0_WS_MAX_FRAME_BYTES", MESSAGE_BYTES)
        .start()?;
    let path = peer::get(server.addr(), "/ws")?;
    if path.status() == 404 {
        server.stop()?;
        return Ok(Part::not_run(NAME, "this server has no /ws".to_owned()));
    }
    let python = match tools.kosoku() {
        Ok(python) => python,
        Err(missing) => {
            server.stop()?;
            return Ok(Part::not_run(NAME, format!("{missing:#}")));
        }
    };
    let text = include_str!("../../conformance/kosoku_client.py");
    let output = Command::new(python)
        .arg(tools.script("kosoku_client.py", text)?)
        .arg(format!("ws://{}/ws", server.addr()))
        .args(LEFT_OUT)
        .stdin(Stdio::null())
        .output()
        .context("cannot start kosoku")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kosoku failed: {}", errors.trim());
    let mut part = Part::new(NAME, LEAST);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let told: Told = serde_json::from_str(line).with_context(|| format!("kosoku: {line}"))?;
        let chapter = told.case.split('.').next().unwrap_or_default();
        let group = format!("RFC 6455, cases {chapter:>2}");
        if told.passed {
            part.passed(&group);
        } else {
            part.failed(Failure {
                group,
                section: format!("Autobahn {}", told.case),
                case: told.case,
                expected: told.expected,
                got: format!("{}, close {}: {}", told.behavior, told.close, told.got),
            });
        }
    }
    server.stop()?;
    Ok(part)
}
