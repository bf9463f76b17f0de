//! `Last-Event-ID` on any worker: what was missed comes back, once, in order, or a reset says why not.
//!
//! Knows ids by their text. Knows nothing of how frames are kept.
//! Invariant: what a client must have seen is judged by what all clients saw.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{D49, E30, S4, S5, S6, S17, S26};
use nix::sys::signal::Signal;

use crate::audience::{check_against_all, one_connection_each};
use crate::ends::{Ending, code};
use crate::events::{Event, EventStream, Id, Item, consecutive};
use crate::owned;
use crate::peer::{PATIENCE, Peer};
use crate::phase::{Phase, alone, beside};
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    alone(
        "replay-through-kills",
        60,
        &[S4, S5, S26, E30],
        through_kills,
    ),
    beside("replay-on-every-worker", 30, &[S4, S5], on_every_worker),
    beside(
        "publish-through-kills",
        40,
        &[D49, E30],
        publish_through_kills,
    ),
    beside("replay-resets", 30, &[S6], resets),
    beside("replay-after-a-restart", 30, &[S6, S17], after_a_restart),
];

/// What one client saw in the end.
#[derive(Debug, Default)]
struct Seen {
    ids: Vec<Id>,
    sessions: usize,
    resets: Vec<String>,
    errors: usize,
}

/// Reads for 300 ms, leaves, comes back with the last id, until told to stop.
fn wander(to: SocketAddr, stop: &AtomicBool, sessions: &AtomicUsize) -> Result<Seen> {
    const STAY: Duration = Duration::from_millis(300);
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        let last = seen.ids.last().map(Id::to_string);
        let Ok(mut stream) = EventStream::open(to, last.as_deref()) else {
            // The worker that took us was killed before its head came: come back at once.
            seen.errors += 1;
            ensure!(seen.errors < 1000, "nobody answers");
            continue;
        };
        seen.sessions += 1;
        sessions.fetch_add(1, Ordering::Relaxed);
        let leave = Instant::now() + STAY;
        while let Some(item) = stream.next(leave.saturating_duration_since(Instant::now()))? {
            match item {
                Item::Event(Event { name, data, .. }) if name == "reset" => seen.resets.push(data),
                Item::Event(Event { id: Some(id), .. }) => seen.ids.push(Id::parse(&id)?),
                Item::Event(_) | Item::Comment(_) => {}
                Item::End | Item::Cut(_) => break,
            }
            if Instant::now() >= leave {
                break;
            }
        }
    }
    Ok(seen)
}

fn through_kills(run: &Run) -> Result<Witness> {
    const CLIENTS: usize = 50;
    let server = Server::launch(run)
        .workers(3)
        .env("M0_HOSTCHECK_PERIOD_MS", 20)
        .env("M0_BACKOFF_MS", 20)
        .env("M0_CRASH_LIMIT", 1000)
        .start()?;
    let stop = Arc::new(AtomicBool::new(false));
    let sessions = Arc::new(AtomicUsize::new(0));
    let to = server.addr();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (stop, sessions) = (Arc::clone(&stop), Arc::clone(&sessions));
            std::thread::spawn(move || wander(to, &stop, &sessions))
        })
        .collect();
    let more_sessions = |what: &str, more: usize| {
        let before = sessions.load(Ordering::Relaxed);
        until(what, PATIENCE, || {
            let now = sessions.load(Ordering::Relaxed) - before;
            holds(now >= more, || format!("{now} sessions"))
        })
    };
    let mut killed = 0;
    for slot in [1, 0, 2, 0, 1, 0] {
        more_sessions("every client to come back between two kills", CLIENTS)?;
        let mut pid = 0;
        until("the worker to kill", PATIENCE, || {
            pid = server
                .pid_of_slot(slot)
                .map_err(|error| format!("{error:#}"))?;
            holds(owned::send(pid, Signal::SIGKILL), || {
                format!("no worker {pid}")
            })
        })?;
        killed += 1;
        server.await_heir(slot, pid, PATIENCE)?;
    }
    more_sessions("every client to come back after the last kill", CLIENTS * 2)?;
    stop.store(true, Ordering::Relaxed);
    let mut each = Vec::new();
    let (mut visits, mut errors) = (0, 0);
    for client in clients {
        let seen = client
            .join()
            .map_err(|_| anyhow::anyhow!("a client panicked"))??;
        ensure!(
            seen.resets.is_empty(),
            "a client was reset: {:?}",
            seen.resets
        );
        visits += seen.sessions;
        errors += seen.errors;
        each.push(seen.ids);
    }
    let events = check_against_all(&each)?;
    let least = each.iter().map(Vec::len).min().unwrap_or_default();
    run.record(
        "events seen by the least lucky client",
        least as f64,
        "events",
    );
    run.record(
        "connects that met a dying worker",
        errors as f64,
        "connects",
    );
    server.signal(Signal::SIGTERM)?;
    server.finish(&Ending::clean())?;
    Ok(Witness::of("sessions", visits)
        .and("kills", killed)
        .and("events", events)
        .and("least", least))
}

