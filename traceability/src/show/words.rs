//! What changed between two texts, word by word.
//!
//! Owns the two forms: git's for a terminal, `del` and `ins` for a page. Refuses to know what the texts are. Invariant:
//! without its marks a form holds every word of the old text or every word of the new one, in order.

use std::fmt::Write as _;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Whether words stand in the old text, the new one, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// In both.
    Both,
    /// In the old one alone.
    Old,
    /// In the new one alone.
    New,
}

/// The words of both texts, those of one side together.
pub fn compare(old: &str, new: &str) -> Vec<(Side, String)> {
    let mut parts: Vec<(Side, String)> = Vec::new();
    for change in TextDiff::from_words(old, new).iter_all_changes() {
        let side = match change.tag() {
            ChangeTag::Equal => Side::Both,
            ChangeTag::Delete => Side::Old,
            ChangeTag::Insert => Side::New,
        };
        match parts.last_mut() {
            Some((last, text)) if *last == side => text.push_str(change.value()),
            _ => parts.push((side, change.value().to_owned())),
        }
    }
    parts
}

/// As `git diff --word-diff` writes it: `[-old-]{+new+}`.
pub fn plain(parts: &[(Side, String)]) -> String {
    let mut out = String::new();
    for (side, text) in parts {
        let _ = match side {
            Side::Both => write!(out, "{text}"),
            Side::Old => write!(out, "[-{text}-]"),
            Side::New => write!(out, "{{+{text}+}}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{compare, plain};

    #[m0_spec::row(T23)]
    #[test]
    fn a_number_that_changed_is_the_only_word_that_is_marked() {
        let shown = plain(&compare(
            "At 2 workers all is so.",
            "At 3 workers all is so.",
        ));
        assert_eq!(shown, "At [-2-]{+3+} workers all is so.");
        assert_eq!(plain(&compare("same words", "same words")), "same words");
        assert_eq!(plain(&compare("", "new")), "{+new+}");
    }
}
