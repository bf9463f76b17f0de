//! One held stream as its client meets it: its head, its framing, its heartbeat, its limit, its end.
//!
//! Knows single streams; that all of them see the same frames stands in `beat`.
//! Invariant: nothing flows on a stream that the phase did not ask for.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{S7, S8, S9, S10, S11, S12, S15, S21, S23, S27};

use super::beat::{BEAT_BOUND, NEVER_MS, await_first_step, notes_of};
use crate::answer::{Chunk, Framing};
use crate::audience::{Audience, one_connection_each};
use crate::events::{EventStream, Item, consecutive};
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::proc;
use crate::run::{Run, Witness, millis};
use crate::server::{Server, sum};
use crate::tape::Tape;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    alone(
        "stream-starts-and-flows-at-once",
        20,
        &[S12, S21],
        starts_and_flows_at_once,
    ),
    beside(
        "stream-misses-nothing-after-its-head",
        30,
        &[S27],
        nothing_is_missed_after_the_head,
    ),
    beside("stream-heartbeat", 20, &[S10], heartbeat),
    beside("stream-client-gone", 20, &[S11], client_gone),
    beside("stream-framing", 20, &[S23], framing),
    beside("stream-limit", 20, &[S15], limit),
    alone("stream-slow-reader", 30, &[S7, S8, S9], slow_reader),
];

fn starts_and_flows_at_once(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
        .start()?;
    let mut peer = Peer::connect(server.addr())?;
    let asked = Instant::now();
    peer.send(request(
        "GET",
        "/events",
        &[("Accept-Encoding", "gzip, br, zstd")],
        b"",
    ))?;
    let head = peer.head(PATIENCE)?;
    run.within(
        "head of a silent stream",
        asked.elapsed(),
        Duration::from_millis(200),
    )?;
    ensure!(head.status == 200, "status {}", head.status);
    ensure!(
        head.field("content-encoding").is_none(),
        "a compressed stream: {head:?}"
    );
    ensure!(
        head.field("cache-control")
            .is_some_and(|v| v.contains("no-cache") || v.contains("no-store")),
        "an event stream that caches may keep: {head:?}"
    );

    // Small frames, one at a time: with Nagle's algorithm against a delayed acknowledgement each but
    // the first would take 40 ms and more.
    let audience = Audience::gather(&server, 1, 2)?;
    let mut publisher = Peer::connect(server.addr())?;
    let mut delays = Vec::new();
    for count in 1..=21 {
        let sent = Instant::now();
        publisher.post("/publish", b"x")?.expect(200)?;
        for tape in audience.tapes() {
            until("a note", PATIENCE, || {
                let seen = notes_of(tape).len();
                holds(seen >= count, || format!("{seen} notes"))
            })?;
        }
        let last = audience
            .tapes()
            .iter()
            .filter_map(|tape| tape.items().last().map(|taped| taped.at))
            .max()
            .context("a note was read")?;
        delays.push(last.saturating_duration_since(sent));
    }
    delays.sort();
    run.within(
        "publish to read, median",
        delays[delays.len() / 2],
        Duration::from_millis(20),
    )?;
    run.record(
        "publish to read, most",
        millis(delays[delays.len() - 1]),
        "ms",
    );
    server.stop()?;
    Ok(Witness::of("notes", delays.len()).and("workers", audience.workers()))
}

fn nothing_is_missed_after_the_head(run: &Run) -> Result<Witness> {
    const STREAMS: usize = 300;
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
        .start()?;
    await_first_step(&server)?;
    // On connections that stand, so that the frame is published as soon after the head as can be. Both
    // workers hold one, and the stream before the one in hand: the next stream is the other worker's.
    let mut publishers: Vec<Peer> = one_connection_each(&server)?.into_values().collect();
    let mut before = None;
    let mut workers = BTreeSet::new();
    for number in 0..STREAMS {
        let mut stream = EventStream::open(server.addr(), None)?;
        let note = number.to_string();
        let turn = number / 2 % publishers.len();
        publishers[turn]
            .post("/publish", note.as_bytes())?
            .expect(200)?;
        loop {
            let item = stream.next(PATIENCE)?;
            match item.with_context(|| format!("stream {number} misses its note"))? {
                Item::Event(event) if event.name == "note" && event.data == note => break,
                Item::Comment(_) => {}
                other => anyhow::bail!("stream {number} brought {other:?} instead of its note"),
            }
        }
        workers.insert(stream.slot()?);
        before = Some(stream);
    }
    drop((before, publishers));
    server.stop()?;
    Ok(Witness::of("streams", STREAMS).and("workers beyond the first", workers.len() - 1))
}

