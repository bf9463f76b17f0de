//! Where the product's code names rows: comments `// spec: E22` on lines of their own.
//!
//! Owns the form. They prove nothing, are asked of nobody, and are shown on the page of a row. Invariant: a comment in any
//! other form is no mention.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::files;
use crate::finding::At;
use crate::source::comments::Language;

/// The places of each id.
pub(super) fn find(root: &Path) -> Result<BTreeMap<String, Vec<At>>> {
    let mut found: BTreeMap<String, Vec<At>> = BTreeMap::new();
    for path in files::list(root)? {
        let known =
            Language::of(&path).is_some() || path.extension().is_some_and(|ext| ext == "rs");
        if !known {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            let rest = line.trim_start();
            let ids = ["// spec: ", "# spec: "]
                .into_iter()
                .find_map(|mark| rest.strip_prefix(mark));
            let column = line.len() - rest.len() + 1;
            for id in ids.into_iter().flat_map(|ids| ids.split(',')) {
                let place = At::place(&path, index + 1, column);
                found.entry(id.trim().to_owned()).or_default().push(place);
            }
        }
    }
    Ok(found)
}
