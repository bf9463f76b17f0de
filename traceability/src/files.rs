//! Which files a repository has, and which of them a pattern means.
//!
//! Owns patterns (`*` inside one part of a path, `**` over parts, `?` one character) and the list.
//! Refuses to read a file. Invariant: paths are relative to the root and sorted, so that every
//! output is the same on every machine.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Texts that an editor holds and has not saved, by path: they stand for what is on disk.
pub type Open = BTreeMap<PathBuf, String>;

/// The text of a file, as an editor holds it or else as it is on disk.
///
/// # Errors
///
/// When the file cannot be read, or is no text.
pub fn text(root: &Path, open: &Open, path: &Path) -> std::io::Result<String> {
    match open.get(path) {
        Some(text) => Ok(text.clone()),
        None => std::fs::read_to_string(root.join(path)),
    }
}

/// Whether a path matches a pattern.
///
/// ```
/// use traceability::files::matches;
/// assert!(matches("**/*.rs", "a/b.rs") && matches("**/*.rs", "b.rs"));
/// assert!(!matches("src/*.rs", "src/a/b.rs"));
/// ```
pub fn matches(pattern: &str, path: &str) -> bool {
    part(pattern.as_bytes(), path.as_bytes())
}

fn part(pattern: &[u8], path: &[u8]) -> bool {
    if let Some(rest) = pattern.strip_prefix(b"**/") {
        // Nothing, or any number of whole parts.
        let begins = path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .map(|(at, _)| at + 1);
        return std::iter::once(0)
            .chain(begins)
            .any(|at| part(rest, &path[at..]));
    }
    if pattern == b"**" {
        return true;
    }
    match pattern.split_first() {
        None => path.is_empty(),
        Some((b'*', rest)) => {
            let end = path
                .iter()
                .position(|byte| *byte == b'/')
                .unwrap_or(path.len());
            (0..=end).any(|at| part(rest, &path[at..]))
        }
        Some((wanted, rest)) => path.split_first().is_some_and(|(got, tail)| {
            (wanted == got || (*wanted == b'?' && *got != b'/')) && part(rest, tail)
        }),
    }
}

/// The files of a repository: what git tracks or would track, or without git all but hidden
/// directories, `target` and `node_modules`.
pub fn list(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = match by_git(root) {
        Some(files) => files,
        None => walk(root, PathBuf::new())?,
    };
    files.sort_unstable_by(|a, b| by_parts(a, b));
    files.dedup();
    Ok(files)
}

/// The order of paths, part by part: that of `Path`, of which these have no part that is empty or a dot, without taking
/// each apart in every comparison.
fn by_parts(a: &Path, b: &Path) -> Ordering {
    let (a, b) = (
        a.as_os_str().as_encoded_bytes(),
        b.as_os_str().as_encoded_bytes(),
    );
    let differs = a.iter().zip(b).find(|(a, b)| a != b);
    differs.map_or(a.len().cmp(&b.len()), |(a, b)| {
        (*a != b'/', a).cmp(&(*b != b'/', b))
    })
}

fn by_git(root: &Path) -> Option<Vec<PathBuf>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "-co", "--exclude-standard"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let files: Vec<PathBuf> = text
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect();
    // A file that is tracked and deleted is no file.
    let there = files
        .into_iter()
        .filter(|path| root.join(path).is_file())
        .collect();
    output.status.success().then_some(there)
}

fn walk(root: &Path, start: PathBuf) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![start];
    while let Some(dir) = open.pop() {
        let full = root.join(&dir);
        let entries =
            std::fs::read_dir(&full).with_context(|| format!("cannot list {}", full.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", full.display()))?;
            let name = entry.file_name();
            let kind = entry.file_type()?;
            let skipped = name.to_string_lossy().starts_with('.')
                || ["target", "node_modules", "__pycache__"]
                    .iter()
                    .any(|skip| name == *skip);
            if kind.is_dir() && !skipped {
                open.push(dir.join(name));
            } else if kind.is_file() {
                files.push(dir.join(name));
            }
        }
    }
    Ok(files)
}

/// The files that a pattern means on disk, ignored ones too (results are built, not tracked). The
/// fixed directories in front are entered, not searched for; an absolute pattern is taken as it is.
pub fn find(root: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    if !pattern.contains(['*', '?']) {
        let path = PathBuf::from(pattern);
        return Ok(if root.join(&path).is_file() {
            vec![path]
        } else {
            Vec::new()
        });
    }
    let fixed: PathBuf = Path::new(pattern)
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?']))
        .collect();
    if !root.join(&fixed).is_dir() {
        return Ok(Vec::new());
    }
    let mut found = walk(root, fixed)?;
    found.retain(|path| matches(pattern, &path.to_string_lossy()));
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{by_parts, find, list, matches};

    #[m0_spec::row(T1)]
    #[test]
    fn a_pattern_means_whole_parts() {
        for (pattern, path, is) in [
            ("**/*.rs", "a/b/c.rs", true),
            ("**/*.rs", "c.rs", true),
            ("a/**", "a/b/c", true),
            ("a/*", "a/b/c", false),
            ("a/?.rs", "a/b.rs", true),
            ("a/?.rs", "a/bb.rs", false),
            ("a?b", "a/b", false),
            ("**/tests/**/*.py", "x/tests/y/z.py", true),
        ] {
            assert_eq!(matches(pattern, path), is, "{pattern} {path}");
        }
    }

    #[m0_spec::row(T1)]
    #[test]
    fn paths_are_in_the_order_of_their_parts() {
        let names = [
            "a/b", "a-b", "a", "a.rs", "a/b/c", "a/b-c", "ab/a", "A", "a/\u{e4}", "a b/c", "b/a",
        ];
        let mut sorted = names.map(PathBuf::from);
        sorted.sort();
        let mut own = names.map(PathBuf::from);
        own.sort_by(|a, b| by_parts(a, b));
        assert_eq!(own, sorted);
    }

    #[m0_spec::row(T1)]
    #[test]
    fn what_is_built_is_found_by_pattern_and_not_listed() {
        let root = tempfile::tempdir().expect("a directory for the test");
        for name in ["a/x.py", "target/r/junit.xml", "node_modules/y.js", ".h/z"] {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            std::fs::write(path, "").expect("written");
        }
        let listed = list(root.path()).expect("it is listed");
        assert_eq!(listed, [std::path::PathBuf::from("a/x.py")]);
        let found = find(root.path(), "target/**/*.xml").expect("it is searched");
        assert_eq!(found, [std::path::PathBuf::from("target/r/junit.xml")]);
        assert!(find(root.path(), "nowhere/*.xml").expect("none").is_empty());
    }
}
