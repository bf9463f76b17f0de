//! Who takes the next connection.
//!
//! Knows `/stats` and the slot in each answer; nothing of how the workers agree.
//! Invariant: connections are held open while a share is judged, since what is open is what is shared.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{E48, E49, E50, E51, E52, E55, E92, E98};
use serde_json::Value;

use crate::audience::one_connection_each;
use crate::events::EventStream;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::run::{Run, Witness};
use crate::server::{Server, sum};
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    alone("accept-bursts-are-spread", 30, &[E48], bursts_are_spread),
    alone("accept-without-sharing", 30, &[E49], without_sharing),
    alone(
        "accept-held-streams-over-four",
        40,
        &[E50],
        held_streams_over_four,
    ),
    alone(
        "accept-few-fruitless-wakeups",
        40,
        &[E51],
        few_fruitless_wakeups,
    ),
    beside(
        "accept-none-for-a-blocked-worker",
        30,
        &[E52],
        none_for_a_blocked_worker,
    ),
    beside(
        "accept-gives-a-connection-away-at-once",
        30,
        &[E92],
        gives_a_connection_away_at_once,
    ),
    alone(
        "accept-a-burst-beside-a-blocked-worker",
        30,
        &[E98],
        a_burst_beside_a_blocked_worker,
    ),
    beside("accept-in-bounded-batches", 30, &[E55], in_bounded_batches),
];

const NEVER_MS: u64 = 3_600_000;

pub(super) fn launch(run: &Run, workers: u32) -> crate::launch::Launch<'_> {
    Server::launch(run)
        .workers(workers)
        .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
}

/// Opens `count` connections at once, then asks each; how many each slot took. All stay open.
fn burst(server: &Server<'_>, count: usize) -> Result<(BTreeMap<u32, usize>, Vec<Peer>)> {
    let mut peers = Vec::new();
    for _ in 0..count {
        peers.push(Peer::connect(server.addr())?);
    }
    let mut shares: BTreeMap<u32, usize> = (0..server.workers()).map(|slot| (slot, 0)).collect();
    for peer in &mut peers {
        let slot = peer.get("/")?.expect(200)?.slot()?;
        *shares.entry(slot).or_default() += 1;
    }
    Ok((shares, peers))
}

/// Largest share over smallest; infinite when a slot took nothing.
fn ratio(shares: &BTreeMap<u32, usize>) -> f64 {
    let most = shares.values().max().copied().unwrap_or_default() as f64;
    let least = shares.values().min().copied().unwrap_or_default() as f64;
    if least == 0.0 {
        f64::INFINITY
    } else {
        most / least
    }
}

/// Awaits that the server holds nothing but the connection that asks.
pub(super) fn await_empty(server: &Server<'_>) -> Result<()> {
    until("no connection held", PATIENCE, || {
        let stats = server.stats().map_err(|error| format!("{error:#}"))?;
        let held = sum(&stats, "held").map_err(|error| format!("{error:#}"))?;
        holds(held <= 1, || format!("{held} held"))
    })
}

fn counted(server: &Server<'_>, counter: &str) -> Result<u64> {
    sum(&server.stats()?, counter)
}

/// Bursts of one phase. Each is 32 connections.
const BURSTS: usize = 24;

/// Splits [`BURSTS`] bursts; their ratios, least first.
fn ratios(run: &Run, server: &Server<'_>) -> Result<Vec<f64>> {
    let mut ratios = Vec::new();
    let mut splits = Vec::new();
    for _ in 0..BURSTS {
        let (shares, peers) = burst(server, 32)?;
        ratios.push(ratio(&shares));
        splits.push(shares.values().copied().collect::<Vec<_>>());
        drop(peers);
        await_empty(server)?;
    }
    run.note(format!("bursts of 32 split {splits:?}"));
    ratios.sort_by(f64::total_cmp);
    Ok(ratios)
}

fn bursts_are_spread(run: &Run) -> Result<Witness> {
    let server = launch(run, 2).start()?;
    let ratios = ratios(run, &server)?;
    let deferrals = counted(&server, "deferrals")?;
    let worst = ratios.last().copied().context("no burst")?;
    run.at_most("largest share over smallest, worst", worst, "ratio", 2.0)?;
    run.record(
        "largest share over smallest, median",
        ratios[BURSTS / 2],
        "ratio",
    );
    run.record("deferrals", deferrals as f64, "count");
    server.stop()?;
    Ok(Witness::of("bursts", ratios.len()).and("deferrals", usize::try_from(deferrals)?))
}