fn heartbeat(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
        .env("M0_HEARTBEAT_MS", 200)
        .start()?;
    let tape = Tape::open(server.addr(), None)?;
    let times = until("five heartbeats", PATIENCE, || {
        let times: Vec<Instant> = tape
            .items()
            .iter()
            .filter(|taped| matches!(&taped.item, Item::Comment(text) if text == "hb"))
            .map(|taped| taped.at)
            .collect();
        if times.len() >= 5 {
            Ok(times)
        } else {
            Err(format!("{} heartbeats", times.len()))
        }
    })?;
    let mean = (times[4] - times[0]) / 4;
    // A coarse sweep may be late by its own step; it must not be early.
    run.at_least("interval of heartbeats", millis(mean), "ms", 190.0)?;
    run.within("interval of heartbeats", mean, Duration::from_millis(600))?;
    server.stop()?;
    Ok(Witness::of("heartbeats", times.len()))
}

fn client_gone(run: &Run) -> Result<Witness> {
    let mut gone = 0;
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
            .start()?;
        let held = |wanted: u64| {
            until(
                &format!("{wanted} streams in the statistics"),
                Duration::from_secs(3),
                || {
                    let stats = server.stats().map_err(|error| format!("{error:#}"))?;
                    let streams = sum(&stats, "streams").map_err(|error| format!("{error:#}"))?;
                    holds(streams == wanted, || format!("{streams} streams"))
                },
            )
        };
        for polite in [true, false] {
            let mut streams = Vec::new();
            for _ in 0..8 {
                streams.push(EventStream::open(server.addr(), None)?);
            }
            held(8)?;
            gone += streams.len();
            let left = Instant::now();
            for stream in streams {
                if polite {
                    drop(stream);
                } else {
                    stream.into_peer().reset()?;
                }
            }
            held(0)?;
            let what = if polite { "closed" } else { "reset" };
            run.within(
                &format!("{what} streams noticed at {workers}"),
                left.elapsed(),
                Duration::from_secs(2),
            )?;
        }
        server.stop()?;
    }
    Ok(Witness::of("clients gone", gone))
}

fn framing(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 30)
        .start()?;
    let mut peer = Peer::connect(server.addr())?;
    peer.send(request("GET", "/events", &[], b""))?;
    ensure!(peer.head(PATIENCE)?.status == 200, "no stream");
    let mut old = Peer::connect(server.addr())?;
    old.send("GET /events HTTP/1.0\r\n\r\n")?;
    let head = old.head(PATIENCE)?;
    ensure!(head.status == 200, "status {} for HTTP/1.0", head.status);
    ensure!(
        head.framing(false)? == Framing::Close,
        "a stream to HTTP/1.0 is framed: {head:?}"
    );
    // Each chunk is one event, whole.
    let mut events = 0;
    let mut first = String::new();
    while events < 10 {
        let Chunk::Data(data) = peer.chunk(PATIENCE)? else {
            anyhow::bail!("the stream ended")
        };
        let text = String::from_utf8(data)?;
        let whole = text.ends_with("\n\n") && text.matches("\n\n").count() == 1;
        ensure!(whole, "a chunk that is not one event: {text:?}");
        if text.contains("event: beat") {
            events += 1;
            first = text;
        }
    }
    // HTTP/1.0 gets the same bytes, bare.
    until("the same event over HTTP/1.0", PATIENCE, || {
        old.fill(Instant::now() + Duration::from_millis(20))
            .map_err(|error| format!("{error:#}"))?;
        let text = String::from_utf8_lossy(old.pending()).into_owned();
        holds(text.contains(&first), || {
            format!("{} bytes without {first:?}", text.len())
        })
    })?;
    server.signal(nix::sys::signal::Signal::SIGTERM)?;
    let (_, how) = old.drained(PATIENCE)?;
    ensure!(
        how == crate::peer::Closing::Fin,
        "a stream to HTTP/1.0 was reset in the drain"
    );
    server.finish(&crate::ends::Ending::clean())?;
    Ok(Witness::of("events", events))
}

