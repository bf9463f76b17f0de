//! What does a held stream cost in memory?
//!
//! Owns the difference between a server with an audience and the same server before it. Refuses what the kernel holds
//! for the sockets, which is the same for every server.
//! Invariant: every stream has had its head, and where there are beats each has had ten of them.

use std::time::Duration;

use anyhow::{Result, ensure};
use m0_spec::S18;

use super::Question;
use crate::load::audience::Audience;
use crate::load::head::{connect, get};
use crate::memory::Memory;
use crate::report::{Report, Table};
use crate::samples::Samples;
use crate::server::Server;
use crate::session::{NEVER_MS, Peer, Session};

pub(super) const QUESTION: Question = Question {
    name: "memory",
    asks: "how many bytes does one worker hold for each stream, beside axum's Sse, actix-web, ntex and a bare epoll loop?",
    rows: &[S18],
    rounds: 3,
    run,
};

/// Bytes (`spec/S.yaml`, S18).
const GOAL_BYTES: f64 = 8192.0;
const STREAMS: [usize; 2] = [1000, 5000];
/// Time between beats where there are any; slow enough that no server falls behind.
const PERIOD_MS: u64 = 200;
/// Events that each stream has had before its memory is read.
const EVENTS_FIRST: u64 = 10;
const BOUND: Duration = Duration::from_secs(90);

const WHO: [Option<Peer>; 5] = [
    None,
    Some(Peer::Axum),
    Some(Peer::Actix),
    Some(Peer::Ntex),
    Some(Peer::Raw),
];

/// Who, how many streams, whether they beat.
type Case = (Option<Peer>, usize, bool);

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for streams in STREAMS {
        for beats in [false, true] {
            for who in WHO {
                cases.push((who, streams, beats));
            }
        }
    }
    cases
}

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let cases = cases();
    let mut bytes = vec![(Vec::new(), Vec::new()); cases.len()];
    for _ in session.rounds() {
        for (case, (anonymous, rss)) in cases.iter().zip(&mut bytes) {
            session.shows(&name(*case));
            let (each_anonymous, each_rss) = bytes_each(session, *case)?;
            anonymous.push(each_anonymous);
            rss.push(each_rss);
        }
    }
    for (case, (anonymous, rss)) in cases.into_iter().zip(bytes) {
        let figure = report.figure(name(case), "bytes a stream", Samples::of(anonymous)?);
        if case.0.is_none() {
            figure.goal(GOAL_BYTES);
        }
        report.figure(
            format!("{}, by RSS", name(case)),
            "bytes a stream",
            Samples::of(rss)?,
        );
    }
    for streams in STREAMS {
        for beats in [false, true] {
            report.table_of(Table {
                what: what(streams, beats),
                whos: WHO
                    .map(|who| who.map_or("m0", Peer::name).to_owned())
                    .to_vec(),
                columns: vec![
                    ("bytes a stream".to_owned(), String::new()),
                    ("by RSS".to_owned(), ", by RSS".to_owned()),
                ],
            });
        }
    }
    report.note("Anonymous pages by smaps_rollup after the audience came, less those before, over the streams.");
    Ok(())
}

fn name((who, streams, beats): Case) -> String {
    format!("{}, {}", what(streams, beats), who.map_or("m0", Peer::name))
}

fn what(streams: usize, beats: bool) -> String {
    format!(
        "{streams} streams, {}",
        if beats { "beating" } else { "idle" }
    )
}

fn bytes_each(session: &Session, (who, streams, beats): Case) -> Result<(f64, f64)> {
    let period_ms = if beats { PERIOD_MS } else { NEVER_MS };
    let server = start(session, who, period_ms)?;
    // One request, so that what a first one allocates is not the streams'.
    get(&mut connect(server.address())?, "/")?;
    let before = Memory::of(server.pid())?;
    let mut audience = Audience::open(server.address(), streams)?;
    if beats {
        let all =
            |audience: &Audience| audience.counts().iter().all(|&count| count >= EVENTS_FIRST);
        audience.listen_until(BOUND, all)?;
    }
    let after = Memory::of(server.pid())?;
    ensure!(
        audience.len() == streams,
        "{} streams are held",
        audience.len()
    );
    ensure!(
        after.anonymous > before.anonymous,
        "nothing was measured: {before:?} {after:?}"
    );
    let each = |before: u64, after: u64| (after as f64 - before as f64) / streams as f64;
    Ok((
        each(before.anonymous, after.anonymous),
        each(before.rss, after.rss),
    ))
}

fn start(session: &Session, who: Option<Peer>, period_ms: u64) -> Result<Server> {
    match who {
        Some(peer) => session.peer(peer, period_ms),
        None => session.host_check(1, |launch| launch.env("M0_HOSTCHECK_PERIOD_MS", period_ms)),
    }
}
