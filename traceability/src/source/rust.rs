//! Tests of Rust: functions under `#[test]` and the like, the rows in their attribute, their path.
//!
//! Owns the walk from the crate roots over `mod` items, and over token trees within a file, so that
//! functions inside `proptest!` and `macro_rules!` are seen as those at the top. Strings are tokens, so
//! source inside a string is never taken for a test. Refuses to expand macros and to judge `cfg`: it
//! keeps the conditions as written. Invariant: a test's path is the one that the harness prints.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr as _;

use proc_macro2::extra::invalidate_current_thread_spans;
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

use super::cache::{Files, Seen};
use super::cargo::Target;
use super::{Named, Source, Test};
use crate::code::Code;
use crate::finding::At;
use crate::rows::read::Need;
use crate::tree::sha256;

/// Searches the files that a target reaches; of what is in them only that counts which is in `wanted`.
pub(super) fn read(
    attribute: &str,
    target: &Target,
    wanted: &BTreeSet<&Path>,
    files: Files<'_>,
    source: &mut Source,
    seen: &mut Seen,
) {
    let mut walk = Walk {
        attribute,
        target,
        wanted,
        files,
        source,
        seen,
    };
    let dir = target.root.parent().unwrap_or(Path::new("")).to_owned();
    walk.file(&target.root, &dir, &Context::default());
    // The tokens are gone, and with them goes what their places are told by: a copy of each text.
    invalidate_current_thread_spans();
}

/// What holds where the walk is.
#[derive(Debug, Clone, Default)]
struct Context {
    modules: Vec<String>,
    cfg: Vec<String>,
    property: bool,
}

/// An attribute: the last segment of its path, its arguments, its tokens as text.
pub(super) struct Attribute {
    pub(super) name: String,
    args: TokenStream,
    span: Span,
    /// It stands in a `cfg_attr`.
    conditional: bool,
}

impl Attribute {
    /// Reads what stands between the brackets.
    pub(super) fn of(group: &Group) -> Option<Self> {
        let mut name = None;
        let mut args = TokenStream::new();
        let mut trees = group.stream().into_iter();
        while let Some(tree) = trees.next() {
            match tree {
                TokenTree::Ident(ident) => name = Some(ident.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == ':' => {}
                TokenTree::Group(inner) => {
                    args = inner.stream();
                    break;
                }
                // `name = value`
                _ => {
                    args = trees.collect();
                    break;
                }
            }
        }
        let name = name?;
        let span = group.span();
        // `cfg_attr(condition, attribute)` is the attribute.
        if name == "cfg_attr" {
            let rest: TokenStream = args
                .into_iter()
                .skip_while(
                    |tree| !matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ','),
                )
                .skip(1)
                .collect();
            return Self::of(&Group::new(Delimiter::Bracket, rest)).map(|inner| Self {
                span,
                conditional: true,
                ..inner
            });
        }
        Some(Self {
            name,
            args,
            span,
            conditional: false,
        })
    }
}

struct Walk<'a> {
    attribute: &'a str,
    target: &'a Target,
    wanted: &'a BTreeSet<&'a Path>,
    files: Files<'a>,
    source: &'a mut Source,
    seen: &'a mut Seen,
}

