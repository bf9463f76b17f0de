//! What does one delivered event cost in processor time, beside axum's broadcast, actix-web and a bare epoll loop?
//!
//! Owns two paces: a fixed rate, made by the server's own producer, and full rate, in which the next events are published
//! as soon as every stream has had the last ones, so that no server can drop what it was asked for.
//! Invariant: what is divided by is what arrived, counted by the reader of each stream.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Question;
use crate::cpu::Cpu;
use crate::load::audience::Audience;
use crate::load::head::{ask, connect};
use crate::report::Report;
use crate::samples::{Samples, per};
use crate::server::Server;
use crate::session::{NEVER_MS, Peer, Session};

pub(super) const QUESTION: Question = Question {
    name: "fanout",
    asks: "how many microseconds of processor time does one delivered event cost?",
    rows: &[],
    rounds: 5,
    run,
};

/// How events come.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// One every so many milliseconds, by the producer.
    Every(u64),
    /// So many bursts of so many events, each burst when the one before has arrived everywhere.
    Bursts(usize, usize),
}

/// Streams and pace; about as many deliveries in each case.
const CASES: [(usize, Pace); 5] = [
    (200, Pace::Every(10)),
    (200, Pace::Bursts(320, 1)),
    (200, Pace::Bursts(40, 8)),
    (1000, Pace::Every(50)),
    (1000, Pace::Bursts(8, 8)),
];
/// Time for which a fixed rate is listened to.
const LISTEN: Duration = Duration::from_secs(2);
const BOUND: Duration = Duration::from_mins(1);
const WHO: [(&str, Option<Peer>); 4] = [
    ("m0", None),
    ("axum", Some(Peer::Axum)),
    ("actix-web", Some(Peer::Actix)),
    ("raw epoll", Some(Peer::Raw)),
];

/// What one round of one server showed.
#[derive(Debug, Clone, Copy)]
struct Round {
    us: f64,
    cpu: Cpu,
    least: u64,
    most: u64,
}

fn run(session: &Session, report: &mut Report) -> Result<()> {
    for (streams, pace) in CASES {
        let mut rounds = WHO.map(|_| Vec::new());
        for round in session.rounds() {
            for turn in 0..WHO.len() {
                let at = (round + turn) % WHO.len();
                session.shows(&format!("{streams} streams, {pace:?}, {}", WHO[at].0));
                rounds[at].push(measure(session, WHO[at].1, streams, pace)?);
            }
        }
        let pace = match pace {
            Pace::Every(ms) => format!("{} events/s", 1000 / ms),
            Pace::Bursts(_, 1) => "full rate, one event at a time".to_owned(),
            Pace::Bursts(_, each) => format!("full rate, {each} events in flight"),
        };
        tell(report, &format!("{streams} streams at {pace}"), &rounds)?;
    }
    report.note("One worker or thread each. At full rate the request that publishes is part of the cost, one for each event.");
    report.note("m0 sends each event at once (TCP_NODELAY); axum::serve by default does not, and both peers may put several in one write.");
    Ok(())
}

fn tell(report: &mut Report, what: &str, rounds: &[Vec<Round>; 4]) -> Result<()> {
    for ((who, _), own) in WHO.into_iter().zip(rounds) {
        let name = format!("{what}, {who}");
        let samples = |of: fn(&Round) -> f64| Samples::of(own.iter().map(of).collect());
        let mut sum = Cpu::default();
        for round in own {
            sum += round.cpu;
        }
        let user = sum
            .user_share()
            .context("nothing was measured: not one tick")?;
        let total = samples(|round| round.us)?;
        report.figure(format!("{name}: user"), "us an event", total.times(user)?);
        report.figure(
            format!("{name}: system"),
            "us an event",
            total.times(1.0 - user)?,
        );
        report.figure(name.clone(), "us an event", total);
        report.figure(
            format!("{name}: fewest on a stream"),
            "events",
            samples(|r| r.least as f64)?,
        );
        report.figure(
            format!("{name}: most on a stream"),
            "events",
            samples(|r| r.most as f64)?,
        );
        for against in [1, 3] {
            let (other, _) = WHO[against];
            if who == other {
                continue;
            }
            // Pairs of one round, so that what slows the machine slows both.
            let pairs = own.iter().zip(&rounds[against]);
            let pairs = pairs.map(|(own, other)| own.us / other.us).collect();
            let name = format!("{name}: over {other}");
            report.figure(name, "ratio", Samples::of(pairs)?);
        }
        let even = own
            .iter()
            .map(|round| round.least as f64 / round.most as f64);
        report.figure(
            format!("{name}: fewest over most"),
            "ratio",
            Samples::of(even.collect())?,
        );
    }
    Ok(())
}

fn measure(session: &Session, who: Option<Peer>, streams: usize, pace: Pace) -> Result<Round> {
    let period_ms = match pace {
        Pace::Every(ms) => ms,
        Pace::Bursts(..) => NEVER_MS,
    };
    let server = match who {
        Some(peer) => session.peer(peer, period_ms)?,
        None => session.host_check(1, |launch| launch.env("M0_HOSTCHECK_PERIOD_MS", period_ms))?,
    };
    let mut audience = Audience::open(server.address(), streams)?;
    let pids = server.pids();
    let (before, cpu) = match pace {
        Pace::Every(_) => {
            let all = |audience: &Audience| audience.counts().iter().all(|&count| count > 0);
            audience.listen_until(BOUND, all)?;
            let before = audience.counts();
            let start = Cpu::of(&pids)?;
            audience.listen_for(LISTEN)?;
            (before, Cpu::of(&pids)?.since(start))
        }
        Pace::Bursts(bursts, each) => at_full_rate(&server, &mut audience, &pids, (bursts, each))?,
    };
    let counts: Vec<u64> = audience
        .counts()
        .iter()
        .zip(&before)
        .map(|(now, before)| now - before)
        .collect();
    let least = counts.iter().min().copied().unwrap_or(0);
    let most = counts.iter().max().copied().unwrap_or(0);
    ensure!(
        least > 0,
        "nothing was measured: a stream got no event, another {most}"
    );
    Ok(Round {
        us: per(cpu.total_ns, counts.iter().sum())? / 1e3,
        cpu,
        least,
        most,
    })
}

/// Publishes bursts; the first two only warm up.
fn at_full_rate(
    server: &Server,
    audience: &mut Audience,
    pids: &[u32],
    (bursts, each): (usize, usize),
) -> Result<(Vec<u64>, Cpu)> {
    let mut control = connect(server.address())?;
    // As long as the data of a beat.
    let data = "{\"n\":1,\"pid\":100000,\"slot\":0,\"id\":\"198f2a6b3c0-1\"}";
    let length = data.len();
    let publish = format!(
        "POST /publish HTTP/1.1\r\nHost: probe\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{data}"
    );
    let mut burst = |audience: &mut Audience| -> Result<()> {
        let wanted = audience.total() + (each * audience.len()) as u64;
        for _ in 0..each {
            ask(&mut control, publish.as_bytes())?;
        }
        audience.listen_until(BOUND, |audience| audience.total() >= wanted)
    };
    // A beat of the producer's start may be on its way to streams that were early; it comes before these.
    burst(audience)?;
    burst(audience)?;
    let before = audience.counts();
    let start = Cpu::of(pids)?;
    for _ in 0..bursts {
        burst(audience)?;
    }
    Ok((before, Cpu::of(pids)?.since(start)))
}
