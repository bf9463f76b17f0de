//! How connections over TLS fail and end: handshakes that are none, the drain, and peers that take their time.
//!
//! Knows alerts by their bytes (RFC 8446 section 6) and an end in order by its close_notify. Invariant: a good client is
//! served beside each of the bad ones, and an end in order is told apart from a cut.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::Method;
use m0_spec::{E164, E165, E166, E167};
use nix::sys::signal::Signal;

use super::drain::AT_ONCE;
use super::tls::{Secured, note};
use crate::ends::Ending;
use crate::events::{EventStream, Item};
use crate::http2::{self, PREFACE};
use crate::peer::{Arrival, Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::run::{Run, Witness};
use crate::server::sum;
use crate::socket::{BINARY, Socket};
use crate::tls::{Client, VERSIONS};
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("tls-handshakes-never-finished", 40, &[E164], never_finished),
    beside("tls-what-is-no-handshake", 40, &[E165], no_handshake),
    alone("tls-drain", 60, &[E166], drain),
    beside("tls-large-and-slow", 60, &[E167], large_and_slow),
];

/// The type of a record that is an alert, and the level of one that is the last.
const ALERT: u8 = 21;
const FATAL: u8 = 2;

/// Everything that comes, as it comes, until the end.
fn rest(peer: &mut Peer) -> Result<(Vec<u8>, Closing)> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match peer.fill(deadline)? {
            Arrival::Bytes(_) => {}
            Arrival::Closed(how) => return Ok((peer.pending().to_vec(), how)),
            Arrival::Silence => anyhow::bail!("still open: {:?}", peer.pending()),
        }
    }
}

fn never_finished(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_millis(400);
    let secured = Secured::new()?;
    let server = secured
        .launch(run)
        .env("M0_HEAD_TIMEOUT_MS", BOUND.as_millis())
        .env("M0_FIRST_BYTE_TIMEOUT_MS", BOUND.as_millis())
        .start()?;
    let hello = secured.client()?.hello()?;
    let pause = BOUND / 10;
    let cases: [(&str, &[u8], usize); 3] = [
        ("half a hello", &hello[..20], hello.len()),
        ("a hello and nothing else", &hello, hello.len()),
        ("a hello in drops", &hello, hello.len() / 25),
    ];
    let mut cut = 0;
    for (what, bytes, size) in cases {
        let mut peer = Peer::connect(server.addr())?;
        let began = Instant::now();
        // The last drops come too late to be taken.
        let _ = peer.send_slowly(bytes, size, pause);
        let (_, how) = peer.drained(PATIENCE).with_context(|| what.to_owned())?;
        let took = began.elapsed();
        ensure!(took > BOUND / 2, "{what}: cut after {took:?}");
        run.within(what, took, BOUND * 4)?;
        run.note(format!("{what}: {how:?}"));
        cut += 1;
        secured.await_failed(cut)?;
    }
    let mut left = Peer::connect(server.addr())?;
    left.send(&hello[..20])?;
    left.half_close()?;
    left.drained(PATIENCE)?;
    secured.await_failed(cut + 1)?;
    // Who says nothing did nothing wrong, before the handshake and behind it.
    let mut silent = Peer::connect(server.addr())?;
    ensure!(silent.closed(PATIENCE)? == Closing::Fin, "a silent one");
    let mut shaken = secured.connect(&server)?;
    ensure!(
        shaken.closed(PATIENCE)? == Closing::Fin,
        "one that asks nothing"
    );
    secured.await_failed(cut + 1)?;
    server.stop()?;
    // One that is not complete has a place like any other, and where there is none the close is the answer.
    let secured = Secured::new()?;
    let server = secured.launch(run).env("M0_MAX_CONNECTIONS", 2).start()?;
    let mut clear = secured.in_clear()?;
    let mut half = Peer::connect(server.addr())?;
    half.send(&hello[..20])?;
    until("half a handshake to have its place", PATIENCE, || {
        let stats = clear.get("/stats").map_err(|error| format!("{error:#}"))?;
        let stats: serde_json::Value =
            serde_json::from_slice(&stats.body).map_err(|error| error.to_string())?;
        let held = sum(&stats, "held").map_err(|error| format!("{error:#}"))?;
        holds(held == 2, || format!("{held} held"))
    })?;
    let mut third = Peer::connect(server.addr())?;
    let (bytes, _) = third.drained(PATIENCE)?;
    ensure!(bytes == 0, "{bytes} bytes in clear where TLS is spoken");
    drop(half);
    server.stop()?;
    Ok(Witness::of("handshakes cut", usize::try_from(cut)?))
}

