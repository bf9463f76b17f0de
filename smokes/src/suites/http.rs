//! Ordinary and odd requests of one connection: bodies, pipelines, half-closes, panics, health.
//!
//! Speaks raw HTTP/1.1 (RFC 9112). What is refused and cut stands in `limits`.
//! Invariant: every answer is matched to its request by order alone.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use m0_spec::{E1, E73, E76, E77, E85, E90, E91, W41, W42};
use nix::sys::signal::Signal;

use crate::answer;
use crate::audience::{one_connection_each, visit};
use crate::launch::Launch;
use crate::owned;
use crate::peer::{Closing, PATIENCE, Peer, get, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("http-pipelined-in-order", 30, &[E90], pipelined),
    beside(
        "http-refused-behind-others",
        30,
        &[W41, W42],
        refused_behind_others,
    ),
    beside("http-half-closed-is-answered", 30, &[E91], half_closed),
    beside(
        "http-panic-costs-one-answer",
        30,
        &[E73],
        panic_costs_one_answer,
    ),
    beside("http-health", 30, &[E76, E77], health),
    beside(
        "http-metrics-are-the-hosts",
        40,
        &[E85],
        metrics_are_the_hosts,
    ),
    beside("http-bodies-come-back", 30, &[E1], bodies_come_back),
];

pub(super) fn launch(run: &Run) -> Launch<'_> {
    Server::launch(run).env("M0_HOSTCHECK_PERIOD_MS", 1000)
}

fn pipelined(run: &Run) -> Result<Witness> {
    let server = launch(run).workers(2).start()?;
    let mut peer = Peer::connect(server.addr())?;
    let mut bytes = Vec::new();
    for index in 0..50 {
        // The slow ones stand in front: answers in order of completion would overtake.
        if index % 10 == 0 {
            bytes.extend(request("GET", "/sleep?ms=30", &[], b""));
        } else {
            bytes.extend(request(
                "POST",
                "/echo",
                &[],
                format!("body {index}").as_bytes(),
            ));
        }
    }
    peer.send(&bytes)?;
    for index in 0..50 {
        let answer = peer
            .answer()
            .with_context(|| format!("answer {index}"))?
            .expect(200)?;
        let wanted = if index % 10 == 0 {
            "slept".to_owned()
        } else {
            format!("body {index}")
        };
        let text = answer.text();
        ensure!(
            text.starts_with(&wanted),
            "answer {index} is {text:?}, not {wanted:?}"
        );
    }
    ensure!(peer.pending().is_empty(), "bytes behind the last answer");
    // The same in single bytes and in odd pieces.
    let pair = [
        request("GET", "/", &[], b""),
        request("POST", "/echo", &[], b"xyz"),
    ]
    .concat();
    for size in [1, 7, 40] {
        peer.send_slowly(&pair, size, Duration::from_millis(1))?;
        peer.answer()?.expect(200)?;
        ensure!(
            peer.answer()?.expect(200)?.text() == "xyz",
            "pieces of {size} bytes"
        );
    }
    server.stop()?;
    Ok(Witness::of("pipelined answers", 50))
}

fn refused_behind_others(run: &Run) -> Result<Witness> {
    let server = launch(run).start()?;
    let mut peer = Peer::connect(server.addr())?;
    let bad = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_vec();
    let parts = [
        request("GET", "/sleep?ms=50", &[], b""),
        request("POST", "/echo", &[], b"second"),
        bad,
        request("POST", "/publish", &[], b"never"),
    ];
    let tape = crate::tape::Tape::open(server.addr(), None)?;
    peer.send(parts.concat())?;
    peer.answer()?.expect(200)?;
    ensure!(
        peer.answer()?.expect(200)?.text() == "second",
        "the second answer"
    );
    let refusal = peer.answer()?.expect(400)?;
    ensure!(refusal.head.closes(), "kept alive behind a refusal");
    peer.closed(PATIENCE)?;
    // What stood behind it was not served: a beat later no note has come.
    let seen = tape.beats()?.len();
    tape.await_beats(seen + 2, PATIENCE)?;
    let items = tape.items();
    let note = items.iter().find(
        |taped| matches!(&taped.item, crate::events::Item::Event(event) if event.name == "note"),
    );
    ensure!(note.is_none(), "a request behind a refused one was served");
    server.stop()?;
    Ok(Witness::of("refusals behind answers", 1))
}

fn half_closed(run: &Run) -> Result<Witness> {
    let server = launch(run).start()?;
    let mut answered = 0;
    for path in ["/", "/sleep?ms=100", "/big?bytes=300000"] {
        let mut peer = Peer::connect(server.addr())?;
        peer.send(request("GET", path, &[], b""))?;
        peer.half_close()?;
        let answer = peer
            .answer()
            .with_context(|| format!("{path} after a half-close"))?;
        ensure!(answer.status() == 200, "{path}: status {}", answer.status());
        ensure!(
            peer.closed(PATIENCE)? == Closing::Fin,
            "{path}: reset behind the answer"
        );
        answered += 1;
    }
    // A half-close in the middle of a request is the end of it.
    let mut cut = Peer::connect(server.addr())?;
    cut.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")?;
    cut.half_close()?;
    cut.drained(PATIENCE)?;
    visit(server.addr(), PATIENCE)?;
    server.stop()?;
    Ok(Witness::of("answers after a half-close", answered))
}

