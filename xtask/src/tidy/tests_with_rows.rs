//! Every test names the rows that it shows.
//!
//! Owns: telling a test from another function by its attributes. Refuses to know which rows exist:
//! the compiler does. Invariant: a function is a test when the last segment of one of its
//! attributes is `test`, wherever it stands, inside `proptest!` and `macro_rules!` too.

use super::source::{Token, Tokens};
use super::tree::{File, Tree};
use crate::finding::Finding;

/// Tests without `#[row(..)]`.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(in_file)
        .collect()
}

fn in_file(file: &File) -> Vec<Finding> {
    let tokens = Tokens::of(file).flat;
    let mut findings = Vec::new();
    // The names of the attributes before the item at hand.
    let mut attributes: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "#" => {
                let (name, next) = attribute(&tokens, at + 1);
                attributes.extend(name);
                at = next;
                continue;
            }
            // What may stand between the attributes and `fn`.
            "pub" | "(" | "crate" | ")" | "async" | "const" | "extern" | "\"\"" => {}
            "fn" => {
                if attributes.contains(&"test") && !attributes.contains(&"row") {
                    let name = tokens.get(at + 1).map_or("", |name| name.text.as_str());
                    let message = format!("the test {name} names no row: #[m0_spec::row(..)]");
                    findings.push(token.finding(file, message));
                }
                attributes.clear();
            }
            _ => attributes.clear(),
        }
        at += 1;
    }
    findings
}

/// The last segment of an attribute's path, and the position after its bracket.
fn attribute(tokens: &[Token], mut at: usize) -> (Option<&str>, usize) {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    if text(at) == "!" {
        at += 1;
    }
    if text(at) != "[" {
        return (None, at);
    }
    let mut name = at + 1;
    while text(name + 1) == "::" {
        name += 2;
    }
    let mut depth = 0;
    loop {
        match text(at) {
            "[" => depth += 1,
            "]" => depth -= 1,
            "" => return (None, at),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return (Some(text(name)), at);
        }
    }
}
