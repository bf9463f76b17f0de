//! HTTP/2 in clear, as a client with prior knowledge speaks it: what is served, what is not, and how it ends.
//!
//! Knows the protocol from RFC 9113; the well-behaved client is not the host's engine. How rude clients fare stands in
//! `http2_bounds`. Invariant: what is told of an answer was asked over HTTP/2, which the client would not take back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::Method;
use m0_spec::{E86, E150, E152, E153, E157};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::drain::AT_ONCE;
use super::http::launch;
use crate::ends::Ending;
use crate::http2::{Client, Frame, PREFACE, Rude, kind};
use crate::launch::Launch;
use crate::peer::{PATIENCE, Peer};
use crate::phase::{Phase, alone, beside};
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("http2-is-served", 40, &[E86], is_served),
    beside("http2-is-off", 30, &[E150], is_off),
    beside("http2-streams", 40, &[E152], streams),
    alone("http2-drain", 40, &[E153], drain),
    beside("http2-last-request", 30, &[E157], last_request),
];

/// A server that speaks HTTP/2.
pub(super) fn spoken(run: &Run) -> Launch<'_> {
    launch(run).env("M0_HTTP2", 1)
}

fn is_served(run: &Run) -> Result<Witness> {
    let server = spoken(run)
        .workers(2)
        .env("M0_ACCESS_LOG", 1)
        .env("M0_REQUEST_ID", 1)
        .env("M0_PROXY_FROM", "127.0.0.0/8")
        .env("M0_PROXY_REQUIRED", 0)
        .start()?;
    let mut client = Client::connect(server.addr())?;
    let first = client.get("/")?;
    ensure!(
        first.status == 200 && first.text() == "m0 host_check\n",
        "{first:?}"
    );
    let id = first.headers.get("x-request-id").context("no request id")?;
    let id = id.to_str()?.to_owned();
    let large = vec![b'x'; 300_000];
    let echo = client.exchange(Method::POST, "/echo", &[], &large)?;
    ensure!(echo.body == large, "{} bytes came back", echo.body.len());
    ensure!(client.get("/nowhere")?.status == 404, "what is not there");
    let head = client.exchange(Method::HEAD, "/text?bytes=1000", &[], b"")?;
    let length = head.headers.get("content-length").context("no length")?;
    ensure!(
        head.status == 200 && length == "1000" && head.body.is_empty(),
        "{head:?}"
    );
    // One that takes its time holds up none of the others.
    let slow = client.ask(Method::GET, "/sleep?ms=700", &[], false)?;
    let began = Instant::now();
    let asked: Vec<_> = (0..100)
        .map(|_| client.ask(Method::GET, "/id", &[], false))
        .collect::<Result<_>>()?;
    let mut ids = std::collections::BTreeSet::new();
    for asked in asked {
        ids.insert(client.answer(asked)?.text());
    }
    let quick = began.elapsed();
    ensure!(client.answer(slow)?.text() == "slept\n", "the slow one");
    ensure!(ids.len() == 100, "{} ids of 100 requests", ids.len());
    ensure!(
        quick < began.elapsed(),
        "the others waited for the slow one"
    );
    // Beside it HTTP/1.1, byte by byte too, where the first of them are the same.
    let mut peer = Peer::connect(server.addr())?;
    peer.send_slowly(
        b"PROPFIND /seen HTTP/1.1\r\nHost: a\r\n\r\n",
        1,
        Duration::ZERO,
    )?;
    ensure!(
        peer.answer()?
            .expect(200)?
            .text()
            .starts_with("PROPFIND /seen "),
        "HTTP/1.1"
    );
    // A preface in pieces, behind a proxy's header.
    let told = b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 80\r\n";
    let mut pieces = Peer::connect(server.addr())?;
    let bytes = [
        &told[..],
        PREFACE,
        &Frame::new(kind::SETTINGS, 0, 0, b"").bytes(),
    ]
    .concat();
    pieces.send_slowly(&bytes, 1, Duration::ZERO)?;
    let settings = pieces.take("settings", Instant::now() + PATIENCE, |bytes| {
        Ok(bytes.get(..9).map(|head| (head[3], 9)))
    })?;
    ensure!(settings == kind::SETTINGS, "a frame of type {settings}");
    let lines = until("the lines of the access log", PATIENCE, || {
        let lines = server.out().objects();
        holds(lines.len() >= 106, || format!("{} lines", lines.len())).map(|()| lines)
    })?;
    let line = lines
        .iter()
        .find(|line| line["id"] == id.as_str())
        .context("no line of this id")?;
    ensure!(
        line["status"] == 200 && line["bytes"] == 14 && line["path"] == "/",
        "{line}"
    );
    let slept = lines.iter().find(|line| line["path"] == "/sleep");
    let app = slept.and_then(|line| line["app_us"].as_u64());
    ensure!(
        app.is_some_and(|us| us >= 700_000),
        "the application took {app:?} us"
    );
    let stats = server.stats()?;
    let requests = crate::server::sum(&stats, "requests")?;
    ensure!(requests >= 106, "{requests} requests counted");
    server.stop()?;
    Ok(Witness::of("answers beside each other", ids.len()).and("lines", lines.len()))
}