fn no_handshake(run: &Run) -> Result<Witness> {
    const FLOOD: u64 = 200;
    let secured = Secured::new()?;
    let server = secured.launch(run).start()?;
    let began = Instant::now();
    let mut good = secured.connect(&server)?;
    let pid = good.get("/pid")?.expect(200)?.text();
    let plain = request("GET", "/", &[], b"");
    let cases: [(&str, &[u8]); 5] = [
        ("a request in clear", &plain),
        ("the preface of HTTP/2", PREFACE),
        ("a record of no type", &[0xff, 3, 1, 0, 5, 0, 0, 0, 0, 0]),
        (
            "a handshake of no kind",
            &[22, 3, 1, 0, 5, 0xff, 0, 0, 1, 0],
        ),
        (
            "an answer before the question",
            &[23, 3, 3, 0, 5, 1, 2, 3, 4, 5],
        ),
    ];
    for (what, bytes) in cases {
        let mut peer = Peer::connect(server.addr())?;
        peer.send(bytes)?;
        let (came, how) = rest(&mut peer).with_context(|| what.to_owned())?;
        let alert = matches!(came[..], [ALERT, 3, _, 0, 2, FATAL, _]);
        ensure!(alert && how == Closing::Fin, "{what}: {came:?}, {how:?}");
        good.get("/")?.expect(200)?;
    }
    secured.await_failed(cases.len() as u64)?;
    let line = server.await_log("tls-failed", PATIENCE, |_| true)?;
    let why = line["why"].as_str().unwrap_or_default();
    ensure!(
        why.contains("plain text") && line["peer"].is_string(),
        "{line}"
    );
    let refused = |bytes: &[u8]| -> Result<()> {
        let mut peer = Peer::connect(server.addr())?;
        peer.send(bytes)?;
        peer.drained(PATIENCE)?;
        Ok(())
    };
    for _ in 0..FLOOD {
        refused(&plain)?;
    }
    let mut failed = cases.len() as u64 + FLOOD;
    secured.await_failed(failed)?;
    let lines = server.log().events("tls-failed").len() as u64;
    let most = began.elapsed().as_secs() + 2;
    ensure!(lines <= most, "{lines} lines of at most {most}");
    // The next line that may tell also tells how many had none.
    let untold = until("a line that tells of the others", PATIENCE, || {
        refused(&plain).map_err(|error| format!("{error:#}"))?;
        failed += 1;
        let lines = server.log().events("tls-failed");
        let untold: u64 = lines
            .iter()
            .filter_map(|line| line["untold"].as_u64())
            .sum();
        holds(untold >= FLOOD / 2, || format!("{untold} untold")).map(|()| untold)
    })?;
    secured.await_failed(failed)?;
    ensure!(untold <= failed, "{untold} untold of {failed}");
    ensure!(
        good.get("/pid")?.expect(200)?.text() == pid,
        "another worker"
    );
    server.stop()?;
    Ok(Witness::of("refused", usize::try_from(failed)?))
}