impl Walk<'_> {
    /// Reads one file; `dir` is where its own modules are looked for.
    fn file(&mut self, path: &Path, dir: &Path, context: &Context) {
        let Some(text) = self.files.text(path, self.seen) else {
            return;
        };
        match TokenStream::from_str(&text) {
            Ok(tokens) => self.items(path, dir, tokens, context),
            Err(error) => {
                let start = error.span().start();
                let at = At::place(path, start.line, start.column + 1);
                let message = "these are no tokens of Rust".into();
                self.source.fault(Code::SourceUnreadable, at, message);
            }
        }
    }

    fn items(&mut self, path: &Path, dir: &Path, tokens: TokenStream, context: &Context) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut context = context.clone();
        let mut attributes: Vec<Attribute> = Vec::new();
        let mut begin = 0;
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            if attributes.is_empty() {
                begin = at;
            }
            match tree {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    let inner = is_punct(trees.get(at + 1), '!');
                    let next = at + 1 + usize::from(inner);
                    if let Some(TokenTree::Group(group)) = trees.get(next)
                        && group.delimiter() == Delimiter::Bracket
                    {
                        if let Some(attribute) = Attribute::of(group) {
                            if inner {
                                context.cfg.extend(condition(&attribute));
                            } else {
                                attributes.push(attribute);
                            }
                        }
                        at = next + 1;
                        continue;
                    }
                    attributes.clear();
                }
                TokenTree::Ident(ident) => {
                    let word = ident.to_string();
                    match word.as_str() {
                        "mod" => {
                            at = self.module(path, dir, &trees, at, &attributes, &context);
                            attributes.clear();
                            continue;
                        }
                        "fn" => {
                            let end = end_of_function(&trees, at);
                            let tokens: TokenStream = trees[begin..end].iter().cloned().collect();
                            let last = trees[end - 1].span().end().line as u64;
                            let function = (at, last, &tokens);
                            self.function(path, &trees, function, &attributes, &context);
                            attributes.clear();
                            at = end;
                            continue;
                        }
                        // What may stand between the attributes and `fn` or `mod`.
                        "pub" | "async" | "const" | "extern" | "unsafe" | "crate" => {}
                        _ => {
                            if is_punct(trees.get(at + 1), '!') {
                                at = self.macro_call(path, dir, &trees, at, &word, &context);
                                attributes.clear();
                                continue;
                            }
                            attributes.clear();
                        }
                    }
                }
                // `pub(crate)` and `extern "C"`.
                TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {}
                TokenTree::Literal(_) => {}
                _ => attributes.clear(),
            }
            at += 1;
        }
    }

    /// A `mod`; the position after it.
    fn module(
        &mut self,
        path: &Path,
        dir: &Path,
        trees: &[TokenTree],
        at: usize,
        attributes: &[Attribute],
        context: &Context,
    ) -> usize {
        let Some(TokenTree::Ident(name)) = trees.get(at + 1) else {
            return at + 1;
        };
        let name = name.to_string();
        let mut inner = context.clone();
        inner.modules.push(name.clone());
        inner.cfg.extend(attributes.iter().filter_map(condition));
        match trees.get(at + 2) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                self.items(path, &dir.join(&name), group.stream(), &inner);
            }
            _ => {
                let said = attributes.iter().find(|attribute| attribute.name == "path");
                let beside = path.parent().unwrap_or(Path::new(""));
                let candidates = match said {
                    Some(said) => {
                        let text = said.args.to_string();
                        vec![(beside.join(text.trim_matches('"')), beside.to_owned())]
                    }
                    None => vec![
                        (dir.join(format!("{name}.rs")), dir.join(&name)),
                        (dir.join(&name).join("mod.rs"), dir.join(&name)),
                    ],
                };
                let found = candidates
                    .into_iter()
                    .find(|(file, _)| self.files.has(file, self.seen));
                if let Some((file, dir)) = found {
                    self.file(&file, &dir, &inner);
                }
            }
        }
        at + 3
    }

    /// `name! { .. }` or `macro_rules! name { .. }` among items; the position after it.
    fn macro_call(
        &mut self,
        path: &Path,
        dir: &Path,
        trees: &[TokenTree],
        at: usize,
        word: &str,
        context: &Context,
    ) -> usize {
        let named = usize::from(matches!(trees.get(at + 2), Some(TokenTree::Ident(_))));
        let next = at + 2 + named;
        let Some(TokenTree::Group(group)) = trees.get(next) else {
            return next;
        };
        let mut inner = context.clone();
        inner.property |= word == "proptest";
        if word == "macro_rules" {
            // Pairs of matcher and body, both groups.
            for tree in group.stream() {
                if let TokenTree::Group(arm) = tree {
                    self.items(path, dir, arm.stream(), &inner);
                }
            }
        } else {
            self.items(path, dir, group.stream(), &inner);
        }
        next + 1
    }

    fn function(
        &mut self,
        path: &Path,
        trees: &[TokenTree],
        (at, last, tokens): (usize, u64, &TokenStream),
        attributes: &[Attribute],
        context: &Context,
    ) {
        let rows: Vec<Named> = attributes
            .iter()
            .filter(|attribute| attribute.name == self.attribute)
            .flat_map(|attribute| ids(path, &attribute.args))
            .collect();
        let is_test = attributes
            .iter()
            .any(|attribute| ["test", "rstest", "test_case"].contains(&attribute.name.as_str()));
        if !self.wanted.contains(path) || (!is_test && rows.is_empty()) {
            return;
        }
        let mark = attributes
            .iter()
            .find(|attribute| attribute.name == self.attribute);
        let place = mark.map_or_else(|| trees[at].span(), |mark| mark.span);
        // Editors and `line!()` count the attribute's own line.
        let here = At::place(path, place.start().line, place.start().column + 1);
        let Some(TokenTree::Ident(name)) = trees.get(at + 1) else {
            // `fn $name`: the macro's callers give the names, and a run tells them.
            self.source.by_macro.extend(rows);
            return;
        };
        let mut cfg = context.cfg.clone();
        cfg.extend(attributes.iter().filter_map(condition));
        let mut modules = context.modules.clone();
        modules.push(name.to_string());
        let name = modules.join("::");
        self.source.tests.push(Test {
            suite: self.target.suite.clone(),
            kind: kind(&self.target.suite, &modules, context.property, &cfg),
            ignored: attributes
                .iter()
                .any(|attribute| attribute.name == "ignore" && !attribute.conditional),
            hash: sha256(tokens.to_string().as_bytes()),
            krate: self.target.krate.clone(),
            name,
            rows,
            at: here,
            last,
            cfg,
        });
    }
}

