//! How much longer does a good client wait when hundreds of slow peers are on its worker?
//!
//! Owns the two audiences of the good client: nobody, and slow peers of every manner for as long as the command line says.
//! Half of the quiet time is before them and half after, so that a machine that changes in between is in both.
//! Invariant: a manner of which not one peer was cut was not measured, and is an error.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use m0_spec::W48;

use super::Question;
use crate::load::head::{connect, get};
use crate::load::slow::{Manner, PACE as PACE_OF_SLOW, Slow, Tally};
use crate::report::Report;
use crate::samples::Samples;
use crate::session::{NEVER_MS, Session};

pub(super) const QUESTION: Question = Question {
    name: "loris",
    asks: "600 slow peers on one worker for a minute: how much longer does a good client wait, and are they cut?",
    rows: &[W48],
    rounds: 1,
    run,
};

/// The good client's p99 beside them over its p99 without (`spec/W.yaml`, W48).
const GOAL: f64 = 2.0;
/// Slow peers of each manner.
const EACH: usize = 200;
/// Deadline of a head, of a body's next byte and of a reader's, so that each peer is cut several times within a minute.
const DEADLINE: Duration = Duration::from_secs(5);
/// Turns, a second each, at which a slow peer has outlived its deadline: a body falls silent first, and a reader is given
/// the deadline once more for what the kernel has taken.
const BOUND: u32 = 20;
/// Seconds beside the slow peers unless the command line says otherwise.
const SECONDS: u16 = 60;
/// Time between two requests of the good client.
const PACE: Duration = Duration::from_millis(2);

/// What one round showed.
#[derive(Debug)]
struct Seen {
    quiet: Samples,
    beside: Samples,
    tallies: [Tally; 3],
}

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let time = Duration::from_secs(session.seconds(SECONDS).into());
    ensure!(
        time > PACE_OF_SLOW * BOUND,
        "{time:?} are too few: the slow peers are judged after {BOUND} s"
    );
    let mut rounds = Vec::new();
    for _ in session.rounds() {
        rounds.push(measure(session, time)?);
    }
    tell(report, &rounds)?;
    report.note(format!(
        "{EACH} slow heads, {EACH} slow bodies and {EACH} slow readers, deadlines of {DEADLINE:?}, {time:?} a round."
    ));
    report.note("All peers share the processors with the server: their own work is part of what the good client waits for.");
    Ok(())
}

fn measure(session: &Session, time: Duration) -> Result<Seen> {
    let deadline = DEADLINE.as_millis();
    let server = session.host_check(1, |launch| {
        launch
            .env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
            .env("M0_HEAD_TIMEOUT_MS", deadline)
            .env("M0_BODY_TIMEOUT_MS", deadline)
            .env("M0_WRITE_TIMEOUT_MS", deadline)
    })?;
    let to = server.address();
    session.shows("a good client alone");
    let mut quiet = waits(to, time / 2)?;
    session.shows("a good client beside slow peers");
    let mut slow = Slow::of(to, EACH, BOUND)?;
    let over = AtomicBool::new(false);
    let (beside, outcome) = std::thread::scope(|scope| {
        let loris = scope.spawn(|| slow.run(|| over.load(Ordering::Relaxed)));
        let beside = waits(to, time);
        over.store(true, Ordering::Relaxed);
        (beside, loris.join())
    });
    outcome.map_err(|_| anyhow!("the slow peers ended in a panic"))??;
    let beside = beside.context("the good client beside slow peers")?;
    let tallies = slow.tallies();
    drop(slow);
    session.shows("a good client alone again");
    quiet.extend(waits(to, time / 2)?);
    Ok(Seen {
        quiet: Samples::of(quiet)?,
        beside: Samples::of(beside)?,
        tallies,
    })
}

