//! A client of somebody else's as a process, whose lines become reports.
//!
//! Owns the process and the reading of its lines. Refuses to know what a line means. Invariant: the process
//! and all that it started are gone when this is dropped.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::run::Run;

/// How the lines of a client are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// Each is a JSON object.
    Json,
    /// They are the stream itself, as curl passes it on.
    Raw,
    /// Nobody reads them.
    Ignored,
}

/// A running client.
#[derive(Debug)]
pub struct Client<'run> {
    run: &'run Run,
    child: Child,
    reader: Option<JoinHandle<()>>,
}

impl<'run> Client<'run> {
    /// Starts it; what it tells goes to `report`.
    pub fn start(
        run: &'run Run,
        mut command: Command,
        lines: Lines,
        report: impl Fn(Value) + Send + 'static,
    ) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        // Started by the run, so that no server's end takes it for an orphan of its own.
        let mut child = run
            .spawn(&mut command)
            .with_context(|| format!("cannot start {name}"))?;
        let out = BufReader::new(child.stdout.take().context("a pipe was asked for")?);
        let reader = std::thread::spawn(move || match lines {
            Lines::Json => {
                for line in out.lines().map_while(Result::ok) {
                    report(serde_json::from_str(&line).unwrap_or_else(|_| json!({ "line": line })));
                }
            }
            Lines::Raw => raw(out, report),
            Lines::Ignored => drop(std::io::copy(&mut { out }, &mut std::io::sink())),
        });
        Ok(Self {
            run,
            child,
            reader: Some(reader),
        })
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // A group that has ended already is gone.
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = self.child.wait();
        if let Ok(pid) = i32::try_from(self.child.id()) {
            self.run.untrack(pid);
        }
        // The pipe has ended with its writers: afterwards nothing of this client is told any more.
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

/// The stream as text: curl parses nothing, so that fields are taken here by the standard's rules (9.2.6).
fn raw(out: impl std::io::BufRead, report: impl Fn(Value)) {
    let (mut name, mut data, mut id, mut retry) = (String::new(), Vec::new(), String::new(), None);
    for line in out.lines().map_while(Result::ok) {
        if line.is_empty() {
            if !data.is_empty() {
                report(json!({
                    "kind": "event", "name": name, "id": id, "data": data.join("\n"), "retry": retry,
                }));
            }
            (name, data, retry) = (String::new(), Vec::new(), None);
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => data.push(value.to_owned()),
            "id" => value.clone_into(&mut id),
            "retry" => retry = value.parse::<u64>().ok(),
            _ => {}
        }
    }
}
