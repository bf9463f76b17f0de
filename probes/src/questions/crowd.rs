//! What do ten thousand held streams cost, and when has the last of them an event?
//!
//! Owns the crowd: 10,000 streams on one worker, and as many over two. Events are published one at a time, the next when
//! the last stream has the one before, so that the time of each is its own. Refuses peers: `fanout` and `memory` have
//! them. Invariant: every stream has every event, or the round is an error.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use m0_spec::S18;

use super::Question;
use crate::cpu::Cpu;
use crate::load::audience::Audience;
use crate::load::head::{ask, connect, get};
use crate::memory::Memory;
use crate::report::Report;
use crate::samples::{Samples, per};
use crate::server::Server;
use crate::session::{NEVER_MS, Session};

pub(super) const QUESTION: Question = Question {
    name: "crowd",
    asks: "what do 10,000 held streams cost, and when has the last of them an event?",
    rows: &[S18],
    rounds: 3,
    run,
};

const STREAMS: usize = 10_000;
/// Events of a round, after those that warm up.
const EVENTS: usize = 40;
const WARM: usize = 3;
/// Bytes (`spec/S.yaml`, S18).
const GOAL_BYTES: f64 = 8192.0;
const BOUND: Duration = Duration::from_secs(90);

/// What the rounds of one case showed.
#[derive(Debug, Default)]
struct Seen {
    bytes: Vec<f64>,
    us: Vec<f64>,
    last_ms: Vec<f64>,
    most_over_least: Vec<f64>,
}

fn run(session: &Session, report: &mut Report) -> Result<()> {
    for workers in [1, 2] {
        let mut seen = Seen::default();
        for _ in session.rounds() {
            session.shows(&format!("{STREAMS} streams, {workers} workers"));
            measure(session, workers, &mut seen)?;
        }
        let name = match workers {
            1 => format!("{STREAMS} streams on one worker"),
            _ => format!("{STREAMS} streams over {workers} workers"),
        };
        let bytes = Samples::of(seen.bytes)?;
        report
            .figure(format!("{name}: memory"), "bytes a stream", bytes)
            .goal(GOAL_BYTES);
        report.figure(
            format!("{name}: processor time"),
            "us an event",
            Samples::of(seen.us)?,
        );
        let last = Samples::of(seen.last_ms)?;
        for (what, share) in [("p50", 0.5), ("p99", 0.99)] {
            report.figure(
                format!("{name}: publish to last delivery, {what}"),
                "ms",
                Samples::of(vec![last.quantile(share)])?,
            );
        }
        report.figure(
            format!("{name}: most over fewest streams of a worker"),
            "ratio",
            Samples::of(seen.most_over_least)?,
        );
    }
    report.note("The reader of all streams shares the processors with the server: its work is part of the time to the last delivery.");
    Ok(())
}

fn measure(session: &Session, workers: usize, seen: &mut Seen) -> Result<()> {
    let server = session.host_check(workers, |launch| {
        launch
            .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
            .env("M0_MAX_CONNECTIONS", 2 * STREAMS)
            .env("M0_MAX_STREAMS", 2 * STREAMS)
    })?;
    // One request, so that what a first one allocates is not the streams'.
    get(&mut connect(server.address())?, "/")?;
    let before = anonymous(&server)?;
    let mut audience = Audience::open(server.address(), STREAMS)?;
    let shares = audience.shares(workers)?;
    let (most, least) = (shares.iter().max(), shares.iter().min());
    let (most, least) = (most.copied().unwrap_or(0), least.copied().unwrap_or(0));
    seen.most_over_least.push(per(most, least)?);
    let mut control = connect(server.address())?;
    let publish = "POST /publish HTTP/1.1\r\nHost: probe\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nan event";
    let mut one = |audience: &mut Audience| -> Result<Duration> {
        let wanted = audience.total() + STREAMS as u64;
        let asked = Instant::now();
        ask(&mut control, publish.as_bytes())?;
        audience.listen_until(BOUND, |audience| audience.total() >= wanted)?;
        Ok(asked.elapsed())
    };
    for _ in 0..WARM {
        one(&mut audience)?;
    }
    let pids = server.pids();
    let counts = audience.counts();
    let start = Cpu::of(&pids)?;
    for _ in 0..EVENTS {
        seen.last_ms.push(one(&mut audience)?.as_secs_f64() * 1e3);
    }
    let used = Cpu::of(&pids)?.since(start);
    for (stream, (now, before)) in audience.counts().iter().zip(&counts).enumerate() {
        ensure!(
            now - before == EVENTS as u64,
            "stream {stream} had {} of {EVENTS} events",
            now - before
        );
    }
    let delivered = (EVENTS * STREAMS) as u64;
    seen.us.push(per(used.total_ns, delivered)? / 1e3);
    let after = anonymous(&server)?;
    ensure!(
        after > before,
        "nothing was measured: {before} then {after} bytes"
    );
    seen.bytes.push((after - before) as f64 / STREAMS as f64);
    Ok(())
}

/// Anonymous pages of all processes of the server, in bytes.
fn anonymous(server: &Server) -> Result<u64> {
    let mut sum = 0;
    for pid in server.pids() {
        sum += Memory::of(pid)?.anonymous;
    }
    Ok(sum)
}
