//! Peers that are slow, greedy or ambiguous, and the right answer to each.
//!
//! Speaks raw HTTP/1.1 (RFC 9112). Knows the bounds by their variables.
//! Invariant: the server that was rude to is asked politely afterwards, and answers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{
    E62, E63, E64, E65, E66, E67, E68, E69, E70, E71, E72, W2, W3, W4, W5, W6, W7, W8, W9, W10,
    W18, W20, W40, W42,
};

use super::http::launch;
use crate::answer::lossy;
use crate::audience::visit;
use crate::peer::{Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness, millis};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("http-deadlines", 30, &[E62, E63, E64, E65], deadlines),
    beside(
        "http-reader-without-progress",
        30,
        &[E66],
        reader_without_progress,
    ),
    beside(
        "http-limits",
        30,
        &[E67, E68, E69, W2, W3, W4, W18, W20, W42],
        limits,
    ),
    beside("http-connection-limit", 30, &[E70], connection_limit),
    beside(
        "http-ambiguous-framing",
        30,
        &[E72, W5, W6, W7, W8, W9, W10],
        ambiguous_framing,
    ),
    beside(
        "http-answer-arrives-before-the-close",
        30,
        &[E71, W40],
        answer_before_close,
    ),
];

/// Sends bytes and expects an answer of this status, `Connection: close` and the close.
fn refused(server: &Server<'_>, bytes: &[u8], status: u16) -> Result<()> {
    let mut peer = Peer::connect(server.addr())?;
    peer.send(bytes)?;
    let answer = peer
        .answer()
        .with_context(|| format!("answer to {:?}", lossy(bytes)))?;
    ensure!(
        answer.status() == status,
        "status {} instead of {status} for {:?}",
        answer.status(),
        lossy(bytes)
    );
    ensure!(
        answer.head.closes(),
        "no Connection: close for {:?}",
        lossy(bytes)
    );
    peer.closed(PATIENCE)
        .with_context(|| format!("behind the answer to {:?}", lossy(bytes)))?;
    Ok(())
}

