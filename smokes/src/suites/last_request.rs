//! The last request of a connection: M0_MAX_REQUESTS_PER_CONNECTION, and what crosses its answer.
//!
//! Speaks raw HTTP/1.1 (RFC 9112 section 9). Knows the bound by its variable.
//! Invariant: a request that must not be served would be seen if it were: it publishes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use m0_spec::{E103, E104, E127};

use super::http::launch;
use crate::audience::visit;
use crate::events::Item;
use crate::peer::{Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::tape::Tape;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside(
        "http-last-request-of-a-connection",
        30,
        &[E103, E127],
        last_request,
    ),
    beside("http-last-answer-is-crossed", 30, &[E104], crossed),
];

/// Requests that a connection may carry here.
const MOST: usize = 3;

fn last_request(run: &Run) -> Result<Witness> {
    let server = launch(run)
        .env("M0_MAX_REQUESTS_PER_CONNECTION", MOST)
        .start()?;
    // One after the other, and all at once; the last one is an upload, a refusal to upgrade, or plain. One that asks
    // to upgrade is told so beside the end (RFC 9110 section 7.8).
    let handshake = request(
        "POST",
        "/ws",
        &[("Connection", "Upgrade"), ("Upgrade", "websocket")],
        b"",
    );
    let last = [
        (request("GET", "/", &[], b""), 200),
        (request("POST", "/echo", &[], b"whole"), 200),
        (handshake, 405),
        (request("GET", "/ws", &[], b""), 426),
    ];
    let mut answers = 0;
    for (last, status) in &last {
        for at_once in [false, true] {
            let tape = Tape::open(server.addr(), None)?;
            let mut peer = Peer::connect(server.addr())?;
            let mut all = vec![request("GET", "/sleep?ms=20", &[], b""); MOST - 1];
            all.push(last.clone());
            let behind = request("POST", "/publish", &[], b"never");
            if at_once {
                peer.send([all.concat(), behind.clone()].concat())?;
            }
            for (index, bytes) in all.iter().enumerate() {
                if !at_once {
                    peer.send(bytes)?;
                }
                let ends = index == MOST - 1;
                let answer = peer.answer()?.expect(if ends { *status } else { 200 })?;
                ensure!(
                    answer.head.closes() == ends,
                    "answer {} of {MOST}: {:?}",
                    index + 1,
                    answer.head
                );
                if answer.head.status == 426 {
                    let said = answer.head.field("connection");
                    ensure!(said == Some("close, upgrade"), "{:?}", answer.head);
                }
                answers += 1;
            }
            if !at_once {
                peer.send(&behind)?;
            }
            let how = peer.closed(PATIENCE).context("behind the last answer")?;
            ensure!(how == Closing::Fin, "a reset behind the last answer");
            drop(peer);
            // What was not served then is not served later: this one comes behind it in the log.
            let mut asking = Peer::connect(server.addr())?;
            asking.post("/publish", b"afterwards")?.expect(200)?;
            let notes = until("the note afterwards", PATIENCE, || {
                let notes = notes(&tape);
                let there = notes.contains("afterwards");
                holds(there, || format!("notes {notes:?}")).map(|()| notes)
            })?;
            ensure!(
                !notes.contains("never"),
                "a request behind the last one was served"
            );
        }
    }
    visit(server.addr(), PATIENCE)?;
    server.stop()?;
    // By itself a connection has no last request.
    let server = launch(run).start()?;
    let mut peer = Peer::connect(server.addr())?;
    for _ in 0..200 {
        let answer = peer.get("/")?.expect(200)?;
        ensure!(!answer.head.closes(), "closed without a limit");
    }
    server.stop()?;
    Ok(Witness::of("answers", answers))
}

/// What was published by requests, as far as it has come.
fn notes(tape: &Tape) -> String {
    let items = tape.items();
    let notes = items.iter().filter_map(|taped| match &taped.item {
        Item::Event(event) if event.name == "note" => Some(event.data.clone()),
        _ => None,
    });
    notes.collect()
}

fn crossed(run: &Run) -> Result<Witness> {
    let server = launch(run)
        .env("M0_MAX_REQUESTS_PER_CONNECTION", MOST)
        .env("M0_LINGER_MS", 5000)
        .start()?;
    let mut crossed = 0;
    for _ in 0..10 {
        let mut peer = Peer::connect(server.addr())?;
        for _ in 0..MOST {
            peer.get("/")?.expect(200)?;
        }
        // The end is there: a host that did not linger has closed by now, and would answer the first of
        // these by a reset, which the second one meets.
        let how = peer.closed(Duration::from_secs(2))?;
        ensure!(how == Closing::Fin, "a reset behind the last answer");
        for _ in 0..2 {
            peer.send(request("GET", "/", &[], b""))
                .context("a request that crosses the last answer")?;
        }
        crossed += 1;
    }
    server.stop()?;
    Ok(Witness::of("requests that crossed", crossed))
}
