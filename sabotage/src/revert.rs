//! A commit's product part taken back: its hunks found in the present text, by their exact surroundings.
//!
//! Owns `revert`. What is a test or a document stays, and what the rule keeps. Reads git, writes nothing.
//! Invariant: a hunk whose surroundings are gone, or stand in several places, is an error and never a guess.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::glob;
use crate::prove::change::{Change, Hunk};
use crate::schema::rule::Revert;
use crate::source::edit::Splice;
use crate::tree::git;

/// Lines on each side that must be as the commit left them.
const CONTEXT: usize = 3;

/// What takes the commit back in the files that `read` returns; the error says what does not fit.
pub fn splices(
    root: &Path,
    revert: &Revert,
    mut read: impl FnMut(&Path) -> Option<String>,
) -> Result<BTreeMap<PathBuf, (String, Vec<Splice>)>, String> {
    let commit = &revert.commit.value;
    let tip = git(
        root,
        &[
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{commit}^{{commit}}"),
        ],
    )
    .map_err(|_| format!("no commit `{commit}` in this repository"))?;
    let tip = tip.trim();
    let change = Change::read(root, &format!("{tip}^"), tip)
        .map_err(|error| format!("commit `{commit}` cannot be read: {error:#}"))?;
    let kept = |hunk: &&Hunk| {
        let path = hunk.file.to_string_lossy();
        !revert.keep.iter().any(|keep| glob::matches(keep, &path))
    };
    let mut files: BTreeMap<PathBuf, (String, Vec<Splice>)> = BTreeMap::new();
    for hunk in change.hunks.iter().filter(kept) {
        let path = &hunk.file;
        let place = format!("{}:{}", path.display(), hunk.line);
        let then = git(root, &["show", &format!("{tip}:{}", path.display())])
            .map_err(|error| format!("{place} of `{commit}` cannot be read: {error:#}"))?;
        if !files.contains_key(path) {
            let now =
                read(path).ok_or_else(|| format!("there is no text file `{}`", path.display()))?;
            files.insert(path.clone(), (now, Vec::new()));
        }
        let (now, splices) = files.get_mut(path).expect("it was inserted above");
        splices
            .push(moved(hunk, &then, now).map_err(|why| format!("{place} of `{commit}` {why}"))?);
    }
    if files.is_empty() {
        return Err(format!(
            "commit `{commit}` changes nothing but tests, documents and what is kept"
        ));
    }
    Ok(files)
}

/// The hunk's replacement in the present text.
fn moved(hunk: &Hunk, then: &str, now: &str) -> Result<Splice, String> {
    let back = hunk.back(then);
    if then == now {
        return Ok(back);
    }
    let start = lines_before(then, back.range.start);
    let end = lines_behind(then, back.range.end);
    let needle = &then[start..end];
    let mut found = now.match_indices(needle).map(|(at, _)| at);
    match (found.next(), found.next()) {
        (Some(at), None) => {
            let from = at + (back.range.start - start);
            Ok(Splice {
                range: from..from + back.range.len(),
                with: back.with,
            })
        }
        (None, _) => Err("has other surroundings now".into()),
        (Some(_), Some(_)) => Err("fits in several places now".into()),
    }
}

fn lines_before(text: &str, offset: usize) -> usize {
    let lines = text[..offset].split_inclusive('\n').rev().take(CONTEXT);
    offset - lines.map(str::len).sum::<usize>()
}

fn lines_behind(text: &str, offset: usize) -> usize {
    let lines = text[offset..].split_inclusive('\n').take(CONTEXT);
    offset + lines.map(str::len).sum::<usize>()
}
