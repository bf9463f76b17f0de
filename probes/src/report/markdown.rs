//! A report as Markdown, for a README or a forge's summary.
//!
//! Owns the layout. Refuses figures of its own: each cell is a figure of the report, found by its quantity.
//! Invariant: the machine, the commit and the load stand above every table, and a crowded machine is named.

use std::fmt::Write as _;

use super::{Figure, Report, shown};
use crate::machine::Machine;

/// What several servers were asked for: a line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What they were asked for.
    pub what: String,
    /// The servers.
    pub whos: Vec<String>,
    /// Each column: its head, and what stands behind `what, who` in the quantity of its figures.
    pub columns: Vec<(String, String)>,
}

impl Report {
    /// Shows figures of this report as a table in its Markdown.
    ///
    /// # Panics
    ///
    /// When the report holds no figure that the table shows.
    pub fn table_of(&mut self, table: Table) {
        let shows = |who: &String| {
            let mut columns = table.columns.iter();
            columns.any(|(_, suffix)| self.cell_of(&table, who, suffix).is_some())
        };
        assert!(
            table.whos.iter().any(shows),
            "no figure of {table:?} was measured"
        );
        self.tables.push(table);
    }

    fn cell_of(&self, table: &Table, who: &str, suffix: &str) -> Option<&Figure> {
        let quantity = format!("{}, {who}{suffix}", table.what);
        let mut figures = self.figures.iter();
        figures.find(|figure| figure.quantity == quantity)
    }

    /// The report as Markdown: what is compared as a table each, else every figure; the goals; the notes.
    pub fn markdown(&self) -> String {
        let Machine { name, cores, .. } = &self.machine;
        let commit = self.machine.short_commit();
        let mut text = format!("### `{}`: {}\n\n", self.question.name, self.question.asks);
        let load = if self.load.is_nan() {
            "unknown".to_owned()
        } else {
            format!("{:.2}", self.load)
        };
        let _ = writeln!(text, "Commit `{commit}`, {name}, load {load}; medians.\n");
        if self.is_crowded() {
            let _ = writeln!(
                text,
                "**Crowded**: load {load} on {cores} cores. Processor time is usable; times by the clock are the machine's, not the server's.\n"
            );
        }
        for table in &self.tables {
            self.write_table(&mut text, table);
        }
        if self.tables.is_empty() {
            self.write_figures(&mut text);
        }
        let goals = self.figures.iter().filter_map(|figure| {
            let (goal, kept) = (figure.goal?, figure.kept()?);
            let kept = if kept { "kept" } else { "**missed**" };
            let value = shown(figure.samples.median());
            let (quantity, unit) = (cell(&figure.quantity), figure.unit);
            Some(format!(
                "- {quantity}: {value} {unit}, goal at most {}: {kept}\n",
                shown(goal)
            ))
        });
        let goals: String = goals.collect();
        if !goals.is_empty() {
            let _ = writeln!(text, "{goals}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}\n");
        }
        text
    }

    fn write_table(&self, text: &mut String, table: &Table) {
        let of = |who, suffix| self.cell_of(table, who, suffix);
        let first = table.whos.iter().zip(table.columns.first());
        let rounds = first.filter_map(|(who, (_, suffix))| of(who, suffix));
        let rounds = rounds
            .map(|figure| figure.samples.count())
            .max()
            .unwrap_or(0);
        let rounds = match rounds {
            1 => "1 round".to_owned(),
            _ => format!("{rounds} rounds"),
        };
        let _ = write!(text, "| {}, {rounds} |", cell(&table.what));
        for (head, _) in &table.columns {
            let _ = write!(text, " {} |", cell(head));
        }
        let _ = writeln!(text, "\n| --- |{}", " ---: |".repeat(table.columns.len()));
        for who in &table.whos {
            let _ = write!(text, "| {} |", cell(who));
            for (_, suffix) in &table.columns {
                let value = of(who, suffix).map(|figure| shown(figure.samples.median()));
                let _ = write!(text, " {} |", value.as_deref().unwrap_or("-"));
            }
            text.push('\n');
        }
        text.push('\n');
    }