fn limit(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .env("M0_MAX_STREAMS", 2)
        .start()?;
    let held = [
        Tape::open(server.addr(), None)?,
        Tape::open(server.addr(), None)?,
    ];
    let mut third = Peer::connect(server.addr())?;
    let answer = third.get("/events")?.expect(503)?;
    ensure!(
        answer.head.field("retry-after").is_some(),
        "no Retry-After in {:?}",
        answer.head
    );
    for tape in &held {
        tape.await_beats(3, BEAT_BOUND)?;
    }
    let [first, second] = held;
    first.finish()?;
    // Its place is free as soon as the server has noticed.
    until(
        "a place for one more stream",
        Duration::from_secs(3),
        || EventStream::open(server.addr(), None).map_err(|error| format!("{error:#}")),
    )?;
    second.finish()?;
    server.stop()?;
    Ok(Witness::of("refused streams", 1))
}

fn slow_reader(run: &Run) -> Result<Witness> {
    const BEAT: usize = 65_536;
    /// Four beats: those who read on a busy machine are late by one now and then.
    const OUTBOX: usize = 4 * BEAT;
    /// What the kernel may hold for one connection (the most of `tcp_wmem`, tcp(7), is 4 MiB as a rule
    /// and is doubled) and the outbox beside it are filled several times over by so many beats.
    const BEATS: usize = 400;
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 10)
        .env("M0_HOSTCHECK_BEAT_BYTES", BEAT)
        .env("M0_OUTBOX_BYTES", OUTBOX)
        .start()?;
    let audience = Audience::gather(&server, 1, 3)?;
    audience.await_beats(3, BEAT_BOUND)?;
    let mut slow = EventStream::over(Peer::connect_narrow(server.addr(), 4096)?, None)?;
    let worker = server.pid_of_slot(slow.slot()?)?;
    let before = proc::anonymous_bytes(worker).context("the worker's memory")?;
    let seen = audience.await_beats(BEATS, BEAT_BOUND * 3)?;
    let after = proc::anonymous_bytes(worker).context("the worker's memory")?;
    run.at_most(
        "growth of the worker's own memory",
        after.saturating_sub(before) as f64,
        "bytes",
        (OUTBOX * 8) as f64,
    )?;
    // Nobody else noticed: not in order, and not in time.
    audience.check_order()?;
    let mut pauses: Vec<Duration> = seen
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    pauses.sort();
    let median = pauses[pauses.len() / 2];
    run.within(
        "pause between beats of the others, median",
        median,
        Duration::from_millis(40),
    )?;
    // The slow one reads at last: what was sent is in order, then it is told, then it ends.
    let mut ids = Vec::new();
    let mut told = 0;
    loop {
        match slow.next(PATIENCE)?.context("the end of the slow stream")? {
            Item::Event(event) if event.name == "gap" => told += 1,
            Item::Event(event) => {
                ensure!(told == 0, "{:?} behind the notice of the gap", event.name);
                if let Some(id) = event.id {
                    ids.push(crate::events::Id::parse(&id)?);
                }
            }
            Item::Comment(_) => {}
            Item::End | Item::Cut(_) => break,
        }
    }
    consecutive(&ids)?;
    ensure!(
        ids.len() < seen.len(),
        "the slow stream got all of its {} beats",
        ids.len()
    );
    ensure!(
        told == 1,
        "the slow stream was told {told} times after {} beats",
        ids.len()
    );
    server.stop()?;
    Ok(Witness::of("beats of the others", seen.len()).and("told of the gap", told))
}
