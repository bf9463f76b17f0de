//! The times of a request by phase, and its id: in the access log, in the answer, before the application.
//!
//! Owns the way in which the suites of layers ask. Knows the routes of host_check that show an id.
//! Invariant: an id is seen to be absent where nobody asked for it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{E114, E116};
use serde_json::Value;

use crate::answer::{Answer, Framing};
use crate::events::EventStream;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside(
        "layers-phases-of-a-request",
        30,
        &[E114],
        phases_of_a_request,
    ),
    beside("layers-request-ids", 30, &[E116], request_ids),
    beside(
        "layers-request-ids-of-refusals",
        30,
        &[E116],
        ids_of_refusals,
    ),
];

/// Fields of a request, or variables.
pub(super) type Given<'a> = &'a [(&'a str, &'a str)];

/// What a GET brings.
pub(super) fn get(peer: &mut Peer, path: &str, fields: &[(&str, &str)]) -> Result<Answer> {
    peer.send(request("GET", path, fields, b""))?;
    peer.answer().with_context(|| path.to_owned())
}

/// A phase of a line of the access log, in microseconds.
fn us(line: &Value, name: &str) -> Result<u64> {
    line[name]
        .as_u64()
        .with_context(|| format!("no {name} in {line}"))
}

fn phases_of_a_request(run: &Run) -> Result<Witness> {
    const PAUSE: Duration = Duration::from_millis(300);
    let server = Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .env("M0_ACCESS_LOG", 1)
        .start()?;
    // The second one waits for the first.
    let mut peer = Peer::connect(server.addr())?;
    let both = [
        request("GET", "/sleep?ms=200", &[], b""),
        request("GET", "/", &[], b""),
    ];
    peer.send(both.concat())?;
    peer.answer()?.expect(200)?;
    peer.answer()?.expect(200)?;
    // A large answer whose reader takes its time.
    let mut slow = Peer::connect_narrow(server.addr(), 4096)?;
    slow.send(request("GET", "/big?bytes=12000000", &[], b""))?;
    slow.head(PATIENCE)?;
    // The pause is what the line must show.
    std::thread::sleep(PAUSE);
    slow.body(Framing::Length(12_000_000), Instant::now() + PATIENCE)?;
    // The same in one piece: its body has ended long before its last byte is out.
    let mut slow = Peer::connect_narrow(server.addr(), 4096)?;
    slow.send(request("GET", "/text?bytes=12000000", &[], b""))?;
    slow.head(PATIENCE)?;
    std::thread::sleep(PAUSE);
    slow.body(Framing::Length(12_000_000), Instant::now() + PATIENCE)?;
    // A stream lasts as long as its peer stays.
    let mut stream = EventStream::open(server.addr(), None)?;
    let began = Instant::now();
    while began.elapsed() < PAUSE {
        stream.beat(PATIENCE)?;
    }
    drop(stream);
    let out = server.out().clone();
    server.stop()?;
    let lines = out.objects();
    ensure!(lines.len() == 5, "{} lines for 5 requests", lines.len());
    for line in &lines {
        let parts = ["wait_us", "app_us", "first_us", "body_us"];
        let sum = parts
            .iter()
            .map(|name| us(line, name))
            .sum::<Result<u64>>()?;
        ensure!(sum == us(line, "us")?, "the phases do not add up: {line}");
    }
    let line = |path: &str| {
        let found = lines.iter().find(|line| line["path"] == path);
        found.with_context(|| format!("no line of {path}"))
    };
    let least = |path: &str, name: &str, least: u64| -> Result<()> {
        let line = line(path)?;
        ensure!(us(line, name)? >= least, "{name} is below {least}: {line}");
        Ok(())
    };
    least("/sleep", "app_us", 200_000)?;
    least("/", "wait_us", 150_000)?;
    least("/big", "body_us", 250_000)?;
    least("/text", "body_us", 250_000)?;
    least("/events", "body_us", 250_000)?;
    Ok(Witness::of("lines", lines.len()))
}

const FIELD: &str = "x-request-id";

