//! What begins a test in Python, JavaScript, TypeScript and the shell.
//!
//! Owns the forms of a test's beginning and where its name stands. Refuses to look before or behind it. Invariant: a name
//! that is put together at run time is no name, and so no test.

use super::comments::Language;
use super::lexer::Class;

/// A test, by its beginning.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) ignored: bool,
    /// It is a part of another test: only a tag makes it one of its own.
    pub(super) within: bool,
}

impl Item {
    fn plain(name: String) -> Self {
        Self {
            name,
            ignored: false,
            within: false,
        }
    }
}

/// The test that begins where a text does.
pub(super) fn item(language: Language, text: &str, classes: &[Class]) -> Option<Item> {
    let line = text.lines().next().unwrap_or_default();
    match language {
        Language::Python => {
            let line = line.strip_prefix("async ").unwrap_or(line);
            let name = word_after(line, "def ")?;
            name.starts_with("test").then(|| Item::plain(name))
        }
        Language::Script => call(text, classes),
        Language::Shell => {
            if let Some(rest) = line.strip_prefix("@test ") {
                let rest = rest.trim_start();
                let quote = rest.chars().next().filter(|c| "\"'".contains(*c))?;
                return Some(Item::plain(rest[1..].split_once(quote)?.0.into()));
            }
            let line = line.strip_prefix("function ").unwrap_or(line);
            let (name, _) = line.split_once("()")?;
            let name = name.trim();
            name.starts_with("test").then(|| Item::plain(name.into()))
        }
    }
}

/// `test("name"`, `it.skip('name'`, `await t.test("name"`: the name may stand on a line of its own, and what is put
/// together at run time is no name.
fn call(text: &str, classes: &[Class]) -> Option<Item> {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    // Most code is told apart by its first sign.
    let is_sign = |b: u8| !is_word(b) && b.is_ascii_punctuation() && b != b'.';
    let open = text.bytes().position(is_sign)?;
    if text.as_bytes()[open] != b'(' || classes[open] != Class::Code {
        return None;
    }
    let callee = text[..open].trim();
    let callee = callee.strip_prefix("await ").unwrap_or(callee).trim_start();
    if !callee.bytes().all(|b| is_word(b) || b == b'.') {
        return None;
    }
    let parts: Vec<&str> = callee.split('.').collect();
    let own = parts
        .iter()
        .position(|part| ["test", "it"].contains(part))?;
    let modifiers = &parts[own + 1..];
    let known = ["only", "skip", "todo", "concurrent", "failing"];
    if own > 1 || !modifiers.iter().all(|part| known.contains(part)) {
        return None;
    }
    let mut at = open + 1;
    while classes.get(at).is_some_and(|class| {
        *class == Class::Comment
            || (*class == Class::Code && text.as_bytes()[at].is_ascii_whitespace())
    }) {
        at += 1;
    }
    let quote = text[at..].chars().next().filter(|c| "\"'`".contains(*c))?;
    let mut name = String::new();
    let mut chars = text[at + 1..].chars();
    loop {
        match chars.next()? {
            '\\' => name.push(chars.next()?),
            '$' if quote == '`' => return None,
            c if c == quote => break,
            c => name.push(c),
        }
    }
    Some(Item {
        name,
        ignored: modifiers.iter().any(|part| ["skip", "todo"].contains(part)),
        within: own == 1,
    })
}

pub(super) fn word_after(line: &str, keyword: &str) -> Option<String> {
    let rest = line.strip_prefix(keyword)?.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    (!name.is_empty()).then(|| name.to_owned())
}
