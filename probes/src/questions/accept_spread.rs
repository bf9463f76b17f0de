//! How evenly do the workers share a burst of connections, and how many wake-ups does that cost?
//!
//! Owns three crowds, each beside a host with `M0_ACCEPT_SHARE=0` in the same run. Counts come from `/stats`, over a
//! connection that was there before the burst.
//! Invariant: all connections of a burst are open before the first one asks.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{E48, E49, E50, E51};
use serde_json::Value;

use super::Question;
use crate::load::audience::Audience;
use crate::load::head::{connect, get};
use crate::report::Report;
use crate::samples::{Samples, per, skew};
use crate::server::{PATIENCE, Server};
use crate::session::{NEVER_MS, Session};

pub(super) const QUESTION: Question = Question {
    name: "accept_spread",
    asks: "how evenly is a burst shared, at how many fruitless wake-ups, beside the bare race?",
    rows: &[E48, E49, E50, E51],
    rounds: 9,
    run,
};

/// A crowd that comes at once.
#[derive(Debug, Clone, Copy)]
struct Crowd {
    workers: usize,
    connections: usize,
    /// Held streams that come one after the other; else connections that come at once.
    streams: bool,
    /// Goal for the largest share over the smallest (`spec/E.yaml`, E48 and E50).
    skew_goal: Option<f64>,
    /// Goal for fruitless wake-ups for each accepted connection (E51).
    fruitless_goal: Option<f64>,
}

const CROWDS: [Crowd; 3] = [
    Crowd {
        workers: 2,
        connections: 32,
        streams: false,
        skew_goal: Some(2.0),
        fruitless_goal: None,
    },
    Crowd {
        workers: 8,
        connections: 64,
        streams: false,
        skew_goal: None,
        fruitless_goal: Some(0.2),
    },
    Crowd {
        workers: 4,
        connections: 400,
        streams: true,
        skew_goal: Some(1.25),
        fruitless_goal: None,
    },
];

/// The host as it is, and with the bare race.
const SHARING: [u8; 2] = [1, 0];

/// What one burst showed.
#[derive(Debug, Clone, Copy)]
struct Burst {
    skew: f64,
    deferrals: u64,
    fruitless: f64,
}

fn run(session: &Session, report: &mut Report) -> Result<()> {
    for crowd in CROWDS {
        let start = |share: u8| {
            session.host_check(crowd.workers, |launch| {
                launch
                    .env("M0_ACCEPT_SHARE", share)
                    .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
            })
        };
        let servers = [start(SHARING[0])?, start(SHARING[1])?];
        let mut bursts: [Vec<Burst>; 2] = [Vec::new(), Vec::new()];
        for round in session.rounds() {
            // Who comes first changes, so that neither always meets the other's leavings.
            for at in [round % 2, 1 - round % 2] {
                session.shows(&format!("{crowd:?}, sharing {}", SHARING[at]));
                bursts[at].push(burst(&servers[at], crowd)?);
            }
        }
        for (share, bursts) in SHARING.into_iter().zip(bursts) {
            tell(report, crowd, share == 1, &bursts)?;
        }
    }
    Ok(())
}

fn tell(report: &mut Report, crowd: Crowd, shared: bool, bursts: &[Burst]) -> Result<()> {
    let what = if crowd.streams {
        "held streams"
    } else {
        "connections at once"
    };
    let how = if shared { "shared" } else { "bare race" };
    let name = format!(
        "{} {what} over {} workers, {how}",
        crowd.connections, crowd.workers
    );
    let samples = |of: fn(&Burst) -> f64| Samples::of(bursts.iter().map(of).collect());
    let skew = report.figure(
        format!("{name}: most over least"),
        "ratio",
        samples(|b| b.skew)?,
    );
    skew.swayed();
    if let Some(goal) = crowd.skew_goal.filter(|_| shared) {
        skew.goal(goal);
    }
    let deferrals = samples(|burst| burst.deferrals as f64)?;
    let deferrals = report.figure(format!("{name}: deferrals"), "a burst", deferrals);
    deferrals.swayed();
    if !shared {
        deferrals.goal(0.0);
    }
    let fruitless = samples(|burst| burst.fruitless)?;
    let fruitless = report.figure(
        format!("{name}: fruitless wake-ups"),
        "a connection",
        fruitless,
    );
    fruitless.swayed();
    if let Some(goal) = crowd.fruitless_goal.filter(|_| shared) {
        fruitless.goal(goal);
    }
    Ok(())
}