fn without_sharing(run: &Run) -> Result<Witness> {
    let server = launch(run, 2).env("M0_ACCEPT_SHARE", 0).start()?;
    let ratios = ratios(run, &server)?;
    let deferrals = counted(&server, "deferrals")?;
    ensure!(
        deferrals == 0,
        "{deferrals} deferrals with M0_ACCEPT_SHARE=0"
    );
    let skewed = ratios.iter().filter(|ratio| **ratio > 1.5).count();
    run.record("bursts beyond 1.5 to 1", skewed as f64, "count");
    if skewed * 2 < BURSTS {
        run.note("this kernel did not skew most bursts of the bare race");
    }
    server.stop()?;
    Ok(Witness::of("bursts", ratios.len()))
}

fn held_streams_over_four(run: &Run) -> Result<Witness> {
    let server = launch(run, 4).start()?;
    let mut streams = Vec::new();
    let mut shares: BTreeMap<u32, usize> = (0..4).map(|slot| (slot, 0)).collect();
    for _ in 0..400 {
        let stream = EventStream::open(server.addr(), None)?;
        *shares.entry(stream.slot()?).or_default() += 1;
        streams.push(stream);
    }
    run.note(format!(
        "400 streams are held as {:?}",
        shares.values().collect::<Vec<_>>()
    ));
    run.at_most("largest share over smallest", ratio(&shares), "ratio", 1.25)?;
    // The last head is read a moment before its stream is counted.
    until("/stats to tell of 400 streams", PATIENCE, || {
        let told = counted(&server, "streams").map_err(|error| error.to_string())?;
        holds(told == 400, || format!("{told}"))
    })?;
    let ended = server.stop()?;
    run.within(
        "exit with 400 streams",
        ended.after,
        Duration::from_millis(500),
    )?;
    Ok(Witness::of("streams", streams.len()).and("workers", shares.len()))
}

fn few_fruitless_wakeups(run: &Run) -> Result<Witness> {
    let server = launch(run, 8).start()?;
    let before = server.stats()?;
    let mut held = Vec::new();
    for _ in 0..12 {
        held.extend(burst(&server, 32)?.1);
    }
    // And one by one, when everybody is asleep.
    for _ in 0..100 {
        held.push(Peer::connect(server.addr())?);
        held.last_mut()
            .context("just pushed")?
            .get("/")?
            .expect(200)?;
    }
    let after = server.stats()?;
    let grown = |counter: &str| -> Result<f64> {
        Ok(sum(&after, counter)?.saturating_sub(sum(&before, counter)?) as f64)
    };
    let (accepted, fruitless) = (grown("accepted")?, grown("fruitless")?);
    ensure!(
        accepted >= held.len() as f64,
        "{accepted} accepted, {} were opened",
        held.len()
    );
    run.at_most(
        "fruitless wake-ups for each connection",
        fruitless / accepted,
        "ratio",
        0.2,
    )?;
    run.record("deferrals", grown("deferrals")?, "count");
    drop(held);
    server.stop()?;
    Ok(Witness::of("connections", accepted as usize))
}

fn none_for_a_blocked_worker(run: &Run) -> Result<Witness> {
    let server = launch(run, 2).start()?;
    let mut worst = Duration::ZERO;
    let mut beside = 0;
    // The kernel wakes the same idle worker first each time, so each of the two has its turn.
    for blocked in [0, 1] {
        let (took, visits) = beside_a_blocked_worker(&server, blocked)?;
        worst = worst.max(took);
        beside += visits;
    }
    run.within(
        "answer beside a blocked worker, worst",
        worst,
        Duration::from_millis(250),
    )?;
    server.stop()?;
    Ok(Witness::of("connections beside a blocked worker", beside))
}

