//! Workers die, stop or run out of descriptors while clients come: somebody takes every connection.
//!
//! Knows the loads and the faults; how connections are shared stands in `accept`.
//! Invariant: the load runs before the fault and after it, so a hang shows as itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{E53, E54, E57};
use nix::sys::signal::Signal;

use super::accept::{await_empty, launch};
use crate::audience::{one_connection_each, visit};
use crate::ends::{Ending, code};
use crate::load::{Load, Visit};
use crate::owned;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::proc;
use crate::run::{Run, Witness};
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    alone(
        "accept-while-workers-are-killed",
        30,
        &[E53],
        while_workers_are_killed,
    ),
    alone(
        "accept-while-a-worker-is-stopped",
        30,
        &[E53],
        while_a_worker_is_stopped,
    ),
    beside(
        "accept-a-lone-visit-beside-a-stopped-worker",
        30,
        &[E53],
        a_lone_visit_beside_a_stopped_worker,
    ),
    alone(
        "accept-while-a-worker-is-starved",
        30,
        &[E53, E54],
        while_a_worker_is_starved,
    ),
    beside("accept-out-of-descriptors", 40, &[E54], out_of_descriptors),
    beside(
        "accept-clients-gone-before",
        30,
        &[E57],
        clients_gone_before,
    ),
];

/// Longest that a client may wait for its answer while workers come and go.
const NO_HANG: Duration = Duration::from_secs(1);

/// Fails when a visit that began within the span hung. Answers how many there were and how many were
/// answered with an error that came at once.
fn none_hung(run: &Run, what: &str, visits: &[Visit]) -> Result<(usize, usize)> {
    let worst = visits
        .iter()
        .map(|visit| visit.took)
        .max()
        .unwrap_or_default();
    run.within(&format!("longest visit {what}"), worst, NO_HANG)?;
    let broken = visits.iter().filter(|visit| visit.answer.is_err()).count();
    Ok((visits.len(), broken))
}

fn while_workers_are_killed(run: &Run) -> Result<Witness> {
    let server = launch(run, 2)
        .env("M0_BACKOFF_MS", 50)
        .env("M0_CRASH_LIMIT", 100)
        .start()?;
    let load = Load::start(server.addr(), 200, Duration::from_secs(5));
    let mut killed = 0;
    for slot in [1, 0, 1, 0] {
        until("a hundred visits more", PATIENCE, {
            let before = load.visits().len();
            let load = &load;
            move || {
                let more = load.visits().len() - before;
                holds(more >= 100, || format!("{more} visits"))
            }
        })?;
        let pid = server.pid_of_slot(slot)?;
        ensure!(owned::send(pid, Signal::SIGKILL), "no worker {pid}");
        killed += 1;
        server.await_heir(slot, pid, PATIENCE)?;
    }
    let visits = load.finish();
    let (all, broken) = none_hung(run, "while workers are killed", &visits)?;
    // What a worker had accepted dies with it, and is answered by a reset at once.
    run.at_most(
        "visits broken by a kill",
        broken as f64 / f64::from(killed),
        "per kill",
        8.0,
    )?;
    server.stop()?;
    Ok(Witness::of("visits", all).and("kills", usize::try_from(killed)?))
}