/// What kind of evidence a test is, by what its source says: a property stands in `proptest!` or in a
/// module or target named `properties`, a model under `cfg(loom)` or in a target named `loom`.
fn kind(suite: &str, path: &[String], property: bool, cfg: &[String]) -> Need {
    let target = suite.rsplit("::").next().unwrap_or_default();
    let modules = &path[..path.len() - 1];
    let named = |word: &str| target == word || modules.iter().any(|module| module == word);
    let model = |text: &String| {
        text.contains("loom") && !text.contains("not (loom") && !text.contains("not(loom")
    };
    if named("loom") || cfg.iter().any(model) {
        Need::Loom
    } else if property || named("properties") {
        Need::Property
    } else {
        Need::Test
    }
}

/// The condition of a `cfg` attribute, but for `test`, which always holds here.
fn condition(attribute: &Attribute) -> Option<String> {
    let text = attribute.args.to_string();
    (attribute.name == "cfg" && text != "test").then_some(text)
}

/// The ids among the arguments, with their places; `crate = path` is no id.
fn ids(path: &Path, args: &TokenStream) -> Vec<Named> {
    let mut named = Vec::new();
    let mut skipping = false;
    for tree in args.clone() {
        match tree {
            TokenTree::Punct(punct) => skipping = punct.as_char() != ',' && skipping,
            TokenTree::Ident(ident) if ident == "crate" => skipping = true,
            TokenTree::Ident(ident) if !skipping => {
                let start = ident.span().start();
                let at = At::place(path, start.line, start.column + 1);
                let id = ident.to_string();
                named.push(Named { id, at });
            }
            _ => {}
        }
    }
    named
}

fn is_punct(tree: Option<&TokenTree>, wanted: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// The position after a function's body, or after its semicolon.
fn end_of_function(trees: &[TokenTree], at: usize) -> usize {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    let body = trees.iter().skip(at).position(ends);
    body.map_or(trees.len(), |body| at + body + 1)
}
