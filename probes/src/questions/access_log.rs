//! What does the access log cost a request?
//!
//! Owns the pairing: two hosts that differ in the log alone, asked in turns within a round. Refuses requests by the
//! clock, as every probe of processor time. Invariant: the log goes where writing is cheap, so that the host's part is
//! what is measured, and not a reader's.

use anyhow::Result;
use m0_spec::E115;

use super::Question;
use crate::cpu::Cpu;
use crate::load::callers::{Callers, request};
use crate::report::Report;
use crate::samples::{Samples, per};
use crate::server::Server;
use crate::session::{NEVER_MS, Session};

pub(super) const QUESTION: Question = Question {
    name: "access_log",
    asks: "how many microseconds of processor time does a request cost more with the access log on?",
    rows: &[E115],
    rounds: 31,
    run,
};

/// Microseconds a request (issue 5).
const GOAL_US: f64 = 0.5;
/// Connections that ask in turn.
const CALLERS: usize = 32;
/// Requests on each before the measurement.
const WARM: usize = 50;
/// Requests on each within it.
const TIMES: usize = 1_200;

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let host = |log: u8| {
        session.host_check(1, |launch| {
            let launch = launch.env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS);
            launch.env("M0_ACCESS_LOG", log)
        })
    };
    let (off, on) = (host(0)?, host(1)?);
    let (mut without, mut with, mut more) = (Vec::new(), Vec::new(), Vec::new());
    for round in session.rounds() {
        session.shows("GET / with the log off and on");
        // Whoever is second finds warmer caches, or a busier machine: they take turns.
        let (a, b) = if round % 2 == 0 {
            let a = us(&off)?;
            (a, us(&on)?)
        } else {
            let b = us(&on)?;
            (us(&off)?, b)
        };
        without.push(a);
        with.push(b);
        more.push(b - a);
    }
    let unit = "us a request";
    report.figure("GET /, no access log", unit, Samples::of(without)?);
    report.figure("GET /, access log", unit, Samples::of(with)?);
    report
        .figure("what the access log adds", unit, Samples::of(more)?)
        .goal(GOAL_US)
        .swayed();
    report.note("The log goes to /dev/null: a reader's cost is the reader's.");
    Ok(())
}

fn us(server: &Server) -> Result<f64> {
    let mut callers = Callers::open(server.address(), CALLERS, request("/", &[]))?;
    callers.ask(WARM)?;
    let pids = server.pids();
    let before = Cpu::of(&pids)?;
    let requests = callers.ask(TIMES)?;
    let used = Cpu::of(&pids)?.since(before);
    Ok(per(used.total_ns, requests)? / 1e3)
}
