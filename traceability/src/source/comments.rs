//! Tests of Python, JavaScript, TypeScript and the shell, and the rows in the comment before each.
//!
//! Owns the rules, which are few and the same for every language:
//!
//! - the tag is a comment of its own line, `# proves: E22, E23` or `// proves: E22`;
//! - it stands directly before the test: only comments, decorators and other lines without code may lie
//!   between, and no empty line, so that a tag never slides to the next test when its own is deleted;
//! - a test is `def test…` (Python), `test("…"` or `it("…"` (JavaScript, TypeScript), `test…() {` or
//!   `@test "…" {` (shell, bats);
//! - a test without a tag counts as one only in a file that its runner would collect.
//!
//! Refuses to run a runner. Invariant: a tag in a string, on nothing or of another form is a fault.

use std::path::Path;

use super::lexer::{Class, classify};
use super::{Named, Source, Test};
use crate::code::Code;
use crate::finding::At;
use crate::rows::read::Need;
use crate::tree::sha256;

/// A language with comment tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `.py`
    Python,
    /// `.js`, `.mjs`, `.cjs`, `.ts`, `.mts`, `.tsx`, `.jsx`
    Script,
    /// `.sh`, `.bash`, `.bats`
    Shell,
}

impl Language {
    /// The language of a file, by its name.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "py" => Some(Self::Python),
            "js" | "mjs" | "cjs" | "ts" | "mts" | "tsx" | "jsx" => Some(Self::Script),
            "sh" | "bash" | "bats" => Some(Self::Shell),
            _ => None,
        }
    }

    /// Whether the usual runners collect tests of this file.
    fn collects(self, path: &Path) -> bool {
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let under = |dir: &str| path.iter().any(|part| part == dir);
        match self {
            Self::Python => name.starts_with("test_") || name.ends_with("_test.py"),
            Self::Script => {
                name.contains(".test.")
                    || name.contains(".spec.")
                    || ["test", "tests", "__tests__"].into_iter().any(under)
            }
            Self::Shell => {
                path.extension().is_some_and(|ext| ext == "bats") || name.starts_with("test")
            }
        }
    }
}

const MARK: &str = "proves:";

/// Searches one file.
pub(super) fn read(language: Language, path: &Path, text: &str, source: &mut Source) {
    let classes = classify(language, text);
    let mut pending: Option<(At, Vec<Named>)> = None;
    // Classes of Python around the line, with their indentation.
    let mut around: Vec<(usize, String)> = Vec::new();
    let mut begin = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let own = &classes[begin..begin + line.len()];
        let number = index + 1;
        let start = begin;
        begin += line.len();
        let first = line.len() - line.trim_start().len();
        let empty = line.trim().is_empty();
        let tagged = tag_of(line);
        let code = own
            .iter()
            .zip(line.bytes())
            .any(|(class, byte)| *class != Class::Comment && !byte.is_ascii_whitespace());
        if let Some((column, ids)) = tagged {
            let at = At::place(path, number, column + 1);
            let class = own.get(column).copied();
            if class == Some(Class::Comment) && !code {
                // Of two tags in a row both count.
                let named = match ids_of(path, number, line, ids) {
                    Ok(named) => named,
                    Err(message) => {
                        source.fault(Code::TagMisplaced, at, message);
                        continue;
                    }
                };
                let entry = pending.get_or_insert((at, Vec::new()));
                entry.1.extend(named);
            } else {
                let what = if class == Some(Class::Comment) {
                    "a tag has a line of its own, before the test"
                } else {
                    "a tag in a string belongs to no test"
                };
                source.fault(Code::TagMisplaced, at, what.into());
            }
            if !code {
                continue;
            }
        }
        if !code && !empty {
            continue;
        }
        if own.first() == Some(&Class::Text)
            && first == 0
            && start > 0
            && classes[start - 1] == Class::Text
        {
            // The inside of a long string.
            continue;
        }
        let trimmed = line.trim();
        if language == Language::Python {
            if trimmed.starts_with('@') {
                continue;
            }
            if !empty {
                around.retain(|(indent, _)| *indent < first);
                if let Some(name) = word_after(trimmed, "class ") {
                    around.push((first, name));
                }
            }
        }
        let item = if own.get(first) == Some(&Class::Code) {
            item(language, trimmed)
        } else {
            None
        };
        match item {
            Some(item) => {
                let rows = pending.take();
                if rows.is_none() && !language.collects(path) {
                    continue;
                }
                let at = At::place(path, number, first + 1);
                let body = body(language, &text[start..], &classes[start..]);
                source.tests.push(Test {
                    suite: suite(language, path, &around),
                    name: item.name,
                    rows: rows.map(|(_, rows)| rows).unwrap_or_default(),
                    kind: Need::Test,
                    at,
                    cfg: Vec::new(),
                    ignored: item.ignored,
                    hash: sha256(body.as_bytes()),
                    krate: String::new(),
                });
            }
            None => {
                if let Some((at, _)) = pending.take() {
                    let message = "no test follows this tag".into();
                    source.fault(Code::TagMisplaced, at, message);
                }
            }
        }
    }
    if let Some((at, _)) = pending.take() {
        source.fault(Code::TagMisplaced, at, "no test follows this tag".into());
    }
}

