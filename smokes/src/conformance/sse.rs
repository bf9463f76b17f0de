//! Event streams as four independent clients and a browser read them.
//!
//! Owns what each must see: beats in order, text as it was published, a cut made good by `Last-Event-ID`, the
//! wait that `retry` asks for, and the reset of another life of the host. Refuses to parse the stream where the
//! client does. Invariant: what is compared is what the client told, never what the relay saw of it alone.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::client::{Client, Lines};
use super::part::Part;
use super::tap::{Report, Tap};
use super::tools::Tools;
use crate::events::{Id, consecutive};
use crate::peer;
use crate::run::Run;
use crate::server::Server;
use crate::until::{holds, until};

/// Longest that a client may take to show what it must: a browser starts within it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Text that an encoder or a parser gets wrong first, and what a client must make of it.
const TEXT: &str =
    " a blank first\r\nthen CR\rthen LF\n\n: no comment\ndata: no field\nü ☃ 😀\ttab ";
const READ: &str = " a blank first\nthen CR\nthen LF\n\n: no comment\ndata: no field\nü ☃ 😀\ttab ";

/// What a client is.
struct Kind {
    name: &'static str,
    /// Whether it comes back by itself.
    reconnects: bool,
    lines: Lines,
    /// Its command for an address and the last id, and whether it is to be had at all.
    command: fn(&Tools, &Tap, Option<&str>) -> Result<Command>,
}

const CLIENTS: [Kind; 4] = [
    Kind {
        name: "npm eventsource",
        reconnects: true,
        lines: Lines::Json,
        command: |tools, tap, _| {
            let script = include_str!("../../conformance/eventsource.mjs");
            let mut command = Command::new(tools.node()?);
            command.arg(tools.script("eventsource.mjs", script)?);
            command.arg(tap.url("/events"));
            Ok(command)
        },
    },
    Kind {
        name: "PyPI httpx-sse",
        reconnects: false,
        lines: Lines::Json,
        command: |tools, tap, last| {
            let script = include_str!("../../conformance/httpx_sse_client.py");
            let mut command = Command::new(tools.python()?);
            command.arg(tools.script("httpx_sse_client.py", script)?);
            command.arg(tap.url("/events")).args(last);
            Ok(command)
        },
    },
    Kind {
        name: "PyPI sseclient-py",
        reconnects: false,
        lines: Lines::Json,
        command: |tools, tap, last| {
            let script = include_str!("../../conformance/sseclient_client.py");
            let mut command = Command::new(tools.python()?);
            command.arg(tools.script("sseclient_client.py", script)?);
            command.arg(tap.url("/events")).args(last);
            Ok(command)
        },
    },
    Kind {
        name: "curl",
        reconnects: false,
        lines: Lines::Raw,
        command: |_, tap, last| {
            let mut command = Command::new(Tools::curl()?);
            command.args(["--silent", "--no-buffer", "--fail"]);
            if let Some(last) = last {
                command
                    .arg("--header")
                    .arg(format!("Last-Event-ID: {last}"));
            }
            command.arg(tap.url("/events"));
            Ok(command)
        },
    },
];

const BROWSER: Kind = Kind {
    name: "Chromium",
    reconnects: true,
    lines: Lines::Ignored,
    command: |tools, tap, _| {
        let mut command = Command::new(Tools::chromium()?);
        let profile = tools.profile()?;
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
        ]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.arg(tap.page());
        Ok(command)
    },
};

/// The four clients.
pub fn clients(run: &Run, tools: &Tools) -> Result<Part> {
    all(run, tools, "sse", &CLIENTS)
}

/// The browser's own EventSource.
pub fn browser(run: &Run, tools: &Tools) -> Result<Part> {
    all(run, tools, "browser", &[BROWSER])
}

