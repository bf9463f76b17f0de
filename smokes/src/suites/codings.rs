//! Codings of answers: what is coded for whom, and that no stream is.
//!
//! Undoes codings by the crates that any client might use. Knows the routes of host_check with long texts.
//! Invariant: what comes unpacked is compared with the plain form of the same answer.

use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use m0_spec::{E121, E122, E128};

use super::layers::get;
use crate::answer::Chunk;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside(
        "layers-whole-answers-are-coded",
        30,
        &[E121, E122, E128],
        whole_answers_are_coded,
    ),
    beside(
        "layers-streams-are-not-coded",
        30,
        &[E121],
        streams_are_not_coded,
    ),
];

fn coding_server(run: &Run) -> Result<Server<'_>> {
    Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .env("M0_HOSTCHECK_COMPRESSION", 1)
        .start()
}

fn whole_answers_are_coded(run: &Run) -> Result<Witness> {
    let server = coding_server(run)?;
    let mut peer = Peer::connect(server.addr())?;
    let plain = get(&mut peer, "/text?bytes=100000", &[])?.expect(200)?;
    ensure!(
        plain.head.field("content-encoding").is_none(),
        "coded unasked: {:?}",
        plain.head
    );
    ensure!(
        plain.head.field("vary") == Some("accept-encoding"),
        "{:?}",
        plain.head
    );
    ensure!(
        plain.head.field("etag") == Some("\"dull\""),
        "{:?}",
        plain.head
    );
    let mut coded = 0;
    for (accepts, coding) in [
        ("gzip", Some("gzip")),
        ("br", Some("br")),
        ("gzip, deflate, br, zstd", Some("br")),
        ("br;q=0.2, gzip;q=0.9", Some("gzip")),
        ("br;q=0, *", Some("gzip")),
        ("gzip;q=0", None),
        ("gzip;q=0.000, br;q=0", None),
        ("*;q=0", None),
        ("identity", None),
        ("zstd", None),
    ] {
        let answer = get(
            &mut peer,
            "/text?bytes=100000",
            &[("Accept-Encoding", accepts)],
        )?
        .expect(200)?;
        let told = answer.head.field("content-encoding");
        ensure!(told == coding, "{accepts} brings {told:?}");
        ensure!(
            answer.head.field("vary") == Some("accept-encoding"),
            "{:?}",
            answer.head
        );
        let mut text = Vec::new();
        match coding {
            None => text.clone_from(&answer.body),
            Some("gzip") => {
                _ = flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut text)?;
            }
            Some(_) => {
                _ = brotli::Decompressor::new(&answer.body[..], 4096).read_to_end(&mut text)?;
            }
        }
        ensure!(text == plain.body, "{accepts}: another text");
        if coding.is_some() {
            ensure!(
                answer.body.len() < plain.body.len() / 10,
                "{} bytes",
                answer.body.len()
            );
            ensure!(
                answer.head.field("etag") == Some("W/\"dull\""),
                "{:?}",
                answer.head
            );
            coded += 1;
        }
    }
    let takes = [("Accept-Encoding", "gzip")];
    let small = get(&mut peer, "/text?bytes=1000", &takes)?.expect(200)?;
    ensure!(
        small.head.field("content-encoding").is_none(),
        "a small one: {:?}",
        small.head
    );
    let bytes = get(&mut peer, "/big?bytes=100000", &takes)?.expect(200)?;
    ensure!(
        bytes.head.field("content-encoding").is_none(),
        "of no type: {:?}",
        bytes.head
    );
    peer.send(b"HEAD /text?bytes=100000 HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")?;
    let head = peer.head(PATIENCE)?;
    // RFC 9110 sections 8.6 and 9.3.2: no length that GET would not have, and else the same fields.
    ensure!(
        head.status == 200
            && head.field("content-encoding") == Some("gzip")
            && head.field("etag") == Some("W/\"dull\"")
            && head.field("content-length").is_none(),
        "{head:?}"
    );
    get(&mut peer, "/", &[])?.expect(200)?;
    server.stop()?;
    Ok(Witness::of("coded answers", coded))
}

fn streams_are_not_coded(run: &Run) -> Result<Witness> {
    let server = coding_server(run)?;
    let mut pieces = 0;
    // Each piece comes before the next one is made.
    let mut peer = Peer::connect(server.addr())?;
    peer.send(request(
        "GET",
        "/drip?count=4&ms=1000",
        &[("Accept-Encoding", "gzip, br")],
        b"",
    ))?;
    let head = peer.head(PATIENCE)?;
    ensure!(
        head.field("content-encoding").is_none(),
        "a stream is coded: {head:?}"
    );
    let asked = Instant::now();
    for _ in 0..2 {
        let Chunk::Data(data) = peer.chunk(PATIENCE)? else {
            anyhow::bail!("the stream ended");
        };
        ensure!(data == [b'd'; 1_024], "another piece");
        pieces += 1;
    }
    ensure!(
        asked.elapsed() < Duration::from_millis(3_900),
        "pieces are held back"
    );
    drop(peer);
    let mut peer = Peer::connect(server.addr())?;
    peer.send(request(
        "GET",
        "/events",
        &[("Accept-Encoding", "gzip, br")],
        b"",
    ))?;
    let head = peer.head(PATIENCE)?;
    ensure!(
        head.status == 200 && head.field("content-encoding").is_none(),
        "{head:?}"
    );
    for _ in 0..3 {
        let Chunk::Data(data) = peer.chunk(PATIENCE)? else {
            anyhow::bail!("the stream ended");
        };
        ensure!(std::str::from_utf8(&data).is_ok(), "coded events");
        pieces += 1;
    }
    drop(peer);
    server.stop()?;
    Ok(Witness::of("pieces", pieces))
}
