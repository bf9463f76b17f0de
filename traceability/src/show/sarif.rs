//! Findings as SARIF 2.1.0, which forges and editors read.
//!
//! Owns the mapping: a code is a rule, a severity a level. Source: OASIS SARIF 2.1.0, sections 3.19 and 3.27.

use serde_json::{Value, json};

use crate::code::{Code, Severity};
use crate::judge::Judged;

/// The whole log.
pub fn log(judged: &Judged) -> Value {
    let rules = Code::ALL
        .iter()
        .map(|code| json!({"id": code.word(), "shortDescription": {"text": code.meaning()}}));
    let results = judged.found.iter().map(|(severity, fault)| {
        let at = &fault.finding.at;
        let level = match severity {
            Severity::Error | Severity::Unreadable => "error",
            Severity::Inconclusive | Severity::Warning => "warning",
            Severity::Off => "none",
        };
        json!({
            "ruleId": fault.code.word(), "level": level,
            "message": {"text": fault.finding.message},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": at.file},
                "region": {"startLine": at.line.max(1), "startColumn": at.column.max(1)},
            }}],
        })
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "trace", "rules": rules.collect::<Vec<_>>()}},
            "results": results.collect::<Vec<_>>(),
        }],
    })
}