fn all(run: &Run, tools: &Tools, name: &'static str, kinds: &[Kind]) -> Result<Part> {
    let mut part = Part::new(name, kinds.len() * CASES);
    for kind in kinds {
        if let Err(why) = one(run, tools, kind, &mut part)? {
            // The others still run; a part of which something is missing did not run as a whole.
            let why = format!("{}: {why}", kind.name);
            part.not_run = Some(match part.not_run.take() {
                None => why,
                Some(others) => format!("{others}; {why}"),
            });
        }
    }
    Ok(part)
}

/// What each client is asked.
const CASES: usize = 5;

/// A client under way.
struct Session<'run> {
    tap: Tap,
    tools: &'run Tools,
    kind: &'run Kind,
    run: &'run Run,
    client: Option<Client<'run>>,
}

/// Runs one client through everything; the inner error says that it is not to be had.
fn one(run: &Run, tools: &Tools, kind: &Kind, part: &mut Part) -> Result<Result<(), String>> {
    const STANDARD: &str = "RFC 9110 and the HTML standard 9.2";
    let launch = || Server::launch(run).env("M0_HOSTCHECK_PERIOD_MS", 50);
    let first = launch().workers(2).start()?;
    let tap = Tap::open(first.addr())?;
    if let Err(missing) = (kind.command)(tools, &tap, None) {
        first.stop()?;
        return Ok(Err(format!("{missing:#}")));
    }
    let mut session = Session {
        tap,
        tools,
        kind,
        run,
        client: None,
    };
    session.start(None)?;
    let mut judge = |case: &str, outcome| part.judge(kind.name, case, STANDARD, outcome);
    judge("beats arrive once and in order", session.beats(6).map(drop));
    judge("text is read as it was published", session.text(&first));
    judge("a cut is made good by Last-Event-ID", session.cut());
    let second = launch().workers(1).start()?;
    judge(
        "the drain is told, and its retry is kept",
        session.drain(first, &second),
    );
    judge("another life of the host is a reset", session.reset());
    drop(session);
    second.stop()?;
    Ok(Ok(()))
}