/// Opens a stream with `last` and reads `count` ids.
fn resume(to: SocketAddr, last: &str, count: usize) -> Result<(u32, Vec<Id>)> {
    let mut stream = EventStream::open(to, Some(last))?;
    let slot = stream.slot()?;
    let mut ids = Vec::new();
    while ids.len() < count {
        match stream.next(PATIENCE)?.context("a replayed event")? {
            Item::Event(Event { name, data, .. }) if name == "reset" => {
                anyhow::bail!("a reset ({data}) for {last} on worker {slot}")
            }
            Item::Event(Event { id: Some(id), .. }) => ids.push(Id::parse(&id)?),
            Item::Event(_) | Item::Comment(_) => {}
            end => anyhow::bail!("{end:?} after {} replayed events", ids.len()),
        }
    }
    Ok((slot, ids))
}

fn on_every_worker(run: &Run) -> Result<Witness> {
    let mut replayed = 0;
    let mut slots = std::collections::BTreeSet::new();
    for workers in [1, 3] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_PERIOD_MS", 20)
            .env("M0_HOSTCHECK_BEAT_BYTES", 2000)
            .start()?;
        let mut first = EventStream::open(server.addr(), None)?;
        let start = first.beat(PATIENCE)?.id;
        let mut newest = start.clone();
        while newest.seq < start.seq + 30 {
            newest = first.beat(PATIENCE)?.id;
        }
        if workers > 1 {
            // A worker that was just respawned knows the log, too.
            let pid = server.pid_of_slot(2)?;
            ensure!(owned::send(pid, Signal::SIGKILL), "no worker {pid}");
            server.await_heir(2, pid, PATIENCE)?;
        }
        let mut here = std::collections::BTreeSet::new();
        until("a replay by every worker", PATIENCE, || {
            let mut held = Vec::new();
            for _ in 0..workers {
                let (slot, ids) = resume(server.addr(), &start.to_string(), 40)
                    .map_err(|error| format!("{error:#}"))?;
                let follows = ids.first().is_some_and(|id| id.seq == start.seq + 1);
                holds(follows, || {
                    format!("{start} is followed by {:?}", ids.first())
                })?;
                consecutive(&ids).map_err(|error| format!("worker {slot}: {error:#}"))?;
                replayed += ids.len();
                here.insert(slot);
                slots.insert((workers, slot));
                held.push(Peer::connect(server.addr()).map_err(|error| format!("{error:#}"))?);
            }
            holds(here.len() == workers as usize, || {
                format!("replays by {here:?}")
            })
        })?;
        server.signal(Signal::SIGTERM)?;
        server.finish(&Ending::clean())?;
    }
    Ok(Witness::of("events replayed", replayed).and("workers", slots.len()))
}

fn publish_through_kills(run: &Run) -> Result<Witness> {
    const KILLS: usize = 20;
    /// Of a death that the supervisor reaps at once; the rest is for a loaded machine.
    const SOON: Duration = Duration::from_secs(2);
    let server = Server::launch(run)
        .workers(2)
        // Large frames as often as can be: the producer dies with the log's lock in its hand as
        // often as not.
        .env("M0_HOSTCHECK_PERIOD_MS", 2)
        .env("M0_HOSTCHECK_BEAT_BYTES", 300_000)
        .env("M0_REPLAY_BYTES", 4_194_304)
        .env("M0_BACKOFF_MS", 1)
        .env("M0_BACKOFF_MAX_MS", 1)
        .env("M0_CRASH_LIMIT", 1000)
        .start()?;
    let mut sibling = one_connection_each(&server)?
        .remove(&1)
        .context("worker 1")?;
    let mut last: Option<Id> = None;
    let mut slowest = Duration::ZERO;
    let mut published = 0;
    let mut refused = 0;
    for _ in 0..KILLS {
        let mut pid = 0;
        until("the producer to kill", PATIENCE, || {
            pid = server
                .pid_of_slot(0)
                .map_err(|error| format!("{error:#}"))?;
            holds(owned::send(pid, Signal::SIGKILL), || {
                format!("no worker {pid}")
            })
        })?;
        let killed = Instant::now();
        for nth in 0..3 {
            // While the dead one's lock is not repaired a publish is refused, and says so.
            let id = until("a publish by a sibling", SOON, || {
                let answer = sibling
                    .post("/publish", b"a sibling's note")
                    .map_err(|error| format!("{error:#}"))?;
                refused += usize::from(answer.status() == 503);
                holds(answer.status() == 200, || {
                    format!("{}: {}", answer.status(), answer.text())
                })?;
                Id::parse(answer.text().trim()).map_err(|error| format!("{error:#}"))
            })?;
            ensure!(
                last.as_ref().is_none_or(|last| id > *last),
                "{id} follows {last:?}"
            );
            last = Some(id);
            published += 1;
            if nth == 0 {
                slowest = slowest.max(killed.elapsed());
            }
        }
        server.await_heir(0, pid, PATIENCE)?;
    }
    run.within("kill to a publish by a sibling, slowest", slowest, SOON)?;
    let repairs = server.stats()?["supervisor"]["lock_repairs"]
        .as_u64()
        .context("lock_repairs")?;
    run.record("locks that died with their holder", repairs as f64, "count");
    run.record(
        "publishes refused before the repair",
        refused as f64,
        "count",
    );
    server.stop()?;
    Ok(Witness::of("kills", KILLS).and("publishes by a sibling", published))
}

