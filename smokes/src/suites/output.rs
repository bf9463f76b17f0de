//! What the server writes, and that a reader who does not read never stops it.
//!
//! Knows the access log's fields and the shape of log lines.
//! Invariant: more is written than the unread pipe holds, so a blocking write would block.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{E73, E74, E75, E83, E84};
use nix::sys::signal::Signal;

use crate::ends::Ending;
use crate::launch::Output;
use crate::owned;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness, millis};
use crate::server::{Server, sum};
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("output-access-log", 20, &[E74], access_log),
    beside("output-unread-access-log", 30, &[E75], unread_access_log),
    beside("output-unread-log", 30, &[E75], unread_log),
    beside(
        "output-closed-descriptors",
        30,
        &[E75, E84],
        closed_descriptors,
    ),
    beside(
        "output-panic-is-logged-once",
        20,
        &[E83, E73],
        panic_is_logged_once,
    ),
];

/// Requests whose lines, at more than 150 bytes each, fill a pipe of 4 KiB and any buffer of a few hundred
/// KiB before it.
const MANY: usize = 3000;

/// Sends many requests on one connection; the longest time that one took.
fn many_requests(server: &Server<'_>, path: &str, status: u16, count: usize) -> Result<Duration> {
    let mut worst = Duration::ZERO;
    let mut peer = Peer::connect(server.addr())?;
    for _ in 0..count {
        let asked = Instant::now();
        let answer = peer.get(path)?.expect(status)?;
        worst = worst.max(asked.elapsed());
        if answer.head.closes() {
            peer = Peer::connect(server.addr())?;
        }
    }
    Ok(worst)
}

fn access_log(run: &Run) -> Result<Witness> {
    let mut lines = 0;
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_ACCESS_LOG", 1)
            .start()?;
        let mut peer = Peer::connect(server.addr())?;
        let mut wanted = Vec::new();
        let mut ask = |method: &str, path: &str, body: &[u8], status: u64| -> Result<()> {
            peer.send(request(method, path, &[], body))?;
            let answer = peer.answer()?;
            ensure!(
                u64::from(answer.status()) == status,
                "{method} {path}: {}",
                answer.status()
            );
            wanted.push((
                method.to_owned(),
                path.to_owned(),
                status,
                answer.body.len() as u64,
            ));
            Ok(())
        };
        ask("GET", "/", b"", 200)?;
        ask("GET", "/sleep?ms=60", b"", 200)?;
        ask("POST", "/echo", b"twelve bytes", 200)?;
        ask("GET", "/no-such-path", b"", 404)?;
        ask("GET", "/big?bytes=100000", b"", 200)?;
        ask("GET", "/%22quoted%22", b"", 404)?;
        let from = peer.local_addr()?.to_string();
        let (out, log) = (server.out().clone(), server.log().clone());
        server.stop()?;
        let seen = out.objects();
        ensure!(
            seen.len() == wanted.len(),
            "{} lines for {} requests",
            seen.len(),
            wanted.len()
        );
        for (line, (method, path, status, bytes)) in seen.iter().zip(&wanted) {
            let shown = line["path"].as_str().unwrap_or_default();
            let right = line["method"] == **method
                && path.starts_with(shown)
                && !shown.is_empty()
                && line["status"] == *status
                && line["bytes"] == *bytes
                && line["peer"] == *from
                && line["us"].is_u64()
                && line["slot"].is_u64()
                && line["time"]
                    .as_str()
                    .is_some_and(|time| time.ends_with('Z'));
            ensure!(
                right,
                "{method} {path} {status} {bytes} by {from} is logged as {line}"
            );
        }
        let slept = seen[1]["us"].as_u64().unwrap_or_default();
        ensure!(
            (60_000..5_000_000).contains(&slept),
            "60 ms are logged as {slept} us"
        );
        let doubled = log
            .objects()
            .iter()
            .filter(|line| line["path"].is_string())
            .count();
        ensure!(doubled == 0, "requests stand in the log as well");
        lines += seen.len();
    }
    Ok(Witness::of("access lines", lines))
}

fn unread_access_log(run: &Run) -> Result<Witness> {
    let mut dropped = 0;
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_ACCESS_LOG", 1)
            .stdout(Output::UnreadPipe)
            .start()?;
        ensure!(server.has_unread_pipe(), "nobody holds the pipe");
        let worst = many_requests(&server, "/", 200, MANY)?;
        run.within(
            &format!("slowest request with an unread access log at {workers}"),
            worst,
            Duration::from_millis(500),
        )?;
        dropped += until("dropped lines to be counted", PATIENCE, || {
            let stats = server.stats().map_err(|error| format!("{error:#}"))?;
            let dropped = sum(&stats, "log_dropped").map_err(|error| format!("{error:#}"))?;
            if dropped > 0 {
                Ok(dropped)
            } else {
                Err("none".to_owned())
            }
        })?;
        let ended = server.stop()?;
        run.within(
            &format!("exit at {workers}"),
            ended.after,
            Duration::from_secs(1),
        )?;
    }
    Ok(Witness::of("dropped lines", usize::try_from(dropped)?))
}