/// Has a worker's handler block its loop, and waits until the handler has the request: the page tells the
/// other worker, which answers on a connection that `witness` is.
fn block(blocker: &mut Peer, blocked: u32, witness: &mut Peer, ms: u32) -> Result<()> {
    let mut requests = || -> Result<u64> {
        let stats = witness.get("/stats")?.expect(200)?;
        let stats: Value = serde_json::from_slice(&stats.body)?;
        stats["shares"][blocked as usize]["requests"]
            .as_u64()
            .context("no requests in /stats")
    };
    let before = requests()?;
    blocker.send(request("GET", &format!("/block?ms={ms}"), &[], b""))?;
    until("the handler to have the request", PATIENCE, || {
        let now = requests().map_err(|error| format!("{error:#}"))?;
        holds(now > before, || format!("{now} requests as before"))
    })
}

/// Blocks one of two workers that hold a connection each, so that only the ring of the blocked one tells
/// the other of a connection; the slowest answer to those that come meanwhile, and how many there were.
fn beside_a_blocked_worker(server: &Server<'_>, blocked: u32) -> Result<(Duration, usize)> {
    /// Ends well before the handler does, so that no visit meets a worker that is free again.
    const WHILE_BLOCKED: Duration = Duration::from_secs(1);
    let mut each = one_connection_each(server)?;
    let mut blocker = each.remove(&blocked).context("the worker to block")?;
    let mut witness = each.remove(&(1 - blocked)).context("the other worker")?;
    let sent = Instant::now();
    block(&mut blocker, blocked, &mut witness, 1700)?;
    let mut worst = Duration::ZERO;
    let mut held = Vec::new();
    while sent.elapsed() < WHILE_BLOCKED && held.len() < 50 {
        let asked = Instant::now();
        let mut peer = Peer::connect(server.addr())?;
        let slot = peer.get("/")?.expect(200)?.slot()?;
        worst = worst.max(asked.elapsed());
        ensure!(slot != blocked, "the blocked worker took a connection");
        held.push(peer);
    }
    let answer = blocker.answer()?.expect(200)?;
    ensure!(
        answer.slot()? == blocked,
        "the blocker was answered by worker {}",
        answer.slot()?
    );
    Ok((worst, held.len()))
}

/// A worker that holds much leaves what comes to one that holds little; when that one is blocked, it must
/// not go on leaving.
fn gives_a_connection_away_at_once(run: &Run) -> Result<Witness> {
    const EACH: usize = 20;
    const TURNS: usize = 15;
    let server = launch(run, 2).start()?;
    let mut held: BTreeMap<u32, Vec<Peer>> = BTreeMap::new();
    until("twenty connections on each worker", PATIENCE, || {
        let (_, peers) = burst(&server, 4).map_err(|error| format!("{error:#}"))?;
        for mut peer in peers {
            let slot = peer.get("/").and_then(|answer| answer.slot());
            let slot = slot.map_err(|error| format!("{error:#}"))?;
            held.entry(slot).or_default().push(peer);
        }
        let counts: Vec<usize> = held.values().map(Vec::len).collect();
        holds(
            counts.len() == 2 && counts.iter().all(|&count| count >= EACH),
            || format!("{counts:?}"),
        )
    })?;
    let mut blocker = held
        .remove(&0)
        .and_then(|mut peers| peers.pop())
        .context("a connection on worker 0")?;
    let kept = 1 + held.values().map(Vec::len).sum::<usize>();
    until("the others of worker 0 to be let go", PATIENCE, || {
        let stats = server.stats().map_err(|error| format!("{error:#}"))?;
        let now = sum(&stats, "held").map_err(|error| format!("{error:#}"))?;
        // The one that asks is held as well.
        holds(now <= kept as u64 + 1, || format!("{now} held"))
    })?;
    let mut witness = held
        .get_mut(&1)
        .and_then(Vec::pop)
        .context("a connection on worker 1")?;
    let mut took = Vec::new();
    for _ in 0..TURNS {
        block(&mut blocker, 0, &mut witness, 250)?;
        let asked = Instant::now();
        let mut peer = Peer::connect(server.addr())?;
        let slot = peer.get("/")?.expect(200)?.slot()?;
        took.push(asked.elapsed());
        ensure!(slot == 1, "the blocked worker took a connection");
        blocker.answer()?.expect(200)?;
    }
    run.note(format!("first answers took {took:.1?}"));
    took.sort();
    run.within(
        "first answer beside a blocked worker, median",
        took[TURNS / 2],
        Duration::from_millis(10),
    )?;
    server.stop()?;
    Ok(Witness::of("turns", took.len()))
}

