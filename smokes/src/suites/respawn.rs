//! A worker dies: its slot is filled again, its siblings notice nothing, its streams' frames go on elsewhere.
//!
//! Kills workers by the pids that the host names. Knows nothing of the drain.
//! Invariant: the sibling whose service is judged never dies in the phase.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{D1, D2, D4, D5, E25, E29, E30, E40, E44, E45, E46, E56, E82};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::audience::{Audience, one_connection_each};
use crate::ends::{Ending, code};
use crate::owned;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::proc;
use crate::run::{Run, Witness, millis};
use crate::server::{Server, share};
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside(
        "respawn-the-beat-goes-on",
        40,
        &[E25, E29, E30, E45, D1],
        the_beat_goes_on,
    ),
    alone(
        "respawn-siblings-notice-nothing",
        30,
        &[E44, E45, E56],
        siblings_notice_nothing,
    ),
    beside(
        "respawn-crash-loop-ends-the-host",
        40,
        &[D4, E46, D2],
        crash_loop,
    ),
    alone(
        "respawn-crash-loop-delays-no-sibling",
        30,
        &[E44, D5],
        crash_loop_delays_no_sibling,
    ),
    alone("respawn-a-hundred-times", 60, &[E82, E56], a_hundred_times),
    beside("respawn-supervisor-killed", 40, &[E40], supervisor_killed),
];

fn the_beat_goes_on(run: &Run) -> Result<Witness> {
    /// Longer than the bound on the silence on purpose: a producer that numbers its frames anew is
    /// silent for as long as it had lived.
    const HOLD: Duration = Duration::from_secs(4);
    const SILENCE: Duration = Duration::from_secs(2);
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .start()?;
    let audience = Audience::gather(&server, 2, 4)?;
    let start = Instant::now();
    let beats = until("beats over four seconds", HOLD * 3, || {
        let beats = audience.tapes()[0]
            .beats()
            .map_err(|error| format!("{error:#}"))?;
        if start.elapsed() >= HOLD {
            Ok(beats)
        } else {
            Err(format!("{} beats", beats.len()))
        }
    })?;
    ensure!(beats.len() >= 40, "{} beats in four seconds", beats.len());
    let producers = audience.producers()?;
    ensure!(producers.len() == 1, "beats by {producers:?}");
    let old = beats.last().context("beats")?.pid;
    let killed = Instant::now();
    ensure!(owned::send(old, Signal::SIGKILL), "no producer {old}");
    let mut held = 0;
    let mut silence = Duration::ZERO;
    let mut new = BTreeSet::new();
    for tape in audience.on(1) {
        let (last, next) = until(
            "a beat of the new producer on worker 1",
            SILENCE * 2,
            || {
                let beats = tape.beats().map_err(|error| format!("{error:#}"))?;
                let next = beats.iter().position(|beat| beat.pid != old);
                match next {
                    Some(at) if at > 0 => Ok((beats[at - 1].clone(), beats[at].clone())),
                    _ => Err(format!("{} beats, none by another process", beats.len())),
                }
            },
        )?;
        ensure!(
            next.id > last.id,
            "{} follows {} after the respawn",
            next.id,
            last.id
        );
        ensure!(
            next.id.epoch == last.id.epoch,
            "a worker's death changed the epoch: {}",
            next.id
        );
        silence = silence.max(next.at.saturating_duration_since(killed));
        new.insert(next.pid);
        tape.await_beats(tape.beats()?.len() + 5, PATIENCE)?;
        for pair in tape.beats()?.windows(2) {
            ensure!(
                pair[1].id > pair[0].id,
                "{} follows {}",
                pair[1].id,
                pair[0].id
            );
        }
        held += 1;
    }
    run.within(
        "kill to the next beat on a sibling's stream",
        silence,
        SILENCE,
    )?;
    new.extend(audience.producers()?);
    new.remove(&old);
    ensure!(new.len() == 1, "after the respawn beats came from {new:?}");
    let heir = server.pid_of_slot(0)?;
    ensure!(
        new.contains(&heir),
        "beats by {new:?}, the worker of slot 0 is {heir}"
    );
    death_line(&server, 0, old, 9)?;
    server.stop()?;
    Ok(Witness::of("streams held on worker 1", held).and("beats before", beats.len()))
}

/// The one line about a death, checked whole.
fn death_line(server: &Server<'_>, slot: u32, pid: i32, signal: i32) -> Result<Value> {
    let line = server.await_log("worker-died", PATIENCE, |line| line["worker"] == pid)?;
    let name = Signal::try_from(signal)?.as_str();
    let told = line["signal"] == signal || line["signal"] == name;
    ensure!(line["slot"] == slot && told, "{line}");
    ensure!(
        line["uptime_ms"].is_u64() && line["respawn_ms"].is_u64(),
        "{line}"
    );
    let count = server
        .log()
        .events("worker-died")
        .iter()
        .filter(|l| l["worker"] == pid)
        .count();
    ensure!(count == 1, "{count} lines about one death");
    Ok(line)
}

