//! A run that has every verdict once, with texts that each form must escape.

use std::collections::BTreeMap;

use sabotage::report::told::{Gate, SCHEMA, Told};
use sabotage::session::pace::Pace;
use sabotage::source::patch::Patch;
use sabotage::verdict::{Exit, Record, Verdict, exit_of};

/// All verdicts, in the order of their declaration.
pub(crate) const ALL: [Verdict; 14] = [
    Verdict::Skipped,
    Verdict::BrokenStale,
    Verdict::BrokenExpectation,
    Verdict::BrokenUncompilable,
    Verdict::BrokenInert,
    Verdict::Infra,
    Verdict::Timeout,
    Verdict::Flaky,
    Verdict::Caught,
    Verdict::CaughtElsewhere,
    Verdict::Missed,
    Verdict::KnownGap,
    Verdict::GapClosed,
    Verdict::Pending,
];

/// A record of a rule on `src/sum.rs` that replaces one operator.
pub(crate) fn record(rule: &str, verdict: Verdict, line: usize) -> Record {
    let ran = !verdict.is_broken() && !matches!(verdict, Verdict::Skipped | Verdict::Pending);
    Record {
        rule: rule.into(),
        promise: "A sum holds both of its parts, 100% & <always>.".into(),
        rows: vec!["A1".into(), "A2".into()],
        at: format!("sabotage/rules/sum.yaml:{}:7", line * 5),
        verdict,
        gate: ran.then(|| "unit".into()),
        check: ran.then(|| "sum::adds|both".into()),
        why: match verdict {
            Verdict::Caught => String::new(),
            _ => format!("why it is {}: \"one, two\"", verdict.word()),
        },
        message: (verdict == Verdict::Caught)
            .then(|| "assertion failed:\n\n  left: 1 < 2\n right: 3\r\n".into()),
        built: "together".into(),
        seconds: 0.25,
        cached: None,
        noticed: match verdict {
            Verdict::Caught => Some(vec!["unit: sum::adds|both".into(), "web: total".into()]),
            Verdict::Missed => Some(vec![]),
            _ => None,
        },
        patches: if verdict == Verdict::BrokenStale {
            vec![]
        } else {
            vec![patch(line)]
        },
    }
}

fn patch(line: usize) -> Patch {
    Patch {
        file: "src/sum.rs".into(),
        line,
        column: 11,
        end_line: line,
        end_column: 12,
        with: "-".into(),
        old: "    self.0 + other.0".into(),
        new: "    self.0 - other.0".into(),
    }
}

/// A run of these rules.
pub(crate) fn run(rules: Vec<Record>) -> Told {
    Told {
        pace: Some(Pace {
            rules: 3,
            jobs: 4,
            gates: 2.0,
            least: 0.5,
            wall: 0.6,
        }),
        schema: SCHEMA,
        exit: exit_of(rules.iter().map(|record| record.verdict)),
        tree: "0123456789abcdef".repeat(4),
        commit: None,
        seconds: 12.5,
        seconds_a_rule: BTreeMap::from([("alone".into(), 1.25), ("together".into(), 0.0625)]),
        selected: rules.len(),
        shard: None,
        gates: vec![],
        notes: vec!["gate unit: a process outlived its run".into()],
        rules,
    }
}

/// A rule a verdict.
pub(crate) fn every_verdict() -> Told {
    let one = |(index, verdict): (usize, &Verdict)| {
        let id = verdict.word().to_lowercase().replace([':', ' '], "-");
        record(&id.replace("--", "-"), *verdict, index + 1)
    };
    run(ALL.iter().enumerate().map(one).collect())
}

/// A run that could not begin.
pub(crate) fn red_gate() -> Told {
    Told {
        exit: Exit::Gate,
        gates: vec![Gate {
            gate: "unit".into(),
            is: "red".into(),
            why: "`sum::adds` fails on the clean tree:\nleft 1, right 2".into(),
        }],
        ..run(vec![])
    }
}
