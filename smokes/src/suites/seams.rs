//! Between two stages of a connection: an answer that has ended and is not out, a stream whose request goes on.
//!
//! Speaks raw HTTP/1.1. Knows that `/echo` answers with one piece as large as the request's body, so that
//! all of it waits in the engine while the peer does not read.
//! Invariant: when the host is disturbed, the first stage is over and the second is not.

use std::fs;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use m0_spec::{E93, E94, E95, E96, S28};
use nix::sys::signal::Signal;

use super::drain::launch;
use super::supervise::short_dir;
use crate::answer::Chunk;
use crate::ends::{Ending, code};
use crate::peer::{Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside(
        "drain-sends-what-is-buffered",
        30,
        &[E93],
        sends_what_is_buffered,
    ),
    beside(
        "drain-answers-a-half-sent-head",
        30,
        &[E96],
        answers_a_half_sent_head,
    ),
    beside(
        "http-idle-begins-after-the-answer",
        30,
        &[E94],
        idle_begins_after_the_answer,
    ),
    beside("stream-with-a-late-body", 30, &[S28], late_body),
    beside("drain-removes-its-socket-file", 30, &[E95], socket_file),
];

/// More than the sockets of a connection take while nobody reads (`tcp_wmem`, `tcp_rmem`).
const LARGE: usize = 6_000_000;

/// A connection whose answer has begun to arrive, and of which the most waits inside the host.
fn unread_answer(server: &Server<'_>) -> Result<Peer> {
    let mut peer = Peer::connect_narrow(server.addr(), 65_536)?;
    peer.send(request("POST", "/echo", &[], &vec![b'e'; LARGE]))?;
    let head = peer.head(PATIENCE)?;
    ensure!(head.status == 200, "/echo is {}", head.status);
    Ok(peer)
}

/// Reads the rest: all of it, before the connection ends.
fn whole(peer: &mut Peer, bound: Duration) -> Result<Closing> {
    let (bytes, how) = peer.drained(bound)?;
    ensure!(
        bytes == LARGE,
        "{bytes} bytes of {LARGE} came before the connection ended ({how:?})"
    );
    Ok(how)
}

fn sends_what_is_buffered(run: &Run) -> Result<Witness> {
    let mut answers = 0;
    for workers in [1, 2] {
        let server = launch(run, workers).start()?;
        let mut peer = unread_answer(&server)?;
        let log = server.log().clone();
        server.signal(Signal::SIGTERM)?;
        server.await_log("stopping", PATIENCE, |_| true)?;
        // Time for a drain that takes the connection for an idle one to close it.
        std::thread::sleep(Duration::from_millis(200));
        let how = whole(&mut peer, PATIENCE).with_context(|| format!("at {workers}"))?;
        ensure!(how == Closing::Fin, "reset behind the answer");
        server.finish(&Ending::clean())?;
        let cut: u64 = log
            .events("drained")
            .iter()
            .filter_map(|line| line["requests_cut"].as_u64())
            .sum();
        ensure!(cut == 0, "{cut} requests were cut");
        answers += 1;
    }
    Ok(Witness::of("unread answers sent in the drain", answers))
}

fn answers_a_half_sent_head(run: &Run) -> Result<Witness> {
    let mut answers = 0;
    let whole = request("GET", "/pid", &[], b"");
    let (first, rest) = whole.split_at(whole.len() / 2);
    for workers in [1, 2] {
        let server = launch(run, workers).start()?;
        let mut fresh = Peer::connect(server.addr())?;
        let mut kept = Peer::connect(server.addr())?;
        kept.get("/pid")?.expect(200)?;
        for peer in [&mut fresh, &mut kept] {
            peer.send(first)?;
        }
        // What was sent before it has arrived before it: one loop reads both.
        for _ in 0..workers * 4 {
            crate::peer::get(server.addr(), "/pid")?.expect(200)?;
        }
        server.signal(Signal::SIGTERM)?;
        server.await_log("stopping", PATIENCE, |_| true)?;
        // Time for a drain that takes the connections for idle ones to close them.
        std::thread::sleep(Duration::from_millis(200));
        for (what, peer) in [("first", &mut fresh), ("second", &mut kept)] {
            peer.send(rest)
                .and_then(|()| peer.answer()?.expect(200))
                .with_context(|| format!("the {what} request of a connection at {workers}"))?;
            ensure!(
                peer.closed(PATIENCE)? == Closing::Fin,
                "{what}: reset behind the answer"
            );
            answers += 1;
        }
        server.finish(&Ending::clean())?;
    }
    Ok(Witness::of(
        "half-sent heads answered in the drain",
        answers,
    ))
}

fn idle_begins_after_the_answer(run: &Run) -> Result<Witness> {
    const IDLE: Duration = Duration::from_millis(300);
    let server = launch(run, 1)
        .env("M0_IDLE_TIMEOUT_MS", IDLE.as_millis())
        .start()?;
    let mut peer = unread_answer(&server)?;
    // The pause of the reader is longer than an idle connection may be, and far below the write deadline.
    std::thread::sleep(IDLE * 3);
    // Afterwards the connection is idle, and closed for that.
    let how = whole(&mut peer, PATIENCE)?;
    ensure!(how == Closing::Fin, "reset behind the answer");
    server.stop()?;
    Ok(Witness::of("bytes after a reader's pause", LARGE))
}

fn late_body(run: &Run) -> Result<Witness> {
    const BODY: Duration = Duration::from_millis(300);
    let server = launch(run, 1)
        .env("M0_BODY_TIMEOUT_MS", BODY.as_millis())
        .start()?;
    let mut peer = Peer::connect(server.addr())?;
    peer.send(b"GET /events HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")?;
    let head = peer.head(PATIENCE)?;
    ensure!(head.status == 200, "/events is {}", head.status);
    peer.send(b"hello")?;
    // At one beat each 50 ms these are several times the body's deadline.
    let mut beats = 0;
    while beats < 30 {
        match peer.chunk(PATIENCE) {
            Ok(Chunk::Data(_)) => beats += 1,
            Ok(Chunk::Last) => anyhow::bail!("the stream ended after {beats} beats"),
            Err(error) => {
                return Err(error.context(format!("the stream was cut after {beats} beats")));
            }
        }
    }
    let mut cut = server.log().events("cut");
    ensure!(cut.is_empty(), "cut: {:?}", cut.remove(0));
    server.stop()?;
    Ok(Witness::of("beats beyond the body's deadline", beats))
}

fn socket_file(run: &Run) -> Result<Witness> {
    let mut ends = 0;
    let sockets = short_dir()?;
    for workers in [1, 2] {
        let path = sockets.path().join(format!("socket-{workers}"));
        let launch = || launch(run, workers).bind_unix(&path);
        for knob in ["M0_HOSTCHECK_MAKE_RAISES", "M0_HOSTCHECK_PRODUCER_RAISES"] {
            let refusing = launch().env(knob, 1).spawn()?;
            refusing.finish(&Ending::code(code::CONFIG))?;
            ensure!(
                !path.exists(),
                "{knob} at {workers}: it left its socket file"
            );
            ends += 1;
        }
        let server = launch().spawn()?;
        server.await_log("listening", PATIENCE, |_| true)?;
        fs::remove_file(&path)?;
        let _successor = UnixListener::bind(&path)?;
        server.check_running()?;
        server.signal(Signal::SIGTERM)?;
        server.finish(&Ending::clean())?;
        ensure!(
            path.exists(),
            "at {workers} it removed a socket file of another"
        );
        fs::remove_file(&path)?;
        ends += 1;
    }
    Ok(Witness::of("ends of a host on a unix socket", ends))
}