fn drain(run: &Run) -> Result<Witness> {
    let mut ended = 0;
    for workers in [1, 2] {
        let secured = Secured::new()?;
        let server = secured.launch(run).workers(workers).start()?;
        let mut idle = secured.connect(&server)?;
        idle.get("/")?.expect(200)?;
        let mut fresh = secured.connect(&server)?;
        let mut silent = Peer::connect(server.addr())?;
        let mut stream = EventStream::over(secured.connect(&server)?, None)?;
        let mut socket = Socket::over(secured.connect(&server)?, "/ws", &[])?;
        server.signal(Signal::SIGTERM)?;
        let mut told = false;
        let end = loop {
            match stream.next(PATIENCE)?.context("the end of the stream")? {
                Item::Event(event) => told |= event.name == "drain",
                Item::Comment(_) => {}
                end => break end,
            }
        };
        ensure!(told && end == Item::End, "told {told}, {end:?}");
        let (_, close) = socket.until_close()?;
        ensure!(close.close_code()? == 1001, "{close:?}");
        socket.peer.send(crate::socket::close(1001))?;
        for (what, peer) in [
            ("idle", &mut idle),
            ("fresh", &mut fresh),
            ("silent", &mut silent),
            ("stream", &mut stream.into_peer()),
            ("socket", &mut socket.peer),
        ] {
            let how = peer.closed(PATIENCE).with_context(|| what.to_owned())?;
            ensure!(how == Closing::Fin, "{what}: {how:?}");
            ended += 1;
        }
        let log = server.log().clone();
        server.finish(&Ending::clean())?;
        for line in log.events("drained") {
            let took = Duration::from_millis(line["ms"].as_u64().context("no time")?);
            run.within(&format!("drain at {workers}"), took, AT_ONCE)?;
        }
    }
    // What is in flight is answered, over both protocols.
    let secured = Secured::new()?;
    let server = secured.launch(run).env("M0_HTTP2", 1).start()?;
    let client = Client::speaking(&secured.pair, &VERSIONS, &["h2"])?;
    let mut beside = http2::Client::over_tls(server.addr(), &client)?;
    let slept = beside.ask(Method::GET, "/sleep?ms=900", &[], false)?;
    ensure!(beside.get("/")?.status == 200, "before the drain");
    let mut upload = secured.connect(&server)?;
    let whole = request("POST", "/upload", &[], &vec![b'u'; 300_000]);
    upload.send(&whole[..whole.len() / 2])?;
    secured.await_requests(3)?;
    server.signal(Signal::SIGTERM)?;
    until("the drain to begin", PATIENCE, || {
        let ready = secured.in_clear().and_then(|mut peer| peer.get("/readyz"));
        let status = ready.map_err(|error| format!("{error:#}"))?.status();
        holds(status == 503, || format!("status {status}"))
    })?;
    upload.send(&whole[whole.len() / 2..])?;
    let answer = upload.answer()?.expect(200)?;
    ensure!(answer.text() == "300000", "the upload: {}", answer.text());
    let how = upload.closed(PATIENCE)?;
    ensure!(answer.head.closes() && how == Closing::Fin, "{how:?}");
    ensure!(beside.answer(slept)?.text() == "slept\n", "over HTTP/2");
    beside.ended(PATIENCE)?;
    server.finish(&Ending::clean())?;
    ended += 2;
    // Whoever takes nothing, or never finishes, is cut at the bound, and is not told that this was the end.
    let bound = Duration::from_millis(500);
    let secured = Secured::new()?;
    let server = secured
        .launch(run)
        .env("M0_DRAIN_MS", bound.as_millis())
        .start()?;
    let narrow = Peer::connect_narrow(server.addr(), 4096)?;
    let mut narrow = narrow.over_tls(&secured.client()?)?;
    narrow.send(request("GET", "/big?bytes=50000000", &[], b""))?;
    ensure!(narrow.head(PATIENCE)?.status == 200, "/big");
    let mut half = Peer::connect(server.addr())?;
    half.send(&secured.client()?.hello()?[..20])?;
    let mut asleep = secured.connect(&server)?;
    asleep.send(request("GET", "/sleep?ms=60000", &[], b""))?;
    secured.await_requests(2)?;
    until("half a handshake to be held", PATIENCE, || {
        let stats = secured.stats().map_err(|error| format!("{error:#}"))?;
        let held = sum(&stats, "held").map_err(|error| format!("{error:#}"))?;
        holds(held >= 4, || format!("{held} held"))
    })?;
    let stopped = server.stop()?;
    run.within(
        "exit beyond the bound",
        stopped.after.saturating_sub(bound),
        Duration::from_millis(700),
    )?;
    for (what, peer) in [("narrow", &mut narrow), ("asleep", &mut asleep)] {
        let (_, how) = peer.drained(PATIENCE)?;
        ensure!(
            how != Closing::Fin,
            "{what}: cut, and told that all had come"
        );
    }
    Ok(Witness::of("connections that ended in order", ended))
}

