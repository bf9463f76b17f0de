//! Connections over TLS: what is served, by which protocol, with which certificate, and behind a proxy.
//!
//! Knows TLS from a client's side. How handshakes fail and connections end stands in `tls_ends`. Invariant: each answer
//! came through a client that trusts the one certificate that it was shown.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use m0_spec::{E160, E161, E162, E163, E168};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::refuse::refused;
use super::supervise::short_dir;
use crate::events::{EventStream, Item};
use crate::http2::{self, PREFACE};
use crate::peer::{Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::{Server, share, sum};
use crate::tls::{Client, Pair, VERSIONS};
use crate::until::{holds, until};

mod secured;

pub(super) use secured::Secured;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("tls-is-served", 40, &[E160], is_served),
    beside("tls-protocols", 40, &[E161], protocols),
    beside("tls-refused", 60, &[E162], refused_pairs),
    beside("tls-reload", 60, &[E163], reload),
    beside("tls-behind-a-proxy", 30, &[E168], behind_a_proxy),
];

/// The data of the next note.
pub(super) fn note(stream: &mut EventStream) -> Result<String> {
    loop {
        match stream.next(PATIENCE)?.context("no note in time")? {
            Item::Event(event) if event.name == "note" => return Ok(event.data),
            Item::Event(_) | Item::Comment(_) => {}
            end => bail!("{end:?} instead of a note"),
        }
    }
}

fn is_served(run: &Run) -> Result<Witness> {
    let large = vec![b'x'; 300_000];
    let mut answers = 0;
    for workers in [1, 2] {
        let secured = Secured::new()?;
        let server = secured.launch(run).workers(workers).start()?;
        for version in VERSIONS {
            let client = Client::speaking(&secured.pair, &[version], &[])?;
            let mut peer = Peer::connect_tls(server.addr(), &client)?;
            ensure!(secured.pair.is_shown(peer.shown()?), "another certificate");
            let scheme = peer.get("/scheme")?.expect(200)?.text();
            ensure!(scheme == "https", "it was told {scheme}");
            let echo = peer.post("/echo", &large)?.expect(200)?;
            ensure!(echo.body == large, "{} bytes came back", echo.body.len());
            // One record a byte, and two requests in one.
            let ask = request("GET", "/seen", &[], b"");
            peer.send_slowly(&ask, 1, Duration::ZERO)?;
            peer.send([&ask[..], &ask].concat())?;
            for _ in 0..3 {
                let seen = peer.answer()?.expect(200)?.text();
                ensure!(seen.starts_with("GET /seen "), "{seen}");
                answers += 1;
            }
            // A client that has said all it wants to say is still answered.
            peer.send(request("GET", "/sleep?ms=50", &[], b""))?;
            peer.half_close()?;
            peer.answer()?.expect(200)?;
            let how = peer.closed(PATIENCE)?;
            ensure!(how == Closing::Fin, "{how:?} behind its last answer");
        }
        let mut clear = secured.in_clear()?;
        let scheme = clear.get("/scheme")?.expect(200)?.text();
        ensure!(scheme == "http", "at the unix socket it was told {scheme}");
        let banner = &server.log().events("listening")[0];
        ensure!(banner["tls"] == true, "{banner}");
        server.stop()?;
    }
    // Sockets that were handed over are no others.
    let secured = Secured::new()?;
    let handed = [
        format!("web@{}:0", Run::own_address(0)),
        format!("admin@unix:{}", secured.path().display()),
    ];
    let server = secured.given(run).activate(&handed, None).start()?;
    secured.connect(&server)?.get("/")?.expect(200)?;
    secured.in_clear()?.get("/")?.expect(200)?;
    server.stop()?;
    Ok(Witness::of("answers", answers))
}

