//! What does the access log cost a request?
//!
//! Owns the pairing: two hosts that differ in the log alone, asked by turns of some milliseconds. A machine whose pace
//! changes does so over longer times than that, so both have the same share of it: asked for whole rounds one after the
//! other they differed by up to 3 us either way. What the log adds in a round is the middle of the differences of two
//! turns: a turn that a neighbour of the machine took part in is one of many, and sways no mean. Each round starts hosts
//! anew: what one pair differed by was up to 0.3 us from what the next pair did, and stayed so for as long as they lived.
//! Refuses requests by the clock, as every probe of processor time.
//! Invariant: the log goes where writing is cheap, so that the host's part is what is measured, and not a reader's.

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
    rounds: 21,
    run,
};

/// Microseconds a request (issue 5).
const GOAL_US: f64 = 0.5;
/// Connections that ask in turn.
const CALLERS: usize = 32;
/// Requests on each before the measurement.
const WARM: usize = 50;
/// Turns of each host within a round, and requests on each connection in a turn.
const TURNS: usize = 40;
const TIMES: usize = 25;

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let host = |log: u8| {
        session.host_check(1, |launch| {
            let launch = launch.env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS);
            launch.env("M0_ACCESS_LOG", log)
        })
    };
    let (mut without, mut with, mut more) = (Vec::new(), Vec::new(), Vec::new());
    for _ in session.rounds() {
        session.shows("GET / with the log off and on");
        let (off, on) = (host(0)?, host(1)?);
        let mut hosts = [Asked::open(&off)?, Asked::open(&on)?];
        let mut pairs = Vec::new();
        for turn in 0..TURNS {
            // Whoever is second finds warmer caches: they change places.
            let first = turn % 2;
            let mut us = [0.0; 2];
            for at in [first, 1 - first] {
                us[at] = hosts[at].turn()?;
            }
            pairs.push(us[1] - us[0]);
        }
        without.push(hosts[0].us()?);
        with.push(hosts[1].us()?);
        more.push(Samples::of(pairs)?.median());
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

/// One host, and what its requests of a round cost.
struct Asked {
    pids: Vec<u32>,
    callers: Callers,
    used: Cpu,
    requests: u64,
}

impl Asked {
    fn open(server: &Server) -> Result<Self> {
        let mut callers = Callers::open(server.address(), CALLERS, request("/", &[]))?;
        callers.ask(WARM)?;
        Ok(Self {
            pids: server.pids(),
            callers,
            used: Cpu::default(),
            requests: 0,
        })
    }

    /// Microseconds a request of this turn.
    fn turn(&mut self) -> Result<f64> {
        let before = Cpu::of(&self.pids)?;
        let requests = self.callers.ask(TIMES)?;
        let used = Cpu::of(&self.pids)?.since(before);
        self.requests += requests;
        self.used += used;
        Ok(per(used.total_ns, requests)? / 1e3)
    }

    /// The same of all turns.
    fn us(&self) -> Result<f64> {
        Ok(per(self.used.total_ns, self.requests)? / 1e3)
    }
}