fn is_off(run: &Run) -> Result<Witness> {
    let server = launch(run).start()?;
    let settings = Frame::new(kind::SETTINGS, 0, 0, b"").bytes();
    let mut refused = 0;
    for size in [1, usize::MAX] {
        let mut peer = Peer::connect(server.addr())?;
        let bytes = [PREFACE, &settings].concat();
        // What is refused need not be taken to its end.
        let _ = peer.send_slowly(&bytes, size.min(bytes.len()), Duration::ZERO);
        let answer = peer.answer()?.expect(505)?;
        ensure!(answer.head.closes(), "kept alive");
        ensure!(answer.text().contains("M0_HTTP2=1"), "{}", answer.text());
        peer.closed(PATIENCE)?;
        refused += 1;
    }
    let line = server.await_log("request-refused", PATIENCE, |line| line["status"] == 505)?;
    ensure!(
        line["why"]
            .as_str()
            .is_some_and(|why| why.contains("M0_HTTP2=1")),
        "{line}"
    );
    server.stop()?;
    Ok(Witness::of("prefaces refused", refused))
}

/// Reads events until `wanted` of this name have come; their data.
fn events(
    client: &mut Client,
    stream: &mut h2::RecvStream,
    text: &mut String,
    name: &str,
    wanted: usize,
) -> Result<Vec<String>> {
    let head = format!("event: {name}\n");
    let deadline = Instant::now() + PATIENCE;
    while text.matches(&head).count() < wanted || !text.ends_with("\n\n") {
        ensure!(Instant::now() < deadline, "{wanted} of {name} in {text}");
        let piece = client.piece(stream, PATIENCE)?;
        let piece = piece.with_context(|| format!("it ended before {wanted} of {name}: {text}"))?;
        text.push_str(std::str::from_utf8(&piece)?);
    }
    let of = |event: &str| {
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        event
            .contains(&head)
            .then(|| data.unwrap_or_default().to_owned())
    };
    Ok(text.split("\n\n").filter_map(of).collect())
}

