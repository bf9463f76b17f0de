//! Whether JSON is valid under a schema, for the keywords that our schemas use.
//!
//! The libraries that validate bring a licence or an advisory that deny.toml refuses (borrow-or-share, idna 0.5).
//! Invariant: a keyword that is not known here is a panic, never a pass.

use regex::Regex;
use serde_json::{Map, Value};

/// The first complaint about `value`, which stands at `at`; `root` is where `$ref` begins.
pub(crate) fn complaint(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let rules = schema.as_object().expect("a schema is an object");
    rules
        .iter()
        .find_map(|(word, rule)| keyword(root, rules, (word, rule), value, at))
}

fn keyword(
    root: &Value,
    rules: &Map<String, Value>,
    (word, rule): (&String, &Value),
    value: &Value,
    at: &str,
) -> Option<String> {
    let say = |bad: bool| bad.then(|| format!("{at}: {value} is against {word} {rule}"));
    match word.as_str() {
        "$schema" | "title" | "description" | "$defs" => None,
        "$ref" => {
            let pointer = rule.as_str().and_then(|text| text.strip_prefix('#'));
            let target = root.pointer(pointer.expect("a $ref into the schema"));
            complaint(root, target.expect("the $ref's target"), value, at)
        }
        "type" => {
            let words = rule
                .as_array()
                .map_or_else(|| vec![rule], |all| all.iter().collect());
            say(!words
                .iter()
                .any(|word| is(word.as_str().expect("a type"), value)))
        }
        "const" => say(value != rule),
        "enum" => say(!rule.as_array().expect("a list").contains(value)),
        "pattern" => {
            let pattern = Regex::new(rule.as_str().expect("a text")).expect("a pattern");
            say(value.as_str().is_some_and(|text| !pattern.is_match(text)))
        }
        "minimum" => say(value.as_f64() < rule.as_f64() && value.is_number()),
        "required" => rule
            .as_array()
            .expect("a list")
            .iter()
            .find(|name| value.get(name.as_str().expect("a name")).is_none())
            .map(|name| format!("{at}: {name} is missing")),
        "properties" => inside(value, |name, inner| {
            complaint(root, rule.get(name)?, inner, &format!("{at}/{name}"))
        }),
        "additionalProperties" => {
            let known = |name: &str| {
                let listed = rules.get("properties").and_then(Value::as_object);
                listed.is_some_and(|listed| listed.contains_key(name))
            };
            inside(value, |name, inner| match rule {
                _ if known(name) => None,
                Value::Bool(true) => None,
                Value::Bool(false) => Some(format!("{at}: {name} is not known")),
                schema => complaint(root, schema, inner, &format!("{at}/{name}")),
            })
        }
        "items" => {
            let list = value.as_array()?;
            let mut numbered = list.iter().enumerate();
            numbered
                .find_map(|(index, inner)| complaint(root, rule, inner, &format!("{at}/{index}")))
        }
        "oneOf" => {
            let forms = rule.as_array().expect("a list").iter();
            let complaints: Vec<Option<String>> =
                forms.map(|form| complaint(root, form, value, at)).collect();
            let fits = complaints.iter().filter(|found| found.is_none()).count();
            (fits != 1).then(|| format!("{at}: {fits} forms fit: {complaints:?}"))
        }
        other => panic!("{at}: the keyword {other} is not known here"),
    }
}

fn inside(value: &Value, look: impl Fn(&str, &Value) -> Option<String>) -> Option<String> {
    let map = value.as_object()?;
    map.iter().find_map(|(name, inner)| look(name, inner))
}

fn is(word: &str, value: &Value) -> bool {
    match word {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        other => panic!("the type {other} is not known here"),
    }
}