impl Session<'_> {
    fn start(&mut self, last: Option<&str>) -> Result<()> {
        self.client = None;
        let command = (self.kind.command)(self.tools, &self.tap, last)?;
        let client = Client::start(self.run, command, self.kind.lines, self.tap.reporter())?;
        self.client = Some(client);
        Ok(())
    }

    fn events(&self, name: &str) -> Vec<Report> {
        let named = |report: &Report| report.what["kind"] == "event" && report.what["name"] == name;
        self.tap.reports().into_iter().filter(named).collect()
    }

    /// Awaits `count` beats of those that are not forgotten; their ids, which must follow each other.
    fn beats(&self, count: usize) -> Result<Vec<Id>> {
        let beats = until("beats", PATIENCE, || {
            let beats = self.events("beat");
            holds(beats.len() >= count, || {
                format!(
                    "{} of {count}: {:?}",
                    beats.len(),
                    self.tap.reports().last()
                )
            })?;
            Ok(beats)
        })?;
        let mut ids = Vec::new();
        for Report { what, .. } in beats {
            let id = what["id"].as_str().context("a beat without an id")?;
            let data = what["data"].as_str().unwrap_or_default();
            let data: Value = serde_json::from_str(data).context("a beat's data")?;
            ensure!(data["id"] == id, "id {id} with the data {data}");
            ids.push(Id::parse(id)?);
        }
        consecutive(&ids)?;
        Ok(ids)
    }

    fn text(&self, server: &Server<'_>) -> Result<()> {
        peer::post(server.addr(), "/publish", TEXT.as_bytes())?.expect(200)?;
        let note = until("the note", PATIENCE, || {
            let notes = self.events("note");
            notes
                .into_iter()
                .next()
                .ok_or_else(|| "none yet".to_owned())
        })?;
        let data = note.what["data"].as_str().unwrap_or_default();
        ensure!(data == READ, "{data:?} for {READ:?}");
        Ok(())
    }

    /// Every id that was told, beats and notes, in order.
    fn told(&self) -> Vec<(Instant, String)> {
        let reports = self.tap.reports();
        let id = |report: &Report| {
            let id = report.what["id"].as_str().filter(|id| !id.is_empty())?;
            let counts = report.what["name"] == "beat" || report.what["name"] == "note";
            counts.then(|| (report.at, id.to_owned()))
        };
        reports.iter().filter_map(id).collect()
    }

    fn cut(&mut self) -> Result<()> {
        let visits = self.tap.visits().len();
        let begun = self.told().len();
        self.tap.cut();
        if !self.kind.reconnects {
            self.client = None;
            let last = self.told().last().context("nothing was told")?.1.clone();
            self.start(Some(&last))?;
        }
        let visit = until("the next visit", PATIENCE, || {
            let all = self.tap.visits();
            all.get(visits)
                .cloned()
                .ok_or_else(|| format!("{} visits", all.len()))
        })?;
        let asked = visit.last_event_id.context("it sent no Last-Event-ID")?;
        until("events after the cut", PATIENCE, || {
            let told = self.told().len();
            holds(told >= begun + 6, || format!("{told} of {}", begun + 6))
        })?;
        let told = self.told();
        ensure!(
            told.iter().any(|(_, id)| *id == asked),
            "it asked for what follows {asked}, which it never told"
        );
        let ids: Result<Vec<Id>> = told.iter().map(|(_, id)| Id::parse(id)).collect();
        consecutive(&ids?)
    }

    fn drain(&mut self, first: Server<'_>, second: &Server<'_>) -> Result<()> {
        let before = self.tap.visits().len();
        self.tap.turn_to(second.addr());
        first.stop()?;
        until("the drain's event", PATIENCE, || {
            holds(!self.events("drain").is_empty(), || "none yet".to_owned())
        })?;
        let visit = self.tap.visits()[before - 1].clone();
        let sent = String::from_utf8_lossy(&visit.received).into_owned();
        let retry = sent.rsplit_once("retry: ").context("no retry was sent")?.1;
        let digits: String = retry.chars().take_while(char::is_ascii_digit).collect();
        let retry: u64 = digits.parse().context("the retry")?;
        if !self.kind.reconnects {
            let told = &self.events("drain")[0].what["retry"];
            ensure!(*told == retry, "retry {told} was read of {retry}");
            return Ok(());
        }
        let next = until("the visit after the drain", PATIENCE, || {
            self.tap
                .visits()
                .get(before)
                .cloned()
                .ok_or_else(|| "none yet".to_owned())
        })?;
        let ended = visit.ended.context("the drained visit goes on")?;
        let waited = next.at.saturating_duration_since(ended).as_millis();
        // Its own clock starts when it sees the end, which may be a little before the relay notes it.
        let least = u128::from(retry).saturating_sub(30);
        ensure!(
            (least..least + 5_000).contains(&waited),
            "it came back after {waited} ms, asked to wait {retry} ms"
        );
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        let last = self.told().last().context("nothing was told")?.1.clone();
        let old = Id::parse(&last)?;
        if !self.kind.reconnects {
            self.start(Some(&last))?;
        }
        until("the reset", PATIENCE, || {
            holds(!self.events("reset").is_empty(), || "none yet".to_owned())
        })?;
        let beats = until("beats of the new life", PATIENCE, || {
            let of_new = self
                .told()
                .into_iter()
                .filter_map(|(_, id)| Id::parse(&id).ok());
            let ids: Vec<Id> = of_new.filter(|id| id.epoch != old.epoch).collect();
            holds(ids.len() >= 4, || format!("{} beats", ids.len()))?;
            Ok(ids)
        })?;
        if beats.iter().any(|id| id.epoch != beats[0].epoch) {
            bail!("beats of three lives: {beats:?}");
        }
        consecutive(&beats)
    }
}