fn large_and_slow(run: &Run) -> Result<Witness> {
    const LARGE: usize = 20_000_000;
    let secured = Secured::new()?;
    let server = secured
        .launch(run)
        .env("M0_OUTBOX_BYTES", 65_536)
        .env("M0_HOSTCHECK_PERIOD_MS", 3_600_000)
        .start()?;
    for version in VERSIONS {
        let client = Client::speaking(&secured.pair, &[version], &[])?;
        let mut peer = Peer::connect_tls(server.addr(), &client)?;
        let answer = peer.get(&format!("/big?bytes={LARGE}"))?.expect(200)?;
        ensure!(answer.body.len() == LARGE, "{} bytes", answer.body.len());
        let sent = peer.post("/upload", &vec![b'u'; 5_000_000])?.expect(200)?;
        ensure!(sent.text() == "5000000", "{} arrived", sent.text());
    }
    let mut socket = Socket::over(secured.connect(&server)?, "/ws", &[])?;
    let message: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    socket.send(BINARY, &message)?;
    ensure!(
        socket.frame()?.payload == message,
        "a message came back otherwise"
    );
    socket.close(1000)?;
    // Streams are whole and in order; one that is not read is told of its gap, and nobody else notices.
    let narrow = Peer::connect_narrow(server.addr(), 4096)?;
    let mut slow = EventStream::over(narrow.over_tls(&secured.client()?)?, None)?;
    let mut quick = Vec::new();
    for _ in 0..5 {
        quick.push(EventStream::over(secured.connect(&server)?, None)?);
    }
    let (mut seen, filling) = (0, "n".repeat(20_000));
    for number in 0..100 {
        let text = format!("{number} {filling}");
        secured.publish(&text)?;
        for stream in &mut quick {
            ensure!(note(stream)? == text, "out of order at {number}");
            seen += 1;
        }
    }
    let (mut next, mut told) = (0, 0);
    let end = loop {
        match slow.next(PATIENCE)?.context("the end of the slow stream")? {
            Item::Event(event) if event.name == "gap" => told += 1,
            Item::Event(event) if event.name == "note" => {
                ensure!(event.data.starts_with(&format!("{next} ")), "behind {next}");
                next += 1;
            }
            Item::Event(_) | Item::Comment(_) => {}
            end => break end,
        }
    };
    ensure!(
        told == 1 && next < 100,
        "told {told} times behind {next} notes"
    );
    let how = slow.into_peer().closed(PATIENCE)?;
    ensure!(end == Item::End && how == Closing::Fin, "{end:?}, {how:?}");
    drop(quick);
    server.stop()?;
    // Who takes nothing of an answer is cut.
    let secured = Secured::new()?;
    let server = secured
        .launch(run)
        .env("M0_WRITE_TIMEOUT_MS", 500)
        .start()?;
    let narrow = Peer::connect_narrow(server.addr(), 4096)?;
    let mut narrow = narrow.over_tls(&secured.client()?)?;
    narrow.send(request("GET", "/big?bytes=50000000", &[], b""))?;
    server.await_log("cut", PATIENCE, |line| {
        line["why"] == "peer does not read its answer"
    })?;
    let (_, how) = narrow.drained(PATIENCE)?;
    ensure!(how != Closing::Fin, "half an answer ended in order");
    server.stop()?;
    Ok(Witness::of("events", seen))
}
