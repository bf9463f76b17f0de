//! Results as lines: JSON objects, or text that matches a pattern.
//!
//! Owns neither the names nor the patterns: the gate gives them.

use regex::Regex;
use serde_json::Value;

use super::{Checks, Status, add};
use crate::schema::gate::{Fields, Patterns};

/// One JSON object a line; an object without the check's name or verdict is about something else.
pub(super) fn json(text: &str, fields: &Fields) -> Result<Checks, String> {
    let mut checks = Checks::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let value: Value = serde_json::from_str(line)
            .map_err(|error| format!("line {} of the results: {error}", index + 1))?;
        let name = value.get(&fields.check).and_then(Value::as_str);
        let (Some(name), Some(verdict)) = (name, value.get(&fields.passed)) else {
            continue;
        };
        let passed = match verdict {
            Value::Bool(passed) => Some(*passed),
            Value::String(word) => match word.to_ascii_lowercase().as_str() {
                "passed" | "pass" | "ok" | "success" => Some(true),
                "skipped" | "ignored" => None,
                _ => Some(false),
            },
            _ => continue,
        };
        let message = match value.get(&fields.message) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let status = match passed {
            Some(true) => Status::Passed,
            Some(false) => Status::Failed(message),
            None => Status::Skipped,
        };
        add(&mut checks, name, status);
    }
    Ok(checks)
}

/// Lines that match one of two patterns.
pub(super) fn pattern(text: &str, patterns: &Patterns) -> Result<Checks, String> {
    let regex = |text: &str| Regex::new(text).map_err(|error| error.to_string());
    let (pass, fail) = (regex(&patterns.pass.value)?, regex(&patterns.fail.value)?);
    let mut checks = Checks::new();
    for line in text.lines() {
        if let Some(found) = fail.captures(line) {
            let message = found.name("message").map_or(line, |group| group.as_str());
            if let Some(name) = found.name("check") {
                add(
                    &mut checks,
                    name.as_str(),
                    Status::Failed(message.to_owned()),
                );
            }
        } else if let Some(found) = pass.captures(line)
            && let Some(name) = found.name("check")
        {
            add(&mut checks, name.as_str(), Status::Passed);
        }
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(B9)]
    #[test]
    fn objects_and_patterns() {
        let text = "{\"event\":\"measured\"}\n{\"test\":\"a\",\"passed\":true}\n\
             {\"test\":\"b\",\"passed\":\"failed\",\"message\":\"why\"}\n";
        let checks = json(text, &Fields::default()).expect("each line is an object");
        assert_eq!((checks.len(), &checks["a"]), (2, &Status::Passed));
        assert_eq!(checks["b"], Status::Failed("why".into()));
        assert!(json("{\n", &Fields::default()).is_err_and(|why| why.contains("line 1")));
        let patterns: Patterns = serde_saphyr::from_str(
            "pass: '^(?P<check>\\w+) OK$'\nfail: '^(?P<check>\\w+) BAD (?P<message>.*)$'",
        )
        .expect("two patterns");
        let checks = pattern("a OK\nb BAD x y\nnoise\n", &patterns).expect("they compile");
        assert_eq!(
            (checks.len(), &checks["b"]),
            (2, &Status::Failed("x y".into()))
        );
    }
}
