//! The producer's cadence and its end.
//!
//! Knows the knobs that make a step slow or fail. The overrun's 5 s are the promise itself.
//! Invariant: a step is running, or a period is long, before the phase stops the server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{E23, E34, E35, E36, E38};
use nix::sys::signal::Signal;

use super::beat::await_first_step;
use crate::audience::{Audience, visit};
use crate::ends::Ending;
use crate::peer::{PATIENCE, Peer};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness, millis};
use crate::server::Server;
use crate::tape::Tape;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("producer-overrun-is-abandoned", 40, &[E23, E38], overrun),
    beside(
        "producer-long-period-leaves-at-once",
        30,
        &[E35],
        long_period,
    ),
    beside("producer-never-catches-up", 40, &[E34], never_catches_up),
    beside("producer-step-fails", 30, &[E36], step_fails),
];

/// The bound of the drain and of the join, which run together.
const JOIN: Duration = Duration::from_secs(5);

fn overrun(run: &Run) -> Result<Witness> {
    // Both at once: each takes its five seconds.
    let mut servers = Vec::new();
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_STEP_MS", 60_000)
            .start()?;
        // A request in flight for longer than the bound: a drain and a join one after the other would
        // take twice as long.
        let mut held = Peer::connect(server.addr())?;
        held.send(crate::peer::request("GET", "/sleep?ms=60000", &[], b""))?;
        ensure!(
            held.is_open_and_silent(Duration::from_millis(100))?,
            "/sleep answered at once"
        );
        servers.push((workers, server, held));
    }
    let stopped = Instant::now();
    for (_, server, _) in &servers {
        server.check_running()?;
        server.signal(Signal::SIGTERM)?;
    }
    let mut abandoned = 0;
    for (workers, mut server, held) in servers {
        server.await_exit(JOIN * 2)?;
        let took = stopped.elapsed();
        let log = server.log().clone();
        server.finish(&Ending::clean())?;
        run.at_least(&format!("exit at {workers}"), millis(took), "ms", 4900.0)?;
        run.within(
            &format!("exit beyond the bound at {workers}"),
            took.saturating_sub(JOIN),
            Duration::from_millis(900),
        )?;
        let lines = log.events("producer-abandoned");
        ensure!(
            lines.len() == 1,
            "{} lines about one abandoned producer at {workers}",
            lines.len()
        );
        let name = lines[0]["producer"].as_str().unwrap_or_default();
        ensure!(
            name.ends_with("Beat"),
            "the abandoned producer has no name, or another's than Beat: {}",
            lines[0]
        );
        abandoned += 1;
        drop(held);
    }
    Ok(Witness::of("abandoned producers", abandoned))
}

fn long_period(run: &Run) -> Result<Witness> {
    let mut stopped = 0;
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_PERIOD_MS", 60_000)
            .start()?;
        await_first_step(&server)?;
        let log = server.log().clone();
        let ended = server.stop()?;
        run.within(
            &format!("exit at {workers}"),
            ended.after,
            Duration::from_millis(500),
        )?;
        ensure!(
            log.events("producer-abandoned").is_empty(),
            "a sleeping producer was abandoned"
        );
        stopped += 1;
    }
    Ok(Witness::of("sleeping producers", stopped))
}

fn never_catches_up(run: &Run) -> Result<Witness> {
    const PERIOD_MS: u64 = 100;
    const OVERRUN_MS: u64 = 2000;
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", PERIOD_MS)
        .env("M0_HOSTCHECK_STEP_MS_ONCE", OVERRUN_MS)
        .start()?;
    let tape = Tape::open(server.addr(), None)?;
    let beats = tape.await_beats(31, PATIENCE)?;
    // The first beat ends the overrun, or begins it: the widest pause says which, and the free steps
    // are those behind it.
    let widest = beats
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .enumerate()
        .max_by_key(|(_, pause)| *pause)
        .filter(|(_, pause)| *pause > Duration::from_millis(OVERRUN_MS / 2))
        .map_or(0, |(index, _)| index + 1);
    let free = &beats[widest..];
    let span = Duration::from_secs(1);
    let first = free.first().context("a beat behind the overrun")?.at;
    let in_span = free.iter().filter(|beat| beat.at < first + span).count();
    let nominal = span.as_millis() as f64 / PERIOD_MS as f64;
    run.at_most(
        "steps in the second after an overrun",
        in_span as f64,
        "steps",
        nominal * 1.3,
    )?;
    run.at_least(
        "steps in the second after an overrun",
        in_span as f64,
        "steps",
        nominal * 0.5,
    )?;
    let missed = server.stats()?["producer"]["missed"]
        .as_u64()
        .context("missed steps")?;
    let due = OVERRUN_MS / PERIOD_MS;
    run.at_least(
        "missed steps counted",
        missed as f64,
        "steps",
        (due - 2) as f64,
    )?;
    server.stop()?;
    Ok(Witness::of("free steps", in_span).and("missed steps", usize::try_from(missed)?))
}

fn step_fails(run: &Run) -> Result<Witness> {
    let mut failures = 0;
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_PERIOD_MS", 50)
            .env("M0_HOSTCHECK_STEP_RAISES_AT", 10)
            .env("M0_HEARTBEAT_MS", 100)
            .start()?;
        let audience = Audience::gather(&server, 1, 2)?;
        let line = server.await_log("producer-failed", PATIENCE, |_| true)?;
        let named = line["producer"]
            .as_str()
            .is_some_and(|name| name.ends_with("Beat"));
        ensure!(named && line["message"].is_string(), "{line}");
        let steps = server.stats()?["producer"]["steps"]
            .as_u64()
            .context("steps")?;
        // The server goes on: requests, notes and heartbeats on the held streams; but no beat.
        visit(server.addr(), PATIENCE)?;
        let before: Vec<usize> = audience
            .tapes()
            .iter()
            .map(|tape| tape.items().len())
            .collect();
        let mut peer = Peer::connect(server.addr())?;
        peer.post("/publish", b"still here")?.expect(200)?;
        for (tape, before) in audience.tapes().iter().zip(before) {
            until(
                "the note and two heartbeats behind the failure",
                PATIENCE,
                || {
                    let more = tape.items().len() - before;
                    holds(more >= 3 && tape.end().is_none(), || {
                        format!("{more} items more")
                    })
                },
            )?;
        }
        let after = server.stats()?["producer"]["steps"]
            .as_u64()
            .context("steps")?;
        ensure!(
            after == steps && steps <= 10,
            "steps went from {steps} to {after} after a failure"
        );
        let count = server.log().events("producer-failed").len();
        ensure!(count == 1, "{count} lines about one failure");
        failures += count;
        server.stop()?;
    }
    Ok(Witness::of("failed steps", failures))
}