fn deadlines(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_millis(400);
    const SLACK: Duration = Duration::from_millis(1100);
    let server = launch(run)
        .env("M0_HEAD_TIMEOUT_MS", BOUND.as_millis())
        .env("M0_BODY_TIMEOUT_MS", BOUND.as_millis())
        .env("M0_IDLE_TIMEOUT_MS", BOUND.as_millis())
        .env("M0_FIRST_BYTE_TIMEOUT_MS", BOUND.as_millis())
        .start()?;
    let start = Instant::now();
    let open = |bytes: &[u8]| -> Result<Peer> {
        let mut peer = Peer::connect(server.addr())?;
        peer.send(bytes)?;
        Ok(peer)
    };
    let mut head = open(b"GET / HTTP/1.1\r\nHost: a\r\n")?;
    let mut body = open(b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")?;
    let mut chunked =
        open(b"POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nha")?;
    let mut silent = open(b"")?;
    let mut idle = open(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
    idle.answer()?.expect(200)?;
    // One byte now and then is not a whole head by its deadline.
    let mut dripping = open(b"GET / HT")?;
    let in_time = |what: &str| {
        run.at_least(
            &format!("{what}: after"),
            millis(start.elapsed()),
            "ms",
            380.0,
        )?;
        run.within(&format!("{what}: after"), start.elapsed(), BOUND + SLACK)
    };
    for (what, peer) in [
        ("head", &mut head),
        ("body", &mut body),
        ("chunked body", &mut chunked),
    ] {
        let answer = peer.answer().with_context(|| format!("a stalled {what}"))?;
        ensure!(
            answer.status() == 408,
            "a stalled {what} is answered {}",
            answer.status()
        );
        ensure!(answer.head.closes(), "a stalled {what} is kept alive");
        peer.closed(PATIENCE)?;
        in_time(what)?;
    }
    for (what, peer) in [("silent", &mut silent), ("idle", &mut idle)] {
        let how = peer
            .closed(PATIENCE)
            .with_context(|| format!("a {what} connection"))?;
        ensure!(how == Closing::Fin, "a {what} connection was reset");
        in_time(what)?;
    }
    let dripped = dripping.send_slowly(b"TP/1.1\r\nX-A: bbbbbbbbbbbb", 1, BOUND / 4);
    if dripped.is_ok() {
        ensure!(
            dripping.answer()?.status() == 408,
            "a dripping head was not answered 408"
        );
    }
    // A body that is slow but goes on is no stall.
    let mut slow = Peer::connect(server.addr())?;
    slow.send(b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n")?;
    slow.send_slowly(b"12345678", 1, BOUND / 3)?;
    let answer = slow.answer()?.expect(200)?;
    ensure!(
        answer.text().contains('8'),
        "a slow upload of 8 bytes answered {:?}",
        answer.text()
    );
    visit(server.addr(), PATIENCE)?;
    // Each that was owed an answer left one line with its reason.
    let cut = server.log().events("cut");
    ensure!(
        cut.len() == 4,
        "{} lines about four stalled requests: {cut:?}",
        cut.len()
    );
    server.stop()?;
    Ok(Witness::of("deadlines that fired", 6).and("slow uploads answered", 1))
}

fn reader_without_progress(run: &Run) -> Result<Witness> {
    let server = launch(run).env("M0_WRITE_TIMEOUT_MS", 400).start()?;
    let mut peer = Peer::connect_narrow(server.addr(), 4096)?;
    let own = peer.local_addr()?.to_string();
    let start = Instant::now();
    peer.send(request("GET", "/big?bytes=100000000", &[], b""))?;
    let line = server.await_log("cut", PATIENCE, |_| true)?;
    run.at_least("cut after", millis(start.elapsed()), "ms", 380.0)?;
    run.within("cut after", start.elapsed(), Duration::from_secs(3))?;
    ensure!(line["why"].is_string() && line["peer"] == own, "{line}");
    let (bytes, how) = peer.drained(PATIENCE)?;
    ensure!(
        bytes < 100_000_000,
        "the whole body came in spite of the cut ({how:?})"
    );

    // A reader that is slow but takes something each time is served to the end.
    let mut slow = Peer::connect_narrow(server.addr(), 4096)?;
    slow.send(request("GET", "/big?bytes=3000000", &[], b""))?;
    let head = slow.head(PATIENCE)?;
    ensure!(head.status == 200, "status {}", head.status);
    let mut count = slow.pending().len();
    let started = Instant::now();
    while count < 3_000_000 {
        let crate::peer::Arrival::Bytes(more) = slow.fill(Instant::now() + PATIENCE)? else {
            anyhow::bail!("a slow reader was cut after {count} bytes")
        };
        count += more;
        if started.elapsed() < Duration::from_millis(900) {
            // The pace is the peer's: slower than the server, faster than the deadline.
            std::thread::sleep(Duration::from_millis(30));
        }
    }
    server.stop()?;
    Ok(Witness::of("readers cut", 1).and("bytes to a slow reader", count))
}

fn limits(run: &Run) -> Result<Witness> {
    let server = launch(run).env("M0_MAX_BODY_BYTES", 10_000).start()?;
    let long = |length: usize| "a".repeat(length);
    let get = |path: &str, fields: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let many: String = (0..101).fold(String::new(), |text, index| {
        text + &format!("X-{index}: 1\r\n")
    });
    let announced = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10001\r\n\r\n".to_owned();
    let unannounced = format!(
        "POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n{:x}\r\n{}\r\n",
        9_000,
        long(9_000),
        1_001,
        long(1_001)
    );
    let cases = [
        ("announced body", 413, announced),
        ("chunked body", 413, unannounced),
        ("target", 414, get(&format!("/{}", long(8_200)), "")),
        (
            "head",
            431,
            get("/", &format!("X-Long: {}\r\n", long(17_000))),
        ),
        (
            "head in many fields",
            431,
            get("/", &format!("X-A: {}\r\n", long(3_000)).repeat(6)),
        ),
        ("count of fields", 431, get("/", &many)),
    ];
    for (what, status, bytes) in &cases {
        refused(&server, bytes.as_bytes(), *status).with_context(|| format!("too long: {what}"))?;
    }
    let told = server.log().events("request-refused");
    ensure!(
        told.len() == cases.len(),
        "{} lines about {} refusals",
        told.len(),
        cases.len()
    );
    for (line, (what, status, _)) in told.iter().zip(&cases) {
        let right = line["status"] == *status && line["why"].is_string();
        ensure!(right, "too long: {what} is logged as {line}");
    }
    // Just within the limits all of it is served.
    let mut peer = Peer::connect(server.addr())?;
    peer.post("/upload", &vec![b'b'; 10_000])?.expect(200)?;
    peer.send(get("/", &format!("X-Long: {}\r\n", long(15_000))))?;
    peer.answer()?.expect(200)?;
    // Whoever asks first is told before it sends, and told to go on when it may.
    let mut asking = Peer::connect(server.addr())?;
    asking.send(
        "POST /upload HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10001\r\n\r\n",
    )?;
    let answer = asking.answer()?.expect(413)?;
    ensure!(!answer.continued, "100 Continue before a 413");
    let mut asking = Peer::connect(server.addr())?;
    asking.send(
        "POST /upload HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    )?;
    let interim = asking.head(PATIENCE)?;
    ensure!(
        interim.status == 100,
        "status {} where 100 is wanted",
        interim.status
    );
    asking.send("12345")?;
    asking.answer()?.expect(200)?;
    server.stop()?;
    Ok(Witness::of("limits that answered", cases.len() + 1))
}

fn connection_limit(run: &Run) -> Result<Witness> {
    let server = launch(run).env("M0_MAX_CONNECTIONS", 4).start()?;
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut peer = Peer::connect(server.addr())?;
        peer.get("/")?.expect(200)?;
        held.push(peer);
    }
    let mut refused = 0;
    for _ in 0..3 {
        let mut peer = Peer::connect(server.addr())?;
        // A refusal comes whether or not the peer has asked for anything.
        let answer = peer
            .answer()
            .context("a connection above the limit")?
            .expect(503)?;
        ensure!(
            answer.head.field("retry-after").is_some(),
            "no Retry-After: {:?}",
            answer.head
        );
        ensure!(answer.head.closes(), "kept alive above the limit");
        peer.closed(PATIENCE)?;
        refused += 1;
    }
    for peer in &mut held {
        peer.get("/")?.expect(200)?;
    }
    held.pop();
    until("a place for one more", PATIENCE, || {
        visit(server.addr(), PATIENCE).map_err(|error| format!("{error:#}"))
    })?;
    drop(held);
    server.stop()?;
    Ok(Witness::of("connections refused", refused))
}

fn ambiguous_framing(run: &Run) -> Result<Witness> {
    let server = launch(run).start()?;
    let post =
        |fields: &str, body: &str| format!("POST /echo HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}");
    let cases = [
        ("no Host", "GET / HTTP/1.1\r\n\r\n".to_owned()),
        (
            "two Hosts",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(),
        ),
        ("bare LF", "GET / HTTP/1.1\nHost: a\n\n".to_owned()),
        (
            "one bare LF",
            "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n".to_owned(),
        ),
        (
            "bare CR",
            "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n".to_owned(),
        ),
        (
            "NUL in a value",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n".to_owned(),
        ),
        (
            "both framings",
            post(
                "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                "0\r\n\r\n",
            ),
        ),
        (
            "both, turned",
            post(
                "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
                "0\r\n\r\n",
            ),
        ),
        (
            "two lengths that differ",
            post("Content-Length: 4\r\nContent-Length: 5\r\n", "abcd"),
        ),
        (
            "a list of lengths",
            post("Content-Length: 4, 5\r\n", "abcd"),
        ),
        ("a signed length", post("Content-Length: +4\r\n", "abcd")),
        ("an empty length", post("Content-Length: \r\n", "abcd")),
        (
            "a length beyond 64 bits",
            post("Content-Length: 18446744073709551616\r\n", "abcd"),
        ),
        (
            "a hexadecimal length",
            post("Content-Length: 0x4\r\n", "abcd"),
        ),
        (
            "a coding behind chunked",
            post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"),
        ),
        (
            "chunked twice",
            post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
        ),
        (
            "white space before the colon",
            post("Content-Length : 4\r\n", "abcd"),
        ),
        (
            "a folded line",
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n".to_owned(),
        ),
        (
            "white space before the first field",
            "GET / HTTP/1.1\r\n Host: a\r\n\r\n".to_owned(),
        ),
        ("no version", "GET /\r\nHost: a\r\n\r\n".to_owned()),
        ("not a request", "\u{1}\u{2}\u{3}\r\n\r\n".to_owned()),
    ];
    for (what, bytes) in &cases {
        refused(&server, bytes.as_bytes(), 400).with_context(|| (*what).to_owned())?;
    }
    // A chunk that is not one ends the connection with 400, and what follows is never taken for a
    // request.
    let smuggled = post(
        "Transfer-Encoding: chunked\r\n",
        "zz\r\nGET /pid HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    refused(&server, smuggled.as_bytes(), 400).context("a chunk size that is none")?;
    visit(server.addr(), PATIENCE)?;
    server.stop()?;
    Ok(Witness::of("ambiguities", cases.len() + 1))
}

fn answer_before_close(run: &Run) -> Result<Witness> {
    /// Bytes that the host reads of a peer that it has refused, and some to spare.
    const WITHIN_LINGER: usize = 100_000;
    let server = launch(run).env("M0_MAX_BODY_BYTES", 10_000).start()?;
    let mut answered = 0;
    for size in [50_000, 1_000_000, 8_000_000] {
        let mut peer = Peer::connect(server.addr())?;
        peer.send(format!(
            "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n"
        ))?;
        // It goes on sending after the answer is on its way; a close that does not linger would reset
        // the connection and lose the answer.
        let sent = peer.stuff(b'x', size, Duration::from_millis(300))?;
        let answer = peer
            .answer()
            .with_context(|| format!("after {sent} bytes of {size}"))?;
        ensure!(answer.status() == 413, "status {}", answer.status());
        ensure!(answer.head.closes(), "kept alive in the middle of a body");
        let closed = peer.drained(PATIENCE)?;
        ensure!(closed.0 == 0, "{} bytes behind the answer", closed.0);
        // What a peer sends within the linger's bound is read, so the end is an orderly one. The answer alone
        // would show nothing: loopback hands it out even when a reset follows it.
        ensure!(
            size > WITHIN_LINGER || closed.1 == Closing::Fin,
            "a reset behind the answer to {size} bytes"
        );
        answered += 1;
    }
    // A peer that never stops sending does not hold the close for ever.
    let mut endless = Peer::connect(server.addr())?;
    endless.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000000\r\n\r\n")?;
    let start = Instant::now();
    until(
        "an endless sender to be cut",
        Duration::from_secs(8),
        || {
            let sent = endless.stuff(b'x', 1 << 20, Duration::from_millis(300));
            let sent = sent.map_err(|error| format!("{error:#}"))?;
            holds(sent < 1 << 20, || "it still takes bytes".to_owned())
        },
    )?;
    run.record("endless sender cut after", millis(start.elapsed()), "ms");
    server.stop()?;
    Ok(Witness::of("answers before the close", answered))
}
