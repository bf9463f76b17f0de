//! What does a request cost in processor time, beside axum, actix-web, ntex, nginx and a bare epoll loop?
//!
//! Owns the pairing: each route is answered by every server with the same body, in turns within a round, and the turns
//! rotate. Refuses requests by the clock: the load runs on the server's own processors.
//! Invariant: the time of opening connections and of the first answers is outside of what is measured.

use anyhow::Result;

use super::Question;
use crate::comparison::Comparison;
use crate::cpu::Cpu;
use crate::load::callers::{BROWSER_FIELDS, Callers, request};
use crate::report::Report;
use crate::server::Server;
use crate::session::{NEVER_MS, Peer, Session};

pub(super) const QUESTION: Question = Question {
    name: "rps",
    asks: "how many microseconds of processor time does one keep-alive request cost?",
    rows: &[],
    rounds: 9,
    run,
};

/// Those that the others are held against.
const AXUM: &str = "axum";
const RAW: &str = "raw epoll";
/// The host with a function for an application, so that nothing but the host is above the bare loop.
const BARE: &str = "m0 (service_fn)";
const ROUTER: &str = "m0 (Router)";
const CHECK: &str = "m0 (host_check)";

/// The most that the host itself may take of the bare loop's time: with few fields, and with a browser's.
const GOALS_BARE: [f64; 2] = [1.18, 1.30];
/// The most that a Router may take under the host of what the same Router takes under `axum::serve`.
const GOAL_ROUTER: f64 = 0.75;

/// Connections that ask in turn.
const CALLERS: usize = 32;
/// Requests on each before the measurement.
const WARM: usize = 50;
/// Requests on each within it.
const TIMES: usize = 400;

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let check = session.host_check(1, |launch| launch.env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS))?;
    let router = session.example("router")?;
    let service = session.example("service")?;
    let axum = session.peer(Peer::Axum, NEVER_MS)?;
    let actix = session.peer(Peer::Actix, NEVER_MS)?;
    let ntex = session.peer(Peer::Ntex, NEVER_MS)?;
    let raw = session.peer(Peer::Raw, NEVER_MS)?;
    let nginx = session.peer(Peer::Nginx, NEVER_MS);
    if let Err(error) = &nginx {
        report.note(format!("nginx was not measured: {error:#}"));
    }
    let mut peers = vec![
        (AXUM, &axum),
        (RAW, &raw),
        ("actix-web", &actix),
        ("ntex", &ntex),
    ];
    peers.extend(nginx.as_ref().ok().map(|nginx| ("nginx", nginx)));
    let none: &[(&str, &str)] = &[];
    for (path, ours) in [
        ("/", vec![(CHECK, &check)]),
        ("/json", vec![(BARE, &service), (ROUTER, &router)]),
    ] {
        let servers: Vec<(&str, &Server)> = ours.into_iter().chain(peers.clone()).collect();
        let names: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
        for (at, (fields, what)) in [(none, "plain"), (&BROWSER_FIELDS, "13 browser fields")]
            .into_iter()
            .enumerate()
        {
            let what = format!("GET {path} {what}");
            let mut asked = Comparison::of(&what, "us a request", &names, &[RAW, AXUM]);
            asked.goal(BARE, RAW, GOALS_BARE[at]);
            asked.goal(ROUTER, AXUM, GOAL_ROUTER);
            for round in session.rounds() {
                for turn in 0..servers.len() {
                    let at = (round + turn) % servers.len();
                    let (name, server) = servers[at];
                    session.shows(&format!("{what}, {name}"));
                    let (used, requests) = measure(server, &request(path, fields))?;
                    asked.add(at, used, requests)?;
                }
            }
            asked.tell(report)?;
        }
    }
    report.note("One worker or thread each. User and system are divided by the ticks of all rounds together.");
    Ok(())
}

fn measure(server: &Server, request: &[u8]) -> Result<(Cpu, u64)> {
    let mut callers = Callers::open(server.address(), CALLERS, request.to_vec())?;
    callers.ask(WARM)?;
    let pids = server.pids();
    let before = Cpu::of(&pids)?;
    let requests = callers.ask(TIMES)?;
    Ok((Cpu::of(&pids)?.since(before), requests))
}
