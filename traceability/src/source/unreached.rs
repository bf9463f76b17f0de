//! Rust files that no target reaches and that name rows all the same: their tests never run.
//!
//! Refuses to say where their tests would belong. Invariant: an attribute counts, and its look in a string does not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use proc_macro2::extra::invalidate_current_thread_spans;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Source;
use super::cache::Files;
use super::rust::Attribute;
use crate::code::Code;
use crate::cores;
use crate::finding::At;

/// Tells which of the files that no target reaches name rows; `source` says which were searched.
pub(super) fn tell(
    attribute: &str,
    wanted: &BTreeSet<&Path>,
    files: Files<'_>,
    cores: usize,
    source: &mut Source,
) {
    let reached: BTreeSet<&Path> = source.searched.iter().map(PathBuf::as_path).collect();
    let beside = wanted.iter().copied();
    let beside: Vec<&Path> = beside.filter(|path| !reached.contains(path)).collect();
    let mark = format!("{attribute}(");
    let names = cores::each(cores, &beside, |path| {
        let bytes = files.bytes(path);
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        let names = text.contains(&mark)
            && TokenStream::from_str(text).is_ok_and(|tokens| names_rows(tokens, attribute));
        invalidate_current_thread_spans();
        names
    });
    for (path, names) in beside.into_iter().zip(names) {
        if names {
            let message = "no target reaches this file, so its tests never run".into();
            source.fault(Code::NotCompiled, At::file(path), message);
        }
    }
}

fn names_rows(tokens: TokenStream, attribute: &str) -> bool {
    let mut last = None;
    tokens.into_iter().any(|tree| {
        let found = match &tree {
            TokenTree::Group(group) => {
                (group.delimiter() == Delimiter::Bracket
                    && last == Some('#')
                    && Attribute::of(group).is_some_and(|found| found.name == attribute))
                    || names_rows(group.stream(), attribute)
            }
            _ => false,
        };
        last = match tree {
            TokenTree::Punct(punct) => Some(punct.as_char()),
            _ => None,
        };
        found
    })
}
