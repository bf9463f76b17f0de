//! What a phase is given and what it hands back.
//!
//! Owns the bookkeeping of one phase: measured quantities, notes, and how many servers were started and
//! how many had their end checked. Knows no phase.
//! Invariant: a phase that started a server and did not finish it cannot pass, nor can one whose witness
//! counts nothing.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::owned::own_pid;
use crate::proc::{self, Pid, Stat};

/// One measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What was measured.
    pub quantity: String,
    /// How much.
    pub value: f64,
    /// `ms`, `ratio`, `bytes`, `count` …
    pub unit: String,
    /// The bound it must keep, if the promise has one.
    pub bound: Option<f64>,
    /// Share of the bound that was not used: 0 is just kept, negative is broken.
    pub headroom: Option<f64>,
}

/// What happened in a phase, so that its passing means something. Every count must be above zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness(Vec<(String, u64)>);

impl Witness {
    /// A witness of at least one thing: a phase without any cannot be written.
    pub fn of(what: &str, count: usize) -> Self {
        Self(vec![(what.to_owned(), count as u64)])
    }

    /// One thing more.
    #[must_use]
    pub fn and(mut self, what: &str, count: usize) -> Self {
        self.0.push((what.to_owned(), count as u64));
        self
    }

    /// Joins two witnesses: the parts of a phase.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The first thing that never happened.
    pub fn missing(&self) -> Option<&str> {
        self.0
            .iter()
            .find(|(_, count)| *count == 0)
            .map(|(what, _)| what.as_str())
    }

    /// Everything counted, in order.
    pub fn counts(&self) -> &[(String, u64)] {
        &self.0
    }
}

#[derive(Debug, Default)]
struct State {
    measures: Vec<Measure>,
    notes: Vec<String>,
    children: BTreeSet<Pid>,
    index: u32,
    finished: u32,
}

/// The surroundings of one phase.
#[derive(Debug)]
pub struct Run {
    server_bin: PathBuf,
    helper_bin: PathBuf,
    dir: PathBuf,
    state: Mutex<State>,
}

impl Run {
    /// `server_bin` is the server to drive, `helper_bin` the smokes binary itself, `dir` an existing
    /// directory for logs.
    pub fn new(server_bin: PathBuf, helper_bin: PathBuf, dir: PathBuf) -> Self {
        Self {
            server_bin,
            helper_bin,
            dir,
            state: Mutex::default(),
        }
    }

    /// The server that is driven.
    pub fn server_bin(&self) -> &Path {
        &self.server_bin
    }

    /// The binary whose hidden modes prepare a process (see `helper`).
    pub fn helper_bin(&self) -> &Path {
        &self.helper_bin
    }

    /// Where logs and other files of this phase are kept.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next server of this phase, from 1.
    pub(crate) fn next_index(&self) -> u32 {
        let mut state = self.state();
        state.index += 1;
        state.index
    }

    /// A loopback address that only this server uses, so that "the port is free again" can be
    /// asked without racing with another server that was given the same port.
    pub(crate) fn own_address(index: u32) -> Ipv4Addr {
        let pid = own_pid().unsigned_abs();
        let octet = |value: u32| u8::try_from(value % 250 + 1).expect("at most 250");
        Ipv4Addr::new(127, octet(pid), octet(pid / 250), octet(index))
    }

