//! Tests of Python, JavaScript, TypeScript and the shell, and the rows in the comment before each.
//!
//! Owns the rules, which are few and the same for every language:
//!
//! - the tag is a comment of its own line, `# proves: E22, E23` or `// proves: E22`;
//! - it stands directly before the test: only comments, decorators and other lines without code may lie
//!   between, and no empty line, so that a tag never slides to the next test when its own is deleted;
//! - a test is `def test…` (Python; not within a function), `test("…"` or `it("…"` (JavaScript, TypeScript; the name
//!   may follow on the next line), `test…() {` or `@test "…" {` (shell, bats);
//! - what is a part of another test, as `t.test("…"`, is one of its own where a tag says so;
//! - a test without a tag counts as one only in a file that its runner would collect.
//!
//! Refuses to run a runner: its list decides what was a test, and one that it does not list never ran. Invariant: a tag in a string, on nothing or of another form is a fault.

use std::path::Path;

use super::items::{Item, item, word_after};
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
    let mut search = Search {
        language,
        path,
        text,
        classes: &classes,
        source,
        pending: None,
        around: Vec::new(),
        decorated: None,
        skipped: false,
    };
    let mut begin = 0;
    let mut depth = 0_i32;
    // Few lines have the mark: one pass finds which may be a tag.
    let mut marks = text.match_indices(MARK).map(|(at, _)| at).peekable();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let own = &classes[begin..begin + line.len()];
        let end = begin + line.len();
        let marked = marks.next_if(|at| *at < end).is_some();
        while marks.next_if(|at| *at < end).is_some() {}
        let tag = if marked { tag_of(line) } else { None };
        search.line(index + 1, begin, (line, own), tag, depth > 0);
        if language == Language::Python {
            depth += depth_of(line, own);
        }
        begin += line.len();
    }
    search.ends();
}

/// How much deeper in brackets a line ends than it begins.
fn depth_of(line: &str, own: &[Class]) -> i32 {
    let code = line
        .bytes()
        .zip(own)
        .filter(|(_, class)| **class == Class::Code);
    code.map(|(byte, _)| match byte {
        b'(' | b'[' | b'{' => 1,
        b')' | b']' | b'}' => -1,
        _ => 0,
    })
    .sum()
}

/// What holds where the search is.
struct Search<'a> {
    language: Language,
    path: &'a Path,
    text: &'a str,
    classes: &'a [Class],
    source: &'a mut Source,
    /// A tag that waits for its test.
    pending: Option<(At, Vec<Named>)>,
    /// Classes of Python around the line, with their indentation; a function has no name.
    around: Vec<(usize, Option<String>)>,
    /// Where the decorators of the next test begin.
    decorated: Option<usize>,
    /// One of them says that the test is skipped.
    skipped: bool,
}

