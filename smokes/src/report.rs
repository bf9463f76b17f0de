//! How results are shown: lines for people, JSON lines, TAP and JUnit for programs.
//!
//! Owns the formats; decides nothing. All of them are made from the same list, so they agree.
//! Invariant: the text for people closes with `N passed, N failed` alone on its line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::run::Measure;
use crate::runner::Ran;

/// Which tree the results belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Commit, or `unknown` outside a repository.
    pub commit: String,
    /// Hash of the committed tree.
    pub tree: String,
    /// Whether files differ from the commit.
    pub dirty: bool,
    /// `rustc --version`.
    pub toolchain: String,
}

impl Tree {
    /// Asks git and rustc about `dir`.
    pub fn of(dir: &Path) -> Self {
        let ask = |program: &str, arguments: &[&str]| {
            Command::new(program)
                .args(arguments)
                .current_dir(dir)
                .output()
                .ok()
                .filter(|output| output.status.success())
                .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        Self {
            commit: ask("git", &["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into()),
            tree: ask("git", &["rev-parse", "HEAD^{tree}"]).unwrap_or_else(|| "unknown".into()),
            dirty: ask("git", &["status", "--porcelain"]).is_none_or(|text| !text.is_empty()),
            toolchain: ask("rustc", &["--version"]).unwrap_or_else(|| "unknown".into()),
        }
    }
}

/// How many runs passed and failed.
pub fn totals(all: &[Ran]) -> (usize, usize) {
    let passed = all.iter().filter(|ran| ran.outcome.passed()).count();
    (passed, all.len() - passed)
}

/// One phase for people: verdict, name, time, rows, figures; on failure everything that helps.
pub fn text(ran: &Ran) -> String {
    let verdict = if ran.outcome.passed() {
        "ok    "
    } else {
        "FAILED"
    };
    let rows: Vec<&str> = ran.phase.rows.iter().map(|row| row.id).collect();
    let mut text = format!(
        "{verdict} {:<44} {:>7.2} s  [{}]\n",
        ran.phase.name,
        ran.outcome.seconds,
        rows.join(" ")
    );
    let seen: Vec<String> = ran
        .outcome
        .witness
        .iter()
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    if !seen.is_empty() {
        let _ = writeln!(text, "         saw {}", seen.join(", "));
    }
    for measure in &ran.outcome.measures {
        let _ = writeln!(text, "         {}", figure(measure));
    }
    for note in &ran.outcome.notes {
        let _ = writeln!(text, "         note: {note}");
    }
    if let Some(failure) = &ran.outcome.failure {
        for row in ran.phase.rows {
            let _ = writeln!(text, "         promised {}: {}", row.id, row.title);
        }
        let _ = writeln!(text, "         {}", failure.replace('\n', "\n         "));
        if let Some(dir) = &ran.dir {
            let _ = writeln!(text, "         logs kept in {}", dir.display());
        }
        for line in ran.tails.lines() {
            let _ = writeln!(text, "         {line}");
        }
    }
    text
}

fn figure(measure: &Measure) -> String {
    let mut text = format!(
        "{} {} {}",
        measure.quantity,
        short(measure.value),
        measure.unit
    );
    if let (Some(bound), Some(headroom)) = (measure.bound, measure.headroom) {
        let _ = write!(
            text,
            " (bound {}, headroom {:.0} %)",
            short(bound),
            headroom * 100.0
        );
    }
    text
}

/// A figure with as many places as it needs.
pub(crate) fn short(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// The spread of times and figures over several rounds.
pub fn spread(all: &[Ran]) -> String {
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut passed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut figures: BTreeMap<(&str, &str), Vec<&Measure>> = BTreeMap::new();
    for ran in all {
        times
            .entry(ran.phase.name)
            .or_default()
            .push(ran.outcome.seconds);
        *passed.entry(ran.phase.name).or_default() += usize::from(ran.outcome.passed());
        for measure in &ran.outcome.measures {
            figures
                .entry((ran.phase.name, &measure.quantity))
                .or_default()
                .push(measure);
        }
    }
    let mut text = String::from("spread over all rounds: least, median, most\n");
    for (name, seconds) in &times {
        let _ = writeln!(
            text,
            "  {name:<44} {}/{} passed, {} s",
            passed.get(name).copied().unwrap_or_default(),
            seconds.len(),
            three(seconds)
        );
        for ((_, quantity), measures) in figures.iter().filter(|((phase, _), _)| phase == name) {
            let values: Vec<f64> = measures.iter().map(|measure| measure.value).collect();
            let unit = measures.first().map_or("", |measure| measure.unit.as_str());
            let _ = write!(text, "      {quantity}: {} {unit}", three(&values));
            let least = measures
                .iter()
                .filter_map(|measure| measure.headroom)
                .reduce(f64::min);
            let _ = match least {
                Some(least) => writeln!(text, ", least headroom {:.0} %", least * 100.0),
                None => writeln!(text),
            };
        }
    }
    text
}

fn three(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().map_or_else(String::new, short);
    format!(
        "{} / {} / {}",
        at(0),
        at(sorted.len() / 2),
        at(sorted.len().saturating_sub(1))
    )
}

/// JSON lines: one verdict a run, one line a measured quantity.
pub fn json_lines(all: &[Ran], tree: &Tree) -> String {
    let mut text = String::new();
    for ran in all {
        let rows: Vec<&str> = ran.phase.rows.iter().map(|row| row.id).collect();
        let verdict = json!({
            "event": "verdict", "test": format!("smoke::{}", ran.phase.name),
            "phase": ran.phase.name, "round": ran.round, "rows": rows,
            "passed": ran.outcome.passed(), "failure": ran.outcome.failure,
            "file": ran.phase.place.file(), "line": ran.phase.place.line(),
            "seconds": ran.outcome.seconds, "commit": tree.commit, "tree": tree.tree,
            "dirty": tree.dirty, "toolchain": tree.toolchain,
        });
        let _ = writeln!(text, "{verdict}");
        for measure in &ran.outcome.measures {
            let line: Value = json!({
                "event": "measured", "phase": ran.phase.name, "round": ran.round,
                "quantity": measure.quantity, "value": measure.value, "unit": measure.unit,
                "bound": measure.bound, "headroom": measure.headroom, "commit": tree.commit,
            });
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// TAP version 14.
pub fn tap(all: &[Ran]) -> String {
    let mut text = format!("TAP version 14\n1..{}\n", all.len());
    for (index, ran) in all.iter().enumerate() {
        let verdict = if ran.outcome.passed() { "ok" } else { "not ok" };
        let _ = writeln!(text, "{verdict} {} - smoke::{}", index + 1, ran.phase.name);
        if let Some(failure) = &ran.outcome.failure {
            let _ = writeln!(text, "  ---\n  message: {}\n  ...", json!(failure));
        }
    }
    text
}

/// JUnit XML: one test case a phase, failed when any of its rounds failed.
pub fn junit(all: &[Ran], tree: &Tree) -> String {
    let mut cases: BTreeMap<&str, (f64, Option<&str>)> = BTreeMap::new();
    for ran in all {
        let case = cases.entry(ran.phase.name).or_insert((0.0, None));
        case.0 += ran.outcome.seconds;
        case.1 = case.1.or(ran.outcome.failure.as_deref());
    }
    let failures = cases
        .values()
        .filter(|(_, failure)| failure.is_some())
        .count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"smokes\" tests=\"{0}\" failures=\"{failures}\">\n\
         <testsuite name=\"smokes\" tests=\"{0}\" failures=\"{failures}\">\n\
         <properties><property name=\"commit\" value=\"{1}\"/><property name=\"tree\" value=\"{2}\"/>\
         <property name=\"dirty\" value=\"{3}\"/></properties>\n",
        cases.len(),
        escape(&tree.commit),
        escape(&tree.tree),
        tree.dirty
    );
    for (name, (seconds, failure)) in cases {
        let _ = write!(
            text,
            "<testcase classname=\"smokes\" name=\"smoke::{}\" time=\"{seconds:.3}\"",
            escape(name)
        );
        let _ = match failure {
            None => writeln!(text, "/>"),
            Some(why) => {
                writeln!(text, "><failure message=\"{}\"/></testcase>", escape(why))
            }
        };
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Text inside an XML attribute; control characters that XML 1.0 has no place for become `?`.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c if c.is_control() && c != '\t' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn ran(index: usize, failure: Option<&str>) -> Ran {
        let measure = Measure {
            quantity: "exit".into(),
            value: 100.0,
            unit: "ms".into(),
            bound: Some(500.0),
            headroom: Some(0.8),
        };
        Ran {
            phase: crate::suites::all()[index],
            round: 1,
            outcome: Outcome {
                failure: failure.map(str::to_owned),
                witness: vec![("beats".into(), 3)],
                measures: vec![measure],
                notes: vec![],
                seconds: 1.25,
            },
            dir: None,
            tails: "last words".into(),
        }
    }

    fn tree() -> Tree {
        Tree {
            commit: "c0".into(),
            tree: "t0".into(),
            dirty: false,
            toolchain: "r".into(),
        }
    }

    #[m0_spec::row(H24, T29)]
    #[test]
    fn json_tap_and_junit_agree() {
        let all = [ran(0, None), ran(1, Some("a <b> & \"c\"\nd"))];
        let lines: Vec<Value> = json_lines(&all, &tree())
            .lines()
            .map(|line| serde_json::from_str(line).expect("a JSON line"))
            .collect();
        let verdicts: Vec<_> = lines
            .iter()
            .filter(|line| line["event"] == "verdict")
            .collect();
        let tap = tap(&all);
        let junit = junit(&all, &tree());
        for verdict in &verdicts {
            let test = verdict["test"].as_str().expect("a name");
            let passed = verdict["passed"] == true;
            let tap_line = tap
                .lines()
                .find(|line| line.ends_with(test))
                .expect("in the TAP");
            assert_eq!(tap_line.starts_with("ok"), passed);
            let case = junit
                .lines()
                .find(|line| line.contains(&format!("\"{test}\"")))
                .expect("in JUnit");
            assert_eq!(case.contains("<failure"), !passed);
        }
        assert_eq!((verdicts.len(), totals(&all)), (2, (1, 1)));
        for (verdict, ran) in verdicts.iter().zip(&all) {
            let line = verdict["line"].as_u64().expect("a line");
            let file = verdict["file"].as_str().expect("a file");
            assert_eq!(
                (file, line),
                (ran.phase.place.file(), ran.phase.place.line().into())
            );
            assert!(file.starts_with("smokes/src/suites/"), "{file}");
        }
        assert!(
            junit.contains("a &lt;b&gt; &amp; &quot;c&quot;&#10;d"),
            "{junit}"
        );
    }

    #[m0_spec::row(H25)]
    #[test]
    fn a_measured_quantity_is_a_line_with_bound_headroom_and_commit() {
        let text = json_lines(&[ran(0, None)], &tree());
        let line: Value = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"))
            .find(|line| line["event"] == "measured")
            .expect("one");
        assert_eq!(
            (&line["bound"], &line["headroom"]),
            (&json!(500.0), &json!(0.8))
        );
        assert_eq!(
            (&line["commit"], &line["unit"]),
            (&json!("c0"), &json!("ms"))
        );
    }

    #[m0_spec::row(H24)]
    #[test]
    fn a_failure_shows_promise_reason_and_last_words() {
        let text = text(&ran(0, Some("it broke")));
        for part in [
            "FAILED",
            "promised",
            "it broke",
            "last words",
            "exit 100 ms (bound 500",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[m0_spec::row(H24)]
    #[test]
    fn the_spread_shows_least_median_and_most() {
        let mut all = [ran(0, None), ran(0, None), ran(0, Some("no"))];
        for (index, ran) in all.iter_mut().enumerate() {
            ran.outcome.seconds = [3.0, 1.0, 2.0][index];
        }
        let text = spread(&all);
        assert!(text.contains("2/3 passed, 1 / 2 / 3 s"), "{text}");
        assert!(text.contains("least headroom 80 %"), "{text}");
    }
}
