//! Lines for people: a few for each rule that needs an eye, and one for the whole run.
//!
//! Owns the words and the colours. Invariant: the last line says how many rules were caught, missed and
//! broken, and what a rule cost.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::told::Told;
use crate::verdict::{Record, Verdict};

fn paint(verdict: Verdict, text: &str) -> String {
    let colour = match verdict {
        Verdict::Caught => AnsiColor::Green,
        Verdict::Skipped | Verdict::KnownGap | Verdict::Pending => AnsiColor::Cyan,
        Verdict::Infra | Verdict::Timeout | Verdict::Flaky | Verdict::GapClosed => {
            AnsiColor::Yellow
        }
        _ => AnsiColor::Red,
    };
    let style = Style::new().fg_color(Some(colour.into())).bold();
    format!("{style}{text}{style:#}")
}

/// One rule: verdict, name, promise, reason, message.
pub fn record(record: &Record) -> String {
    let mut text = format!(
        "{} {}\n",
        paint(record.verdict, record.verdict.word()),
        record.rule
    );
    let rows = if record.rows.is_empty() {
        String::new()
    } else {
        format!(" [{}]", record.rows.join(" "))
    };
    let _ = writeln!(text, "    {}{rows}", record.promise);
    let _ = write!(text, "    rule at {}", record.at);
    if let (Some(gate), Some(check)) = (&record.gate, &record.check) {
        let _ = write!(text, "\n    gate {gate}, check {check}");
    }
    if !record.why.is_empty() {
        let _ = write!(text, "\n    {}", record.why.replace('\n', "\n    "));
    }
    if let Some(message) = &record.message {
        for line in message
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(6)
        {
            let _ = write!(text, "\n    | {line}");
        }
    }
    text
}

/// With `--matrix`: a line for each rule, with the checks that notice it.
pub fn matrix(told: &Told) -> String {
    let mut text = String::new();
    for record in &told.rules {
        if let Some(noticed) = &record.noticed {
            let checks = noticed.join(", ");
            let _ = writeln!(
                text,
                "{}: noticed by {}{}{checks}",
                record.rule,
                noticed.len(),
                if noticed.is_empty() { "" } else { ": " }
            );
        }
    }
    text
}

/// The closing lines.
pub fn closing(told: &Told) -> String {
    let mut text = String::new();
    for bad in &told.gates {
        let _ = writeln!(
            text,
            "{} {}: {}",
            paint(Verdict::Missed, &format!("GATE {}", bad.is)),
            bad.gate,
            bad.why
        );
    }
    if !told.gates.is_empty() {
        let _ = write!(
            text,
            "no verdicts: the gates must be green on the clean tree first"
        );
        return text;
    }
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    for record in &told.rules {
        *counts.entry(record.verdict).or_default() += 1;
    }
    let missed: usize = told
        .rules
        .iter()
        .filter(|record| record.verdict.is_broken() || record.verdict == Verdict::Missed)
        .count();
    let caught = told
        .rules
        .iter()
        .filter(|record| matches!(record.verdict, Verdict::Caught | Verdict::CaughtElsewhere))
        .count();
    if let Some(pace) = &told.pace {
        let _ = writeln!(
            text,
            "one build for {} rules: gates {:.2} s \u{f7} {} jobs \u{2265} {:.2} s, took {:.2} s ({:.2} \u{d7})",
            pace.rules,
            pace.gates,
            pace.jobs,
            pace.least,
            pace.wall,
            pace.ratio()
        );
    }
    let _ = write!(
        text,
        "{} rules: {caught} caught, {missed} missed",
        told.rules.len()
    );
    let cached = told
        .rules
        .iter()
        .filter(|record| record.cached.is_some())
        .count();
    if cached > 0 {
        let _ = write!(text, ", {cached} cached");
    }
    for (verdict, count) in &counts {
        if !matches!(verdict, Verdict::Caught | Verdict::Missed) {
            let _ = write!(text, ", {count} {}", verdict.word());
        }
    }
    let _ = write!(text, "; {:.1} s", told.seconds);
    for (how, seconds) in &told.seconds_a_rule {
        let _ = write!(text, ", {seconds:.2} s a rule built {how}");
    }
    let _ = write!(text, "; exit {}", told.exit.code());
    text
}
