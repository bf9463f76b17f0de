//! Signals that come twice, fifty times, to everybody, or while a worker crashes: the stop stays in order.
//!
//! Knows the drain from `drain`; here the stop itself is disturbed.
//! Invariant: something is held or in flight on every worker before the first signal.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use m0_spec::{D10, D11, D26, E21, E43};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::drain::{AT_ONCE, launch};
use crate::answer::lossy;
use crate::audience::{Audience, farewell, one_connection_each};
use crate::ends::{Ending, code};
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("drain-second-term-ends-at-once", 30, &[D11], second_term),
    beside("drain-fifty-terms", 30, &[E43], fifty_terms),
    beside("drain-signal-to-the-group", 30, &[E43, E21], group_signal),
    beside(
        "drain-workers-told-first",
        30,
        &[E43, E21],
        workers_told_first,
    ),
    beside(
        "drain-crash-is-not-respawned",
        30,
        &[D10, D26],
        crash_is_not_respawned,
    ),
];

fn second_term(run: &Run) -> Result<Witness> {
    let mut cut = 0;
    for workers in [1, 2] {
        let server = launch(run, workers).start()?;
        let mut sleepers = one_connection_each(&server)?;
        for peer in sleepers.values_mut() {
            peer.send(request("GET", "/sleep?ms=60000", &[], b""))?;
        }
        let log = server.log().clone();
        server.signal(Signal::SIGTERM)?;
        server.await_log("stopping", PATIENCE, |_| true)?;
        for peer in sleepers.values_mut() {
            let held = peer.is_open_and_silent(Duration::from_millis(100))?;
            ensure!(
                held,
                "the first TERM ended a request in flight: {:?}",
                lossy(peer.pending())
            );
        }
        server.signal(Signal::SIGTERM)?;
        let ended = server.finish(&Ending::code(code::DIRTY))?;
        run.within(
            &format!("exit after the second at {workers}"),
            ended.after,
            AT_ONCE,
        )?;
        let again = log.events("worker-ready").len();
        ensure!(
            again <= workers as usize,
            "{again} workers became ready, {workers} were asked for"
        );
        cut += sleepers.len();
    }
    Ok(Witness::of("requests ended by the second TERM", cut))
}

fn fifty_terms(run: &Run) -> Result<Witness> {
    let mut sent = 0;
    for workers in [1, 2] {
        // Signals that are pending together are one (signal(7)): then the first stop runs to its bound.
        let server = launch(run, workers).env("M0_DRAIN_MS", 1000).start()?;
        let audience = Audience::gather(&server, 1, 4)?;
        let mut sleeper = Peer::connect(server.addr())?;
        sleeper.send(request("GET", "/sleep?ms=60000", &[], b""))?;
        let log = server.log().clone();
        for _ in 0..50 {
            // It may have gone before the fiftieth: that is what they are for.
            sent += usize::from(server.signal(Signal::SIGTERM).is_ok());
        }
        let ended = server.finish(&Ending::code(code::DIRTY).or(code::CLEAN))?;
        run.within(
            &format!("exit at {workers}"),
            ended.after,
            Duration::from_secs(3),
        )?;
        let first = log
            .events("stopping")
            .iter()
            .filter(|line| line["again"] != true)
            .count();
        let stopped = log.events("stopped").len();
        ensure!(
            first == 1 && stopped == 1,
            "{first} first stops and {stopped} ends in the log"
        );
        drop(audience);
    }
    Ok(Witness::of("signals", sent))
}

fn group_signal(run: &Run) -> Result<Witness> {
    let mut told = 0;
    for workers in [1, 2] {
        let server = launch(run, workers).start()?;
        let audience = Audience::gather(&server, 1, 4)?;
        audience.await_beats(2, PATIENCE)?;
        // A request in flight: a worker that takes the group's TERM and the forwarded one for two
        // would cut it.
        let mut sleepers = one_connection_each(&server)?;
        for peer in sleepers.values_mut() {
            peer.send(request("GET", "/sleep?ms=500", &[], b""))?;
        }
        server.check_running()?;
        server.signal_group(Signal::SIGTERM)?;
        for tape in audience.tapes() {
            farewell(tape, PATIENCE)?;
            told += 1;
        }
        for (slot, peer) in &mut sleepers {
            peer.answer()?
                .expect(200)
                .with_context(|| format!("a request in flight on worker {slot} at {workers}"))?;
        }
        server.finish(&Ending::clean())?;
    }
    Ok(Witness::of("streams told", told))
}

/// The order that a signal to the group may take, made certain: each worker has begun to drain by its own
/// TERM before the supervisor hears of the stop and forwards it.
fn workers_told_first(run: &Run) -> Result<Witness> {
    let server = launch(run, 2).start()?;
    let audience = Audience::gather(&server, 1, 4)?;
    audience.await_beats(2, PATIENCE)?;
    // Keeps each worker in its drain until the forwarded signal has come.
    let mut sleepers = one_connection_each(&server)?;
    for peer in sleepers.values_mut() {
        peer.send(request("GET", "/sleep?ms=2000", &[], b""))?;
    }
    server.check_running()?;
    let mut told = 0;
    for slot in 0..server.workers() {
        let worker = server.pid_of_slot(slot)?;
        kill(Pid::from_raw(worker), Signal::SIGTERM)
            .with_context(|| format!("TERM to worker {slot}"))?;
        for tape in audience.on(slot) {
            farewell(tape, PATIENCE)?;
            told += 1;
        }
    }
    server.signal(Signal::SIGTERM)?;
    for (slot, peer) in &mut sleepers {
        peer.answer()?
            .expect(200)
            .with_context(|| format!("a request in flight on worker {slot}"))?;
    }
    server.finish(&Ending::clean())?;
    Ok(Witness::of("streams told", told))
}

fn crash_is_not_respawned(run: &Run) -> Result<Witness> {
    let server = launch(run, 2)
        .env("M0_HOSTCHECK_CRASH_IN_DRAIN_SLOT", 1)
        .foreign_lines_allowed()
        .start()?;
    let audience = Audience::gather(&server, 1, 4)?;
    audience.await_beats(2, PATIENCE)?;
    let log = server.log().clone();
    let crasher = server.pid_of_slot(1)?;
    // A request in flight keeps worker 1 in the drain until the crash comes.
    let mut sleeper = one_connection_each(&server)?
        .remove(&1)
        .context("worker 1")?;
    sleeper.send(request("GET", "/sleep?ms=3000", &[], b""))?;
    server.check_running()?;
    server.signal(Signal::SIGTERM)?;
    let ended = server.finish(&Ending::code(code::DIRTY))?;
    sleeper.drained(PATIENCE)?;
    run.within("exit", ended.after, Duration::from_secs(2))?;
    for tape in audience.on(0) {
        farewell(tape, PATIENCE)?;
    }
    let mut deaths = log.events("worker-died");
    deaths.retain(|line| line["reason"] != "drained");
    ensure!(
        deaths.len() == 1,
        "one worker crashed in the drain, the log tells of {deaths:?}"
    );
    ensure!(
        deaths[0]["slot"] == 1 && deaths[0]["worker"] == crasher,
        "{:?}",
        deaths[0]
    );
    ensure!(
        deaths[0]["respawn_ms"].is_null(),
        "a respawn in the drain: {:?}",
        deaths[0]
    );
    let ready = log.events("worker-ready").len();
    ensure!(
        ready == 2,
        "{ready} workers became ready, two were asked for"
    );
    Ok(Witness::of("crashes in the drain", deaths.len())
        .and("streams beside", audience.on(0).count()))
}