fn request_ids(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 1000)
        .env("M0_METRICS", "/metrics")
        .env("M0_ACCESS_LOG", 1)
        .env("M0_REQUEST_ID", 1)
        .start()?;
    let mut wanted = BTreeSet::new();
    for given in ["a-good_one.~1", &"x".repeat(128)] {
        let answer = get(
            &mut Peer::connect(server.addr())?,
            "/id",
            &[("X-Request-Id", given)],
        )?
        .expect(200)?;
        ensure!(
            answer.text() == given,
            "the application sees {:?}",
            answer.text()
        );
        ensure!(answer.head.field(FIELD) == Some(given), "{:?}", answer.head);
        wanted.insert(given.to_owned());
    }
    let bad = [
        "",
        "a b",
        "a;b",
        "a\"b",
        "<script>",
        "../x",
        &"x".repeat(129),
    ];
    for given in bad {
        let answer = get(
            &mut Peer::connect(server.addr())?,
            "/id",
            &[("X-Request-Id", given)],
        )?
        .expect(200)?;
        let id = answer.head.field(FIELD).context("no id")?.to_owned();
        let made = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure!(
            made && answer.text() == id,
            "{given:?} became {id:?}, seen as {:?}",
            answer.text()
        );
        ensure!(wanted.insert(id), "an id came twice");
    }
    let two = [("X-Request-Id", "one"), ("X-Request-Id", "two")];
    let answer = get(&mut Peer::connect(server.addr())?, "/id", &two)?.expect(200)?;
    ensure!(
        answer.head.count(FIELD) == 1 && answer.text().len() == 32,
        "{:?}",
        answer.head
    );
    wanted.insert(answer.text());
    // Whoever answers, the answer has one.
    for path in ["/none", "/healthz", "/metrics", "/events"] {
        let mut peer = Peer::connect(server.addr())?;
        peer.send(request("GET", path, &[], b""))?;
        let head = peer.head(PATIENCE)?;
        let id = head
            .field(FIELD)
            .with_context(|| format!("{path} is without an id"))?;
        ensure!(wanted.insert(id.to_owned()), "an id came twice");
    }
    let out = server.out().clone();
    server.stop()?;
    let logged: BTreeSet<String> = out
        .objects()
        .iter()
        .filter_map(|line| Some(line["id"].as_str()?.to_owned()))
        .collect();
    ensure!(logged == wanted, "logged {logged:?}, answered {wanted:?}");
    let off = Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 1000)
        .start()?;
    let answer = get(&mut Peer::connect(off.addr())?, "/id", &[])?.expect(404)?;
    ensure!(
        answer.head.field(FIELD).is_none(),
        "an id that nobody asked for"
    );
    off.stop()?;
    Ok(Witness::of("ids", wanted.len()))
}

fn ids_of_refusals(run: &Run) -> Result<Witness> {
    let launch = || Server::launch(run).env("M0_HOSTCHECK_PERIOD_MS", 1000);
    let server = launch()
        .env("M0_REQUEST_ID", 1)
        .env("M0_HEAD_TIMEOUT_MS", 300)
        .start()?;
    let mut ids = BTreeSet::new();
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9_000));
    let many = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "A: b\r\n".repeat(200)
    );
    for (bytes, status) in [
        ("GET / HTTP/1.1\nHost: a\n\n", 400_u16),
        (&long[..], 414),
        (&many[..], 431),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: half", 408),
    ] {
        let mut peer = Peer::connect(server.addr())?;
        peer.send(bytes)?;
        let answer = peer.answer()?.expect(status)?;
        let id = answer.head.field(FIELD);
        let id = id.with_context(|| format!("{status} is without an id"))?;
        let made = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure!(made, "{status} has the id {id:?}");
        ensure!(ids.insert(id.to_owned()), "an id came twice");
    }
    // The application has begun with this one, and knows it by its own id. Nobody knows the next one.
    let mut peer = Peer::connect(server.addr())?;
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nTransfer-Encoding: chunked\r\n\r\n";
    peer.send(head)?;
    peer.send("5\r\nhello\r\nzz\r\n")?;
    let answer = peer.answer()?.expect(400)?;
    ensure!(
        answer.head.field(FIELD) == Some("mine"),
        "{:?}",
        answer.head
    );
    ids.insert("mine".to_owned());
    let mut peer = Peer::connect(server.addr())?;
    peer.send(request("GET", "/", &[("X-Request-Id", "first")], b""))?;
    peer.answer()?.expect(200)?;
    peer.send("GET /\r\n")?;
    let answer = peer.answer()?.expect(400)?;
    let id = answer.head.field(FIELD).context("no id")?;
    ensure!(
        ids.insert(id.to_owned()) && id != "first",
        "the id of another request"
    );
    let logged: BTreeSet<String> = server
        .log()
        .events("request-refused")
        .iter()
        .filter_map(|line| Some(line["id"].as_str()?.to_owned()))
        .collect();
    // The one of 408 is a cut.
    ensure!(
        logged.len() == ids.len() - 1 && logged.is_subset(&ids),
        "logged {logged:?}, answered {ids:?}"
    );
    server.stop()?;
    let off = launch().start()?;
    let mut peer = Peer::connect(off.addr())?;
    peer.send("GET /\r\n")?;
    let answer = peer.answer()?.expect(400)?;
    ensure!(
        answer.head.field(FIELD).is_none(),
        "an id that nobody asked for"
    );
    off.stop()?;
    Ok(Witness::of("ids", ids.len()))
}