/// The time of each GET on a kept-alive connection, until `done` says so.
fn latencies(peer: &mut Peer, mut done: impl FnMut() -> bool) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !done() {
        let asked = Instant::now();
        peer.get("/")?.expect(200)?;
        times.push(asked.elapsed());
        // The pace of a client, not a wait for anything.
        std::thread::sleep(Duration::from_millis(2));
    }
    times.sort();
    Ok(times)
}

fn siblings_notice_nothing(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .env("M0_BACKOFF_MS", 20)
        .start()?;
    let mut zero = one_connection_each(&server)?
        .remove(&0)
        .context("worker 0")?;
    let start = Instant::now();
    let calm = latencies(&mut zero, || start.elapsed() > Duration::from_millis(500))?;
    let mut kills = 0;
    let mut all = Vec::new();
    for _ in 0..4 {
        let pid = server.pid_of_slot(1)?;
        ensure!(owned::send(pid, Signal::SIGKILL), "no worker {pid}");
        kills += 1;
        all.extend(latencies(&mut zero, || {
            server.await_heir(1, pid, Duration::ZERO).is_ok()
        })?);
        death_line(&server, 1, pid, 9)?;
    }
    all.sort();
    run.record(
        "latency while nobody dies, median",
        millis(calm[calm.len() / 2]),
        "ms",
    );
    run.within(
        "latency while a sibling dies, median",
        all[all.len() / 2],
        Duration::from_millis(20),
    )?;
    run.within(
        "latency while a sibling dies, worst",
        all[all.len() - 1],
        Duration::from_millis(250),
    )?;
    server.stop()?;
    Ok(Witness::of("kills", kills).and("requests beside", all.len()))
}

fn crash_loop(run: &Run) -> Result<Witness> {
    const LIMIT: usize = 5;
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_CRASH_AFTER_MS", 100)
        .env("M0_HOSTCHECK_CRASH_SLOT", 1)
        .env("M0_BACKOFF_MS", 60)
        .env("M0_CRASH_LIMIT", LIMIT)
        .foreign_lines_allowed()
        .start()?;
    let audience = Audience::gather_on(&server, 0, 2)?;
    let log = server.log().clone();
    server.finish(&Ending::code(code::CRASH_LOOP).within(Duration::from_secs(20)))?;
    audience.await_farewell(PATIENCE)?;
    let mut deaths = log.events("worker-died");
    deaths.retain(|line| line["slot"] == 1);
    ensure!(
        deaths.len() == LIMIT,
        "{} deaths of slot 1, the limit is {LIMIT}",
        deaths.len()
    );
    let delays: Vec<Option<u64>> = deaths
        .iter()
        .map(|line| line["respawn_ms"].as_u64())
        .collect();
    ensure!(
        delays == [Some(0), Some(60), Some(120), Some(240), None],
        "the delays until the respawns are {delays:?}"
    );
    let told = log.events("crash-loop");
    ensure!(
        told.len() == 1 && told[0]["slot"] == 1,
        "crash-loop lines: {told:?}"
    );
    ensure!(told[0]["deaths"] == LIMIT, "{:?}", told[0]);
    // The delays were kept, not only told: what the lives leave of the time between the first death and
    // the last is waiting.
    let window = told[0]["window_ms"].as_u64().context("window_ms")?;
    let lives: u64 = deaths[1..]
        .iter()
        .filter_map(|line| line["uptime_ms"].as_u64())
        .sum();
    let announced: u64 = delays.iter().flatten().sum();
    run.at_least(
        "time without a worker in slot 1",
        window.saturating_sub(lives) as f64,
        "ms",
        announced as f64,
    )?;
    Ok(Witness::of("deaths", deaths.len()).and("streams on the sibling", audience.tapes().len()))
}

fn crash_loop_delays_no_sibling(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_CRASH_AFTER_MS", 30)
        .env("M0_HOSTCHECK_CRASH_SLOT", 1)
        .env("M0_BACKOFF_MS", 40)
        .env("M0_BACKOFF_MAX_MS", 80)
        .env("M0_CRASH_LIMIT", 1000)
        .foreign_lines_allowed()
        .start()?;
    let mut zero = until("a connection held by worker 0", PATIENCE, || {
        let mut peer = Peer::connect(server.addr()).map_err(|error| format!("{error:#}"))?;
        let slot = peer
            .get("/")
            .and_then(|answer| answer.slot())
            .map_err(|error| format!("{error:#}"))?;
        if slot == 0 {
            Ok(peer)
        } else {
            Err("worker 1 took it".to_owned())
        }
    })?;
    let deaths = || server.log().events("worker-died").len();
    let before = deaths();
    let times = latencies(&mut zero, || deaths() >= before + 15)?;
    run.within(
        "latency beside a crash loop, median",
        times[times.len() / 2],
        Duration::from_millis(20),
    )?;
    run.within(
        "latency beside a crash loop, worst",
        times[times.len() - 1],
        Duration::from_millis(250),
    )?;
    let seen = deaths() - before;
    // A crash may come between the stop and the end: then the host says so with 1.
    server.signal(Signal::SIGTERM)?;
    server.finish(&Ending::clean().or(code::DIRTY))?;
    Ok(Witness::of("deaths beside", seen).and("requests", times.len()))
}

