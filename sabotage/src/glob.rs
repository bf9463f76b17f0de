//! Patterns of names and paths: `*` inside one part, `**` over parts, `?` one character.
//!
//! Owns the meaning of a pattern. Refuses to follow links out of the repository.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use regex::Regex;

/// Whether `name` matches `pattern`.
///
/// ```
/// assert!(sabotage::glob::matches("publish-*", "publish-skips"));
/// assert!(sabotage::glob::matches("src/**", "src/a/b.rs"));
/// assert!(!sabotage::glob::matches("src/*.rs", "src/a/b.rs"));
/// ```
pub fn matches(pattern: &str, name: &str) -> bool {
    regex(pattern).is_match(name)
}

/// The pattern, for many names.
pub(crate) fn regex(pattern: &str) -> Regex {
    let mut text = String::from("^");
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            text.push_str("(?:.*/)?");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            text.push_str(".*");
            rest = after;
        } else {
            match c {
                '*' => text.push_str("[^/]*"),
                '?' => text.push_str("[^/]"),
                c => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    text.push('$');
    Regex::new(&text).expect("an escaped pattern is a pattern")
}

/// The files under `root` whose relative path matches, sorted.
pub fn files(root: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let regex = regex(pattern);
    // The fixed directories in front are not searched for: they are entered.
    let fixed: PathBuf = Path::new(pattern)
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?']))
        .collect();
    let start = if pattern.contains(['*', '?']) {
        fixed
    } else {
        fixed.parent().map(Path::to_owned).unwrap_or_default()
    };
    let mut found = Vec::new();
    let mut open = vec![start];
    while let Some(dir) = open.pop() {
        let full = root.join(&dir);
        if !full.is_dir() {
            continue;
        }
        for entry in
            std::fs::read_dir(&full).with_context(|| format!("cannot list {}", full.display()))?
        {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(path);
            } else if regex.is_match(&path.to_string_lossy()) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
