//! WebSockets whose peers are slow, silent or greedy, and sessions that dawdle or fail.
//!
//! Knows the bounds by their variables. Invariant: another client of the same worker is served meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{K9, K10, K17, K18, K19, K20, K22};

use super::websocket::{CLOCK_MS, echoes, launch};
use crate::audience::one_connection_each;
use crate::ends::Ending;
use crate::events::EventStream;
use crate::peer::{Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::proc;
use crate::run::{Run, Witness, millis};
use crate::server::{Server, sum};
use crate::socket::{BINARY, CLOSE, HANDSHAKE, PING, PONG, Socket, TEXT, close};
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    alone("ws-slow-reader", 40, &[K18], slow_reader),
    alone("ws-busy-session", 40, &[K17, K10], busy_session),
    beside("ws-silent-peers", 30, &[K9, K10], silent_peers),
    beside("ws-failed-session", 20, &[K19], failed_session),
    beside("ws-limit-and-drain", 30, &[K20, K22], limit_and_drain),
];

/// The worker's own memory.
fn memory(server: &Server<'_>, slot: u32) -> Result<u64> {
    proc::anonymous_bytes(server.pid_of_slot(slot)?).context("the worker's memory")
}

fn slow_reader(run: &Run) -> Result<Witness> {
    const WINDOW: usize = 65_536;
    let server = launch(run)
        .env("M0_WS_WINDOW_BYTES", WINDOW)
        .env("M0_WRITE_TIMEOUT_MS", 700)
        .env("M0_WS_CLOSE_TIMEOUT_MS", 20_000)
        .start()?;
    let mut other = Socket::open(server.addr(), "/ws")?;
    let before = memory(&server, 0)?;
    let narrow = Peer::connect_narrow(server.addr(), 4096)?;
    let own = narrow.local_addr()?.to_string();
    let mut slow = Socket::over(narrow, "/ws/flood?bytes=60000", &[])?;
    let start = Instant::now();
    // Nobody else notices, before and after the slow one is given up.
    let mut delays = Vec::new();
    let mut cut = None;
    while cut.is_none() || delays.len() < 50 {
        let asked = Instant::now();
        other.send(TEXT, b"quick")?;
        ensure!(other.frame()?.payload == b"quick", "no echo");
        delays.push(asked.elapsed());
        cut = server.log().events("cut").into_iter().next();
        ensure!(start.elapsed() < PATIENCE, "the slow reader is never cut");
    }
    delays.sort();
    let median = delays[delays.len() / 2];
    run.within("echo of another", median, Duration::from_millis(50))?;
    let line = cut.context("a line")?;
    ensure!(line["peer"] == own && line["why"].is_string(), "{line}");
    let grown = memory(&server, 0)?.saturating_sub(before);
    run.at_most("growth", grown as f64, "bytes", (WINDOW * 32) as f64)?;
    // It reads at last: what was sent is whole and in order, then it is told.
    let mut numbers = 0_usize;
    let told = loop {
        let frame = slow.frame()?;
        if frame.first == CLOSE {
            break frame;
        }
        let number: usize = frame.text()?.parse()?;
        ensure!(number == numbers, "message {number} after {numbers}");
        ensure!(frame.payload.len() == 60_000, "{}", frame.payload.len());
        numbers += 1;
    };
    ensure!(told.close_code()? == 1008, "{told:?}");
    slow.peer.send(close(1008))?;
    ensure!(slow.peer.closed(PATIENCE)? == Closing::Fin, "reset");
    other.close(1000)?;
    server.stop()?;
    Ok(Witness::of("messages to the slow reader", numbers).and("echoes beside it", delays.len()))
}

fn busy_session(run: &Run) -> Result<Witness> {
    const BUSY_MS: u64 = 2_500;
    const MOST: usize = 256 << 20;
    let server = launch(run)
        .env("M0_WS_MAX_MESSAGE_BYTES", 1 << 30)
        .env("M0_WS_MAX_FRAME_BYTES", 1 << 30)
        // Shorter than the session is busy: a pong that waits in the socket is no silence.
        .env("M0_WS_PING_MS", 300)
        .env("M0_WS_PONG_TIMEOUT_MS", 300)
        .start()?;
    let before = memory(&server, 0)?;
    let mut socket = Socket::open(server.addr(), &format!("/ws/slow?ms={BUSY_MS}"))?;
    socket.send(TEXT, b"first")?;
    let asked = Instant::now();
    // The head of one large message, and as much of it as the kernels take.
    socket
        .peer
        .send(b"\x82\xff\0\0\0\0\x3f\xff\xff\xff\0\0\0\0")?;
    let sent = socket.peer.stuff(0, MOST, Duration::from_millis(500))?;
    let grown = memory(&server, 0)?.saturating_sub(before);
    ensure!(
        asked.elapsed() < Duration::from_millis(BUSY_MS),
        "the session was done before we looked"
    );
    ensure!(sent < MOST, "all of {sent} bytes were taken");
    run.record("taken by the kernels", sent as f64, "bytes");
    run.at_most("growth", grown as f64, "bytes", f64::from(2 << 20))?;
    echoes(&server)?;
    // It goes on once the session is done with the first.
    let frame = socket.frame()?;
    ensure!(frame.payload == b"first", "{frame:?}");
    let more = socket.peer.stuff(0, 8 << 20, Duration::from_secs(5))?;
    ensure!(more == 8 << 20, "{more} bytes were taken afterwards");
    drop(socket);
    server.stop()?;
    Ok(Witness::of("bytes not read", sent).and("bytes read after", more))
}

