//! Connections that a proxy passes on: the PROXY protocol, versions 1 and 2, before the first request.
//!
//! Knows the protocol from its specification (sections 2.1 and 2.2), not from the host's reader.
//! Invariant: who asks is told by the application, which cannot know it but from the host.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use m0_spec::{E105, E106, E107, E108};
use serde_json::Value;

use super::http::launch;
use super::supervise::short_dir;
use crate::answer::lossy;
use crate::ends::Ending;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("proxied-client-is-told", 40, &[E105], client_is_told),
    beside("proxied-over-a-unix-socket", 30, &[E105], over_unix),
    beside("proxied-by-a-stranger", 30, &[E106], by_a_stranger),
    beside(
        "proxied-without-a-right-header",
        30,
        &[E107],
        without_a_right_header,
    ),
    beside(
        "proxied-header-is-optional",
        30,
        &[E108],
        header_is_optional,
    ),
];

/// The header of version 2 for a client and what is told besides: command and fields.
fn v2(command: u8, client: Option<SocketAddr>, fields: &[u8]) -> Vec<u8> {
    let (family, mut rest) = match client {
        None => (0, Vec::new()),
        Some(SocketAddr::V4(at)) => (0x11, [at.ip().octets(), [0; 4]].concat()),
        Some(SocketAddr::V6(at)) => (0x21, [at.ip().octets(), [0; 16]].concat()),
    };
    if let Some(client) = client {
        rest.extend(client.port().to_be_bytes());
        rest.extend(80_u16.to_be_bytes());
    }
    rest.extend(fields);
    // Longer than 64 KiB would not fit the protocol either.
    let length = u16::try_from(rest.len()).unwrap_or(u16::MAX).to_be_bytes();
    [
        b"\r\n\r\n\0\r\nQUIT\n",
        &[0x20 | command, family][..],
        &length,
        &rest,
    ]
    .concat()
}

/// Headers, and the client that each tells of; none where the proxy stays its own.
fn headers() -> Result<Vec<(Vec<u8>, Option<&'static str>)>> {
    let four: SocketAddr = "192.0.2.7:40000".parse()?;
    let six: SocketAddr = "[2001:db8::7]:40000".parse()?;
    let fields = [&[0x02, 0, 9][..], b"a.example", &[0xe7, 0, 2, 1, 2]].concat();
    Ok(vec![
        (
            b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 80\r\n".to_vec(),
            Some("192.0.2.7:40000"),
        ),
        (
            b"PROXY TCP6 2001:db8::7 ::1 40000 80\r\n".to_vec(),
            Some("[2001:db8::7]:40000"),
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), None),
        (v2(1, Some(four), b""), Some("192.0.2.7:40000")),
        (v2(1, Some(four), &fields), Some("192.0.2.7:40000")),
        (v2(1, Some(six), &fields), Some("[2001:db8::7]:40000")),
        (v2(0, None, b""), None),
        (v2(0, Some(four), b""), None),
    ])
}

/// Every peer that the access log names for this path, once there are as many lines as wanted.
fn logged(server: &Server<'_>, path: &str, count: usize) -> Result<Vec<String>> {
    until("the lines of the access log", PATIENCE, || {
        let lines = server.out().objects();
        let peers: Vec<String> = lines
            .iter()
            .filter(|line| line["path"] == path)
            .filter_map(|line| line["peer"].as_str().map(str::to_owned))
            .collect();
        holds(peers.len() == count, || {
            format!("{} of {count} lines", peers.len())
        })
        .map(|()| peers)
    })
}

fn client_is_told(run: &Run) -> Result<Witness> {
    let server = launch(run)
        .workers(2)
        .env("M0_PROXY_FROM", "10.0.0.0/8,127.0.0.0/8")
        .env("M0_ACCESS_LOG", 1)
        .start()?;
    let mut told = Vec::new();
    for (header, client) in headers()? {
        let ask = request("GET", "/peer", &[], b"");
        for size in [1, 13, usize::MAX] {
            let mut peer = Peer::connect(server.addr())?;
            let own = peer.local_addr()?.to_string();
            let client = client.map_or(own, str::to_owned);
            let first = [&header[..], &ask].concat();
            peer.send_slowly(&first, size.min(first.len()), Duration::ZERO)?;
            // The connection stays its client's.
            for again in [false, true] {
                if again {
                    peer.send(&ask)?;
                }
                let text = peer.answer()?.expect(200)?.text();
                ensure!(text == client, "{:?} tells of {text}", lossy(&header));
                told.push(client.clone());
            }
        }
    }
    let mut seen = logged(&server, "/peer", told.len())?;
    let mut wanted = told.clone();
    seen.sort_unstable();
    wanted.sort_unstable();
    ensure!(seen == wanted, "the access log names {seen:?}");
    // What is refused is told of the client too.
    let mut peer = Peer::connect(server.addr())?;
    peer.send(b"PROXY TCP4 203.0.113.9 198.51.100.1 9 80\r\nGET / HTTP/1.1\r\n\r\n")?;
    peer.answer()?.expect(400)?;
    let line = server.await_log("request-refused", PATIENCE, |_| true)?;
    ensure!(line["peer"] == "203.0.113.9:9", "{line}");
    server.stop()?;
    Ok(Witness::of("answers that name the client", told.len()))
}