impl Search<'_> {
    /// One line with its classes, which begins at the byte `start`; `tag` is what looks like a tag in it, and `continued`
    /// says that it begins inside of brackets.
    fn line(
        &mut self,
        number: usize,
        start: usize,
        (line, own): (&str, &[Class]),
        tag: Option<(usize, &str)>,
        continued: bool,
    ) {
        let first = line.len() - line.trim_start().len();
        let empty = first == line.len();
        let code = own
            .iter()
            .zip(line.bytes())
            .any(|(class, byte)| *class != Class::Comment && !byte.is_ascii_whitespace());
        if let Some((column, ids)) = tag {
            let class = own.get(column).copied();
            if self.tag(number, line, (column, ids), class, code) && !code {
                return;
            }
        }
        let inside = own.first() == Some(&Class::Text)
            && start > 0
            && self.classes[start - 1] == Class::Text;
        // A comment, the inside of a long string, or the rest of a decorator.
        if (!code && !empty) || inside || (continued && self.decorated.is_some()) {
            return;
        }
        let trimmed = line.trim();
        let begins_with_code = own.get(first) == Some(&Class::Code) && !continued;
        if self.language == Language::Python && begins_with_code && !empty {
            if trimmed.starts_with('@') {
                self.decorated.get_or_insert(start);
                let name = trimmed.split('(').next().unwrap_or(trimmed).trim();
                self.skipped |= name.rsplit('.').next() == Some("skip");
                return;
            }
            self.around.retain(|(indent, _)| *indent < first);
        }
        let item = if begins_with_code {
            item(
                self.language,
                &self.text[start + first..],
                &self.classes[start + first..],
            )
        } else {
            None
        };
        // Within a function nothing is collected.
        let item = item.filter(|_| self.around.iter().all(|(_, class)| class.is_some()));
        match item {
            Some(item) => self.test(number, start, first, item),
            None => self.nothing(),
        }
        if self.language == Language::Python && begins_with_code {
            let function = trimmed.strip_prefix("async ").unwrap_or(trimmed);
            if let Some(name) = word_after(trimmed, "class ") {
                self.around.push((first, Some(name)));
            } else if word_after(function, "def ").is_some() {
                self.around.push((first, None));
            }
        }
        self.decorated = None;
        self.skipped = false;
    }

    /// Something that looks like a tag; whether it is one, right or wrong, of its own line.
    fn tag(
        &mut self,
        number: usize,
        line: &str,
        (column, ids): (usize, &str),
        class: Option<Class>,
        code: bool,
    ) -> bool {
        let at = At::place(self.path, number, column + 1);
        if class == Some(Class::Comment) && !code {
            // Of two tags in a row both count.
            match ids_of(self.path, number, line, ids) {
                Ok(named) => {
                    let entry = self.pending.get_or_insert((at, Vec::new()));
                    entry.1.extend(named);
                }
                Err(message) => self.source.fault(Code::TagMisplaced, at, message),
            }
            return true;
        }
        let what = if class == Some(Class::Comment) {
            "a tag has a line of its own, before the test"
        } else {
            "a tag in a string belongs to no test"
        };
        self.source.fault(Code::TagMisplaced, at, what.into());
        true
    }

    fn test(&mut self, number: usize, start: usize, first: usize, item: Item) {
        let rows = self.pending.take();
        if rows.is_none() && (item.within || !self.language.collects(self.path)) {
            return;
        }
        let (mut tokens, lines) = body(self.language, &self.text[start..], &self.classes[start..]);
        if let Some(decorated) = self.decorated {
            let mut before = Vec::new();
            let classes = &self.classes[decorated..start];
            fold(&self.text[decorated..start], classes, &mut before);
            tokens.splice(0..0, before);
        }
        self.source.tests.push(Test {
            suite: suite(self.language, self.path, &self.around),
            name: item.name,
            rows: rows.map(|(_, rows)| rows).unwrap_or_default(),
            kind: Need::Test,
            at: At::place(self.path, number, first + 1),
            last: (number + lines.saturating_sub(1)) as u64,
            cfg: Vec::new(),
            ignored: item.ignored || self.skipped,
            hash: sha256(&tokens),
            krate: String::new(),
        });
    }

    /// Code that is no test: a tag before it belongs to nothing.
    fn nothing(&mut self) {
        if let Some((at, _)) = self.pending.take() {
            let message = "no test follows this tag".into();
            self.source.fault(Code::TagMisplaced, at, message);
        }
    }

    fn ends(mut self) {
        self.nothing();
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

fn suite(language: Language, path: &Path, around: &[(usize, Option<String>)]) -> String {
    let text = path.to_string_lossy();
    if language != Language::Python {
        return text.into_owned();
    }
    let mut suite = text.strip_suffix(".py").unwrap_or(&text).replace('/', ".");
    for class in around.iter().filter_map(|(_, class)| class.as_ref()) {
        suite.push('.');
        suite.push_str(class);
    }
    suite
}

/// The test's own text without comments, white space folded, which is what its hash is made of; and its lines.
fn body(language: Language, text: &str, classes: &[Class]) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(512);
    let (mut lines, mut last) = (0, 0);
    let mut depth = 0_i32;
    let mut opened = false;
    let mut begin = 0;
    let mut indent = None;
    for line in text.split_inclusive('\n') {
        let own = &classes[begin..begin + line.len()];
        let first = line.len() - line.trim_start().len();
        let is_code = own.get(first) == Some(&Class::Code) && !line.trim().is_empty();
        if language == Language::Python {
            match indent {
                None => indent = Some(first),
                // The bracket that closes a signature of several lines stands below `def`.
                Some(indent) if is_code && first <= indent && depth <= 0 => break,
                Some(_) => {}
            }
        }
        begin += line.len();
        lines += 1;
        if is_code || own.get(first) == Some(&Class::Text) {
            last = lines;
        }
        fold(line, own, &mut out);
        depth += depth_of(line, own);
        // The parentheses of a shell function close before its body opens.
        opened |= language != Language::Python
            && line.bytes().zip(own).any(|(byte, class)| {
                let opens = byte == b'{' || (language == Language::Script && byte == b'(');
                opens && *class == Class::Code
            });
        if language != Language::Python && opened && depth <= 0 {
            break;
        }
    }
    (out, last)
}

/// Adds the words of a text that are no comments.
fn fold(text: &str, classes: &[Class], out: &mut Vec<u8>) {
    // Most lines are ASCII, and their words are parted by these bytes alone.
    if text.is_ascii() {
        let mut within = false;
        for (byte, class) in text.bytes().zip(classes) {
            match byte {
                _ if *class == Class::Comment => {}
                b'\t'..=b'\r' | b' ' => {
                    if std::mem::take(&mut within) {
                        out.push(b' ');
                    }
                }
                byte => {
                    within = true;
                    out.push(byte);
                }
            }
        }
        if within {
            out.push(b' ');
        }
        return;
    }
    let kept: Vec<u8> = text
        .bytes()
        .zip(classes)
        .filter(|(_, class)| **class != Class::Comment)
        .map(|(byte, _)| byte)
        .collect();
    for word in String::from_utf8_lossy(&kept).split_whitespace() {
        out.extend_from_slice(word.as_bytes());
        out.push(b' ');
    }
}