fn silent_peers(run: &Run) -> Result<Witness> {
    const PING_MS: u64 = 300;
    const PONG_BOUND: u64 = 400;
    let server = launch(run)
        .env("M0_WS_PING_MS", PING_MS)
        .env("M0_WS_PONG_TIMEOUT_MS", PONG_BOUND)
        .start()?;
    let mut answering = Socket::open(server.addr(), "/ws")?;
    let since = Instant::now();
    let mut silent = Socket::open(server.addr(), "/ws")?;
    ensure!(silent.frame()?.first == PING, "no ping");
    run.at_least(
        "ping",
        millis(since.elapsed()),
        "ms",
        PING_MS as f64 - CLOCK_MS,
    )?;
    run.within(
        "ping",
        since.elapsed(),
        Duration::from_millis(PING_MS + 800),
    )?;
    let pinged = Instant::now();
    let mut pongs = 0;
    // One answers each ping, the other none.
    while pongs < 4 {
        let frame = answering.frame()?;
        ensure!(frame.first == PING, "{frame:?}");
        answering.send(PONG, &frame.payload)?;
        pongs += 1;
    }
    let how = silent.peer.closed(PATIENCE)?;
    ensure!(how == Closing::Reset, "the silent one was ended with FIN");
    let line = server.await_log("cut", PATIENCE, |_| true)?;
    ensure!(line["why"] == "no pong in time", "{line}");
    run.within("cut", pinged.elapsed(), Duration::from_secs(5))?;
    answering.send(TEXT, b"alive")?;
    loop {
        let frame = answering.frame()?;
        if frame.first == TEXT {
            break;
        }
        answering.send(PONG, &frame.payload)?;
    }
    answering.close(1000)?;
    let cut = server.log().events("cut");
    ensure!(cut.len() == 1, "{cut:?}");
    server.stop()?;
    Ok(Witness::of("pongs", pongs).and("silent peers cut", 1))
}

fn failed_session(run: &Run) -> Result<Witness> {
    let server = launch(run).panics_allowed().start()?;
    let mut socket = Socket::open(server.addr(), "/ws/panic")?;
    socket.send(BINARY, b"go")?;
    let frame = socket.frame()?;
    ensure!(frame.close_code()? == 1011, "{frame:?}");
    socket.peer.send(close(1011))?;
    ensure!(socket.peer.closed(PATIENCE)? == Closing::Fin, "reset");
    let stats = server.stats()?;
    ensure!(sum(&stats, "panics")? == 1, "panics in {stats}");
    echoes(&server)?;
    server.stop()?;
    Ok(Witness::of("panics", 1))
}

fn limit_and_drain(run: &Run) -> Result<Witness> {
    let server = launch(run).workers(2).env("M0_MAX_STREAMS", 2).start()?;
    // One WebSocket and one event stream fill a worker.
    let mut held: Vec<Socket> = Vec::new();
    let mut streams = Vec::new();
    for peer in one_connection_each(&server)?.into_values() {
        held.push(Socket::over(peer, "/ws", &[])?);
    }
    for peer in one_connection_each(&server)?.into_values() {
        streams.push(EventStream::over(peer, None)?);
    }
    // A stream counts once it is taken over, which its head does not wait for.
    until("four streams to be held", PATIENCE, || {
        let stats = server.stats().map_err(|error| format!("{error:#}"))?;
        let held = sum(&stats, "streams").map_err(|error| format!("{error:#}"))?;
        holds(held == 4, || format!("{held} streams"))
    })?;
    let mut refused = 0;
    let mut visitors = one_connection_each(&server)?;
    for visitor in visitors.values_mut() {
        visitor.send(request("GET", "/ws", &HANDSHAKE, b""))?;
        let answer = visitor.answer()?.expect(503)?;
        ensure!(answer.head.field("retry-after").is_some(), "{answer:?}");
        let answer = visitor.get("/events")?.expect(503)?;
        ensure!(answer.head.field("retry-after").is_some(), "{answer:?}");
        refused += 2;
    }
    for visitor in visitors.values_mut() {
        visitor.send(request("GET", "/sleep?ms=1000", &[], b""))?;
    }
    server.signal(nix::sys::signal::Signal::SIGTERM)?;
    for socket in &mut held {
        let frame = socket.frame()?;
        ensure!(frame.close_code()? == 1001, "{frame:?}");
        socket.peer.send(close(1001))?;
        ensure!(socket.peer.closed(PATIENCE)? == Closing::Fin, "reset");
    }
    // There is room again, and still nobody new is let in.
    for _ in 0..4 {
        let answer = Socket::refused(server.addr(), "/ws", &HANDSHAKE)?;
        ensure!(answer.status() == 503, "{answer:?} in the drain");
        ensure!(answer.head.field("retry-after").is_some(), "{answer:?}");
        refused += 1;
    }
    for visitor in visitors.values_mut() {
        visitor.answer()?.expect(200)?;
    }
    drop(visitors);
    server.finish(&Ending::clean())?;
    Ok(Witness::of("refused", refused).and("held", held.len()))
}