/// Asks on one kept connection for so long; microseconds from each request to the end of its answer.
fn waits(to: SocketAddr, time: Duration) -> Result<Vec<f64>> {
    let mut socket = connect(to)?;
    get(&mut socket, "/")?;
    let mut waits = Vec::new();
    let end = Instant::now() + time;
    let mut due = Instant::now();
    while Instant::now() < end {
        let asked = Instant::now();
        get(&mut socket, "/")?;
        waits.push(asked.elapsed().as_secs_f64() * 1e6);
        // One that was late asks again at once, and makes up for no request that it missed.
        due = (due + PACE).max(Instant::now());
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(waits)
}

/// Judges the rounds.
fn tell(report: &mut Report, rounds: &[Seen]) -> Result<()> {
    let p99 = |samples: &Samples| samples.quantile(0.99);
    let of = |figure: &dyn Fn(&Seen) -> f64| Samples::of(rounds.iter().map(figure).collect());
    let quiet = of(&|seen| p99(&seen.quiet))?;
    report
        .figure("good client alone: p99", "us", quiet)
        .swayed();
    let beside = of(&|seen| p99(&seen.beside))?;
    report
        .figure("good client beside slow peers: p99", "us", beside)
        .swayed();
    let ratio = of(&|seen| p99(&seen.beside) / p99(&seen.quiet))?;
    let ratio = report.figure(
        "good client: p99 beside slow peers over alone",
        "ratio",
        ratio,
    );
    ratio.goal(GOAL).swayed();
    for (at, manner) in Manner::ALL.into_iter().enumerate() {
        let name = manner.name();
        for seen in rounds {
            let tally = seen.tallies[at];
            ensure!(
                tally.cut > 0,
                "nothing was measured: of {} {name} not one was cut, {} outlived their bound",
                tally.opened,
                tally.overstayed
            );
        }
        let cut = of(&|seen| seen.tallies[at].cut as f64)?;
        report.figure(format!("{name}: cut by their deadline"), "connections", cut);
        let late = of(&|seen| seen.tallies[at].overstayed as f64)?;
        // The median of several rounds would hide the one in which somebody was forgotten.
        let late = Samples::of(vec![late.most()])?;
        let late = report.figure(format!("{name}: outlived it"), "connections", late);
        late.goal(0.0).swayed();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{QUESTION, Seen, tell};
    use crate::load::slow::Tally;
    use crate::machine::Machine;
    use crate::report::Report;
    use crate::samples::Samples;

    fn report() -> Report {
        let machine = Machine {
            commit: "abc".into(),
            name: "a machine".into(),
            cores: 2,
        };
        Report::of(&QUESTION, machine)
    }

    /// A hundred waits, of which the last two are those of the p99.
    fn waits(p99: f64) -> Samples {
        let mut waits = vec![10.0; 98];
        waits.extend([p99, p99]);
        Samples::of(waits).expect("numbers")
    }

    fn seen(quiet: f64, beside: f64, cut: u64, overstayed: u64) -> Seen {
        let tally = Tally {
            opened: cut + overstayed,
            cut,
            overstayed,
        };
        let good = Tally {
            opened: 9,
            cut: 9,
            overstayed: 0,
        };
        Seen {
            quiet: waits(quiet),
            beside: waits(beside),
            tallies: [good, tally, good],
        }
    }

    #[m0_spec::row(W48)]
    #[test]
    fn a_good_client_that_waits_more_than_twice_as_long_misses_the_goal() {
        for (beside, missed) in [(199.0, false), (200.0, false), (201.0, true)] {
            let mut report = report();
            // The quick ones are many, and the mean says nothing: the ratio is that of the slowest in a hundred.
            tell(&mut report, &[seen(100.0, beside, 9, 0)]).expect("all was measured");
            assert_eq!(report.missed().is_some(), missed, "{}", report.table());
        }
    }

    #[m0_spec::row(W48)]
    #[test]
    fn one_slow_peer_that_outlives_its_deadline_in_any_round_misses_the_goal() {
        let good = || seen(100.0, 100.0, 9, 0);
        let mut report = report();
        tell(&mut report, &[good(), good(), seen(100.0, 100.0, 9, 1)]).expect("measured");
        let missed = report.missed().unwrap_or_default();
        assert!(
            missed.starts_with("slow bodies: outlived it is 1"),
            "{missed}"
        );
    }

    #[m0_spec::row(H37, W48)]
    #[test]
    fn a_manner_of_which_none_was_cut_was_not_measured() {
        let error = tell(&mut report(), &[seen(100.0, 100.0, 0, 4)]).expect_err("none was cut");
        assert!(
            error
                .to_string()
                .contains("of 4 slow bodies not one was cut"),
            "{error}"
        );
        assert!(tell(&mut report(), &[]).is_err(), "no round");
    }
}