    /// Starts a child and remembers it as ours, with no moment between in which it looks like an
    /// orphan that came to us.
    pub(crate) fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        let mut state = self.state();
        let child = command.spawn()?;
        state
            .children
            .insert(Pid::try_from(child.id()).expect("the kernel's pids fit"));
        Ok(child)
    }

    /// Our direct children that we did not start: orphans of a server, dead or alive.
    pub(crate) fn adopted(&self) -> Vec<Stat> {
        let state = self.state();
        let mut found = proc::children(own_pid());
        found.retain(|stat| !state.children.contains(&stat.pid));
        found
    }

    pub(crate) fn untrack(&self, pid: Pid) {
        self.state().children.remove(&pid);
    }

    pub(crate) fn server_finished(&self) {
        self.state().finished += 1;
    }

    /// Says something to the reader of the report that is not a failure.
    pub fn note(&self, text: impl Into<String>) {
        self.state().notes.push(text.into());
    }

    /// Records a quantity that has no bound.
    pub fn record(&self, quantity: &str, value: f64, unit: &str) {
        self.push(quantity, value, unit, None, None);
    }

    /// Records a quantity and fails when it is above its bound.
    pub fn at_most(&self, quantity: &str, value: f64, unit: &str, bound: f64) -> Result<()> {
        let headroom = if bound == 0.0 {
            0.0
        } else {
            (bound - value) / bound
        };
        self.push(quantity, value, unit, Some(bound), Some(headroom));
        ensure!(
            value <= bound,
            "{quantity} is {value:.3} {unit}, at most {bound} is promised"
        );
        Ok(())
    }

    /// Records a quantity and fails when it is below its bound.
    pub fn at_least(&self, quantity: &str, value: f64, unit: &str, bound: f64) -> Result<()> {
        let headroom = if bound == 0.0 {
            0.0
        } else {
            (value - bound) / bound
        };
        self.push(quantity, value, unit, Some(bound), Some(headroom));
        ensure!(
            value >= bound,
            "{quantity} is {value:.3} {unit}, at least {bound} is promised"
        );
        Ok(())
    }

    /// Records a time and fails when it is longer than its bound. Unit: milliseconds.
    pub fn within(&self, quantity: &str, took: Duration, bound: Duration) -> Result<()> {
        self.at_most(quantity, millis(took), "ms", millis(bound))
    }

    fn push(
        &self,
        quantity: &str,
        value: f64,
        unit: &str,
        bound: Option<f64>,
        headroom: Option<f64>,
    ) {
        let (quantity, unit) = (quantity.to_owned(), unit.to_owned());
        self.state().measures.push(Measure {
            quantity,
            value,
            unit,
            bound,
            headroom,
        });
    }

    /// What was measured and noted so far.
    pub fn findings(&self) -> (Vec<Measure>, Vec<String>) {
        let state = self.state();
        (state.measures.clone(), state.notes.clone())
    }

    /// The verdict over a phase that returned `witness`: vacuous and unfinished phases fail.
    pub fn judge(&self, witness: &Witness) -> Result<()> {
        let state = self.state();
        if state.index == 0 {
            bail!("vacuous: no server was started");
        }
        if let Some(what) = witness.missing() {
            bail!("vacuous: {what}: none in the whole phase");
        }
        ensure!(
            state.index == state.finished,
            "{} servers started and the end of {} checked",
            state.index,
            state.finished
        );
        Ok(())
    }
}

/// A duration in milliseconds, with fractions.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run::new("/bin/false".into(), "/bin/false".into(), "/nowhere".into())
    }

    #[m0_spec::row(H20)]
    #[test]
    fn a_phase_that_started_nothing_or_witnessed_nothing_is_vacuous() {
        let run = run();
        let verdict = |run: &Run, witness| run.judge(&witness).map_err(|error| error.to_string());
        assert_eq!(
            verdict(&run, Witness::of("beats", 1)),
            Err("vacuous: no server was started".into())
        );
        run.next_index();
        run.server_finished();
        assert_eq!(verdict(&run, Witness::of("beats", 1)), Ok(()));
        assert_eq!(
            verdict(&run, Witness::of("beats", 1).and("kills", 0)),
            Err("vacuous: kills: none in the whole phase".into())
        );
    }

    #[m0_spec::row(H23)]
    #[test]
    fn a_server_whose_end_was_not_checked_fails_the_phase() {
        let run = run();
        run.next_index();
        let failure = run
            .judge(&Witness::of("beats", 1))
            .expect_err("not finished")
            .to_string();
        assert_eq!(failure, "1 servers started and the end of 0 checked");
    }

    #[m0_spec::row(H25)]
    #[test]
    fn each_quantity_keeps_its_bound_and_headroom() {
        let run = run();
        assert!(
            run.within(
                "exit",
                Duration::from_millis(100),
                Duration::from_millis(400)
            )
            .is_ok()
        );
        assert!(run.at_most("ratio", 3.0, "ratio", 2.0).is_err());
        assert!(run.at_least("deferrals", 1.0, "count", 2.0).is_err());
        run.record("rss", 5.0, "bytes");
        let headrooms: Vec<_> = run.findings().0.iter().map(|each| each.headroom).collect();
        assert_eq!(headrooms, [Some(0.75), Some(-0.5), Some(-0.5), None]);
    }

    #[m0_spec::row(H23)]
    #[test]
    fn addresses_are_loopback_and_differ() {
        let (one, two) = (Run::own_address(1), Run::own_address(2));
        assert!(one.is_loopback() && two.is_loopback() && one != two);
    }
}