fn streams(run: &Run) -> Result<Witness> {
    let server = spoken(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 3_600_000)
        .env("M0_OUTBOX_BYTES", 65_536)
        .start()?;
    let mut client = Client::with_window(server.addr(), 65_536)?;
    let mut open = Vec::new();
    for _ in 0..20 {
        let asked = client.ask(Method::GET, "/events", &[], false)?;
        let (reply, stream) = client.head(asked)?;
        ensure!(reply.status == 200, "{reply:?}");
        ensure!(
            reply.headers["content-type"] == "text/event-stream",
            "{reply:?}"
        );
        open.push((stream, String::new()));
    }
    let mut published = Vec::new();
    for n in 0..30 {
        let note = format!("note {n}");
        let reply = client.exchange(Method::POST, "/publish", &[], note.as_bytes())?;
        ensure!(reply.status == 200, "{reply:?}");
        published.push(note);
    }
    let mut seen = 0;
    for (stream, text) in &mut open {
        let notes = events(&mut client, stream, text, "note", published.len())?;
        ensure!(notes == published, "{notes:?}");
        ensure!(!text.contains("\r\n"), "framing of HTTP/1.1 in {text}");
        seen += notes.len();
    }
    // From here on one of them is not read, until it is over its bound; the others and the connection go on.
    let (mut unread, mut text) = open.pop().context("twenty are open")?;
    let large = "l".repeat(20_000);
    for _ in 0..12 {
        client.exchange(Method::POST, "/publish", &[], large.as_bytes())?;
        for (stream, text) in &mut open {
            text.clear();
            events(&mut client, stream, text, "note", 1)?;
        }
    }
    let mut rest = |client: &mut Client| -> Result<()> {
        while let Some(piece) = client.piece(&mut unread, PATIENCE)? {
            text.push_str(std::str::from_utf8(&piece)?);
        }
        Ok(())
    };
    rest(&mut client)?;
    let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    ensure!(
        last.contains("event: gap") && last.contains("slow"),
        "its last event is {last:?}"
    );
    // Given up by its client, a stream leaves its place.
    drop(unread);
    open.truncate(10);
    until("the streams to be let go", PATIENCE, || {
        client.live(Duration::from_millis(20));
        let stats = server.stats().map_err(|error| format!("{error:#}"))?;
        let held = &stats["shares"][0]["streams"];
        holds(*held == 10, || format!("{held} are held"))
    })?;
    // A replay, and a HEAD that holds nothing.
    let asked = client.ask(Method::GET, "/events", &[("last-event-id", "0-0")], false)?;
    let (_, mut stream) = client.head(asked)?;
    events(&mut client, &mut stream, &mut String::new(), "reset", 1)?;
    let head = client.exchange(Method::HEAD, "/events", &[], b"")?;
    ensure!(head.status == 200 && head.body.is_empty(), "{head:?}");
    let held = server.stats()?["shares"][0]["streams"].clone();
    ensure!(held == 11, "{held} are held behind a HEAD");
    server.signal(Signal::SIGTERM)?;
    client.live(Duration::from_millis(300));
    server.finish(&Ending::clean())?;
    Ok(Witness::of("events read", seen))
}

