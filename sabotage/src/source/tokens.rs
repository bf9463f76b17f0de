//! Rust text as a flat row of tokens with their byte ranges.
//!
//! Owns: which text is code. Comments, doc comments and white space are not. Refuses to parse more than
//! brackets. Invariant: ranges rise and lie inside the text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::str::FromStr as _;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// One token: its text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The text; brackets are tokens of their own, and so is each character of an operator.
    pub text: String,
    /// Bytes of the source.
    pub range: Range<usize>,
}

/// Files whose tokens are kept; one of 400 lines is about 200 kB.
const MOST_FILES: usize = 64;

thread_local! {
    static SEEN: RefCell<HashMap<String, Option<Vec<Token>>>> = RefCell::default();
}

/// The tokens of a whole file or of a piece with balanced brackets; `None` when it is no Rust.
pub fn of(text: &str) -> Option<Vec<Token>> {
    let stream = TokenStream::from_str(text).ok()?;
    let mut flat = Vec::new();
    flatten(stream, &mut flat);
    Some(flat)
}

/// The same, for a file that is asked about again and again: many rules have an anchor in one file.
pub fn of_file(text: &str) -> Option<Vec<Token>> {
    SEEN.with_borrow_mut(|seen| {
        if let Some(row) = seen.get(text) {
            return row.clone();
        }
        if seen.len() == MOST_FILES {
            seen.clear();
        }
        let row = of(text);
        seen.insert(text.to_owned(), row.clone());
        row
    })
}

/// The tokens of a piece whose brackets need not balance, such as `for x in y {`.
pub fn of_piece(text: &str) -> Option<Vec<Token>> {
    if let Some(tokens) = of(text) {
        return Some(tokens);
    }
    let (closing, opening) = unbalanced(text)?;
    let before: String = closing.iter().rev().map(|c| partner(*c)).collect();
    let after: String = opening.iter().rev().map(|c| partner(*c)).collect();
    // The newline ends a line comment at the end of the piece.
    let whole = of(&format!("{before}{text}\n{after}"))?;
    let shift = before.len();
    let piece = shift..shift + text.len();
    let inside = whole
        .into_iter()
        .filter(|token| piece.contains(&token.range.start));
    Some(
        inside
            .map(|token| Token {
                range: token.range.start - shift..token.range.end - shift,
                ..token
            })
            .collect(),
    )
}

fn partner(c: char) -> char {
    match c {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        ')' => '(',
        ']' => '[',
        _ => '{',
    }
}

/// The closing brackets without an opening one, and the other way round, outside strings and comments.
fn unbalanced(text: &str) -> Option<(Vec<char>, Vec<char>)> {
    let (mut closing, mut opening) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/")? + 2,
            '"' => string_end(rest)?,
            '\'' => char_end(rest),
            _ => c.len_utf8(),
        };
        match c {
            '(' | '[' | '{' => opening.push(c),
            ')' | ']' | '}' => match opening.pop() {
                None => closing.push(c),
                Some(open) if partner(open) == c => {}
                Some(_) => return None,
            },
            _ => {}
        }
        rest = &rest[taken..];
    }
    Some((closing, opening))
}

/// Length of the string literal that `text` begins with.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Length of the character literal that `text` begins with; 1 when it is a lifetime.
fn char_end(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let Some((_, first)) = chars.next() else {
        return 1;
    };
    if first == '\\' {
        return chars
            .skip(1)
            .find(|(_, c)| *c == '\'')
            .map_or(1, |(at, _)| at + 1);
    }
    match chars.next() {
        Some((at, '\'')) => at + 1,
        _ => 1,
    }
}

fn flatten(stream: TokenStream, flat: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => {
                let pair = match group.delimiter() {
                    Delimiter::Parenthesis => Some(("(", ")")),
                    Delimiter::Brace => Some(("{", "}")),
                    Delimiter::Bracket => Some(("[", "]")),
                    Delimiter::None => None,
                };
                if let Some((open, _)) = pair {
                    push(flat, open.into(), group.span_open());
                }
                flatten(group.stream(), flat);
                if let Some((_, close)) = pair {
                    push(flat, close.into(), group.span_close());
                }
            }
            TokenTree::Punct(punct)
                if punct.as_char() == '#' && punct.span().byte_range().len() > 1 =>
            {
                // A doc comment reads as an attribute whose tokens all span the comment.
                if matches!(trees.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '!') {
                    trees.next();
                }
                trees.next();
            }
            leaf => {
                let (text, span) = (leaf.to_string(), leaf.span());
                push(flat, text, span);
            }
        }
    }
}

fn push(flat: &mut Vec<Token>, text: String, span: Span) {
    flat.push(Token {
        text,
        range: span.byte_range(),
    });
}

/// Whether two Rust texts differ in more than comments and white space; unreadable text differs.
pub fn differ(before: &str, after: &str) -> bool {
    let texts = |row: Option<Vec<Token>>| {
        let texts = row?.into_iter().map(|token| token.text);
        Some(texts.collect::<Vec<_>>())
    };
    match (texts(of_file(before)), texts(of(after))) {
        (Some(before), Some(after)) => before != after,
        _ => before != after,
    }
}