fn burst(server: &Server, crowd: Crowd) -> Result<Burst> {
    let mut control = connect(server.address())?;
    await_empty(&mut control)?;
    let before = Counters::read(&mut control)?;
    let shares = if crowd.streams {
        let audience = Audience::open(server.address(), crowd.connections)?;
        let after = Counters::read(&mut control)?;
        (audience.shares(crowd.workers)?, after)
    } else {
        let mut sockets = Vec::with_capacity(crowd.connections);
        for _ in 0..crowd.connections {
            sockets.push(connect(server.address())?);
        }
        let mut shares = vec![0; crowd.workers];
        for socket in &mut sockets {
            let slot = get(socket, "/")?.0.slot()?;
            let share = shares.get_mut(slot);
            *share.with_context(|| format!("slot {slot} of {} workers", crowd.workers))? += 1;
        }
        (shares, Counters::read(&mut control)?)
    };
    let (shares, after) = shares;
    let accepted = after.accepted.saturating_sub(before.accepted);
    ensure!(
        accepted == crowd.connections as u64,
        "{accepted} connections were accepted, {} came",
        crowd.connections
    );
    Ok(Burst {
        skew: skew(&shares)?,
        deferrals: after.deferrals.saturating_sub(before.deferrals),
        fruitless: per(after.fruitless.saturating_sub(before.fruitless), accepted)?,
    })
}

/// Sums over all workers, out of `/stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    held: u64,
    accepted: u64,
    deferrals: u64,
    fruitless: u64,
}

impl Counters {
    fn read(control: &mut TcpStream) -> Result<Self> {
        Self::parse(&get(control, "/stats")?.1)
    }

    fn parse(text: &str) -> Result<Self> {
        let stats: Value = serde_json::from_str(text).context("/stats")?;
        let shares = stats["shares"].as_array().context("no shares in /stats")?;
        let sum = |name: &str| -> Result<u64> {
            let count = |share: &Value| {
                share[name]
                    .as_u64()
                    .with_context(|| format!("no {name} in {share}"))
            };
            shares.iter().map(count).sum()
        };
        Ok(Self {
            held: sum("held")?,
            accepted: sum("accepted")?,
            deferrals: sum("deferrals")?,
            fruitless: sum("fruitless")?,
        })
    }
}

/// Awaits that the host holds nothing but the connection that asks.
fn await_empty(control: &mut TcpStream) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let held = Counters::read(control)?.held;
        if held <= 1 {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "{held} connections are held by nobody"
        );
        // Between two looks; the end is the state, not the time.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::Counters;

    #[m0_spec::row(E51)]
    #[test]
    fn counters_are_summed_over_the_workers_and_a_missing_one_is_an_error() {
        let share = |held: u64| {
            format!(
                "{{\"held\":{held},\"accepted\":5,\"deferrals\":2,\"fruitless\":1,\"wakeups\":9}}"
            )
        };
        let text = format!("{{\"shares\":[{},{}]}}", share(1), share(3));
        let wanted = Counters {
            held: 4,
            accepted: 10,
            deferrals: 4,
            fruitless: 2,
        };
        assert_eq!(Counters::parse(&text).expect("all are there"), wanted);
        for text in ["{}", "x", "{\"shares\":[{\"held\":1}]}"] {
            assert!(Counters::parse(text).is_err(), "{text}");
        }
    }
}
