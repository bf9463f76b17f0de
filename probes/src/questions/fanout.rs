//! What does one delivered event cost in processor time, beside axum's broadcast, actix-web, ntex, nchan and a bare epoll loop?
//!
//! Owns two paces: a fixed rate, made by the server's own producer, and full rate, in which the next events are published
//! as soon as every stream has had the last ones, so that no server can drop what it was asked for.
//! Invariant: what is divided by is what arrived, counted by the reader of each stream.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::Question;
use crate::comparison::Comparison;
use crate::cpu::Cpu;
use crate::load::audience::Audience;
use crate::load::head::{connect, publish};
use crate::report::Report;
use crate::samples::Samples;
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
    (1000, Pace::Every(33)),
    (1000, Pace::Bursts(8, 8)),
];
/// Time for which a fixed rate is listened to.
const LISTEN: Duration = Duration::from_secs(2);
const BOUND: Duration = Duration::from_mins(1);
/// Those that the others are held against.
const AXUM: Peer = Peer::Axum;
const RAW: Peer = Peer::Raw;
const OURS: &str = "m0";
/// The most that an event may take of the bare loop's time on a thousand streams: at full rate, and at a fixed one.
const GOAL_FULL: f64 = 1.25;
const GOAL_FIXED: f64 = 1.1;
const GOAL_STREAMS: usize = 1000;

/// What one round of one server showed.
#[derive(Debug, Clone, Copy)]
struct Round {
    cpu: Cpu,
    delivered: u64,
    least: u64,
    most: u64,
}

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let nchan = session.peer(Peer::Nchan, NEVER_MS);
    if let Err(error) = &nchan {
        report.note(format!("nchan was not measured: {error:#}"));
    }
    for (streams, pace) in CASES {
        let at = match pace {
            Pace::Every(ms) => format!("{} events/s", 1000 / ms),
            Pace::Bursts(_, 1) => "full rate, one event at a time".to_owned(),
            Pace::Bursts(_, each) => format!("full rate, {each} events in flight"),
        };
        let what = format!("{streams} streams at {at}");
        let who = who(pace, nchan.is_ok());
        let names: Vec<&str> = who.iter().map(|who| who.map_or(OURS, Peer::name)).collect();
        let against = [RAW.name(), AXUM.name()];
        let mut asked = Comparison::of(&what, "us an event", &names, &against);
        if streams == GOAL_STREAMS {
            let fixed = matches!(pace, Pace::Every(_));
            let goal = if fixed { GOAL_FIXED } else { GOAL_FULL };
            asked.goal(OURS, RAW.name(), goal);
        }
        let mut rounds = vec![Vec::new(); who.len()];
        for round in session.rounds() {
            for turn in 0..who.len() {
                let at = (round + turn) % who.len();
                session.shows(&format!("{what}, {}", names[at]));
                let server = start(session, who[at], pace)?;
                let seen = measure(&server, streams, pace)
                    .with_context(|| format!("{what}, {}", names[at]))?;
                asked.add(at, seen.cpu, seen.delivered)?;
                rounds[at].push(seen);
            }
        }
        asked.tell(report)?;
        for (name, rounds) in names.iter().zip(&rounds) {
            tell_counts(report, &format!("{what}, {name}"), rounds)?;
        }
    }
    report.note("One worker or thread each. At full rate the request that publishes is part of the cost, one for each event.");
    report.note("nchan has no producer of its own, so it is at full rate only; its events carry no name, so they are a line shorter.");
    report.note("m0 sends each event at once (TCP_NODELAY); axum::serve by default does not, and peers may put several in one write.");
    Ok(())
}

/// Who is asked at this pace.
fn who(pace: Pace, nchan: bool) -> Vec<Option<Peer>> {
    let mut who = vec![None, Some(AXUM), Some(Peer::Actix), Some(Peer::Ntex)];
    if nchan && matches!(pace, Pace::Bursts(..)) {
        who.push(Some(Peer::Nchan));
    }
    who.push(Some(RAW));
    who
}

/// Adds how evenly the events came.
fn tell_counts(report: &mut Report, name: &str, rounds: &[Round]) -> Result<()> {
    let samples = |of: fn(&Round) -> f64| Samples::of(rounds.iter().map(of).collect());
    let least = samples(|round| round.least as f64)?;
    report.figure(format!("{name}: fewest on a stream"), "events", least);
    let most = samples(|round| round.most as f64)?;
    report.figure(format!("{name}: most on a stream"), "events", most);
    let even = samples(|round| round.least as f64 / round.most as f64)?;
    report.figure(format!("{name}: fewest over most"), "ratio", even);
    Ok(())
}

fn start(session: &Session, who: Option<Peer>, pace: Pace) -> Result<Server> {
    let period_ms = match pace {
        Pace::Every(ms) => ms,
        Pace::Bursts(..) => NEVER_MS,
    };
    match who {
        Some(peer) => session.peer(peer, period_ms),
        None => session.host_check(1, |launch| launch.env("M0_HOSTCHECK_PERIOD_MS", period_ms)),
    }
}

fn measure(server: &Server, streams: usize, pace: Pace) -> Result<Round> {
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
        Pace::Bursts(bursts, each) => at_full_rate(server, &mut audience, &pids, (bursts, each))?,
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
        cpu,
        delivered: counts.iter().sum(),
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
    let request = format!(
        "POST /publish HTTP/1.1\r\nHost: probe\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{data}"
    );
    let mut burst = |audience: &mut Audience| -> Result<()> {
        let wanted = audience.total() + (each * audience.len()) as u64;
        for _ in 0..each {
            publish(&mut control, request.as_bytes())?;
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

#[cfg(test)]
mod tests {
    use super::{Pace, who};
    use crate::session::Peer;

    #[m0_spec::row(H37)]
    #[test]
    fn nchan_is_asked_where_it_is_there_and_the_load_publishes() {
        let cases = [
            (Pace::Bursts(8, 8), true, true),
            (Pace::Bursts(8, 8), false, false),
            (Pace::Every(10), true, false),
        ];
        for (pace, there, wanted) in cases {
            let who = who(pace, there);
            assert_eq!(who.contains(&Some(Peer::Nchan)), wanted, "{pace:?} {there}");
            assert!(who.starts_with(&[None]) && who.ends_with(&[Some(Peer::Raw)]));
        }
    }
}
