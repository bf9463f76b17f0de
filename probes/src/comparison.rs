//! Servers that are asked the same, each in every round.
//!
//! Owns the pairing: what a server took in a round is divided by what another took in the same round, so that what slows
//! the machine slows both. Refuses to measure.
//! Invariant: the time in user mode is taken from the ticks of all rounds together, for one round has too few.

use anyhow::{Context, Result, ensure};

use crate::cpu::Cpu;
use crate::report::{Report, Table};
use crate::samples::{Samples, per};

/// What one server took, round by round.
#[derive(Debug)]
struct Entrant {
    name: &'static str,
    us: Vec<f64>,
    sum: Cpu,
}

/// The most that the time of one server may be of another's.
#[derive(Debug, Clone, Copy)]
struct Goal {
    who: &'static str,
    over: &'static str,
    most: f64,
}

/// One thing that every server was asked for.
#[derive(Debug)]
pub struct Comparison {
    what: String,
    unit: &'static str,
    entrants: Vec<Entrant>,
    against: Vec<&'static str>,
    goals: Vec<Goal>,
}

impl Comparison {
    /// `what` the servers of these names are asked for, the unit of what each answer takes, and those among them that
    /// the others are held against.
    ///
    /// ```
    /// use probes::comparison::Comparison;
    ///
    /// let mut asked = Comparison::of("GET /", "us a request", &["m0", "raw epoll"], &["raw epoll"]);
    /// asked.goal("m0", "raw epoll", 1.2);
    /// assert_eq!(asked.names(), ["m0", "raw epoll"]);
    /// ```
    pub fn of(
        what: impl Into<String>,
        unit: &'static str,
        names: &[&'static str],
        against: &[&'static str],
    ) -> Self {
        let entrant = |&name| Entrant {
            name,
            us: Vec::new(),
            sum: Cpu::default(),
        };
        Self {
            what: what.into(),
            unit,
            entrants: names.iter().map(entrant).collect(),
            against: against.to_vec(),
            goals: Vec::new(),
        }
    }

    /// The servers, in their order.
    pub fn names(&self) -> Vec<&'static str> {
        self.entrants.iter().map(|entrant| entrant.name).collect()
    }

    /// The median of `who` over `over` must be at most this.
    pub fn goal(&mut self, who: &'static str, over: &'static str, most: f64) {
        self.goals.push(Goal { who, over, most });
    }

    /// One round of the server at this place: what it used for so many answers.
    ///
    /// # Errors
    ///
    /// When there was no answer.
    ///
    /// # Panics
    ///
    /// When there is no server at this place.
    pub fn add(&mut self, at: usize, used: Cpu, answers: u64) -> Result<()> {
        let entrant = &mut self.entrants[at];
        entrant.us.push(per(used.total_ns, answers)? / 1e3);
        entrant.sum += used;
        Ok(())
    }

    /// Hands every figure to the report.
    ///
    /// # Errors
    ///
    /// When a server has fewer rounds than another, or there was no tick to divide by.
    pub fn tell(&self, report: &mut Report) -> Result<()> {
        for entrant in &self.entrants {
            let name = format!("{}, {}", self.what, entrant.name);
            let total = Samples::of(entrant.us.clone())?;
            let user = entrant
                .sum
                .user_share()
                .context("nothing was measured: not one tick")?;
            report.figure(format!("{name}: user"), self.unit, total.times(user)?);
            let system = total.times(1.0 - user)?;
            report.figure(format!("{name}: system"), self.unit, system);
            report.figure(name.clone(), self.unit, total);
            for against in &self.against {
                let Some(pairs) = self.over(entrant, against)? else {
                    continue;
                };
                let figure = report.figure(format!("{name}: over {against}"), "ratio", pairs);
                let goal = self
                    .goals
                    .iter()
                    .find(|goal| goal.who == entrant.name && goal.over == *against);
                if let Some(goal) = goal {
                    figure.goal(goal.most);
                }
            }
        }
        let mut columns = vec![
            (self.unit.to_owned(), String::new()),
            ("user".to_owned(), ": user".to_owned()),
            ("kernel".to_owned(), ": system".to_owned()),
        ];
        let over = |against| (format!("over {against}"), format!(": over {against}"));
        columns.extend(self.against.iter().map(over));
        report.table_of(Table {
            what: self.what.clone(),
            whos: self.names().into_iter().map(str::to_owned).collect(),
            columns,
        });
        Ok(())
    }

    /// A server over another, round by round; none where the other is itself or was not measured.
    fn over(&self, entrant: &Entrant, against: &str) -> Result<Option<Samples>> {
        let other = self.entrants.iter().find(|other| other.name == against);
        let Some(other) = other.filter(|other| other.name != entrant.name) else {
            return Ok(None);
        };
        ensure!(
            other.us.len() == entrant.us.len(),
            "{} has {} rounds, {against} has {}",
            entrant.name,
            entrant.us.len(),
            other.us.len()
        );
        let pairs = entrant.us.iter().zip(&other.us);
        Samples::of(pairs.map(|(own, other)| own / other).collect()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::Comparison;
    use crate::cpu::Cpu;
    use crate::machine::Machine;
    use crate::questions::named;
    use crate::report::Report;

    fn used(total_ns: u64, user_ticks: u64, system_ticks: u64) -> Cpu {
        Cpu {
            total_ns,
            user_ticks,
            system_ticks,
        }
    }

    fn report() -> Report {
        let machine = Machine {
            commit: "abc".into(),
            name: "a machine".into(),
            cores: 2,
        };
        Report::of(named("rps").expect("a probe"), machine)
    }

    /// Three rounds, of which the second was slow for both; the host takes a fifth more than the loop.
    fn asked() -> Comparison {
        let mut asked = Comparison::of("GET /", "us a request", &["m0", "raw"], &["raw"]);
        for slower in [1, 10, 1] {
            asked
                .add(0, used(12_000 * slower, 1, 3), 2)
                .expect("two answers");
            asked
                .add(1, used(10_000 * slower, 0, 4), 2)
                .expect("two answers");
        }
        asked
    }

    #[m0_spec::row(H39)]
    #[test]
    fn a_ratio_is_that_of_pairs_and_is_held_against_its_goal() {
        for (goal, kept) in [(1.2, true), (1.19, false)] {
            let mut asked = asked();
            asked.goal("m0", "raw", goal);
            let mut report = report();
            asked.tell(&mut report).expect("all was measured");
            let lines = report.lines();
            let of = |quantity: &str| {
                let line = lines.iter().find(|line| line["quantity"] == quantity);
                line.unwrap_or_else(|| panic!("no {quantity} in {lines:?}"))
            };
            let ratio = of("GET /, m0: over raw");
            assert_eq!(
                (&ratio["least"], &ratio["most"]),
                (&1.2.into(), &1.2.into())
            );
            assert_eq!(
                (&ratio["goal"], &ratio["kept"]),
                (&goal.into(), &kept.into())
            );
            assert_eq!(of("GET /, m0")["value"], 6.0);
            assert_eq!(of("GET /, m0: user")["value"], 1.5);
            assert_eq!(of("GET /, m0: system")["value"], 4.5);
            // Nothing is held against itself.
            assert_eq!(lines.len(), 7, "{lines:?}");
        }
    }

    #[m0_spec::row(H37)]
    #[test]
    fn no_answer_no_tick_and_a_round_too_few_are_errors() {
        assert!(asked().add(0, used(1, 1, 1), 0).is_err(), "no answer");
        let mut uneven = asked();
        uneven.add(0, used(1, 1, 1), 1).expect("an answer");
        assert!(uneven.tell(&mut report()).is_err(), "a round too few");
        let mut ticks = Comparison::of("GET /", "us a request", &["m0"], &[]);
        ticks.add(0, used(1, 0, 0), 1).expect("an answer");
        assert!(ticks.tell(&mut report()).is_err(), "no tick");
        let none = Comparison::of("GET /", "us a request", &["m0"], &[]);
        assert!(none.tell(&mut report()).is_err(), "no round");
    }
}