fn protocols(run: &Run) -> Result<Witness> {
    let mut agreed = 0;
    for http2 in [false, true] {
        let secured = Secured::new()?;
        let server = secured
            .launch(run)
            .env("M0_HTTP2", u8::from(http2))
            .start()?;
        let speaking = |offered: &[&str]| -> Result<Peer> {
            let client = Client::speaking(&secured.pair, &VERSIONS, offered)?;
            Peer::connect_tls(server.addr(), &client)
        };
        let both = if http2 { "h2" } else { "http/1.1" };
        let cases: [(&[&str], Option<&str>); 3] = [
            (&["http/1.1", "h2"], Some(both)),
            (&["http/1.1"], Some("http/1.1")),
            (&[], None),
        ];
        for (offered, wanted) in cases {
            let mut peer = speaking(offered)?;
            let chosen = peer.protocol();
            ensure!(chosen.as_deref() == wanted, "{chosen:?} of {offered:?}");
            if wanted != Some("h2") {
                peer.get("/")?.expect(200)?;
            }
            agreed += 1;
        }
        let alone: &[&str] = if http2 { &["spdy/3"] } else { &["h2"] };
        let error = speaking(alone).err().context("nothing in common")?;
        let told = format!("{error:#}");
        ensure!(told.contains("NoApplicationProtocol"), "{told}");
        secured.await_failed(1)?;
        if http2 {
            // What was agreed on is what is spoken, in both directions.
            let mut peer = speaking(&["h2"])?;
            peer.send(request("GET", "/", &[], b""))?;
            let (bytes, how) = peer.drained(PATIENCE)?;
            ensure!(bytes == 0 && how != Closing::Fin, "{bytes} bytes, {how:?}");
            server.await_log("cut", PATIENCE, |line| {
                let why = line["why"].as_str().unwrap_or_default();
                why.contains("was agreed on")
            })?;
            let mut peer = speaking(&[])?;
            peer.send(PREFACE)?;
            peer.answer()?.expect(505)?;
            let client = Client::speaking(&secured.pair, &VERSIONS, &["h2"])?;
            let mut client = http2::Client::over_tls(server.addr(), &client)?;
            let scheme = client.get("/scheme")?.text();
            ensure!(scheme == "https", "over HTTP/2 it was told {scheme}");
            let large = vec![b'x'; 300_000];
            let echo = client.exchange(Method::POST, "/echo", &[], &large)?;
            ensure!(echo.body == large, "{} bytes came back", echo.body.len());
            let asked: Vec<_> = (0..50)
                .map(|_| client.ask(Method::GET, "/", &[], false))
                .collect::<Result<_>>()?;
            for asked in asked {
                ensure!(client.answer(asked)?.status == 200, "one of fifty");
            }
        }
        server.stop()?;
    }
    Ok(Witness::of("agreements", agreed))
}

fn refused_pairs(run: &Run) -> Result<Witness> {
    let (dir, pair, other) = (short_dir()?, Pair::new()?, Pair::new()?);
    let mut refusals = 0;
    let sealed =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    // The two files, which of them is named, and in which words; none where there is no file.
    let cases: [(Option<&str>, Option<&str>, &str, &str); 7] = [
        (
            Some(&pair.cert),
            Some(&other.key),
            "M0_TLS_KEY",
            "is not the key of",
        ),
        (Some(&pair.cert), Some(sealed), "M0_TLS_KEY", "encrypted"),
        (
            Some(&pair.cert),
            Some(&pair.cert),
            "M0_TLS_KEY",
            "no private key",
        ),
        (Some(&pair.cert), None, "M0_TLS_KEY", "cannot be read"),
        (
            Some(&pair.key),
            Some(&pair.key),
            "M0_TLS_CERT",
            "no certificate",
        ),
        (Some(""), Some(&pair.key), "M0_TLS_CERT", "is empty"),
        (None, Some(&pair.key), "M0_TLS_CERT", "cannot be read"),
    ];
    for (index, (cert, key, name, why)) in cases.into_iter().enumerate() {
        let path = |kind: &str| dir.path().join(format!("{index}.{kind}"));
        for (kind, text) in [("cert", cert), ("key", key)] {
            if let Some(text) = text {
                std::fs::write(path(kind), text)?;
            }
        }
        let (cert, key) = (path("cert"), path("key"));
        let (cert, key) = (cert.display().to_string(), key.display().to_string());
        let named = if name == "M0_TLS_KEY" { &key } else { &cert };
        for workers in ["1", "2"] {
            let env = [
                ("M0_TLS_CERT", &*cert),
                ("M0_TLS_KEY", &*key),
                ("M0_WORKERS", workers),
            ];
            refused(run, &env, &[], &[name, named, why, "want a file in PEM"])?;
            refusals += 1;
        }
    }
    for (name, other) in [("M0_TLS_CERT", "M0_TLS_KEY"), ("M0_TLS_KEY", "M0_TLS_CERT")] {
        refused(
            run,
            &[(name, "/etc/a.pem")],
            &[],
            &[name, "/etc/a.pem", other],
        )?;
        refusals += 1;
    }
    Ok(Witness::of("refusals", refusals))
}

/// A stream on each of so many workers.
fn streams(
    server: &Server<'_>,
    client: &Client,
    workers: usize,
) -> Result<BTreeMap<u32, EventStream>> {
    let mut streams = BTreeMap::new();
    until("a stream on each worker", PATIENCE, || {
        let open = || -> Result<(u32, EventStream)> {
            let peer = Peer::connect_tls(server.addr(), client)?;
            let stream = EventStream::over(peer, None)?;
            Ok((stream.slot()?, stream))
        };
        let (slot, stream) = open().map_err(|error| format!("{error:#}"))?;
        streams.entry(slot).or_insert(stream);
        holds(streams.len() == workers, || {
            format!("{} of them", streams.len())
        })
    })?;
    Ok(streams)
}

