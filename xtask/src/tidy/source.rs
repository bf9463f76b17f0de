//! Rust source as tokens with places: what is written, without comments and strings.
//!
//! Owns: flattening a file into tokens and finding the paths in it, those of nested `use` trees
//! included. Refuses to resolve names: `use std as s` would deceive it, and review would not.
//! Invariant: text in a comment, a string or a macro's literal is never a finding.

use std::str::FromStr as _;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::tree::File;
use crate::finding::{At, Finding};

/// A token or a path, and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    line: usize,
    column: usize,
}

impl Token {
    /// A finding at this token.
    pub(crate) fn finding(&self, file: &File, message: String) -> Finding {
        Finding {
            at: At::place(&file.path, self.line, self.column),
            message,
        }
    }
}

/// The tokens of a file.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// All tokens in order, brackets included, `::` as one.
    pub(crate) flat: Vec<Token>,
}

impl Tokens {
    /// Reads a file; one that is no Rust yields nothing, and the compiler will say so.
    pub(crate) fn of(file: &File) -> Self {
        let mut flat = Vec::new();
        flatten(
            TokenStream::from_str(&file.text).unwrap_or_default(),
            &mut flat,
        );
        Self { flat }
    }

    /// Every path of two segments or more, written out: `use std::{fs, io::Read}` holds `std::fs`
    /// and `std::io::Read`.
    pub(crate) fn paths(&self) -> Vec<Token> {
        let mut paths = Vec::new();
        let mut at = 0;
        while at < self.flat.len() {
            if is_name(&self.flat[at].text) {
                at = tree(&self.flat, at, &[], &mut paths);
            } else {
                at += 1;
            }
        }
        paths
    }
}

/// Reads one path or `use` tree that begins at a name; the position after it.
fn tree(tokens: &[Token], mut at: usize, prefix: &[&str], paths: &mut Vec<Token>) -> usize {
    let first = &tokens[at];
    let mut segments = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        if is_name(&token.text) {
            segments.push(&token.text);
            at += 1;
        } else if token.text == "{" {
            at += 1;
            while let Some(token) = tokens.get(at).filter(|token| token.text != "}") {
                at = if is_name(&token.text) {
                    tree(tokens, at, &segments, paths)
                } else {
                    at + 1
                };
            }
            return at + 1;
        } else {
            break;
        }
        if tokens.get(at).is_some_and(|token| token.text == "::") {
            at += 1;
        } else {
            break;
        }
    }
    if segments.len() > 1 {
        paths.push(Token {
            text: segments.join("::"),
            ..first.clone()
        });
    }
    at
}

/// Words after which `::` begins a path instead of going on with one.
const NOT_NAMES: [&str; 10] = [
    "use", "as", "in", "mut", "dyn", "impl", "return", "break", "where", "for",
];

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && !NOT_NAMES.contains(&text)
}

fn flatten(stream: TokenStream, flat: &mut Vec<Token>) {
    let push = |flat: &mut Vec<Token>, text: String, span: proc_macro2::Span| {
        let start = span.start();
        flat.push(Token {
            text,
            line: start.line,
            column: start.column + 1,
        });
    };
    let mut colon = false;
    for tree in stream {
        let span = tree.span();
        let joins = colon && matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == ':');
        colon = false;
        match tree {
            TokenTree::Ident(name) => push(flat, name.to_string(), span),
            // Only that a literal stands here matters, never what is in it.
            TokenTree::Literal(_) => push(flat, "\"\"".into(), span),
            TokenTree::Punct(_) if joins => {
                if let Some(last) = flat.last_mut() {
                    last.text = "::".into();
                }
            }
            TokenTree::Punct(punct) => {
                colon = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
                push(flat, punct.as_char().to_string(), span);
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(flat, open.into(), group.span_open());
                flatten(group.stream(), flat);
                push(flat, close.into(), group.span_close());
            }
        }
    }
}
