//! Rude clients of HTTP/2: requests beyond a limit, floods, heads that never end, and answers that nobody takes.
//!
//! Writes its frames by hand, for no client would send them. Knows the bounds by their variables and by what the
//! server's page promises. Invariant: a good client is served beside each of them, and afterwards.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::Method;
use m0_spec::{E116, E151, E155, E156};

use super::http2::spoken;
use crate::http2::{
    Client, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frame, PREFACE, Reply, Rude, field,
    get_head, kind,
};
use crate::peer::{Closing, PATIENCE, Peer};
use crate::phase::{Phase, alone, beside};
use crate::proc::anonymous_bytes;
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("http2-limits", 30, &[E116, E151], limits),
    beside("http2-floods-end", 30, &[E155], floods_end),
    alone("http2-floods-beside-others", 40, &[E155], floods_beside),
    beside("http2-deadlines", 40, &[E156], deadlines),
    beside("http2-answers-not-taken", 40, &[E156], not_taken),
];

const HEADERS: u8 = kind::HEADERS;

fn limits(run: &Run) -> Result<Witness> {
    let server = spoken(run)
        .env("M0_MAX_BODY_BYTES", 1_000)
        .env("M0_MAX_URI_BYTES", 100)
        .env("M0_MAX_HEADERS", 20)
        .env("M0_MAX_HEAD_BYTES", 4_096)
        .env("M0_BODY_TIMEOUT_MS", 400)
        .env("M0_ACCESS_LOG", 1)
        .env("M0_REQUEST_ID", 1)
        .start()?;
    let mut client = Client::connect(server.addr())?;
    let mut refused = Vec::new();
    let mut expect = |what: &str, reply: Reply, status: u16| -> Result<()> {
        ensure!(reply.status == status, "{what}: {reply:?}");
        let id = reply.headers.get("x-request-id").context("no id")?;
        refused.push((u64::from(status), id.to_str()?.to_owned()));
        Ok(())
    };
    let long = format!("/{}", "a".repeat(100));
    expect("a long target", client.get(&long)?, 414)?;
    let names: Vec<String> = (0..21).map(|n| format!("x-{n}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
    expect(
        "many fields",
        client.exchange(Method::GET, "/", &many, b"")?,
        431,
    )?;
    let wide = "w".repeat(5_000);
    let reply = client.exchange(Method::GET, "/", &[("x-wide", &wide)], b"")?;
    ensure!(reply.status == 431, "a wide field: {reply:?}");
    expect(
        "another host",
        client.exchange(Method::GET, "/", &[("host", "b.example")], b"")?,
        400,
    )?;
    expect(
        "two hosts",
        client.exchange(
            Method::GET,
            "/",
            &[("host", "smokes"), ("host", "smokes")],
            b"",
        )?,
        400,
    )?;
    // Neither the declared nor the actual length may be beyond the bound; the application reads all it gets.
    let told = client.ask(Method::POST, "/upload", &[("content-length", "1001")], true)?;
    expect(
        "a body that is too long by its head",
        client.answer(told)?,
        413,
    )?;
    expect(
        "a body that is too long",
        client.exchange(Method::POST, "/upload", &[], &[b'x'; 1_001])?,
        413,
    )?;
    let mut stalled = client.ask(Method::POST, "/upload", &[], true)?;
    stalled.body.send_data("half".into(), false)?;
    expect("a body that stalls", client.answer(stalled)?, 408)?;
    let right = client.exchange(Method::POST, "/upload", &[], &[b'x'; 1_000])?;
    ensure!(right.status == 200 && right.text() == "1000", "{right:?}");
    let mut told: Vec<(u64, String)> = server
        .log()
        .events("request-refused")
        .iter()
        .filter_map(|line| Some((line["status"].as_u64()?, line["id"].as_str()?.to_owned())))
        .collect();
    told.sort_unstable();
    refused.sort_unstable();
    ensure!(
        told == refused,
        "the log tells of {told:?}, refused were {refused:?}"
    );
    server.stop()?;
    Ok(Witness::of("requests refused", refused.len()))
}

/// Begins and gives up so many requests.
fn resets(count: u32) -> Vec<Frame> {
    let pair = |n: u32| {
        let stream = 2 * n + 1;
        let head = Frame::new(HEADERS, END_HEADERS | END_STREAM, stream, &get_head("/"));
        [
            head,
            Frame::new(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes()),
        ]
    };
    (0..count).flat_map(pair).collect()
}

/// A head that goes on and on, in frames of so many bytes.
fn continued(frames: usize, bytes: usize) -> Vec<Frame> {
    let piece = field("x-flood", &"f".repeat(bytes));
    let first = Frame::new(HEADERS, END_STREAM, 1, &get_head("/"));
    let more = std::iter::repeat_n(Frame::new(kind::CONTINUATION, 0, 1, &piece), frames);
    std::iter::once(first).chain(more).collect()
}

fn floods_end(run: &Run) -> Result<Witness> {
    let server = spoken(run).start()?;
    let empty = |count: usize| {
        let begin = Frame::new(HEADERS, END_HEADERS, 1, &get_head("/upload"));
        let more = std::iter::repeat_n(Frame::new(kind::DATA, 0, 1, b""), count);
        std::iter::once(begin).chain(more).collect::<Vec<_>>()
    };
    let floods = [
        ("resets", resets(200)),
        ("empty continuations", continued(200, 0)),
        ("full continuations", continued(400, 120)),
        ("empty pieces of a body", empty(2_000)),
    ];
    let before = anonymous_bytes(server.pid()).context("the server's memory")?;
    let mut told = 0;
    for (what, frames) in &floods {
        for _ in 0..8 {
            let mut rude = Rude::connect(server.addr(), &[])?;
            rude.send(frames).with_context(|| (*what).to_owned())?;
            let reason = rude
                .told_to_leave(PATIENCE)
                .with_context(|| (*what).to_owned())?;
            ensure!(
                reason == ENHANCE_YOUR_CALM,
                "{what}: the reason is {reason}"
            );
            told += 1;
        }
    }
    // A peer may be told before the line that tells of it has come.
    until("a line about each flood", PATIENCE, || {
        let lines = server.log().events("cut").len();
        holds(lines == told, || {
            format!("{lines} lines about {told} floods")
        })
    })?;
    let now = anonymous_bytes(server.pid()).context("the server's memory")?;
    run.at_most(
        "memory left behind by a flood",
        now.saturating_sub(before) as f64 / told as f64,
        "bytes",
        64.0 * 1024.0,
    )?;
    let mut client = Client::connect(server.addr())?;
    ensure!(client.get("/")?.status == 200, "afterwards");
    server.stop()?;
    Ok(Witness::of("floods told of", told))
}

/// Sends `frames` over and over on connections of their own while a good client asks; how long its answers took, the
/// quickest first, how many bytes went, and how much the server has grown.
fn beside_good(server: &Server<'_>, frames: &[Frame]) -> Result<(Vec<Duration>, usize, u64)> {
    let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
    let block = bytes.repeat(65_536 / bytes.len());
    let mut client = Client::connect(server.addr())?;
    ensure!(client.get("/")?.status == 200, "before the flood");
    let before = anonymous_bytes(server.pid()).context("the server's memory")?;
    let mut rude: Vec<Rude> = (0..4)
        .map(|_| Rude::connect(server.addr(), &[]))
        .collect::<Result<_>>()?;
    let (mut took, mut sent) = (Vec::new(), 0);
    for _ in 0..31 {
        for each in &mut rude {
            sent += each.flood(&block)?;
        }
        let began = Instant::now();
        ensure!(client.get("/")?.status == 200, "beside the flood");
        took.push(began.elapsed());
    }
    took.sort_unstable();
    let now = anonymous_bytes(server.pid()).context("the server's memory")?;
    Ok((took, sent, now.saturating_sub(before)))
}

fn floods_beside(run: &Run) -> Result<Witness> {
    let server = spoken(run).start()?;
    let floods = [
        ("pings", Frame::new(kind::PING, 0, 0, b"12345678")),
        ("settings", Frame::new(kind::SETTINGS, 0, 0, b"")),
        ("unknown frames", Frame::new(0x42, 0, 0, b"")),
    ];
    let mut bytes = 0;
    for (what, frame) in floods {
        let (took, sent, grown) = beside_good(&server, &[frame])?;
        // The slowest of them tells of the machine.
        run.within(
            &format!("median answer beside {what}"),
            took[took.len() / 2],
            Duration::from_millis(250),
        )?;
        run.record(
            &format!("slowest answer beside {what}"),
            crate::run::millis(took[took.len() - 1]),
            "ms",
        );
        run.at_most(
            &format!("memory of four floods of {what}"),
            grown as f64,
            "bytes",
            4.0 * 512.0 * 1024.0,
        )?;
        bytes += sent;
    }
    server.stop()?;
    Ok(Witness::of("bytes of floods", bytes))
}

fn deadlines(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_millis(400);
    const SLACK: Duration = Duration::from_millis(1_100);
    let server = spoken(run)
        .env("M0_HEAD_TIMEOUT_MS", BOUND.as_millis())
        .env("M0_IDLE_TIMEOUT_MS", BOUND.as_millis())
        .start()?;
    let head = get_head("/");
    let mut cut = 0;
    // A head that never ends, in a frame and between two of them; and one whose settings do not come.
    let half = Frame::new(HEADERS, END_HEADERS | END_STREAM, 1, &head).bytes();
    let open = Frame::new(HEADERS, END_STREAM, 1, &head).bytes();
    let settings = Frame::new(kind::SETTINGS, 0, 0, b"").bytes();
    let rude = [
        [&settings[..], &half[..12]].concat(),
        [&settings[..], &open].concat(),
        Vec::new(),
    ];
    for rest in &rude {
        let mut peer = Peer::connect(server.addr())?;
        let began = Instant::now();
        peer.send([PREFACE, rest].concat())?;
        let (_, how) = peer.drained(PATIENCE)?;
        ensure!(how == Closing::Reset, "it ended in order");
        run.within(
            "a head without an end: after",
            began.elapsed(),
            BOUND + SLACK,
        )?;
        cut += 1;
    }
    let lines = server.log().events("cut");
    ensure!(
        lines.len() == cut
            && lines
                .iter()
                .all(|line| line["why"] == "head not complete in time"),
        "{lines:?}"
    );
    // Idle: told, and gone. What is in flight is not idle, however long it takes.
    let mut client = Client::connect(server.addr())?;
    let slow = client.ask(Method::GET, "/sleep?ms=1200", &[], false)?;
    ensure!(client.answer(slow)?.text() == "slept\n", "in flight");
    let began = Instant::now();
    client.ended(PATIENCE)?;
    run.within("idle: after", began.elapsed(), BOUND + SLACK)?;
    server.stop()?;
    Ok(Witness::of("heads cut", cut))
}

fn not_taken(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_millis(600);
    const EACH: f64 = 512.0 * 1024.0;
    const OPEN: u32 = 20;
    let server = spoken(run)
        .env("M0_WRITE_TIMEOUT_MS", BOUND.as_millis())
        .start()?;
    let before = anonymous_bytes(server.pid()).context("the server's memory")?;
    // Windows of a kilobyte that are never opened again, while the connection is read.
    let mut rude = Rude::connect(server.addr(), &[(4, 1_024)])?;
    for n in 0..OPEN {
        rude.get(2 * n + 1, "/big?bytes=20000000")?;
    }
    for _ in 0..OPEN {
        rude.await_frame("a piece", PATIENCE, |frame| frame.kind == kind::DATA)?;
    }
    let grown = anonymous_bytes(server.pid()).context("the server's memory")?;
    run.at_most(
        "memory of an answer not taken",
        grown.saturating_sub(before) as f64 / f64::from(OPEN),
        "bytes",
        EACH,
    )?;
    // Each ends alone; the connection goes on.
    let mut ended = std::collections::BTreeSet::new();
    while ended.len() < OPEN as usize {
        let frame = rude.await_frame("a reset", PATIENCE, |it| it.kind == kind::RST_STREAM)?;
        ended.insert(frame.stream);
    }
    rude.get(101, "/")?;
    rude.await_frame("its answer", PATIENCE, |it| {
        it.kind == HEADERS && it.stream == 101
    })?;
    let told = until("a line for each", PATIENCE, || {
        let lines = server.log().events("cut");
        let told = lines
            .iter()
            .filter(|line| line["why"] == "peer does not read its answer");
        let count = told.count();
        holds(count == OPEN as usize, || format!("{count} lines")).map(|()| count)
    })?;
    // All of an answer is with the engine, and the peer takes none of it: nothing but the end is left.
    let mut shut = Rude::connect(server.addr(), &[(4, 10)])?;
    shut.get(1, "/id")?;
    shut.get(3, "/text?bytes=500")?;
    let (_, how) = shut.peer().drained(PATIENCE)?;
    ensure!(how == Closing::Reset, "it ended in order");
    server.stop()?;
    Ok(Witness::of("answers cut", told))
}