fn drain(run: &Run) -> Result<Witness> {
    let mut ended = 0;
    for workers in [1, 2] {
        let server = spoken(run).workers(workers).start()?;
        // Idle, one of them silent for good, and one that has not even sent its settings.
        let mut idle = Client::connect(server.addr())?;
        ensure!(idle.get("/")?.status == 200, "before the drain");
        let mut silent = Rude::connect(server.addr(), &[])?;
        let mut half = Peer::connect(server.addr())?;
        half.send(PREFACE)?;
        let mut held = Client::connect(server.addr())?;
        let asked = held.ask(Method::GET, "/events", &[], false)?;
        let (_, mut stream) = held.head(asked)?;
        silent.await_frame("the settings", PATIENCE, |frame| {
            frame.kind == kind::SETTINGS
        })?;
        half.take("the settings", Instant::now() + PATIENCE, |bytes| {
            Ok(bytes.get(..9).map(|_| ((), 9)))
        })?;
        server.signal(Signal::SIGTERM)?;
        let mut text = String::new();
        while let Some(piece) = held.piece(&mut stream, PATIENCE)? {
            text.push_str(std::str::from_utf8(&piece)?);
        }
        ensure!(
            text.contains("event: drain\n") && text.contains("retry: "),
            "{text}"
        );
        idle.ended(PATIENCE)?;
        held.ended(PATIENCE)?;
        silent.await_frame("a GOAWAY", PATIENCE, |frame| frame.kind == kind::GOAWAY)?;
        let log = server.log().clone();
        server.finish(&Ending::clean())?;
        for line in log.events("drained") {
            let took = Duration::from_millis(line["ms"].as_u64().context("no time")?);
            run.within(&format!("drain at {workers}"), took, AT_ONCE)?;
        }
        ended += 4;
    }
    // What is in flight is answered, body and all; what comes then is not begun.
    let server = spoken(run).start()?;
    let mut client = Client::connect(server.addr())?;
    let slept = client.ask(Method::GET, "/sleep?ms=600", &[], false)?;
    let dripped = client.ask(Method::GET, "/drip?count=6&ms=100", &[], false)?;
    let mut upload = client.ask(Method::POST, "/upload", &[], true)?;
    ensure!(client.get("/")?.status == 200, "before the drain");
    server.signal(Signal::SIGTERM)?;
    upload.body.send_data(vec![b'u'; 5_000].into(), false)?;
    client.live(Duration::from_millis(200));
    upload.body.send_data(vec![b'u'; 5_000].into(), true)?;
    ensure!(client.answer(upload)?.text() == "10000", "the upload");
    ensure!(
        client.answer(dripped)?.body.len() == 6 * 1_024,
        "the answer in pieces"
    );
    ensure!(client.answer(slept)?.text() == "slept\n", "the slow answer");
    client.ended(PATIENCE)?;
    server.finish(&Ending::clean())?;
    // And cut at the bound, by a reset.
    let server = spoken(run).env("M0_DRAIN_MS", 300).start()?;
    let mut rude = Rude::connect(server.addr(), &[])?;
    rude.get(1, "/sleep?ms=60000")?;
    until("the request to be taken up", PATIENCE, || {
        let stats = server.stats().map_err(|error| format!("{error:#}"))?;
        let requests = stats["shares"][0]["requests"].as_u64().unwrap_or_default();
        holds(requests >= 2, || format!("{requests} requests"))
    })?;
    server.signal(Signal::SIGTERM)?;
    rude.await_frame("a GOAWAY", PATIENCE, |frame| frame.kind == kind::GOAWAY)?;
    let (_, how) = rude.peer().drained(PATIENCE)?;
    ensure!(how == crate::peer::Closing::Reset, "it ended in order");
    let log = server.log().clone();
    server.finish(&Ending::clean())?;
    let cut = log.events("drained")[0]["requests_cut"].clone();
    ensure!(cut == 1, "{cut} were cut");
    Ok(Witness::of("connections that ended in order", ended))
}

fn last_request(run: &Run) -> Result<Witness> {
    let server: Server<'_> = spoken(run)
        .env("M0_MAX_REQUESTS_PER_CONNECTION", 3)
        .env("M0_HTTP2_MAX_STREAMS", 10)
        .start()?;
    let mut client = Client::connect(server.addr())?;
    for _ in 0..3 {
        ensure!(client.get("/")?.status == 200, "within the bound");
    }
    client.ended(PATIENCE)?;
    // Who goes on is served for as long as it cannot have known, and no longer.
    let mut rude = Rude::connect(server.addr(), &[])?;
    let mut sent = 0_u32;
    for stream in (1..200).step_by(2) {
        let asked = rude.get(stream, "/");
        let answer = asked.and_then(|()| {
            rude.await_frame("an answer", PATIENCE, |it| {
                it.kind == kind::HEADERS && it.stream == stream
            })
        });
        if answer.is_err() {
            break;
        }
        sent += 1;
    }
    let stats: Value = server.stats()?;
    let requests = stats["shares"][0]["requests"].as_u64().unwrap_or_default();
    // Those of the other connection, those within the bound, as many as could be open and one more, and this one.
    ensure!(requests <= 3 + 3 + 10 + 1 + 1, "{requests} requests");
    server.stop()?;
    Ok(Witness::of("requests sent", sent as usize))
}