fn while_a_worker_is_stopped(run: &Run) -> Result<Witness> {
    let server = launch(run, 2).start()?;
    // Worker 0 holds a connection more, so the visits are worker 1's for as long as it runs.
    let mut held = one_connection_each(&server)?;
    held.retain(|slot, _| *slot == 0);
    let load = Load::start(server.addr(), 200, Duration::from_secs(5));
    until("worker 1 to answer", PATIENCE, || {
        let visits = load.visits();
        let by_it = visits.iter().filter(|visit| visit.answer == Ok(1)).count();
        holds(by_it > 20, || format!("{by_it} answers by it"))
    })?;
    let pid = server.pid_of_slot(1)?;
    owned::send(pid, Signal::SIGSTOP);
    until("the worker to be stopped", PATIENCE, || {
        let stopped = proc::stat(pid).is_some_and(|stat| stat.is_stopped());
        holds(stopped, || "it runs".to_owned())
    })?;
    let stopped = Instant::now();
    let while_stopped = until(
        "two hundred visits beside the stopped worker",
        PATIENCE,
        || {
            let visits = load.visits();
            let since = visits.iter().filter(|visit| visit.at > stopped).count();
            if since >= 200 {
                Ok(visits)
            } else {
                Err(format!("{since} visits"))
            }
        },
    )?;
    owned::send(pid, Signal::SIGCONT);
    let continued = Instant::now();
    until("the worker to answer again", PATIENCE, || {
        let visits = load.visits();
        let again = visits
            .iter()
            .filter(|visit| visit.at > continued && visit.answer == Ok(1))
            .count();
        holds(again > 5, || format!("{again} answers by it"))
    })?;
    let visits = load.finish();
    let since: Vec<Visit> = visits
        .iter()
        .filter(|visit| visit.at > stopped)
        .cloned()
        .collect();
    let (all, broken) = none_hung(run, "since a worker stopped", &since)?;
    ensure!(
        broken == 0,
        "{broken} of {all} visits broken by a stopped worker"
    );
    // What it had accepted before it was stopped waits until it goes on, and is answered then.
    let before: Vec<&Visit> = visits.iter().filter(|visit| visit.at <= stopped).collect();
    ensure!(
        before.iter().all(|visit| visit.answer.is_ok()),
        "a visit before the stop was broken"
    );
    server.stop()?;
    Ok(Witness::of(
        "visits beside a stopped worker",
        while_stopped.len(),
    ))
}

/// Nobody else comes whose connection would wake another worker: the kernel wakes the stopped one, and it
/// alone.
fn a_lone_visit_beside_a_stopped_worker(run: &Run) -> Result<Witness> {
    let server = launch(run, 2).start()?;
    let mut worst = Duration::ZERO;
    let mut visits = 0;
    for turn in 0..6 {
        let stopped = turn % 2;
        let pid = server.pid_of_slot(stopped)?;
        owned::send(pid, Signal::SIGSTOP);
        until("the worker to be stopped", PATIENCE, || {
            let is_stopped = proc::stat(pid).is_some_and(|stat| stat.is_stopped());
            holds(is_stopped, || "it runs".to_owned())
        })?;
        let asked = Instant::now();
        let answered = visit(server.addr(), NO_HANG);
        worst = worst.max(asked.elapsed());
        owned::send(pid, Signal::SIGCONT);
        let by = answered.with_context(|| format!("a visit while worker {stopped} is stopped"))?;
        ensure!(by != stopped, "the stopped worker answered");
        visits += 1;
        until("the worker to go on", PATIENCE, || {
            let is_stopped = proc::stat(pid).is_some_and(|stat| stat.is_stopped());
            holds(!is_stopped, || "it is stopped".to_owned())
        })?;
    }
    run.within("lone visit beside a stopped worker, worst", worst, NO_HANG)?;
    server.stop()?;
    Ok(Witness::of("lone visits", visits))
}

fn while_a_worker_is_starved(run: &Run) -> Result<Witness> {
    let server = launch(run, 2)
        .env("M0_HOSTCHECK_NOFILE", 48)
        .env("M0_HOSTCHECK_NOFILE_SLOT", 1)
        .start()?;
    let mut held = Vec::new();
    let mut by_one = 0;
    until("worker 1 to be out of descriptors", PATIENCE, || {
        let mut peer = Peer::connect(server.addr()).map_err(|error| format!("{error:#}"))?;
        let slot = peer
            .get("/")
            .and_then(|answer| answer.slot())
            .map_err(|error| format!("{error:#}"))?;
        by_one += usize::from(slot == 1);
        held.push(peer);
        let starved = server.log().events("accept-starved");
        holds(!starved.is_empty(), || {
            format!("{} held, {by_one} by worker 1", held.len())
        })
    })?;
    let load = Load::start(server.addr(), 200, Duration::from_secs(5));
    until(
        "three hundred visits beside the starved worker",
        PATIENCE,
        || {
            let visits = load.visits().len();
            holds(visits >= 300, || format!("{visits} visits"))
        },
    )?;
    let visits = load.finish();
    let (all, broken) = none_hung(run, "beside a starved worker", &visits)?;
    ensure!(
        broken == 0,
        "{broken} of {all} visits broken by a starved worker"
    );
    drop(held);
    until("worker 1 to answer again", PATIENCE, || {
        let mut peers = Vec::new();
        for _ in 0..8 {
            let mut peer = Peer::connect(server.addr()).map_err(|error| format!("{error:#}"))?;
            let answer = peer.get("/").map_err(|error| format!("{error:#}"))?;
            if answer.slot().ok() == Some(1) {
                return Ok(());
            }
            peers.push(peer);
        }
        Err("eight held connections, all by worker 0".to_owned())
    })?;
    server.await_log("accept-resumed", PATIENCE, |_| true)?;
    server.stop()?;
    Ok(Witness::of("visits beside a starved worker", all).and("held by it", by_one))
}

