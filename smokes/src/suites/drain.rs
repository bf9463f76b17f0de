//! From the stop signal to the exit: who is told, who is answered, who is cut, and how long it takes.
//!
//! Knows nothing of deaths before the stop. Times that are promises here: 500 ms where nothing is in
//! flight, the drain's bound where something is.
//! Invariant: something is held or in flight on every worker before the signal is sent.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{D8, D12, D26, D27, D34, E21, E32, E58, E59, E60, E61, E76, S13, S14};
use nix::sys::signal::Signal;

use crate::audience::{Audience, all_closed, farewell, one_connection_each};
use crate::ends::{Ending, code};
use crate::owned;
use crate::peer::{Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::proc;
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("drain-ends-streams", 30, &[E21, S13, D8, E32], ends_streams),
    alone("drain-idle-leaves-at-once", 30, &[E58], idle_leaves_at_once),
    beside(
        "drain-answers-what-is-in-flight",
        30,
        &[E59, E61],
        answers_in_flight,
    ),
    beside("drain-cuts-at-the-bound", 40, &[E60], cuts_at_the_bound),
    beside(
        "drain-kills-a-stuck-handler",
        40,
        &[E60, D12, D26, D34],
        kills_a_stuck_handler,
    ),
    beside(
        "drain-kills-a-stopped-worker",
        30,
        &[D27, D34],
        kills_a_stopped_worker,
    ),
    beside(
        "drain-refuses-new-streams",
        30,
        &[S14, E76],
        refuses_new_streams,
    ),
];

/// The promise for a drain in which nothing is in flight.
pub(super) const AT_ONCE: Duration = Duration::from_millis(500);

pub(super) fn launch(run: &Run, workers: u32) -> crate::launch::Launch<'_> {
    Server::launch(run)
        .workers(workers)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
}

fn ends_streams(run: &Run) -> Result<Witness> {
    let mut told = 0;
    let mut retries = BTreeSet::new();
    for (workers, signal) in [
        (1, Signal::SIGTERM),
        (2, Signal::SIGTERM),
        (2, Signal::SIGINT),
    ] {
        let server = launch(run, workers).start()?;
        let audience = Audience::gather(&server, 2, 6)?;
        audience.await_beats(2, PATIENCE)?;
        server.check_running()?;
        server.signal(signal)?;
        retries.extend(audience.await_farewell(PATIENCE)?);
        audience.check_order()?;
        let drained = server.log().clone();
        server.finish(&Ending::clean())?;
        let counted: u64 = drained
            .events("drained")
            .iter()
            .filter_map(|line| line["streams_told"].as_u64())
            .sum();
        let held = audience.tapes().len();
        ensure!(
            counted == held as u64,
            "the log tells of {counted} streams, {held} were held"
        );
        let crashed: Vec<_> = drained
            .events("worker-died")
            .into_iter()
            .filter(|line| line["reason"] != "drained" || !line["respawn_ms"].is_null())
            .collect();
        ensure!(
            crashed.is_empty(),
            "a planned exit was taken for a crash: {crashed:?}"
        );
        told += held;
    }
    ensure!(
        retries.len() > 1,
        "every stream was told the same retry {retries:?}: no jitter"
    );
    Ok(Witness::of("streams told", told).and("different retries", retries.len()))
}

fn idle_leaves_at_once(run: &Run) -> Result<Witness> {
    let mut connections = 0;
    for workers in [1, 2] {
        let server = launch(run, workers).start()?;
        let mut idle: Vec<Peer> = Vec::new();
        for _ in 0..10 {
            let mut peer = Peer::connect(server.addr())?;
            peer.get("/")?.expect(200)?;
            idle.push(peer);
        }
        for _ in 0..10 {
            idle.push(Peer::connect(server.addr())?);
        }
        let audience = Audience::gather(&server, 1, 6)?;
        audience.await_beats(1, PATIENCE)?;
        // The silent ones are held when the statistics say so.
        let all = idle.len() + audience.tapes().len();
        until("every connection to be held", PATIENCE, || {
            let stats = server.stats().map_err(|error| format!("{error:#}"))?;
            let held = crate::server::sum(&stats, "held").map_err(|error| format!("{error:#}"))?;
            holds(held >= all as u64, || format!("{held} held of {all}"))
        })?;
        let ended = server.stop()?;
        run.within(&format!("exit at {workers}"), ended.after, AT_ONCE)?;
        audience.await_farewell(PATIENCE)?;
        all_closed(&mut idle, PATIENCE)?;
        connections += all;
    }
    Ok(Witness::of("connections", connections))
}

