//! The producer's beat and a handler's note on held streams: all of them, on every worker, once, in order.
//!
//! Knows the routes of host_check and nothing of supervision: nobody dies in this suite.
//! Invariant: the streams of a phase stand on every worker before anything is checked.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use m0_spec::{E1, E2, E19, E22, E29, E30, S3, S16};

use crate::audience::{Audience, one_connection_each};
use crate::events::{Event, Item, consecutive};
use crate::peer::PATIENCE;
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::tape::Tape;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("beat-at-one-worker", 20, &[E19, E1, E29], at_one_worker),
    beside(
        "beat-on-every-worker",
        20,
        &[E22, E29, E30, E2, S3],
        on_every_worker,
    ),
    beside(
        "publish-reaches-every-worker",
        20,
        &[S16, E30],
        publish_reaches_every_worker,
    ),
];

/// Long against a beat of 50 ms on a loaded machine.
pub(super) const BEAT_BOUND: Duration = Duration::from_secs(8);
/// A period that never comes in a phase: after the first beat nothing flows that the phase did not publish.
pub(super) const NEVER_MS: u64 = 3_600_000;

fn at_one_worker(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .start()?;
    let tape = Tape::open(server.addr(), None)?;
    let beats = tape.await_beats(20, BEAT_BOUND)?;
    consecutive(&tape.ids()?)?;
    for pair in beats.windows(2) {
        ensure!(
            pair[1].n == pair[0].n + 1,
            "beat {} follows beat {}",
            pair[1].n,
            pair[0].n
        );
    }
    ensure!(
        beats.iter().all(|beat| beat.pid == server.pid()),
        "a beat of another process"
    );
    server.stop()?;
    Ok(Witness::of("beats", beats.len()))
}

fn on_every_worker(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .start()?;
    let audience = Audience::gather(&server, 1, 4)?;
    let beats = audience.await_beats(30, BEAT_BOUND)?;
    audience.check_order()?;
    let producers = audience.producers()?;
    let first = server.pid_of_slot(0)?;
    ensure!(
        producers == BTreeSet::from([first]),
        "beats by {producers:?}, the worker of slot 0 is {first}"
    );
    let pids: BTreeSet<i32> = server.worker_pids().into_iter().collect();
    ensure!(
        pids.len() == 2 && !pids.contains(&server.pid()),
        "workers {pids:?}"
    );
    ensure!(
        pids.contains(&first),
        "the producer's pid {first} is no worker of {pids:?}"
    );
    // All streams saw the same events, whichever worker held them.
    let last_common = beats.get(25).context("thirty beats")?;
    for tape in audience.tapes() {
        let ids = tape.ids()?;
        ensure!(
            ids.contains(&last_common.id),
            "{} is missing on worker {}",
            last_common.id,
            tape.slot()
        );
    }
    let witness = Witness::of("beats", beats.len())
        .and("streams on worker 0", audience.on(0).count())
        .and("streams on worker 1", audience.on(1).count());
    server.stop()?;
    Ok(witness)
}

fn publish_reaches_every_worker(run: &Run) -> Result<Witness> {
    let mut notes = 0;
    for workers in [1, 3] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
            .start()?;
        let audience = Audience::gather(&server, 1, 3)?;
        let mut publishers = one_connection_each(&server)?;
        let mut published = Vec::new();
        for round in 0..3 {
            for (slot, peer) in &mut publishers {
                let text = format!("note {round} by {slot}");
                let answer = peer.post("/publish", text.as_bytes())?.expect(200)?;
                published.push((answer.text().trim().to_owned(), text));
            }
        }
        for tape in audience.tapes() {
            until("every note on every stream", PATIENCE, || {
                let seen = notes_of(tape);
                holds(seen.len() >= published.len(), || {
                    format!("{} notes", seen.len())
                })
            })?;
            let seen = notes_of(tape);
            ensure!(
                seen == published,
                "worker {} showed {seen:?}, not {published:?}",
                tape.slot()
            );
        }
        audience.check_order()?;
        notes += published.len();
        drop(publishers);
        server.stop()?;
    }
    Ok(Witness::of("notes", notes))
}

/// Awaits the beat that each server begins with, so that it comes on no stream opened from now on.
pub(super) fn await_first_step(server: &Server<'_>) -> Result<()> {
    until("the first step", PATIENCE, || {
        let stats = server.stats().map_err(|error| format!("{error:#}"))?;
        let steps = stats["producer"]["steps"].as_u64().unwrap_or_default();
        holds(steps >= 1, || format!("{steps} steps"))
    })
}

/// Ids and texts of the notes on a tape.
pub(super) fn notes_of(tape: &Tape) -> Vec<(String, String)> {
    tape.items()
        .into_iter()
        .filter_map(|taped| match taped.item {
            Item::Event(Event {
                name,
                id: Some(id),
                data,
                ..
            }) if name == "note" => Some((id, data)),
            _ => None,
        })
        .collect()
}
