//! The figures of one probe: a table for people, JSON lines for machines, Markdown for pages.
//!
//! Owns what stands beside each figure: its unit, its goal, its rounds, the commit, the machine and its load.
//! Refuses to measure. Invariant: all forms hold the same figures, and a report without a figure is an error.

mod markdown;

use std::fmt::Write as _;

pub use markdown::Table;

use anstyle::{AnsiColor, Style};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::machine::{self, Machine};
use crate::questions::Question;
use crate::samples::Samples;

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// One measured quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    quantity: String,
    samples: Samples,
    unit: &'static str,
    goal: Option<f64>,
    /// Whether other work on the machine changes it: times by the clock do, processor time hardly.
    swayed: bool,
}

impl Figure {
    /// The median must be at most this.
    pub fn goal(&mut self, most: f64) -> &mut Self {
        self.goal = Some(most);
        self
    }

    /// Other work on the machine changes this figure.
    pub fn swayed(&mut self) -> &mut Self {
        self.swayed = true;
        self
    }

    /// Whether the goal is met; none without a goal.
    fn kept(&self) -> Option<bool> {
        self.goal.map(|goal| self.samples.median() <= goal)
    }
}

/// What one probe found.
#[derive(Debug)]
pub struct Report {
    question: &'static Question,
    machine: Machine,
    load: f64,
    figures: Vec<Figure>,
    notes: Vec<String>,
    tables: Vec<Table>,
}