fn answers_in_flight(run: &Run) -> Result<Witness> {
    let mut answered = 0;
    for workers in [1, 2] {
        let server = launch(run, workers).start()?;
        let mut sleepers = one_connection_each(&server)?;
        for peer in sleepers.values_mut() {
            peer.send(request("GET", "/sleep?ms=800", &[], b""))?;
        }
        let mut uploads = one_connection_each(&server)?;
        let body = vec![b'u'; 300_000];
        let whole = request("POST", "/upload", &[], &body);
        let half = whole.len() / 2;
        for peer in uploads.values_mut() {
            peer.send(&whole[..half])?;
        }
        let log = server.log().clone();
        server.check_running()?;
        server.signal(Signal::SIGTERM)?;
        server.await_log("stopping", PATIENCE, |_| true)?;
        for peer in uploads.values_mut() {
            peer.send_slowly(&whole[half..], 50_000, Duration::from_millis(50))?;
        }
        for (what, peers) in [("sleep", &mut sleepers), ("upload", &mut uploads)] {
            for (slot, peer) in peers.iter_mut() {
                let answer = peer
                    .answer()
                    .and_then(|answer| answer.expect(200))
                    .with_context(|| format!("{what} in flight on worker {slot} at {workers}"))?;
                ensure!(
                    answer.head.closes(),
                    "no Connection: close in {:?}",
                    answer.head
                );
                if what == "upload" {
                    let text = answer.text();
                    ensure!(
                        text.contains("300000"),
                        "an upload of 300000 bytes answered {text:?}"
                    );
                }
                ensure!(
                    peer.closed(PATIENCE)? == Closing::Fin,
                    "{what}: reset behind the answer"
                );
                answered += 1;
            }
        }
        let last = Instant::now();
        server.finish(&Ending::clean())?;
        run.within(
            &format!("exit after the last answer at {workers}"),
            last.elapsed(),
            Duration::from_secs(2),
        )?;
        let cut: u64 = log
            .events("drained")
            .iter()
            .filter_map(|line| line["requests_cut"].as_u64())
            .sum();
        ensure!(cut == 0, "{cut} requests were cut");
    }
    Ok(Witness::of("requests answered in the drain", answered))
}

fn cuts_at_the_bound(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_secs(1);
    let mut cut = 0;
    for workers in [1, 2] {
        let server = launch(run, workers)
            .env("M0_DRAIN_MS", BOUND.as_millis())
            .start()?;
        let log = server.log().clone();
        let mut sleepers = one_connection_each(&server)?;
        for peer in sleepers.values_mut() {
            peer.send(request("GET", "/sleep?ms=60000", &[], b""))?;
        }
        let mut slow = Peer::connect_narrow(server.addr(), 4096)?;
        slow.send(request("GET", "/big?bytes=50000000", &[], b""))?;
        slow.head(PATIENCE)?
            .status
            .eq(&200)
            .then_some(())
            .context("/big is not 200")?;
        let ended = server.stop()?;
        run.at_least(
            &format!("exit at {workers}"),
            crate::run::millis(ended.after),
            "ms",
            900.0,
        )?;
        run.within(
            &format!("exit beyond the bound at {workers}"),
            ended.after.saturating_sub(BOUND),
            Duration::from_millis(700),
        )?;
        let told: u64 = log
            .events("drained")
            .iter()
            .filter_map(|line| line["requests_cut"].as_u64())
            .sum();
        let open = sleepers.len() as u64 + 1;
        ensure!(
            told == open,
            "{told} requests logged as cut, {open} were open"
        );
        cut += told;
    }
    Ok(Witness::of("requests cut", usize::try_from(cut)?))
}