fn reload(run: &Run) -> Result<Witness> {
    let secured = Secured::new()?;
    let server = secured.launch(run).workers(2).start()?;
    let (before, new) = (secured.client()?, Pair::new()?);
    let mut held = streams(&server, &before, 2)?;
    let mut kept = secured.connect(&server)?;
    kept.get("/")?.expect(200)?;
    let told = |event: &str, slot: u32, name: Option<&str>| {
        server.await_log(event, PATIENCE, |line| {
            line["slot"] == slot && name.is_none_or(|name| line["name"] == name)
        })
    };
    secured.files.write(&new)?;
    for slot in 0..2 {
        told("tls-reloaded", slot, None)?;
    }
    let after = Client::of(&new)?;
    let mut handshakes = 0;
    for _ in 0..20 {
        let mut peer = Peer::connect_tls(server.addr(), &after)?;
        ensure!(new.is_shown(peer.shown()?), "the old certificate");
        peer.get("/")?.expect(200)?;
        handshakes += 1;
    }
    ensure!(
        secured.connect(&server).is_err(),
        "the old one is shown too"
    );
    // What was begun with the old one goes on with it.
    secured.publish("behind the change")?;
    for stream in held.values_mut() {
        ensure!(note(stream)? == "behind the change", "a stream was lost");
    }
    kept.get("/")?.expect(200)?;
    ensure!(secured.pair.is_shown(kept.shown()?), "it was shown another");
    // What cannot serve is told, and not taken.
    std::fs::write(&secured.files.cert, "no certificate")?;
    for slot in 0..2 {
        told("tls-kept", slot, Some("M0_TLS_CERT"))?;
    }
    Peer::connect_tls(server.addr(), &after)?
        .get("/")?
        .expect(200)?;
    // A worker that is started meanwhile has what the host was started with.
    let dead = share(&secured.stats()?, 0)?["pid"]
        .as_i64()
        .context("no pid")?;
    let dead = i32::try_from(dead)?;
    kill(Pid::from_raw(dead), Signal::SIGKILL)?;
    let heir = server.await_heir(0, dead, PATIENCE)?;
    until("the heir to answer", PATIENCE, || {
        let asked = secured.connect(&server).and_then(|mut peer| peer.get("/"));
        let slot = asked.and_then(|answer| answer.slot());
        let slot = slot.map_err(|error| format!("{error:#}"))?;
        holds(slot == 0, || format!("slot {slot}"))
    })?;
    secured.files.write(&new)?;
    server.await_log("tls-reloaded", PATIENCE, |line| line["pid"] == heir)?;
    for _ in 0..20 {
        Peer::connect_tls(server.addr(), &after)?
            .get("/")?
            .expect(200)?;
        handshakes += 1;
    }
    secured.publish("behind everything")?;
    let mut left = held.remove(&1).context("it was held by slot 1")?;
    ensure!(
        note(&mut left)? == "behind everything",
        "the stream was lost"
    );
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    let kept = server.log().events("tls-kept");
    // A look between the two files of a change may have found them apart.
    for line in kept.iter().filter(|line| line["name"] == "M0_TLS_CERT") {
        *lines.entry(line["pid"].to_string()).or_default() += 1;
    }
    ensure!(
        lines.len() == 3 && lines.values().all(|count| *count == 1),
        "three workers told of it so many times: {lines:?}"
    );
    drop(left);
    server.stop()?;
    Ok(Witness::of("handshakes", handshakes).and("lines", lines.len()))
}

fn behind_a_proxy(run: &Run) -> Result<Witness> {
    let header = b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 80\r\n";
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    let secured = Secured::new()?;
    let client = secured.client()?;
    let server = secured
        .launch(run)
        .env("M0_PROXY_FROM", "127.0.0.0/8")
        .start()?;
    let mut told = 0;
    for size in [1, 13, usize::MAX] {
        for (header, known) in [(&header[..], Some("192.0.2.7:40000")), (&local[..], None)] {
            let mut peer = Peer::connect(server.addr())?;
            let own = peer.local_addr()?.to_string();
            peer.send_slowly(header, size.min(header.len()), Duration::ZERO)?;
            let mut peer = peer.over_tls(&client)?;
            let text = peer.get("/peer")?.expect(200)?.text();
            ensure!(text == known.unwrap_or(&own), "it tells of {text}");
            let scheme = peer.get("/scheme")?.expect(200)?.text();
            ensure!(scheme == "https", "it was told {scheme}");
            told += 1;
        }
    }
    // The header is the proxy's, in clear; a handshake in its place is none.
    ensure!(secured.connect(&server).is_err(), "served without a header");
    let stats = secured.stats()?;
    let counted = (sum(&stats, "proxy_refused")?, sum(&stats, "tls_failed")?);
    ensure!(counted == (1, 0), "counted {counted:?}");
    server.stop()?;
    let secured = Secured::new()?;
    let server = secured
        .launch(run)
        .env("M0_PROXY_FROM", "127.0.0.0/8")
        .env("M0_PROXY_REQUIRED", 0)
        .start()?;
    let mut peer = secured.connect(&server)?;
    let own = peer.local_addr()?.to_string();
    ensure!(
        peer.get("/peer")?.expect(200)?.text() == own,
        "another peer"
    );
    server.stop()?;
    Ok(Witness::of("clients told", told))
}
