//! Verdicts as SARIF 2.1.0, which forges and editors read.
//!
//! Owns the mapping: a verdict is a SARIF rule, each of our rules that needs an eye a result. What is declared
//! (a known gap, a skipped rule) is a suppressed result. Source: OASIS SARIF 2.1.0, sections 3.20, 3.27 and 3.35.

use serde_json::{Value, json};

use super::github::is_error;
use super::told::{Told, place, reason, severity, stands};
use crate::finding::At;
use crate::schema::read::GATES;
use crate::verdict::{Record, Verdict};

/// The verdicts that become results, and what each means.
const KINDS: [(Verdict, &str); 12] = [
    (
        Verdict::Missed,
        "A promise was broken and no check noticed.",
    ),
    (
        Verdict::CaughtElsewhere,
        "A promise was broken, and another check than the expected one noticed.",
    ),
    (
        Verdict::BrokenStale,
        "The rule's anchor does not match exactly once.",
    ),
    (
        Verdict::BrokenExpectation,
        "The rule expects what is not there, or what is not green without it.",
    ),
    (Verdict::BrokenUncompilable, "The rule does not compile."),
    (
        Verdict::BrokenInert,
        "The rule changes nothing that counts.",
    ),
    (Verdict::GapClosed, "A declared gap is caught now."),
    (
        Verdict::Infra,
        "The gate ended in a way that proves nothing.",
    ),
    (Verdict::Timeout, "The check passed its bound twice."),
    (Verdict::Flaky, "Runs of the check disagree."),
    (Verdict::Pending, "The rule was not reached."),
    (Verdict::KnownGap, "A declared gap is still open."),
];

/// The whole log.
pub fn log(told: &Told) -> Value {
    let mut rules: Vec<Value> = KINDS
        .iter()
        .map(|(verdict, meaning)| json!({"id": verdict, "shortDescription": {"text": meaning}}))
        .collect();
    rules.push(json!({"id": "gate", "shortDescription": {"text": "A gate is not green on the clean tree, so nothing can be said."}}));
    let mut records: Vec<&Record> = told
        .rules
        .iter()
        .filter(|record| !matches!(record.verdict, Verdict::Caught | Verdict::Skipped))
        .collect();
    records.sort_by_key(|record| severity(record.verdict));
    let gates = told.gates.iter().map(|gate| {
        json!({
            "ruleId": "gate", "level": "error",
            "message": {"text": format!("GATE {} {}: {}", gate.is, gate.gate, gate.why)},
            "locations": [location(&At::file(GATES.as_ref()))],
            "partialFingerprints": {"gate/v1": gate.gate},
        })
    });
    let results: Vec<Value> = gates.chain(records.into_iter().map(result)).collect();
    let notes: Vec<Value> = told
        .notes
        .iter()
        .map(|note| json!({"level": "note", "message": {"text": note}}))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "sabotage", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": told.gates.is_empty(), "exitCode": told.exit,
                "toolExecutionNotifications": notes,
            }],
            "results": results,
        }],
    })
}

fn result(record: &Record) -> Value {
    let declared = record.verdict == Verdict::KnownGap;
    let level = match record.verdict {
        verdict if is_error(verdict) => "error",
        _ if declared => "note",
        _ => "warning",
    };
    let (here, rule) = (place(record), stands(record));
    let mut result = json!({
        "ruleId": record.verdict, "level": level,
        "message": {"text": format!("{} {}: {}", record.verdict.word(), record.rule, reason(record))},
        "locations": [location(&here)],
        "partialFingerprints": {"rule/v1": record.rule},
    });
    if here != rule {
        let mut related = location(&rule);
        related["message"] = json!({"text": "the rule"});
        result["relatedLocations"] = json!([related]);
    }
    if declared {
        result["suppressions"] = json!([{"kind": "external", "justification": record.why}]);
    }
    result
}

fn location(at: &At) -> Value {
    json!({"physicalLocation": {
        "artifactLocation": {"uri": at.file},
        "region": {"startLine": at.line, "startColumn": at.column},
    }})
}
