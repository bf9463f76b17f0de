//! Named items of a file: where `fn ring`, `impl Bus` or `mod tests` begins and ends.
//!
//! Owns the words of `in:`. Refuses to resolve names: all items of that name are searched.

use std::ops::Range;

use super::tokens::Token;

/// The kinds of items that `in:` can name.
pub const KINDS: [&str; 8] = [
    "fn", "impl", "mod", "trait", "struct", "enum", "const", "static",
];

/// The item that `in:` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    kind: String,
    /// `Type` of `fn Type::name`.
    within: Option<String>,
    /// Tokens of the name, without spaces.
    name: String,
}

impl Named {
    /// Reads `fn ring`, `fn Bus::ring`, `impl Bus`, `impl Display for Bus`, `mod tests`.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.trim().split_once(char::is_whitespace)?;
        let name = name.trim();
        if !KINDS.contains(&kind) || name.is_empty() {
            return None;
        }
        let (within, name) = match name.rsplit_once("::") {
            Some((within, name)) if kind == "fn" => (Some(squeeze(within)), name),
            _ => (None, name),
        };
        Some(Self {
            kind: kind.into(),
            within,
            name: squeeze(name),
        })
    }
}

/// Text without white space, but for one blank around `for`.
fn squeeze(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut out = String::new();
    for word in words {
        if word == "for" {
            out.push_str(" for ");
        } else {
            out.push_str(word);
        }
    }
    out
}

/// One item found: its kind, its name and the indexes of its tokens.
#[derive(Debug, Clone)]
struct Found {
    kind: String,
    name: String,
    tokens: Range<usize>,
}

/// The ranges of token indexes of every item that `named` means.
pub fn find(tokens: &[Token], named: &Named) -> Vec<Range<usize>> {
    let all = items(tokens);
    let holder = |item: &Found| {
        let Some(within) = &named.within else {
            return true;
        };
        all.iter().any(|outer| {
            matches!(outer.kind.as_str(), "impl" | "trait" | "mod")
                && outer.tokens.start < item.tokens.start
                && item.tokens.end <= outer.tokens.end
                && names(outer, within)
        })
    };
    let meant = |item: &&Found| item.kind == named.kind && names(item, &named.name) && holder(item);
    all.iter()
        .filter(meant)
        .map(|item| item.tokens.clone())
        .collect()
}

/// Names of the items of a kind, for the nearest right one.
pub fn names_of(tokens: &[Token], kind: &str) -> Vec<String> {
    items(tokens)
        .into_iter()
        .filter(|item| item.kind == kind)
        .map(|item| item.name)
        .collect()
}

/// The innermost function that holds a token, as `in:` would name it.
pub fn enclosing_fn(tokens: &[Token], index: usize) -> Option<String> {
    items(tokens)
        .into_iter()
        .filter(|item| item.kind == "fn" && item.tokens.contains(&index))
        .min_by_key(|item| item.tokens.len())
        .map(|item| format!("fn {}", item.name))
}

/// `impl A<T> for B<T>` answers to `A<T> for B<T>`, `A for B`, `B<T>` and `B`.
fn names(item: &Found, wanted: &str) -> bool {
    if item.kind != "impl" {
        return item.name == wanted;
    }
    let bare = without_generics(&item.name);
    let target = |name: &str| name.rsplit(" for ").next().unwrap_or_default().to_owned();
    [item.name.clone(), target(&item.name), target(&bare), bare]
        .iter()
        .any(|name| name == wanted)
}

fn without_generics(name: &str) -> String {
    let mut depth = 0_usize;
    let keep = |c: &char| {
        match c {
            '<' => depth += 1,
            '>' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    };
    name.chars().filter(keep).collect()
}

/// Every item of the row of tokens, at any depth, also inside macros.
fn items(tokens: &[Token]) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let kind = token.text.as_str();
        if !KINDS.contains(&kind) {
            continue;
        }
        let Some(end) = end_of(tokens, index, kind) else {
            continue;
        };
        let name = match kind {
            "impl" => header(&tokens[index + 1..end]),
            _ => tokens
                .get(index + 1)
                .map(|token| token.text.clone())
                .unwrap_or_default(),
        };
        // `impl Trait` in a type and `fn(u8)` as a type are no items.
        let item = match kind {
            "impl" => starts_item(tokens, index),
            "fn" => name.starts_with(|c: char| c.is_alphabetic() || c == '_'),
            _ => true,
        };
        if item {
            found.push(Found {
                kind: kind.into(),
                name,
                tokens: index..end,
            });
        }
    }
    found
}

/// An `impl` that begins an item stands first, or behind `}`, `;`, `]`, `{` or `unsafe`.
fn starts_item(tokens: &[Token], index: usize) -> bool {
    index == 0
        || matches!(
            tokens[index - 1].text.as_str(),
            "}" | ";" | "]" | "{" | "unsafe" | "default"
        )
}

/// One past the item's last token: its closing brace, or its semicolon.
fn end_of(tokens: &[Token], start: usize, kind: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let ends_at_brace = !matches!(kind, "const" | "static");
    for (offset, token) in tokens[start..].iter().enumerate() {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && token.text == "}" && ends_at_brace {
                    return Some(start + offset + 1);
                }
            }
            ";" if depth == 0 => return Some(start + offset + 1),
            _ => {}
        }
    }
    None
}

/// The words of an `impl` up to its `where` or its body, without the generics behind `impl`.
fn header(tokens: &[Token]) -> String {
    let mut rest = tokens;
    if rest.first().is_some_and(|token| token.text == "<") {
        let mut depth = 0_usize;
        let mut after = 0;
        for (index, token) in rest.iter().enumerate() {
            match token.text.as_str() {
                "<" => depth += 1,
                // The arrow of `Fn() -> T` closes nothing.
                ">" if index > 0 && rest[index - 1].text == "-" => {}
                ">" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                after = index + 1;
                break;
            }
        }
        rest = &rest[after..];
    }
    let until = rest
        .iter()
        .position(|token| matches!(token.text.as_str(), "where" | "{"));
    let words: Vec<&str> = rest[..until.unwrap_or(rest.len())]
        .iter()
        .map(|token| token.text.as_str())
        .collect();
    squeeze(&words.join(" "))
}