fn panic_costs_one_answer(run: &Run) -> Result<Witness> {
    let server = launch(run).panics_allowed().start()?;
    let mut bystander = Peer::connect(server.addr())?;
    let pid = bystander.get("/pid")?.expect(200)?.text();
    let mut stream = crate::events::EventStream::open(server.addr(), None)?;
    let mut panics = 0;
    for _ in 0..5 {
        Peer::connect(server.addr())?.get("/panic")?.expect(500)?;
        panics += 1;
        ensure!(
            bystander.get("/pid")?.expect(200)?.text() == pid,
            "another process answers"
        );
    }
    // A panic behind another request on one connection costs its own answer only.
    let mut peer = Peer::connect(server.addr())?;
    peer.send(
        [
            request("GET", "/", &[], b""),
            request("GET", "/panic", &[], b""),
        ]
        .concat(),
    )?;
    peer.answer()?.expect(200)?;
    peer.answer()?.expect(500)?;
    stream.beat(PATIENCE)?;
    server.stop()?;
    Ok(Witness::of("panics", panics + 1))
}

fn health(run: &Run) -> Result<Witness> {
    let mut asked = 0;
    for (setting, status) in [("1", 200), ("0", 404)] {
        let server = launch(run).workers(2).env("M0_HEALTH", setting).start()?;
        let mut peer = Peer::connect(server.addr())?;
        for path in ["/healthz", "/readyz"] {
            let answer = peer.get(path)?;
            ensure!(
                answer.status() == status,
                "{path} is {} with M0_HEALTH={setting}",
                answer.status()
            );
            asked += 1;
        }
        peer.send("HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n")?;
        let head = peer.head(PATIENCE)?;
        ensure!(head.status == status, "HEAD /healthz is {}", head.status);
        server.stop()?;
    }
    Ok(Witness::of("health answers", asked))
}

/// The series of an answer with their values.
fn series(text: &str) -> BTreeMap<&str, u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect()
}

fn metrics_are_the_hosts(run: &Run) -> Result<Witness> {
    const ASKED: u64 = 20;
    let server = launch(run)
        .workers(2)
        .env("M0_METRICS", "/figures")
        .start()?;
    let mut on = one_connection_each(&server)?;
    let mut one = on.remove(&1).context("worker 1")?;
    let mut zero = on.remove(&0).context("worker 0")?;
    for _ in 0..ASKED {
        one.get("/")?.expect(200)?;
    }
    // Asked of the other worker, which had none of these requests.
    let first = zero.get("/figures")?.expect(200)?;
    let kind = first.head.field("content-type").unwrap_or_default();
    ensure!(
        kind.starts_with("application/openmetrics-text"),
        "content type {kind:?}"
    );
    let text = first.text();
    ensure!(text.ends_with("# EOF\n"), "no end: {text:?}");
    let before = series(&text);
    let requests = "m0_requests_total{slot=\"1\"}";
    let counted = before.get(requests).copied().unwrap_or(0);
    ensure!(counted >= ASKED, "{requests} is {counted} after {ASKED}");
    ensure!(
        before.get("m0_serving{slot=\"1\"}") == Some(&1),
        "slot 1 serves"
    );
    let dead = server.pid_of_slot(1)?;
    ensure!(owned::send(dead, Signal::SIGKILL), "no worker {dead}");
    server.await_heir(1, dead, PATIENCE)?;
    let text = zero.get("/figures")?.expect(200)?.text();
    let after = series(&text);
    ensure!(
        after.get("m0_respawns_total") == Some(&1),
        "respawns: {:?}",
        after.get("m0_respawns_total")
    );
    for (name, value) in &before {
        let now = after.get(name).with_context(|| format!("{name} is gone"))?;
        ensure!(
            !name.contains("_total") || now >= value,
            "{name} went back from {value} to {now}"
        );
    }
    ensure!(
        get(server.addr(), "/metrics")?.status() == 404,
        "a path that nobody chose"
    );
    server.stop()?;
    Ok(Witness::of("series", before.len()))
}

fn bodies_come_back(run: &Run) -> Result<Witness> {
    let server = launch(run).workers(2).start()?;
    let mut peer = Peer::connect(server.addr())?;
    let mut came_back = 0;
    for size in [0_usize, 1, 1_000, 65_536, 1_000_000] {
        let body: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let mut bytes = format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n")
            .into_bytes();
        bytes.extend_from_slice(&body);
        peer.send(&bytes)?;
        ensure!(
            peer.answer()?.expect(200)?.body == body,
            "{size} bytes came back otherwise"
        );
        // And chunked, in chunks that no buffer size divides.
        let mut bytes =
            b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for (index, chunk) in body.chunks(1_021).enumerate() {
            let extension = if index == 0 { ";name=\"v\"" } else { "" };
            bytes.extend_from_slice(format!("{:X}{extension}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\nX-Checksum: x\r\n\r\n");
        peer.send(&bytes)?;
        ensure!(
            peer.answer()?.expect(200)?.body == body,
            "{size} chunked bytes came back otherwise"
        );
        came_back += 2;
    }
    peer.send("GET / HTTP/1.0\r\n\r\n")?;
    let answer = peer.answer()?.expect(200)?;
    ensure!(
        answer::find(&answer.body, b"host_check").is_some(),
        "{:?}",
        answer.text()
    );
    peer.closed(PATIENCE)
        .context("HTTP/1.0 without keep-alive stays open")?;
    server.stop()?;
    Ok(Witness::of("bodies", came_back))
}
