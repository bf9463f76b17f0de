//! How near each measured quantity came to its bound, the nearest first.
//!
//! Owns the order and the two tables: lines for people, Markdown for the summary of a run on GitHub. Measures nothing.
//! Invariant: a bound that was broken stands before one that was kept, and of several rounds the worst is
//! shown, with how many there were.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::report::short;
use crate::run::Measure;
use crate::runner::Ran;

/// One quantity of one phase, as it was in its worst round.
struct Line<'a> {
    phase: &'a str,
    measure: &'a Measure,
    bound: f64,
    headroom: f64,
    rounds: usize,
}

impl Line<'_> {
    /// `at most 500`, or `at least 190` where more is better: then a value above the bound has headroom.
    fn wanted(&self) -> String {
        let more_is_better = (self.measure.value > self.bound) == (self.headroom > 0.0);
        let word = if more_is_better {
            "at least"
        } else {
            "at most"
        };
        format!("{word} {}", short(self.bound))
    }
}

/// Every bounded quantity, the least headroom first.
fn lines(all: &[Ran]) -> Vec<Line<'_>> {
    let mut lines: BTreeMap<(&str, &str), Line> = BTreeMap::new();
    for ran in all {
        for measure in &ran.outcome.measures {
            let (Some(bound), Some(headroom)) = (measure.bound, measure.headroom) else {
                continue;
            };
            let phase = ran.phase.name;
            let line = lines.entry((phase, &measure.quantity)).or_insert(Line {
                phase,
                measure,
                bound,
                headroom,
                rounds: 0,
            });
            line.rounds += 1;
            if headroom < line.headroom {
                (line.measure, line.bound, line.headroom) = (measure, bound, headroom);
            }
        }
    }
    let mut lines: Vec<Line> = lines.into_values().collect();
    lines.sort_by(|a, b| a.headroom.total_cmp(&b.headroom));
    lines
}

/// The `most` quantities with the least headroom, one line each; nothing when none has a bound.
pub fn table(all: &[Ran], most: usize) -> String {
    let lines = lines(all);
    if lines.is_empty() {
        return String::new();
    }
    let shown = most.min(lines.len());
    let mut text = format!(
        "headroom, the least first ({shown} of {} quantities)\n",
        lines.len()
    );
    for line in &lines[..shown] {
        let Measure {
            quantity,
            value,
            unit,
            ..
        } = line.measure;
        let (value, bound) = (short(*value), line.wanted());
        let _ = writeln!(
            text,
            "  {:>5.0} %  {:<40} {quantity} {value} {unit}, {bound}",
            line.headroom * 100.0,
            line.phase
        );
    }
    text
}

/// All of them as Markdown.
pub fn markdown(all: &[Ran]) -> String {
    let (passed, failed) = crate::report::totals(all);
    let mut text = format!("### Smokes: {passed} passed, {failed} failed\n\n");
    text.push_str(
        "| headroom | phase | quantity | value | bound | rounds |\n|---:|---|---|---:|---:|---:|\n",
    );
    for line in lines(all) {
        let Measure {
            quantity,
            value,
            unit,
            ..
        } = line.measure;
        let (value, bound) = (short(*value), line.wanted());
        let (phase, rounds) = (line.phase, line.rounds);
        let percent = line.headroom * 100.0;
        let quantity = quantity.replace('|', "\\|");
        let _ = writeln!(
            text,
            "| {percent:.0} % | {phase} | {quantity} | {value} {unit} | {bound} | {rounds} |"
        );
    }
    text + "\n"
}

/// Appends the Markdown to `file`, which others may have written to.
pub fn summarise(all: &[Ran], file: &Path) -> Result<()> {
    let open = File::options().create(true).append(true).open(file);
    let mut open = open.with_context(|| format!("cannot open {}", file.display()))?;
    open.write_all(markdown(all).as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::{markdown, summarise, table};
    use crate::outcome::Outcome;
    use crate::run::Measure;
    use crate::runner::Ran;

    fn ran(index: usize, round: usize, headrooms: &[(&str, Option<f64>)]) -> Ran {
        let measure = |(quantity, headroom): &(&str, Option<f64>)| Measure {
            quantity: (*quantity).into(),
            value: 100.0 * (1.0 - headroom.unwrap_or(0.0)),
            unit: "ms".into(),
            bound: headroom.map(|_| 100.0),
            headroom: *headroom,
        };
        Ran {
            phase: crate::suites::all()[index],
            round,
            outcome: Outcome {
                failure: None,
                witness: vec![],
                measures: headrooms.iter().map(measure).collect(),
                notes: vec![],
                seconds: 1.0,
            },
            dir: None,
            tails: String::new(),
        }
    }

    fn planted() -> [Ran; 3] {
        [
            ran(0, 1, &[("exit", Some(0.8)), ("beats", None)]),
            ran(0, 2, &[("exit", Some(0.05)), ("beats", None)]),
            ran(1, 1, &[("gap", Some(-0.2)), ("wait", Some(0.5))]),
        ]
    }

    #[m0_spec::row(H51)]
    #[test]
    fn the_least_headroom_comes_first_and_the_worst_round_is_shown() {
        let text = table(&planted(), 10);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "headroom, the least first (3 of 3 quantities)");
        for (line, parts) in lines[1..].iter().zip([
            ["  -20 %", "gap 120 ms, at most 100"],
            ["    5 %", "exit 95 ms, at most 100"],
            ["   50 %", "wait 50 ms, at most 100"],
        ]) {
            assert!(
                parts.iter().all(|part| line.contains(part)),
                "{line}: {parts:?}"
            );
        }
        assert_eq!((lines.len(), table(&planted(), 1).lines().count()), (4, 2));
        assert_eq!(table(&[ran(0, 1, &[("beats", None)])], 10), "");
        let mut least = ran(0, 1, &[("pause", Some(0.1))]);
        least.outcome.measures[0].value = 110.0;
        let text = table(&[least], 10);
        assert!(text.contains("pause 110 ms, at least 100"), "{text}");
    }

    #[m0_spec::row(H51)]
    #[test]
    fn the_summary_of_a_forge_holds_every_bounded_quantity_and_what_stood_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("summary.md");
        std::fs::write(&file, "# Before\n").expect("it is written");
        summarise(&planted(), &file).expect("it is appended");
        let text = std::fs::read_to_string(&file).expect("it is there");
        assert!(
            text.starts_with("# Before\n### Smokes: 3 passed, 0 failed\n"),
            "{text}"
        );
        assert!(text.ends_with(&markdown(&planted())), "{text}");
        let gap = text.find("| -20 % |").expect("the broken bound");
        let exit = text.find("| 5 % |").expect("the worst round");
        assert!(
            gap < exit && text.contains("| exit | 95 ms | at most 100 | 2 |"),
            "{text}"
        );
        assert!(!text.contains("beats"), "{text}");
    }
}