/// The other worker holds more with each that it takes, and would leave each for longer to the blocked one.
fn a_burst_beside_a_blocked_worker(run: &Run) -> Result<Witness> {
    const BURST: usize = 32;
    let server = launch(run, 2).start()?;
    let mut each = one_connection_each(&server)?;
    let mut idle = each.remove(&1).context("a connection on worker 1")?;
    let mut blocker = each.remove(&0).context("a connection on worker 0")?;
    block(&mut blocker, 0, &mut idle, 2000)?;
    let mut held = Vec::new();
    until("worker 0 to be called busy", PATIENCE, || {
        let mut told = || -> Result<bool> {
            held.push(Peer::connect(server.addr())?);
            let stats = idle.get("/stats")?.expect(200)?;
            let stats: Value = serde_json::from_slice(&stats.body)?;
            stats["shares"][0]["busy"]
                .as_bool()
                .context("no busy in /stats")
        };
        let busy = told().map_err(|error| format!("{error:#}"))?;
        holds(busy, || format!("{} came, and it is not", held.len()))
    })?;
    let asked = Instant::now();
    let (shares, peers) = burst(&server, BURST)?;
    let took = asked.elapsed();
    ensure!(
        shares.get(&1) == Some(&BURST),
        "a burst beside the blocked worker 0 went to {shares:?}"
    );
    ensure!(
        blocker.is_open_and_silent(Duration::from_millis(1))?,
        "the worker was free again before the burst was over"
    );
    run.within(
        "burst of 32 beside a blocked worker",
        took,
        Duration::from_millis(250),
    )?;
    blocker.answer()?.expect(200)?;
    drop((held, peers));
    server.stop()?;
    Ok(Witness::of("connections of the burst", BURST))
}

fn in_bounded_batches(run: &Run) -> Result<Witness> {
    const NEWCOMERS: usize = 600;
    let server = launch(run, 1).env("M0_ACCESS_LOG", 1).start()?;
    let mut blocker = Peer::connect(server.addr())?;
    let mut held = Peer::connect(server.addr())?;
    held.get("/")?.expect(200)?;
    let own = held.local_addr()?.to_string();
    blocker.send(request("GET", "/block?ms=1000", &[], b""))?;
    ensure!(
        blocker.is_open_and_silent(Duration::from_millis(100))?,
        "/block answered at once"
    );
    // All of them wait in the kernel's queue, and behind them a request on a connection that is held.
    let mut newcomers = Vec::new();
    for _ in 0..NEWCOMERS {
        let mut peer = Peer::connect(server.addr())?;
        peer.send(request("GET", "/pid", &[], b""))?;
        newcomers.push(peer);
    }
    held.send(request("GET", "/pid", &[], b""))?;
    ensure!(
        held.is_open_and_silent(Duration::from_millis(1))?,
        "the worker was free again before everybody had come"
    );
    held.answer()?.expect(200)?;
    for peer in &mut newcomers {
        peer.answer()?.expect(200)?;
    }
    drop(newcomers);
    blocker.answer()?.expect(200)?;
    let out = server.out().clone();
    server.stop()?;
    // The access log tells the order in which the worker got round to each.
    let lines = out.objects();
    let pids: Vec<_> = lines.iter().filter(|line| line["path"] == "/pid").collect();
    let place = pids
        .iter()
        .position(|line| line["peer"] == *own)
        .context("the held one's line")?;
    run.at_most(
        "newcomers answered before who was held",
        place as f64,
        "requests",
        128.0,
    )?;
    Ok(Witness::of("newcomers", pids.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(H25)]
    #[test]
    fn a_slot_that_took_nothing_is_no_share_at_all() {
        assert!(ratio(&BTreeMap::from([(0, 32), (1, 0)])).is_infinite());
        assert!((ratio(&BTreeMap::from([(0, 20), (1, 10)])) - 2.0).abs() < f64::EPSILON);
    }
}