fn over_unix(run: &Run) -> Result<Witness> {
    let sockets = short_dir()?;
    let mut told = 0;
    for (index, (from, wanted)) in [("unix", Some("192.0.2.7:40000")), ("0.0.0.0/0,::/0", None)]
        .into_iter()
        .enumerate()
    {
        let path = sockets.path().join(format!("socket-{index}"));
        let server = launch(run)
            .bind_unix(&path)
            .env("M0_PROXY_FROM", from)
            .spawn()?;
        server.await_log("listening", PATIENCE, |_| true)?;
        let mut peer = Peer::connect_unix(&path)?;
        peer.send(b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 80\r\n")?;
        peer.send(request("GET", "/peer", &[], b""))?;
        let answer = peer.answer()?;
        match wanted {
            Some(client) => ensure!(answer.expect(200)?.text() == client, "not {client}"),
            None => ensure!(
                answer.status() == 400,
                "a header from a stranger: {}",
                answer.status()
            ),
        }
        told += 1;
        let mut plain = Peer::connect_unix(&path)?;
        plain.send(
            [
                &v2(0, None, b"")[..wanted.map_or(0, |_| 16)],
                &request("GET", "/peer", &[], b""),
            ]
            .concat(),
        )?;
        ensure!(
            plain.answer()?.expect(200)?.text() == "unix",
            "not the socket itself"
        );
        server.signal(nix::sys::signal::Signal::SIGTERM)?;
        server.finish(&Ending::clean())?;
    }
    Ok(Witness::of("unix sockets asked", told))
}

fn by_a_stranger(run: &Run) -> Result<Witness> {
    let mut refused = 0;
    for from in ["", "10.0.0.0/8,unix", "::/0"] {
        let server = launch(run).env("M0_PROXY_FROM", from).start()?;
        for (header, _) in headers()? {
            let mut peer = Peer::connect(server.addr())?;
            peer.send([&header[..], &request("GET", "/peer", &[], b"")].concat())?;
            let answer = peer.answer().with_context(|| lossy(&header))?.expect(400)?;
            ensure!(
                answer.head.closes(),
                "kept alive behind {:?}",
                lossy(&header)
            );
            peer.closed(PATIENCE)?;
            refused += 1;
        }
        let mut peer = Peer::connect(server.addr())?;
        let own = peer.local_addr()?.to_string();
        ensure!(
            peer.get("/peer")?.expect(200)?.text() == own,
            "not its own address"
        );
        server.stop()?;
    }
    Ok(Witness::of("headers of strangers", refused))
}

fn without_a_right_header(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_millis(300);
    let server = launch(run)
        .env("M0_PROXY_FROM", "127.0.0.0/8")
        .env("M0_HEAD_TIMEOUT_MS", BOUND.as_millis())
        .env("M0_FIRST_BYTE_TIMEOUT_MS", BOUND.as_millis())
        .start()?;
    let client = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 7), 40000));
    let whole = v2(1, Some(client), b"");
    let ask = request("GET", "/peer", &[], b"");
    let wrong_sum = v2(1, Some(client), &[3, 0, 4, 1, 2, 3, 4]);
    let too_long = v2(0, None, &[0; 5000]);
    // Bytes, and whether the peer then ends its direction or says nothing more.
    let cases: [(&str, &[u8], bool); 9] = [
        ("no header", &ask, false),
        (
            "a broken line",
            b"PROXY TCP4 192.0.2.7 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            false,
        ),
        (
            "a line without an end",
            &[b"PROXY ", &[b'x'; 200][..]].concat(),
            false,
        ),
        ("a wrong checksum", &wrong_sum, false),
        ("a header too long", &too_long, false),
        ("a line that stays half", b"PROXY TCP4 192.0.2.7 ", false),
        ("a header that stays half", &whole[..20], false),
        ("half a line and the end", b"PROXY TCP4 192.0.2.7 ", true),
        ("half a header and the end", &whole[..20], true),
    ];
    for (index, (what, bytes, ends)) in cases.into_iter().enumerate() {
        let mut peer = Peer::connect(server.addr())?;
        let own = peer.local_addr()?.to_string();
        peer.send(bytes)?;
        if ends {
            peer.half_close()?;
        }
        let (answered, _) = peer.drained(PATIENCE).with_context(|| what.to_owned())?;
        ensure!(answered == 0, "{what}: {answered} bytes of an answer");
        let lines = until("its line in the log", PATIENCE, || {
            let lines = server.log().events("cut");
            holds(lines.len() > index, || format!("{} lines", lines.len())).map(|()| lines)
        })?;
        let line = &lines[index];
        ensure!(
            lines.len() == index + 1 && line["peer"] == own && line["why"].is_string(),
            "{what}: {lines:?}"
        );
    }
    // Nothing at all is a spare connection, or a check of the port: closed and not told.
    let mut silent = Peer::connect(server.addr())?;
    silent.closed(PATIENCE)?;
    // A header, and then nothing, too: but it is the request that is late.
    let mut late = Peer::connect(server.addr())?;
    late.send(&whole)?;
    late.closed(PATIENCE)?;
    let mut peer = Peer::connect(server.addr())?;
    peer.send([&whole[..], &request("GET", "/stats", &[], b"")].concat())?;
    let stats: Value = serde_json::from_str(&peer.answer()?.expect(200)?.text())?;
    let counted = stats["shares"][0]["proxy_refused"].as_u64();
    ensure!(
        counted == Some(cases.len() as u64),
        "counted {counted:?} of {}",
        cases.len()
    );
    let told = server.log().events("cut").len();
    ensure!(
        told == cases.len(),
        "{told} lines about {} headers",
        cases.len()
    );
    server.stop()?;
    Ok(Witness::of("headers refused", cases.len()))
}