/// A line that is a tag by its looks: the column of its comment sign and what follows the mark.
fn tag_of(line: &str) -> Option<(usize, &str)> {
    ["#", "//"].iter().find_map(|sign| {
        line.match_indices(sign).find_map(|(at, _)| {
            let rest = line[at + sign.len()..].trim_start();
            rest.strip_prefix(MARK).map(|ids| (at, ids))
        })
    })
}

fn ids_of(path: &Path, number: usize, line: &str, ids: &str) -> Result<Vec<Named>, String> {
    let offset = line.len() - ids.len();
    let mut named = Vec::new();
    let mut at = 0;
    for part in ids.split(',') {
        let id = part.trim();
        let well_formed = id.starts_with(|c: char| c.is_ascii_uppercase())
            && id.ends_with(|c: char| c.is_ascii_digit())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !well_formed {
            return Err(format!("`{id}` is no row id; wanted is `{MARK} E22, E23`"));
        }
        let column = offset + at + (part.len() - part.trim_start().len()) + 1;
        named.push(Named {
            id: id.into(),
            at: At::place(path, number, column),
        });
        at += part.len() + 1;
    }
    Ok(named)
}

struct Item {
    name: String,
    ignored: bool,
}

/// The test that begins on a line.
fn item(language: Language, line: &str) -> Option<Item> {
    let plain = |name: String| Item {
        name,
        ignored: false,
    };
    match language {
        Language::Python => {
            let line = line.strip_prefix("async ").unwrap_or(line);
            let name = word_after(line, "def ")?;
            name.starts_with("test").then(|| plain(name))
        }
        Language::Script => {
            let line = line.strip_prefix("await ").unwrap_or(line);
            let (call, rest) = line.split_once('(')?;
            let (function, modifier) = call.split_once('.').unwrap_or((call, ""));
            if !["test", "it"].contains(&function) {
                return None;
            }
            let rest = rest.trim_start();
            let quote = rest.chars().next().filter(|c| "\"'`".contains(*c))?;
            let (name, _) = rest[1..].split_once(quote)?;
            Some(Item {
                name: name.into(),
                ignored: ["skip", "todo"].contains(&modifier),
            })
        }
        Language::Shell => {
            if let Some(rest) = line.strip_prefix("@test ") {
                let rest = rest.trim_start();
                let quote = rest.chars().next().filter(|c| "\"'".contains(*c))?;
                return Some(plain(rest[1..].split_once(quote)?.0.into()));
            }
            let line = line.strip_prefix("function ").unwrap_or(line);
            let (name, _) = line.split_once("()")?;
            let name = name.trim();
            name.starts_with("test").then(|| plain(name.into()))
        }
    }
}

fn word_after(line: &str, keyword: &str) -> Option<String> {
    let rest = line.strip_prefix(keyword)?.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    (!name.is_empty()).then(|| name.to_owned())
}

fn suite(language: Language, path: &Path, around: &[(usize, String)]) -> String {
    let text = path.to_string_lossy();
    if language != Language::Python {
        return text.into_owned();
    }
    let mut suite = text.strip_suffix(".py").unwrap_or(&text).replace('/', ".");
    for (_, class) in around {
        suite.push('.');
        suite.push_str(class);
    }
    suite
}

/// The test's own text without comments, white space folded: what its hash is made of.
fn body(language: Language, text: &str, classes: &[Class]) -> String {
    let mut out = String::new();
    let mut depth = 0_i32;
    let mut opened = false;
    let mut begin = 0;
    let mut indent = None;
    for line in text.split_inclusive('\n') {
        let own = &classes[begin..begin + line.len()];
        begin += line.len();
        let first = line.len() - line.trim_start().len();
        let is_code = own.get(first) == Some(&Class::Code) && !line.trim().is_empty();
        if language == Language::Python {
            match indent {
                None => indent = Some(first),
                Some(indent) if is_code && first <= indent => break,
                Some(_) => {}
            }
        }
        let kept: Vec<u8> = line
            .bytes()
            .zip(own)
            .filter(|(_, class)| **class != Class::Comment)
            .map(|(byte, _)| byte)
            .collect();
        for word in String::from_utf8_lossy(&kept).split_whitespace() {
            out.push_str(word);
            out.push(' ');
        }
        for (byte, class) in line.bytes().zip(own) {
            if *class == Class::Code {
                match byte {
                    b'(' | b'{' | b'[' => depth += 1,
                    b')' | b'}' | b']' => depth -= 1,
                    _ => {}
                }
                // The parentheses of a shell function close before its body opens.
                opened |= byte == b'{' || (language == Language::Script && byte == b'(');
            }
        }
        if language != Language::Python && opened && depth <= 0 {
            break;
        }
    }
    out
}