impl Report {
    /// An empty report; the load of the machine is taken now, before the probe adds its own.
    pub fn of(question: &'static Question, machine: Machine) -> Self {
        let load = machine::load_average().unwrap_or(f64::NAN);
        Self {
            question,
            machine,
            load,
            figures: Vec::new(),
            notes: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Adds a figure, whose value is the median of its samples.
    pub fn figure(
        &mut self,
        quantity: impl Into<String>,
        unit: &'static str,
        samples: Samples,
    ) -> &mut Figure {
        let quantity = quantity.into();
        self.figures.push(Figure {
            quantity,
            samples,
            unit,
            goal: None,
            swayed: false,
        });
        self.figures.last_mut().expect("one was pushed")
    }

    /// Adds a line of text to the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Whether more was runnable than there are processors, so that times by the clock are the machine's.
    pub fn is_crowded(&self) -> bool {
        self.load > self.machine.cores as f64
    }

    /// The first goal that is missed, in words; none when every goal is met.
    pub fn missed(&self) -> Option<String> {
        let missed = self
            .figures
            .iter()
            .find(|figure| figure.kept() == Some(false))?;
        let (value, goal) = (missed.samples.median(), missed.goal?);
        Some(format!(
            "{} is {} {}, the goal is {}",
            missed.quantity,
            shown(value),
            missed.unit,
            shown(goal)
        ))
    }

    /// An error when nothing was measured.
    pub fn ensure_measured(&self) -> Result<()> {
        ensure!(
            !self.figures.is_empty(),
            "nothing was measured: {} has no figure",
            self.question.name
        );
        Ok(())
    }

    /// One JSON object a figure.
    pub fn lines(&self) -> Vec<Value> {
        let rows: Vec<&str> = self.question.rows.iter().map(|row| row.id).collect();
        let line = |figure: &Figure| {
            let mut line = json!({
                "probe": self.question.name,
                "quantity": figure.quantity,
                "value": number(figure.samples.median()),
                "least": number(figure.samples.least()),
                "most": number(figure.samples.most()),
                "unit": figure.unit,
                "rounds": figure.samples.count(),
                "rows": rows,
                "commit": self.machine.commit,
                "machine": self.machine.name,
                "load": number(self.load),
            });
            if let (Some(goal), Some(kept)) = (figure.goal, figure.kept()) {
                line["goal"] = number(goal);
                line["kept"] = kept.into();
            }
            line
        };
        self.figures.iter().map(line).collect()
    }

    /// The table, with colour; print it with `anstream`.
    pub fn table(&self) -> String {
        let width = |text: &str| text.chars().count();
        let longest = self
            .figures
            .iter()
            .map(|figure| width(&figure.quantity))
            .max();
        let longest = longest.unwrap_or(0).max("quantity".len());
        let rows: Vec<&str> = self.question.rows.iter().map(|row| row.id).collect();
        let mut text = format!(
            "{BOLD}{}{BOLD:#}: {}\n",
            self.question.name, self.question.asks
        );
        let rows = if rows.is_empty() {
            "none".to_owned()
        } else {
            rows.join(", ")
        };
        let load = if self.load.is_nan() {
            "unknown".to_owned()
        } else {
            format!("{:.2}", self.load)
        };
        let Machine { name, cores, .. } = &self.machine;
        let commit = self.machine.short_commit();
        let _ = writeln!(text, "rows {rows} · commit {commit} · {name} · load {load}");
        let head = ["median", "least", "most"];
        let _ = writeln!(
            text,
            "  {:longest$}  {:>10} {:>10} {:>10}  {:14} {:>6}  goal",
            "quantity", head[0], head[1], head[2], "unit", "rounds"
        );
        for figure in &self.figures {
            let values = [
                figure.samples.median(),
                figure.samples.least(),
                figure.samples.most(),
            ];
            let [median, least, most] = values.map(shown);
            let pad = " ".repeat(longest - width(&figure.quantity));
            let (quantity, unit) = (&figure.quantity, figure.unit);
            let (rounds, goal) = (figure.samples.count(), self.goal(figure));
            let _ = writeln!(
                text,
                "  {quantity}{pad}  {median:>10} {least:>10} {most:>10}  {unit:14} {rounds:>6}  {goal}"
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        if self.is_crowded() {
            let _ = writeln!(
                text,
                "  {BAD}crowded{BAD:#}: load {load} on {cores} cores. Processor time is usable; times by the \
                 clock and splits of bursts are the machine's, not the server's."
            );
        }
        text
    }

    fn goal(&self, figure: &Figure) -> String {
        match (figure.goal, figure.kept()) {
            (Some(goal), Some(true)) => format!("<= {} {GOOD}kept{GOOD:#}", shown(goal)),
            (Some(goal), _) if figure.swayed && self.is_crowded() => {
                format!("<= {} {BAD}missed{BAD:#} (crowded)", shown(goal))
            }
            (Some(goal), _) => format!("<= {} {BAD}missed{BAD:#}", shown(goal)),
            (None, _) => "-".to_owned(),
        }
    }
}

/// What came of a probe as one JSON object: a goal that was missed, or why nothing was measured, is its failure.
pub fn verdict(question: &Question, machine: &Machine, failure: Option<&str>) -> Value {
    let rows: Vec<&str> = question.rows.iter().map(|row| row.id).collect();
    json!({
        "event": "verdict",
        "test": format!("probe::{}", question.name),
        "passed": failure.is_none(),
        "failure": failure,
        "rows": rows,
        "commit": machine.commit,
    })
}

/// JSON has no infinity; it is told by its name.
fn number(value: f64) -> Value {
    if value.is_finite() {
        // Six digits behind the point are more than any figure here carries.
        return json!((value * 1e6).round() / 1e6);
    }
    if value.is_nan() {
        Value::Null
    } else {
        "infinite".into()
    }
}

fn shown(value: f64) -> String {
    match value.abs() {
        size if size.is_infinite() => "infinite".to_owned(),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, verdict};
    use crate::machine::Machine;
    use crate::questions::named;
    use crate::samples::Samples;

    fn report(load: f64) -> Report {
        let machine = Machine {
            commit: "abc".into(),
            name: "a machine".into(),
            cores: 2,
        };
        let question = named("drain").expect("it is a probe");
        let mut report = Report::of(question, machine);
        report.load = load;
        report
    }

    fn samples(values: &[f64]) -> Samples {
        Samples::of(values.to_vec()).expect("they are numbers")
    }

    #[m0_spec::row(H39)]
    #[test]
    fn the_lines_carry_what_a_figure_was_measured_on() {
        let mut report = report(0.5);
        report
            .figure("time", "ms", samples(&[3.0, 1.0, 2.0]))
            .goal(100.0);
        report.figure("skew", "ratio", samples(&[f64::INFINITY]));
        let lines = report.lines();
        let wanted = serde_json::json!({
            "probe": "drain", "quantity": "time", "value": 2.0, "least": 1.0, "most": 3.0, "unit": "ms",
            "rounds": 3, "rows": ["E87"], "commit": "abc", "machine": "a machine", "load": 0.5,
            "goal": 100.0, "kept": true,
        });
        assert_eq!(lines[0], wanted);
        assert_eq!(
            (&lines[1]["value"], &lines[1]["goal"]),
            (&"infinite".into(), &().into())
        );
        assert_eq!(lines.len(), 2);
        let table = report.table();
        for word in [
            "2.000",
            "infinite",
            "abc",
            "a machine",
            "load 0.50",
            "E87",
            "<= 100.0",
        ] {
            assert!(table.contains(word), "{word} is not in {table}");
        }
    }

    #[m0_spec::row(H37)]
    #[test]
    fn a_report_without_a_figure_is_an_error() {
        assert!(report(0.0).ensure_measured().is_err());
        let mut one = report(0.0);
        one.figure("time", "ms", samples(&[1.0]));
        assert!(one.ensure_measured().is_ok());
    }

    #[m0_spec::row(H37)]
    #[test]
    fn a_verdict_says_why_nothing_was_measured() {
        let report = report(0.0);
        let said = |failure| verdict(report.question, &report.machine, failure);
        let failed = serde_json::json!({
            "event": "verdict", "test": "probe::drain", "passed": false, "failure": "no server", "rows": ["E87"],
            "commit": "abc",
        });
        assert_eq!(said(Some("no server")), failed);
        assert_eq!(said(None)["passed"], true);
    }

    #[m0_spec::row(H39, E87)]
    #[test]
    fn the_median_is_held_against_the_goal_and_a_crowded_machine_is_named() {
        let mut quiet = report(1.0);
        quiet
            .figure("time", "ms", samples(&[90.0, 99.0, 300.0]))
            .goal(100.0)
            .swayed();
        assert!(quiet.missed().is_none() && !quiet.is_crowded());
        assert!(!quiet.table().contains("crowded"), "{}", quiet.table());
        let mut crowded = report(7.0);
        crowded
            .figure("time", "ms", samples(&[90.0, 101.0, 300.0]))
            .goal(100.0)
            .swayed();
        let missed = crowded.missed().unwrap_or_default();
        assert_eq!(missed, "time is 101.0 ms, the goal is 100.0");
        assert!(crowded.is_crowded());
        assert!(
            crowded.table().contains("load 7.00 on 2 cores"),
            "{}",
            crowded.table()
        );
        assert!(crowded.table().contains("(crowded)"), "{}", crowded.table());
    }
}