fn unread_log(run: &Run) -> Result<Witness> {
    let mut requests = 0;
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_BACKOFF_MS", 1)
            .env("M0_BACKOFF_MAX_MS", 1)
            .env("M0_CRASH_LIMIT", 1000)
            .stderr(Output::UnreadPipe)
            .panics_allowed()
            .start()?;
        // Each panic is a log line by a worker.
        let worst = many_requests(&server, "/panic", 500, MANY / 4)?;
        run.within(
            &format!("slowest request with an unread log at {workers}"),
            worst,
            Duration::from_millis(500),
        )?;
        requests += MANY / 4;
        if workers > 1 {
            // And each death is a line by the supervisor, which must not block either.
            for _ in 0..5 {
                let before = server.pid_of_slot(1)?;
                ensure!(owned::send(before, Signal::SIGKILL), "no worker {before}");
                until("the slot to be filled again", PATIENCE, || {
                    let now = server
                        .pid_of_slot(1)
                        .map_err(|error| format!("{error:#}"))?;
                    let alive = crate::proc::stat(now).is_some_and(|stat| !stat.is_zombie());
                    holds(now != before && alive, || format!("pid {now}"))
                })?;
            }
        }
        let ended = server.stop()?;
        run.record(&format!("exit at {workers}"), millis(ended.after), "ms");
    }
    Ok(Witness::of("requests beside an unread log", requests))
}

fn closed_descriptors(run: &Run) -> Result<Witness> {
    let mut servers = 0;
    for workers in [1, 2] {
        for (stdout, stderr) in [
            (Output::Closed, Output::File),
            (Output::BrokenPipe, Output::File),
        ] {
            let server = Server::launch(run)
                .workers(workers)
                .env("M0_ACCESS_LOG", 1)
                .stdout(stdout)
                .stderr(stderr)
                .start()?;
            for pid in server.worker_pids().into_iter().chain([server.pid()]) {
                let fds = crate::proc::fds(pid);
                let socket = (0..3).find(|fd| {
                    fds.get(fd)
                        .is_none_or(|target| target.starts_with("socket:"))
                });
                ensure!(
                    socket.is_none(),
                    "descriptor {socket:?} of {pid} is {fds:?}"
                );
            }
            let worst = many_requests(&server, "/", 200, 200)?;
            run.within(
                &format!("slowest request with stdout {stdout:?} at {workers}"),
                worst,
                Duration::from_millis(500),
            )?;
            server.stop()?;
            servers += 1;
        }
        // Both gone: the address must be known beforehand, since nobody hears the banner.
        for gone in [Output::Closed, Output::BrokenPipe] {
            let address = crate::launch::free_port(Run::own_address(0))?;
            let server = Server::launch(run)
                .workers(workers)
                .bind(address)
                .stdout(gone)
                .stderr(gone)
                .spawn()?;
            until("an answer without any output", PATIENCE, || {
                crate::audience::visit(address, PATIENCE).map_err(|error| format!("{error:#}"))
            })?;
            server.signal(Signal::SIGTERM)?;
            server
                .finish(&Ending::clean())
                .with_context(|| format!("both outputs {gone:?} at {workers}"))?;
            servers += 1;
        }
    }
    Ok(Witness::of("servers without output", servers))
}

fn panic_is_logged_once(run: &Run) -> Result<Witness> {
    let server = Server::launch(run).workers(2).panics_allowed().start()?;
    let mut peer = Peer::connect(server.addr())?;
    peer.get("/panic")?.expect(500)?;
    let line = server.await_log("panic", PATIENCE, |_| true)?;
    let message = line["message"].as_str().context("no message")?;
    let place = line["location"].as_str().context("no location")?;
    ensure!(!message.is_empty() && place.contains(".rs:"), "{line}");
    // Another request behind it, so that a second line would have come.
    crate::audience::visit(server.addr(), PATIENCE)?;
    let log = server.log().clone();
    server.stop()?;
    let count = log.events("panic").len();
    ensure!(count == 1, "{count} lines about one panic");
    Ok(Witness::of("panics", count))
}