fn header_is_optional(run: &Run) -> Result<Witness> {
    let server = launch(run)
        .env("M0_PROXY_FROM", "127.0.0.0/8")
        .env("M0_PROXY_REQUIRED", 0)
        .start()?;
    let mut served = 0;
    let mut beside = Peer::connect(server.addr())?;
    // These begin as a header of version 1 does, and may as a line that is empty, as one of version 2 does.
    for (first, method) in [("", "GET"), ("", "PROPFIND"), ("", "PUT"), ("\r\n", "GET")] {
        let ask = [first.as_bytes(), &request(method, "/seen", &[], b"")].concat();
        for cut in 1..14 {
            let mut peer = Peer::connect(server.addr())?;
            until("the connection to be accepted", PATIENCE, || {
                let stats = beside.get("/stats").map_err(|error| format!("{error:#}"))?;
                let stats: Value =
                    serde_json::from_str(&stats.text()).map_err(|error| error.to_string())?;
                let held = &stats["shares"][0]["held"];
                holds(*held == 2, || format!("{held} are held"))
            })?;
            let (begin, rest) = ask.split_at(cut);
            peer.send(begin)?;
            // Answered behind it, so that the host has read the one piece when the other comes.
            beside.get("/")?.expect(200)?;
            peer.send(rest)?;
            let text = peer.answer()?.expect(200)?.text();
            ensure!(
                text.starts_with(&format!("{method} /seen ")),
                "cut at {cut}: {text}"
            );
            served += 1;
        }
    }
    let mut peer = Peer::connect(server.addr())?;
    let own = peer.local_addr()?.to_string();
    ensure!(
        peer.get("/peer")?.expect(200)?.text() == own,
        "not its own address"
    );
    for (header, client) in headers()? {
        let mut peer = Peer::connect(server.addr())?;
        let own = peer.local_addr()?.to_string();
        peer.send([&header[..], &request("GET", "/peer", &[], b"")].concat())?;
        let text = peer.answer()?.expect(200)?.text();
        ensure!(
            text == client.unwrap_or(&own),
            "{:?} tells of {text}",
            lossy(&header)
        );
    }
    // What begins as a header must be one.
    let mut broken = Peer::connect(server.addr())?;
    broken.send("PROXY / HTTP/1.1\r\nHost: a\r\n\r\n")?;
    let (answered, _) = broken.drained(PATIENCE)?;
    ensure!(
        answered == 0,
        "{answered} bytes of an answer to a broken header"
    );
    server.stop()?;
    Ok(Witness::of("requests without a header", served))
}
