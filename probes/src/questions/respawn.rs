//! How long is a stream on a sibling silent when the producer's worker is killed?
//!
//! Owns one kill a round, each of a fresh host, so that every respawn is a slot's first and is not delayed.
//! Invariant: the time ends with a beat that another process made.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use m0_spec::S20;
use nix::sys::signal::Signal;

use super::Question;
use crate::load::beats::Beats;
use crate::report::Report;
use crate::samples::Samples;
use crate::server::signal;
use crate::session::Session;

pub(super) const QUESTION: Question = Question {
    name: "respawn",
    asks: "kill -9 of the producer's worker: when does a stream held on its sibling beat again?",
    rows: &[S20],
    rounds: 21,
    run,
};

/// Milliseconds (`design/host.md`: goal 50 ms).
const GOAL_MS: f64 = 50.0;
/// Streams opened until one is on the sibling.
const MOST_STREAMS: usize = 64;
/// Time between beats: the default of host_check, and one at which waiting for the next beat hardly counts.
const PERIODS_MS: [u64; 2] = [100, 10];

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let mut times = PERIODS_MS.map(|_| Vec::new());
    for _ in session.rounds() {
        for (period_ms, times) in PERIODS_MS.iter().zip(&mut times) {
            session.shows(&format!("a beat every {period_ms} ms"));
            times.push(silence_ms(session, *period_ms)?);
        }
    }
    for (period_ms, times) in PERIODS_MS.iter().zip(times) {
        let quantity = format!("silence at one beat every {period_ms} ms");
        report
            .figure(quantity, "ms", Samples::of(times)?)
            .goal(GOAL_MS)
            .swayed();
    }
    Ok(())
}

fn silence_ms(session: &Session, period_ms: u64) -> Result<f64> {
    let server = session.host_check(2, |launch| launch.env("M0_HOSTCHECK_PERIOD_MS", period_ms))?;
    // Those on the producer's own worker are held too, so that the sibling is not alone with its streams.
    let mut streams = Vec::new();
    while streams
        .last()
        .is_none_or(|stream: &Beats| stream.slot() == 0)
    {
        ensure!(
            streams.len() < MOST_STREAMS,
            "{MOST_STREAMS} streams, none on the sibling"
        );
        streams.push(Beats::open(server.address())?);
    }
    let stream = streams.last_mut().context("a stream on the sibling")?;
    let (producer, _) = stream.next_beat()?;
    let killed = Instant::now();
    signal(producer, Signal::SIGKILL)?;
    loop {
        let (pid, at) = stream.next_beat().with_context(|| server.tail())?;
        if pid != producer {
            return Ok(at.saturating_duration_since(killed).as_secs_f64() * 1e3);
        }
    }
}
