//! What does a request cost in processor time, beside axum, actix-web, nginx and a bare epoll loop?
//!
//! Owns the pairing: each route is answered by every server with the same body, in turns within a round, and the turns
//! rotate. Refuses requests by the clock: the load runs on the server's own processors.
//! Invariant: the time of opening connections and of the first answers is outside of what is measured.

use anyhow::{Context, Result};

use super::Question;
use crate::cpu::Cpu;
use crate::load::callers::{BROWSER_FIELDS, Callers, request};
use crate::report::Report;
use crate::samples::{Samples, per};
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

/// Connections that ask in turn.
const CALLERS: usize = 32;
/// Requests on each before the measurement.
const WARM: usize = 50;
/// Requests on each within it.
const TIMES: usize = 400;

/// One server in one comparison.
struct Entrant<'server> {
    name: &'static str,
    server: &'server Server,
    us: Vec<f64>,
    sum: Cpu,
    requests: u64,
}

impl<'server> Entrant<'server> {
    fn new(name: &'static str, server: &'server Server) -> Self {
        Self {
            name,
            server,
            us: Vec::new(),
            sum: Cpu::default(),
            requests: 0,
        }
    }
}

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let check = session.host_check(1, |launch| launch.env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS))?;
    let router = session.router()?;
    let axum = session.peer(Peer::Axum, NEVER_MS)?;
    let actix = session.peer(Peer::Actix, NEVER_MS)?;
    let raw = session.peer(Peer::Raw, NEVER_MS)?;
    let nginx = session.peer(Peer::Nginx, NEVER_MS);
    if let Err(error) = &nginx {
        report.note(format!("nginx was not measured: {error:#}"));
    }
    let none: &[(&str, &str)] = &[];
    for (path, ours, ours_name) in [
        ("/", &check, "m0 (host_check)"),
        ("/json", &router, "m0 (Router, serve_service)"),
    ] {
        for (fields, what) in [(none, "plain"), (&BROWSER_FIELDS, "13 browser fields")] {
            let servers = [
                (ours_name, Some(ours)),
                (AXUM, Some(&axum)),
                (RAW, Some(&raw)),
                ("actix-web", Some(&actix)),
                ("nginx", nginx.as_ref().ok()),
            ];
            let mut entrants: Vec<_> = servers
                .into_iter()
                .filter_map(|(name, server)| Some(Entrant::new(name, server?)))
                .collect();
            for round in session.rounds() {
                for turn in 0..entrants.len() {
                    let at = (round + turn) % entrants.len();
                    session.shows(&format!("{path}, {what}, {}", entrants[at].name));
                    measure(&mut entrants[at], &request(path, fields))?;
                }
            }
            tell(report, &format!("GET {path} {what}"), &entrants)?;
        }
    }
    report.note("One worker or thread each. User and system are divided by the ticks of all rounds together.");
    Ok(())
}

fn measure(entrant: &mut Entrant<'_>, request: &[u8]) -> Result<()> {
    let mut callers = Callers::open(entrant.server.address(), CALLERS, request.to_vec())?;
    callers.ask(WARM)?;
    let pids = entrant.server.pids();
    let before = Cpu::of(&pids)?;
    let requests = callers.ask(TIMES)?;
    let used = Cpu::of(&pids)?.since(before);
    entrant.us.push(per(used.total_ns, requests)? / 1e3);
    entrant.sum += used;
    entrant.requests += requests;
    Ok(())
}

fn tell(report: &mut Report, what: &str, entrants: &[Entrant<'_>]) -> Result<()> {
    for entrant in entrants {
        let name = format!("{what}, {}", entrant.name);
        let total = Samples::of(entrant.us.clone())?;
        let user = entrant
            .sum
            .user_share()
            .context("nothing was measured: not one tick")?;
        report.figure(format!("{name}: user"), "us a request", total.times(user)?);
        report.figure(
            format!("{name}: system"),
            "us a request",
            total.times(1.0 - user)?,
        );
        report.figure(name.clone(), "us a request", total);
        let others = entrants
            .iter()
            .filter(|other| [AXUM, RAW].contains(&other.name));
        for against in others.filter(|other| other.name != entrant.name) {
            // Pairs of one round, so that what slows the machine slows both.
            let pairs = entrant.us.iter().zip(&against.us);
            let pairs = pairs.map(|(own, other)| own / other).collect();
            let name = format!("{name}: over {}", against.name);
            report.figure(name, "ratio", Samples::of(pairs)?);
        }
    }
    Ok(())
}
