//! Bodies that stop midway, and bodies whose reader does not take them.
//!
//! Speaks raw HTTP/1.1 (RFC 9112). What a body is made of stands in host_check.
//! Invariant: a bystander on the same worker is answered while any of it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{E99, E100, E101, E102, E129};
use nix::sys::signal::Signal;

use super::http::launch;
use crate::answer::{Chunk, Framing};
use crate::audience::visit;
use crate::ends::Ending;
use crate::peer::{Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::proc::anonymous_bytes;
use crate::run::{Run, Witness, millis};
use crate::server::sum;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("body-cut-midway", 30, &[E99], cut_midway),
    beside("body-that-hangs", 30, &[E100], hangs),
    beside("body-refused-is-answered-once", 30, &[E129], refused_once),
    alone("body-waits-for-its-reader", 60, &[E101], waits),
    alone("greedy-clients-starve-nobody", 60, &[E102], greedy),
];

fn cut_midway(run: &Run) -> Result<Witness> {
    let server = launch(run).panics_allowed().start()?;
    let mut bystander = Peer::connect(server.addr())?;
    let pid = bystander.get("/pid")?.expect(200)?.text();
    let mut cuts = 0;
    for how in ["panic", "fail"] {
        let mut peer = Peer::connect(server.addr())?;
        let path = format!("/parts?count=3&then={how}");
        peer.send(request("GET", &path, &[], b""))?;
        let head = peer.head(PATIENCE)?;
        ensure!(head.framing(false)? == Framing::Chunked, "{head:?}");
        let mut parts = 0;
        let end = loop {
            match peer.chunk_or(Instant::now() + PATIENCE)? {
                Ok(Chunk::Data(_)) => parts += 1,
                other => break other,
            }
        };
        ensure!(
            end == Err(crate::peer::Arrival::Closed(Closing::Reset)),
            "a body that had to {how} after 3 parts ended with {end:?} after {parts}"
        );
        // Only the close tells an HTTP/1.0 client that all has come, so it must not look like one.
        let mut old = Peer::connect(server.addr())?;
        old.send(format!("GET {path} HTTP/1.0\r\n\r\n"))?;
        let (_, closing) = old.drained(PATIENCE)?;
        ensure!(closing == Closing::Reset, "{how}: HTTP/1.0 saw {closing:?}");
        cuts += 2;
        ensure!(
            bystander.get("/pid")?.expect(200)?.text() == pid,
            "another process answers"
        );
    }
    let panics = sum(&server.stats()?, "panics")?;
    ensure!(panics == 2, "{panics} panics counted of 2");
    let told = server.log().events("cut");
    let message =
        |line: &serde_json::Value| line["message"] == "host_check was asked to fail midway";
    ensure!(
        told.len() == 2 && told.iter().all(message),
        "two failures are told as {told:?}"
    );
    server.stop()?;
    Ok(Witness::of("answers cut midway", cuts))
}

fn hangs(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_millis(400);
    let server = launch(run).env("M0_DRAIN_MS", BOUND.as_millis()).start()?;
    let mut peer = Peer::connect(server.addr())?;
    peer.send(request("GET", "/parts?count=1&then=hang", &[], b""))?;
    peer.head(PATIENCE)?;
    ensure!(
        matches!(peer.chunk(PATIENCE)?, Chunk::Data(_)),
        "the first part"
    );
    visit(server.addr(), PATIENCE)?;
    let begun = Instant::now();
    server.signal(Signal::SIGTERM)?;
    let end = peer.chunk_or(Instant::now() + PATIENCE)?;
    run.at_least("cut after", millis(begun.elapsed()), "ms", 390.0)?;
    ensure!(
        end == Err(crate::peer::Arrival::Closed(Closing::Reset)),
        "an answer that hangs ended with {end:?}"
    );
    server.finish(&Ending::clean())?;
    Ok(Witness::of("hanging answers", 1))
}

fn refused_once(run: &Run) -> Result<Witness> {
    let server = launch(run).env("M0_MAX_BODY_BYTES", 1_000).start()?;
    let post = |path: &str, body: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        (head + body).into_bytes()
    };
    let mut refused = 0;
    for (body, status) in [("5\r\nhelloXX0\r\n\r\n", 400), ("7d0\r\n", 413)] {
        // In one packet with a request that takes its time: that one has its answer first.
        let mut peer = Peer::connect(server.addr())?;
        let slow = request("GET", "/sleep?ms=200", &[], b"");
        peer.send([slow, post("/echo", body)].concat())?;
        peer.answer()?.expect(200).context("the one before")?;
        peer.answer()?.expect(status).context("the refused one")?;
        let end = peer.drained(PATIENCE)?;
        ensure!(end == (0, Closing::Fin), "behind the refusal: {end:?}");
        // Of a route that looks at no body: its answer comes at once, or the refusal does.
        let mut peer = Peer::connect(server.addr())?;
        peer.send(post("/pid", body))?;
        let answer = peer.answer()?;
        ensure!(
            [405, status].contains(&answer.head.status),
            "{:?}",
            answer.head
        );
        let end = peer.drained(PATIENCE)?;
        let first = answer.head.status;
        ensure!(end == (0, Closing::Fin), "behind {first}: {end:?}");
        refused += 2;
    }
    visit(server.addr(), PATIENCE)?;
    server.stop()?;
    Ok(Witness::of("refused bodies", refused))
}