fn out_of_descriptors(run: &Run) -> Result<Witness> {
    let mut starved = 0;
    for workers in [1, 2] {
        let server = launch(run, workers)
            .env("M0_HOSTCHECK_NOFILE", 40)
            .start()?;
        let pids = server.worker_pids();
        let mut held = Vec::new();
        for _ in 0..60 * workers {
            held.push(Peer::connect(server.addr())?);
        }
        until("every worker to be out of descriptors", PATIENCE, || {
            let mut slots: Vec<String> = server
                .log()
                .events("accept-starved")
                .iter()
                .map(|line| line["slot"].to_string())
                .collect();
            slots.sort();
            slots.dedup();
            holds(slots.len() == workers as usize, || {
                format!("starved: {slots:?}")
            })
        })?;
        let cpu = || -> Duration {
            pids.iter()
                .filter_map(|&pid| proc::stat(pid))
                .map(|s| s.cpu)
                .sum()
        };
        let before = cpu();
        // The promise is about a span of time: a spin shows as processor time in it.
        std::thread::sleep(Duration::from_secs(1));
        let busy = cpu().saturating_sub(before);
        run.within(
            &format!("processor time in a second without descriptors at {workers}"),
            busy,
            Duration::from_millis(100),
        )?;
        let lines = server.log().events("accept-starved").len();
        ensure!(
            lines <= workers as usize * 4,
            "{lines} lines about one shortage"
        );
        drop(held);
        let closed = Instant::now();
        until(
            "an answer after the shortage",
            Duration::from_secs(3),
            || visit(server.addr(), Duration::from_secs(1)).map_err(|error| format!("{error:#}")),
        )?;
        run.within(
            &format!("service after the shortage at {workers}"),
            closed.elapsed(),
            Duration::from_secs(2),
        )?;
        server.await_log("accept-resumed", PATIENCE, |_| true)?;
        starved += workers as usize;
        server.stop()?;
    }
    Ok(Witness::of("starved workers", starved))
}

fn clients_gone_before(run: &Run) -> Result<Witness> {
    let server = launch(run, 2).start()?;
    let lines = server.log().objects().len();
    // Both workers are kept from accepting, so that every reset comes before its accept.
    let mut blockers = one_connection_each(&server)?;
    for peer in blockers.values_mut() {
        peer.send(request("GET", "/block?ms=700", &[], b""))?;
    }
    for peer in blockers.values_mut() {
        ensure!(
            peer.is_open_and_silent(Duration::from_millis(100))?,
            "/block answered at once"
        );
    }
    let mut gone = 0;
    for _ in 0..100 {
        Peer::connect(server.addr())?.reset()?;
        gone += 1;
    }
    for peer in blockers.values_mut() {
        peer.answer()?.expect(200)?;
    }
    drop(blockers);
    for _ in 0..10 {
        visit(server.addr(), NO_HANG)?;
    }
    await_empty(&server)?;
    let more = server.log().objects().len() - lines;
    ensure!(
        more == 0,
        "{more} log lines about clients that had gone: {}",
        server.log().tail(3)
    );
    server.stop_with(&Ending::code(code::CLEAN))?;
    run.record("clients gone before the accept", f64::from(gone), "count");
    Ok(Witness::of(
        "clients gone before the accept",
        usize::try_from(gone)?,
    ))
}