    fn write_figures(&self, text: &mut String) {
        text.push_str("| quantity | median | least | most | unit | rounds |\n");
        text.push_str("| --- | ---: | ---: | ---: | --- | ---: |\n");
        for figure in &self.figures {
            let samples = &figure.samples;
            let values = [samples.median(), samples.least(), samples.most()];
            let [median, least, most] = values.map(shown);
            let quantity = cell(&figure.quantity);
            let (unit, rounds) = (figure.unit, samples.count());
            let _ = writeln!(
                text,
                "| {quantity} | {median} | {least} | {most} | {unit} | {rounds} |"
            );
        }
        text.push('\n');
    }
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::Table;
    use crate::machine::Machine;
    use crate::questions::named;
    use crate::report::Report;
    use crate::samples::Samples;

    fn report(load: f64) -> Report {
        let machine = Machine {
            commit: "abc".into(),
            name: "a machine".into(),
            cores: 2,
        };
        let mut report = Report::of(named("rps").expect("a probe"), machine);
        report.load = load;
        let three = |value: f64| Samples::of(vec![9e9, value, 0.0]).expect("numbers");
        report.figure("GET /, m0", "us a request", three(6.0));
        let ratio = report.figure("GET /, m0: over raw", "ratio", three(1.25));
        ratio.goal(1.2);
        report.figure("GET /, raw", "us a request", three(4.8));
        report
    }

    fn table() -> Table {
        Table {
            what: "GET /".into(),
            whos: vec!["m0".into(), "raw".into()],
            columns: vec![
                ("us a request".into(), String::new()),
                ("over raw".into(), ": over raw".into()),
            ],
        }
    }

    #[m0_spec::row(H56)]
    #[test]
    fn a_comparison_is_a_line_a_server_with_the_medians_and_what_they_were_measured_on() {
        let mut report = report(0.5);
        report.table_of(table());
        report.note("A note.");
        let wanted = "Commit `abc`, a machine, load 0.50; medians.\n\n\
            | GET /, 3 rounds | us a request | over raw |\n| --- | ---: | ---: |\n\
            | m0 | 6.000 | 1.250 |\n| raw | 4.800 | - |\n\n\
            - GET /, m0: over raw: 1.250 ratio, goal at most 1.200: **missed**\n\nA note.\n\n";
        let text = report.markdown();
        let (head, rest) = text.split_once("\n\n").expect("a heading");
        assert!(head.starts_with("### `rps`: how many "), "{head}");
        assert_eq!(rest, wanted);
    }

    #[m0_spec::row(H56)]
    #[test]
    fn a_crowded_machine_is_named_above_the_figures() {
        let mut report = report(7.0);
        report.table_of(table());
        let text = report.markdown();
        let crowded = text
            .find("**Crowded**: load 7.00 on 2 cores")
            .expect("named");
        assert!(crowded < text.find("| m0 |").expect("the table"), "{text}");
    }

    #[m0_spec::row(H56)]
    #[test]
    fn without_a_comparison_every_figure_is_shown() {
        let mut report = report(0.5);
        report.figure("a|b", "ms", Samples::of(vec![2.0]).expect("a number"));
        let text = report.markdown();
        assert!(
            text.contains("| a\\|b | 2.000 | 2.000 | 2.000 | ms | 1 |\n"),
            "{text}"
        );
        assert_eq!(text.matches("\n| ").count(), 2 + 4, "{text}");
    }

    #[m0_spec::row(H56)]
    #[test]
    #[should_panic(expected = "was measured")]
    fn a_table_without_a_figure_is_a_mistake() {
        let mut table = table();
        table.what = "GET /json".into();
        report(0.5).table_of(table);
    }
}