fn kills_a_stuck_handler(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_secs(1);
    let mut stuck = 0;
    for workers in [1, 2] {
        let server = launch(run, workers)
            .env("M0_DRAIN_MS", BOUND.as_millis())
            .start()?;
        let mut blocked = Peer::connect(server.addr())?;
        blocked.send(request("GET", "/block?ms=60000", &[], b""))?;
        // It is stuck when a second request on the same worker would wait; the other worker shows
        // that the server as a whole still serves.
        until("the handler to block its worker", PATIENCE, || {
            blocked
                .is_open_and_silent(Duration::from_millis(200))
                .map_err(|error| format!("{error:#}"))
                .and_then(|silent| holds(silent, || "an answer came".to_owned()))
        })?;
        server.signal(Signal::SIGTERM)?;
        // The process that is stuck cannot end in order: its watch thread or its supervisor ends it, and
        // the host says so with 1.
        let ended = server.finish(&Ending::code(code::DIRTY))?;
        run.within(
            &format!("exit beyond the bound at {workers}"),
            ended.after.saturating_sub(BOUND),
            Duration::from_secs(1),
        )?;
        let how = blocked.closed(PATIENCE)?;
        ensure!(matches!(how, Closing::Fin | Closing::Reset), "{how:?}");
        stuck += 1;
    }
    Ok(Witness::of("stuck handlers", stuck))
}

fn kills_a_stopped_worker(run: &Run) -> Result<Witness> {
    const BOUND: Duration = Duration::from_millis(800);
    let server = launch(run, 2)
        .env("M0_DRAIN_MS", BOUND.as_millis())
        .start()?;
    let audience = Audience::gather(&server, 1, 2)?;
    audience.await_beats(2, PATIENCE)?;
    let pid = server.pid_of_slot(1)?;
    server.check_running()?;
    ensure!(owned::send(pid, Signal::SIGSTOP), "no worker {pid}");
    until("the worker to be stopped", PATIENCE, || {
        let stopped = proc::stat(pid).is_some_and(|stat| stat.is_stopped());
        holds(stopped, || "it runs".to_owned())
    })?;
    let log = server.log().clone();
    server.signal(Signal::SIGTERM)?;
    for tape in audience.on(0) {
        farewell(tape, PATIENCE)?;
    }
    let ended = server.finish(&Ending::code(code::DIRTY))?;
    run.within(
        "exit beyond the bound",
        ended.after.saturating_sub(BOUND),
        Duration::from_secs(1),
    )?;
    let killed = log
        .events("worker-died")
        .into_iter()
        .filter(|line| line["worker"] == pid && line["respawn_ms"].is_null())
        .count();
    Ok(Witness::of("stopped workers killed", killed).and("streams beside", audience.on(0).count()))
}

fn refuses_new_streams(run: &Run) -> Result<Witness> {
    let mut refused = 0;
    for workers in [1, 2] {
        let server = launch(run, workers).start()?;
        let ready = crate::peer::get(server.addr(), "/readyz")?;
        ensure!(
            ready.status() == 200,
            "/readyz is {} while serving",
            ready.status()
        );
        // A request in flight on each worker keeps all of them in the drain.
        let mut sleepers = one_connection_each(&server)?;
        for peer in sleepers.values_mut() {
            peer.send(request("GET", "/sleep?ms=1500", &[], b""))?;
        }
        server.signal(Signal::SIGTERM)?;
        server.await_log("stopping", PATIENCE, |_| true)?;
        until(
            "/readyz to be 503 in the drain",
            Duration::from_secs(1),
            || {
                let answer = crate::peer::get(server.addr(), "/readyz")
                    .map_err(|error| format!("{error:#}"))?;
                holds(answer.status() == 503, || {
                    format!("status {}", answer.status())
                })
            },
        )?;
        for _ in 0..4 {
            let answer = crate::peer::get(server.addr(), "/events")?.expect(503)?;
            ensure!(
                answer.head.field("retry-after").is_some(),
                "no Retry-After: {:?}",
                answer.head
            );
            ensure!(
                answer.head.closes(),
                "kept alive in the drain: {:?}",
                answer.head
            );
            refused += 1;
        }
        for peer in sleepers.values_mut() {
            peer.answer()?.expect(200)?;
        }
        server.finish(&Ending::clean())?;
    }
    Ok(Witness::of("streams refused in the drain", refused))
}