/// The reason of the reset that a stream with `last` begins with, and the first id behind it.
fn reset_of(to: SocketAddr, last: &str) -> Result<(String, Id)> {
    let mut stream = EventStream::open(to, Some(last))?;
    let first = loop {
        match stream.next(PATIENCE)?.context("an event")? {
            Item::Event(event) => break event,
            Item::Comment(_) => {}
            end => anyhow::bail!("{end:?} instead of a reset for {last:?}"),
        }
    };
    ensure!(
        first.name == "reset",
        "{first:?} instead of a reset for {last:?}"
    );
    let data: serde_json::Value = serde_json::from_str(&first.data).context("a reset's data")?;
    let reason = data["reason"]
        .as_str()
        .with_context(|| format!("no reason in {data}"))?
        .to_owned();
    let next = stream
        .beat(PATIENCE)
        .with_context(|| format!("behind the reset for {last:?}"))?;
    let follower = stream.beat(PATIENCE)?;
    consecutive(&[next.id.clone(), follower.id])?;
    Ok((reason, next.id))
}

fn resets(run: &Run) -> Result<Witness> {
    let mut told = 0;
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_PERIOD_MS", 10)
            .env("M0_HOSTCHECK_BEAT_BYTES", 4096)
            .env("M0_REPLAY_BYTES", 65_536)
            .start()?;
        let mut stream = EventStream::open(server.addr(), None)?;
        let first = stream.beat(PATIENCE)?.id;
        // Far more than the log holds.
        until("the log to have gone round", PATIENCE, || {
            let now = stream
                .beat(PATIENCE)
                .map_err(|error| format!("{error:#}"))?
                .id;
            holds(now.seq > first.seq + 60, || format!("{now}"))
        })?;
        let epoch = first.epoch.as_str();
        // The last digit alone differs: a host that was started just before or after.
        let (most, last) = epoch.split_at(epoch.len() - 1);
        let other = format!("{most}{}", if last == "0" { "1" } else { "0" });
        let cases = [
            (first.to_string(), "too-old"),
            (format!("{epoch}-{}", first.seq + 1_000_000), "future"),
            (format!("{other}-{}", first.seq), "epoch"),
            ("banana".to_owned(), "malformed"),
            (format!("{epoch}-"), "malformed"),
            (format!("{epoch}-18446744073709551616"), "malformed"),
        ];
        for (id, wanted) in cases {
            let (reason, next) = reset_of(server.addr(), &id)?;
            ensure!(
                reason == wanted,
                "{id:?} is reset as {reason:?}, not as {wanted:?}"
            );
            ensure!(
                next.epoch == epoch && next.seq > first.seq,
                "{next} behind a reset"
            );
            told += 1;
        }
        server.stop()?;
    }
    Ok(Witness::of("resets", told))
}

fn after_a_restart(run: &Run) -> Result<Witness> {
    let start = |run| {
        Server::launch(run)
            .workers(2)
            .env("M0_HOSTCHECK_PERIOD_MS", 20)
            .start()
    };
    let server = start(run)?;
    let mut stream = EventStream::open(server.addr(), None)?;
    let old = stream.beat(PATIENCE)?.id;
    // A worker's death does not change the epoch; a restart of the host does.
    let pid = server.pid_of_slot(0)?;
    ensure!(owned::send(pid, Signal::SIGKILL), "no worker {pid}");
    let same = until("a beat after the respawn", PATIENCE, || {
        let mut stream =
            EventStream::open(server.addr(), None).map_err(|error| format!("{error:#}"))?;
        let beat = stream
            .beat(PATIENCE)
            .map_err(|error| format!("{error:#}"))?;
        if beat.pid == pid {
            Err("a beat of the dead".to_owned())
        } else {
            Ok(beat.id)
        }
    })?;
    ensure!(
        same.epoch == old.epoch,
        "{old} before and {same} after a worker's death"
    );
    server.stop_with(&Ending::code(code::CLEAN))?;
    let server = start(run)?;
    let (reason, new) = reset_of(server.addr(), &old.to_string())?;
    ensure!(
        reason == "epoch" && new.epoch != old.epoch,
        "{old} is reset as {reason}, then {new}"
    );
    server.stop()?;
    Ok(Witness::of("restarts", 1))
}