fn waits(run: &Run) -> Result<Witness> {
    /// A connection may cost this much, whatever its peer sends or does not read.
    const EACH: f64 = 512.0 * 1024.0;
    const PEERS: usize = 8;
    let server = launch(run).start()?;
    let grown = |before: u64| -> Result<f64> {
        let now = anonymous_bytes(server.pid()).context("the server's memory")?;
        Ok(now.saturating_sub(before) as f64 / PEERS as f64)
    };
    visit(server.addr(), PATIENCE)?;
    let before = anonymous_bytes(server.pid()).context("the server's memory")?;
    // Answers of 20 MB that nobody reads.
    let mut readers = Vec::new();
    for _ in 0..PEERS {
        let mut peer = Peer::connect_narrow(server.addr(), 4096)?;
        peer.send(request("GET", "/big?bytes=20000000", &[], b""))?;
        peer.head(PATIENCE)?;
        readers.push(peer);
    }
    visit(server.addr(), PATIENCE)?;
    run.at_most(
        "memory of an answer not read",
        grown(before)?,
        "bytes",
        EACH,
    )?;
    drop(readers);
    // Bodies of 8 MB that the application does not read.
    let mut senders = Vec::new();
    let mut taken = 0;
    for _ in 0..PEERS {
        let mut peer = Peer::connect(server.addr())?;
        peer.send("GET /sleep?ms=4000 HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n")?;
        taken += peer.stuff(b'x', 8_000_000, Duration::from_millis(150))?;
        senders.push(peer);
    }
    visit(server.addr(), PATIENCE)?;
    run.at_most("memory of a body not read", grown(before)?, "bytes", EACH)?;
    for peer in &mut senders {
        peer.answer()?.expect(200)?;
    }
    server.stop()?;
    Ok(Witness::of("answers not read", PEERS).and("bytes on their way", taken))
}

fn greedy(run: &Run) -> Result<Witness> {
    const THREADS: usize = 4;
    const EACH: usize = 50;
    const AT_ONCE: usize = 16;
    const NEW: usize = 20;
    const BEFORE: f64 = 64.0;
    let server = launch(run).start()?;
    let to = server.addr();
    let stop = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (stop, served) = (Arc::clone(&stop), Arc::clone(&served));
            std::thread::spawn(move || -> Result<()> {
                let batch = request("GET", "/", &[], b"").repeat(AT_ONCE);
                let mut peers = (0..EACH)
                    .map(|_| Peer::connect(to))
                    .collect::<Result<Vec<_>>>()?;
                while !stop.load(Ordering::Relaxed) {
                    for peer in &mut peers {
                        peer.send(&batch)?;
                    }
                    for peer in &mut peers {
                        for _ in 0..AT_ONCE {
                            peer.answer()?.expect(200)?;
                        }
                        served.fetch_add(AT_ONCE, Ordering::Relaxed);
                    }
                }
                Ok(())
            })
        })
        .collect();
    crate::until("every greedy client to be served", PATIENCE, || {
        let count = served.load(Ordering::Relaxed);
        crate::holds(count >= THREADS * EACH * AT_ONCE, || format!("{count}"))
    })?;
    // Counted in answers, not in time: how fast a round of all of them is depends on the machine.
    let (mut most, mut worst) = (0, Duration::ZERO);
    for _ in 0..NEW {
        let (before, begun) = (served.load(Ordering::Relaxed), Instant::now());
        visit(to, PATIENCE).context("a new client beside 200 greedy ones")?;
        worst = worst.max(begun.elapsed());
        most = most.max(served.load(Ordering::Relaxed) - before);
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("a greedy client never panics")?;
    }
    run.record("a new client beside 200 greedy ones", millis(worst), "ms");
    run.at_most(
        "answers to each greedy client before the new one's",
        most as f64 / (THREADS * EACH) as f64,
        "count",
        BEFORE,
    )?;
    server.stop()?;
    Ok(Witness::of("greedy answers", served.load(Ordering::Relaxed)).and("new clients", NEW))
}
