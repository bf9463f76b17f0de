//! A page of Markdown: its code spans and blocks, and what they mention.
//!
//! Owns telling our commands, flags, variables and files from everybody else's. Refuses to know which exist.
//! Invariant: prose outside code mentions variables only; a line that calls a foreign program mentions nothing but
//! variables, and neither does a block in another language than a shell's.

use std::path::PathBuf;

use super::super::tree::File;
use crate::finding::At;

/// A page.
pub(super) struct Page<'a> {
    pub(super) path: PathBuf,
    text: &'a str,
}

/// Something that a page says exists.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mention {
    /// A flag or a variable.
    Word(String, At),
    /// A program of ours and its command.
    Command(&'static str, String, At),
    /// A file or directory.
    Path(String, At),
}

/// Programs of ours, whose lines are looked into; the words before their command.
const OURS: [(&str, &str); 3] = [
    ("xtask", "cargo xtask "),
    ("sabotage", "sabotage "),
    ("trace", "trace "),
];

/// What follows, up to the next heading, is spoken of because it does not exist.
const ABSENT: &str = "What is not there yet";

impl<'a> Page<'a> {
    pub(super) fn read(file: &'a File) -> Self {
        Self {
            path: file.path.clone(),
            text: &file.text,
        }
    }

    /// Whether the text stands somewhere, not as a part of a longer name.
    pub(super) fn has(&self, form: &str) -> bool {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        self.text.match_indices(form).any(|(at, _)| {
            let before = self.text[..at].chars().next_back();
            let after = self.text[at + form.len()..].chars().next();
            let open = !form.starts_with(part) || !before.is_some_and(part);
            let closed = !form.ends_with(part) || !after.is_some_and(part);
            open && closed
        })
    }

    /// Everything that it mentions, in order.
    pub(super) fn mentions(&self) -> Vec<Mention> {
        let mut found = Vec::new();
        let mut fence: Option<&str> = None;
        let mut absent = false;
        for (number, line) in self.text.lines().enumerate() {
            let place = |part: &str| {
                let column = part.as_ptr() as usize - line.as_ptr() as usize;
                At::place(&self.path, number + 1, column + 1)
            };
            if let Some(language) = line.trim_start().strip_prefix("```") {
                fence = match fence {
                    Some(_) => None,
                    None => Some(language.trim()),
                };
                continue;
            }
            if fence.is_none() && (line.starts_with('#') || line.starts_with(ABSENT)) {
                absent = line.contains(ABSENT);
            }
            if absent {
                continue;
            }
            variables(line, &place, &mut found);
            match fence {
                Some("sh" | "console" | "bash") => code(
                    line.split(" #").next().unwrap_or(line),
                    true,
                    &place,
                    &mut found,
                ),
                Some(_) => {}
                None => {
                    for span in line.split('`').skip(1).step_by(2) {
                        code(span, false, &place, &mut found);
                    }
                    for target in line
                        .split("](")
                        .skip(1)
                        .filter_map(|rest| rest.split(')').next())
                    {
                        path(target, &place, &mut found);
                    }
                }
            }
        }
        found
    }
}

fn variables(line: &str, place: &dyn Fn(&str) -> At, found: &mut Vec<Mention>) {
    let mut rest = line;
    while let Some(at) = rest.find("M0_") {
        let name = &rest[at..];
        let end = name.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        let name = &name[..end.unwrap_or(name.len())];
        // The bare prefix is spoken of, too.
        if name != "M0_" {
            found.push(Mention::Word(name.to_owned(), place(name)));
        }
        rest = &rest[at + name.len()..];
    }
}

/// A span, or with `whole` a line of a shell: a command of ours with its flags, flags alone, or a path.
fn code(text: &str, whole: bool, place: &dyn Fn(&str) -> At, found: &mut Vec<Mention>) {
    let bare = text.trim_start().trim_start_matches("$ ");
    let called = OURS
        .iter()
        .find_map(|(name, prefix)| Some((*name, bare.strip_prefix(prefix)?)));
    if let Some((program, rest)) = called {
        let command = rest.split_whitespace().next().unwrap_or_default();
        if is_word(command) {
            found.push(Mention::Command(
                program,
                command.to_owned(),
                place(command),
            ));
        }
        flags(rest, place, found);
    } else if bare.starts_with("--") {
        flags(bare, place, found);
    } else if !whole {
        path(text, place, found);
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        && !text.starts_with('-')
}

/// The flags up to a redirection or the next program.
fn flags(text: &str, place: &dyn Fn(&str) -> At, found: &mut Vec<Mention>) {
    for word in text
        .split_whitespace()
        .take_while(|word| !["|", ">", "&&"].contains(word))
    {
        let word = word.trim_matches(['[', ']', ',', ';', '(', ')', '`']);
        let name = word.split('=').next().unwrap_or_default();
        if name.strip_prefix("--").is_some_and(is_word) {
            found.push(Mention::Word(name.to_owned(), place(name)));
        }
    }
}

/// A relative path: it has a `/` and a lower-case letter, and nothing that makes it a pattern, an address or an example.
fn path(text: &str, place: &dyn Fn(&str) -> At, found: &mut Vec<Mention>) {
    let text = text.split('#').next().unwrap_or_default();
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let ours = text.contains('/') && text.contains(|c: char| c.is_ascii_lowercase());
    let other = text.starts_with('/') || text.starts_with("target/") || text.contains("//");
    if plain && ours && !other {
        found.push(Mention::Path(text.to_owned(), place(text)));
    }
}
