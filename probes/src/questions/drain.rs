//! How long does the host take from SIGTERM to its exit when nobody is in the middle of anything?
//!
//! Owns three audiences: streams, idle and silent connections on one worker; the same on two; nobody.
//! Invariant: the host itself counts the streams before it is told to stop, so none is a figure of an empty host.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};
use m0_spec::E87;
use serde_json::Value;

use super::Question;
use crate::load::audience::Audience;
use crate::load::head::{connect, get};
use crate::report::Report;
use crate::samples::Samples;
use crate::session::Session;

pub(super) const QUESTION: Question = Question {
    name: "drain",
    asks: "SIGTERM with idle and silent connections and held streams: when has the whole host exited?",
    rows: &[E87],
    rounds: 21,
    run,
};

/// Milliseconds (`spec/E.yaml`, E87).
const GOAL_MS: f64 = 100.0;
const STREAMS: usize = 50;
const IDLE: usize = 50;
const SILENT: usize = 10;

/// Workers, and whether anybody is there.
const CASES: [(usize, bool); 3] = [(1, true), (2, true), (2, false)];

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let mut times = CASES.map(|_| Vec::new());
    for _ in session.rounds() {
        for (case, times) in CASES.iter().zip(&mut times) {
            session.shows(&format!("workers: {}, audience: {}", case.0, case.1));
            times.push(drain_ms(session, *case)?);
        }
    }
    for ((workers, audience), times) in CASES.into_iter().zip(times) {
        let workers = if workers == 1 {
            "one worker"
        } else {
            "two workers"
        };
        let who = if audience {
            "50 streams, 60 connections"
        } else {
            "nobody"
        };
        let figure = report.figure(format!("{workers}, {who}"), "ms", Samples::of(times)?);
        figure.goal(GOAL_MS).swayed();
    }
    Ok(())
}

fn drain_ms(session: &Session, (workers, audience): (usize, bool)) -> Result<f64> {
    let server = session.host_check(workers, |launch| launch)?;
    let held = audience.then(|| hold(server.address())).transpose()?;
    let took = server.stop()?;
    drop(held);
    Ok(took.as_secs_f64() * 1e3)
}

fn hold(to: SocketAddr) -> Result<(Audience, Vec<TcpStream>)> {
    let audience = Audience::open(to, STREAMS)?;
    let mut others = Vec::new();
    for _ in 0..SILENT {
        others.push(connect(to)?);
    }
    for _ in 0..IDLE {
        let mut socket = connect(to)?;
        get(&mut socket, "/")?;
        others.push(socket);
    }
    let socket = others.last_mut().context("an idle connection")?;
    let (_, stats) = get(socket, "/stats")?;
    let stats: Value = serde_json::from_str(&stats).context("/stats")?;
    let shares = stats["shares"].as_array().context("no shares in /stats")?;
    let streams: u64 = shares
        .iter()
        .filter_map(|share| share["streams"].as_u64())
        .sum();
    ensure!(
        streams == STREAMS as u64,
        "the host counts {streams} streams, {STREAMS} are held"
    );
    Ok((audience, others))
}