fn a_hundred_times(run: &Run) -> Result<Witness> {
    const KILLS: usize = 100;
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .env("M0_BACKOFF_MS", 1)
        .env("M0_BACKOFF_MAX_MS", 1)
        .env("M0_HEALTHY_MS", 1)
        // A worker may be killed within its first millisecond, and that is not healthy.
        .env("M0_CRASH_LIMIT", 10_000)
        .start()?;
    let mut held = one_connection_each(&server)?
        .remove(&0)
        .context("worker 0")?;
    let mut slowest = Duration::ZERO;
    for kill in 0..KILLS {
        // Its connections die with it, and its count is repaired before its heir serves.
        let mut pid = 0;
        until("slot 1 to be filled", PATIENCE, || {
            let stats = stats_by(&mut held).map_err(|error| format!("{error:#}"))?;
            let one = share(&stats, 1).map_err(|error| format!("{error:#}"))?;
            let found = one["pid"]
                .as_i64()
                .and_then(|pid| i32::try_from(pid).ok())
                .unwrap_or(0);
            let alive = proc::stat(found).is_some_and(|stat| !stat.is_zombie());
            let ready = server
                .log()
                .events("worker-ready")
                .iter()
                .any(|line| line["slot"] == 1 && line["pid"] == found);
            pid = found;
            let held = one["held"].as_u64().unwrap_or(u64::MAX);
            holds(alive && ready && held == 0, || {
                format!("kill {kill}: {one}, alive {alive}")
            })
        })?;
        let doomed = Instant::now();
        ensure!(owned::send(pid, Signal::SIGKILL), "no worker {pid}");
        server.await_heir(1, pid, PATIENCE)?;
        slowest = slowest.max(doomed.elapsed());
    }
    run.record("kill to ready, slowest", millis(slowest), "ms");
    let deaths = server.log().events("worker-died").len();
    ensure!(
        deaths == KILLS,
        "{deaths} deaths logged, {KILLS} were killed"
    );
    server.stop()?;
    Ok(Witness::of("kills", deaths))
}

fn stats_by(peer: &mut Peer) -> Result<Value> {
    Ok(serde_json::from_slice(
        &peer.get("/stats")?.expect(200)?.body,
    )?)
}

fn supervisor_killed(run: &Run) -> Result<Witness> {
    let mut gone = 0;
    // With the death signal and with the pipe alone; idle, and with a worker stuck in a handler.
    for (without_signal, stuck) in [(0, false), (1, false), (1, true)] {
        let server = Server::launch(run)
            .workers(2)
            .env("M0_HOSTCHECK_PERIOD_MS", 50)
            .env("M0_HOSTCHECK_NO_DEATH_SIGNAL", without_signal)
            .start()?;
        let audience = Audience::gather(&server, 1, 2)?;
        audience.await_beats(2, PATIENCE)?;
        let mut blocked = Peer::connect(server.addr())?;
        if stuck {
            blocked.send(request("GET", "/block?ms=60000", &[], b""))?;
            let silent = blocked.is_open_and_silent(Duration::from_millis(200))?;
            ensure!(silent, "/block answered at once");
        }
        let workers = server.worker_pids();
        ensure!(workers.len() == 2, "workers {workers:?}");
        let killed = Instant::now();
        server.signal(Signal::SIGKILL)?;
        let what = match (without_signal, stuck) {
            (0, _) => "by the death signal",
            (_, false) => "by the pipe",
            (_, true) => "by the pipe, one stuck",
        };
        until(
            &format!("every worker to be gone {what}"),
            Duration::from_secs(1),
            || {
                let alive: Vec<i32> = workers
                    .iter()
                    .copied()
                    .filter(|&pid| proc::stat(pid).is_some_and(|stat| !stat.is_zombie()))
                    .collect();
                holds(alive.is_empty(), || format!("{alive:?} live"))
            },
        )?;
        run.within(
            &format!("workers gone {what}"),
            killed.elapsed(),
            Duration::from_secs(1),
        )?;
        for tape in audience.tapes() {
            tape.await_end(PATIENCE)?;
        }
        gone += workers.len();
        server.finish(&Ending::signal(9, Duration::from_secs(1)))?;
    }
    Ok(Witness::of("workers that lost their supervisor", gone))
}
