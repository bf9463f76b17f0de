//! Edits: exactly one match inside the named item, or the rule is stale.
//!
//! Owns the search and the splice. Works on texts; refuses to write files.
//! Invariant: nothing outside the matched bytes changes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_saphyr::Spanned;

use super::item::{self, KINDS, Named};
use super::tokens::{self, Token};
use crate::finding::{At, Finding, hint, nearest};
use crate::revert;
use crate::schema::rule::{Edit, Rule};

/// One replacement: bytes of the original file and what stands there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// Bytes of the original.
    pub range: Range<usize>,
    /// The new text.
    pub with: String,
}

/// What a rule does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The text before.
    pub before: String,
    /// The text after.
    pub after: String,
    /// The replacements, rising, without overlap.
    pub splices: Vec<Splice>,
}

/// Why a rule cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// No match, several, or no such file.
    Stale(Finding),
    /// It applies, and changes nothing that counts.
    Inert(Finding),
}

impl Broken {
    /// The complaint.
    pub fn finding(&self) -> &Finding {
        match self {
            Self::Stale(finding) | Self::Inert(finding) => finding,
        }
    }
}

/// Applies a rule's edits to the files that `read` returns; `root` is the repository of its commits.
pub fn apply(
    root: &Path,
    rule: &Rule,
    mut read: impl FnMut(&Path) -> Option<String>,
) -> Result<BTreeMap<PathBuf, Changed>, Broken> {
    let mut files: BTreeMap<PathBuf, Changed> = BTreeMap::new();
    if let Some(revert) = &rule.revert {
        let taken = revert::splices(root, revert, &mut read)
            .map_err(|why| stale(rule, &revert.commit, why))?;
        files.extend(taken.into_iter().map(|(path, (before, splices))| {
            let after = String::new();
            (
                path,
                Changed {
                    before,
                    after,
                    splices,
                },
            )
        }));
    }
    for edit in &rule.edits {
        let path = PathBuf::from(&edit.file.value);
        if !files.contains_key(&path) {
            let before = read(&path).ok_or_else(|| {
                stale(
                    rule,
                    &edit.file,
                    format!("there is no text file `{}`", path.display()),
                )
            })?;
            let fresh = Changed {
                after: String::new(),
                before,
                splices: vec![],
            };
            files.insert(path.clone(), fresh);
        }
        let changed = files.get_mut(&path).expect("it was inserted above");
        changed
            .splices
            .extend(splices(rule, edit, &path, &changed.before)?);
    }
    for (path, changed) in &mut files {
        let first = rule
            .edits
            .iter()
            .find(|edit| Path::new(&edit.file.value) == path);
        let commit = rule.revert.as_ref().map(|revert| &revert.commit);
        let place = first.map(|edit| &edit.file).or(commit);
        let place = place.expect("each file comes from an edit or a commit");
        changed.splices.sort_by_key(|splice| splice.range.start);
        let overlap = changed
            .splices
            .windows(2)
            .any(|pair| pair[0].range.end > pair[1].range.start);
        if overlap {
            return Err(stale(rule, place, "two edits change the same text".into()));
        }
        changed.after = spliced(&changed.before, &changed.splices);
        let same = if is_rust(path) {
            !tokens::differ(&changed.before, &changed.after)
        } else {
            changed.before == changed.after
        };
        if same {
            let message = format!("the edits change no token of `{}`", path.display());
            let at = At::location(&rule.file, &place.referenced);
            return Err(Broken::Inert(Finding { at, message }));
        }
    }
    Ok(files)
}

/// Whether a path is Rust source.
pub fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "rs")
}

/// `text` with the replacements made.
pub fn spliced(text: &str, splices: &[Splice]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for splice in splices {
        out.push_str(&text[at..splice.range.start]);
        out.push_str(&splice.with);
        at = splice.range.end;
    }
    out.push_str(&text[at..]);
    out
}

fn stale(rule: &Rule, place: &Spanned<String>, message: String) -> Broken {
    Broken::Stale(Finding {
        at: At::location(&rule.file, &place.referenced),
        message,
    })
}

/// What one edit replaces.
fn splices(rule: &Rule, edit: &Edit, path: &Path, text: &str) -> Result<Vec<Splice>, Broken> {
    let anchor = edit
        .find
        .as_ref()
        .or(edit.delete.as_ref())
        .or(edit.patch.as_ref());
    let anchor = anchor.ok_or_else(|| stale(rule, &edit.file, "the edit finds nothing".into()))?;
    if edit.patch.is_some() {
        return hunks(&anchor.value)
            .map_err(|why| stale(rule, anchor, why))?
            .into_iter()
            .map(|(old, new)| {
                let range = one(rule, edit, path, text, anchor, &old, false)?;
                Ok(Splice { range, with: new })
            })
            .collect();
    }
    let range = one(rule, edit, path, text, anchor, &anchor.value, is_rust(path))?;
    let with = edit.with.clone().unwrap_or_default();
    Ok(vec![Splice { range, with }])
}

/// The one match of `needle`, or why there is none.
fn one(
    rule: &Rule,
    edit: &Edit,
    path: &Path,
    text: &str,
    anchor: &Spanned<String>,
    needle: &str,
    by_tokens: bool,
) -> Result<Range<usize>, Broken> {
    let row = if is_rust(path) {
        tokens::of_file(text)
    } else {
        None
    };
    let areas = areas(rule, edit, path, text, row.as_deref())?;
    let mut found: Vec<Range<usize>> = if by_tokens {
        let Some(row) = &row else {
            return Err(stale(
                rule,
                &edit.file,
                format!("`{}` is no Rust that can be read", path.display()),
            ));
        };
        let needle = tokens::of_piece(needle)
            .filter(|needle| !needle.is_empty())
            .ok_or_else(|| stale(rule, anchor, "the anchor is not made of Rust tokens".into()))?;
        areas
            .iter()
            .flat_map(|area| token_matches(row, area, &needle))
            .collect()
    } else {
        let needle = needle.trim_end_matches('\n');
        if needle.is_empty() {
            return Err(stale(rule, anchor, "the anchor is empty".into()));
        }
        let within = |area: &Range<usize>| {
            let start = area.start;
            let all = text[area.clone()].match_indices(needle);
            all.map(move |(at, _)| start + at..start + at + needle.len())
                .collect::<Vec<_>>()
        };
        areas.iter().flat_map(within).collect()
    };
    // An item inside another of the same name is searched twice and still one place.
    found.sort_by_key(|range| range.start);
    found.dedup();
    match &found[..] {
        [range] => Ok(range.clone()),
        [] => {
            let near = nearest_line(text, &areas, needle)
                .map(|offset| format!("; the nearest line is {}", At::offset(path, text, offset)))
                .unwrap_or_default();
            Err(stale(
                rule,
                anchor,
                format!("the anchor matches nothing in {}{near}", place(edit, path)),
            ))
        }
        several => {
            let lines: Vec<String> = several
                .iter()
                .map(|range| At::offset(path, text, range.start).line.to_string())
                .collect();
            let message = format!(
                "the anchor matches {} times in {} (lines {})",
                several.len(),
                place(edit, path),
                lines.join(", ")
            );
            Err(stale(rule, anchor, message))
        }
    }
}

fn place(edit: &Edit, path: &Path) -> String {
    match &edit.inside {
        Some(inside) => format!("`{}` of `{}`", inside.value, path.display()),
        None => format!("`{}`", path.display()),
    }
}

/// The byte ranges that are searched: the named items, or the whole file.
fn areas(
    rule: &Rule,
    edit: &Edit,
    path: &Path,
    text: &str,
    row: Option<&[Token]>,
) -> Result<Vec<Range<usize>>, Broken> {
    let Some(inside) = &edit.inside else {
        return Ok(std::iter::once(0..text.len()).collect());
    };
    let Some(row) = row else {
        return Err(stale(
            rule,
            inside,
            format!(
                "`in` needs Rust, and `{}` is none that can be read",
                path.display()
            ),
        ));
    };
    let Some(named) = Named::parse(&inside.value) else {
        let message = format!(
            "`{}` names no item (one of {}, and a name)",
            inside.value,
            KINDS.join(", ")
        );
        return Err(stale(rule, inside, message));
    };
    let ranges = item::find(row, &named);
    if ranges.is_empty() {
        let (kind, name) = inside
            .value
            .split_once(' ')
            .unwrap_or(("fn", &inside.value));
        let names = item::names_of(row, kind);
        let hint = hint(name.trim(), names.iter().map(String::as_str));
        return Err(stale(
            rule,
            inside,
            format!("no `{}` in `{}`{hint}", inside.value, path.display()),
        ));
    }
    let bytes = |range: &Range<usize>| row[range.start].range.start..row[range.end - 1].range.end;
    Ok(ranges.iter().map(bytes).collect())
}

/// Where the row of tokens holds the needle, inside a range of bytes.
fn token_matches(row: &[Token], area: &Range<usize>, needle: &[Token]) -> Vec<Range<usize>> {
    let same = |window: &&[Token]| {
        window[0].range.start >= area.start
            && window[needle.len() - 1].range.end <= area.end
            && window.iter().zip(needle).all(|(a, b)| a.text == b.text)
    };
    row.windows(needle.len())
        .filter(same)
        .map(|window| window[0].range.start..window[needle.len() - 1].range.end)
        .collect()
}

/// The byte offset of the line most like the needle's first.
fn nearest_line(text: &str, areas: &[Range<usize>], needle: &str) -> Option<usize> {
    let wanted = needle
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    let mut lines = Vec::new();
    for area in areas {
        let mut offset = area.start;
        for line in text[area.clone()].split_inclusive('\n') {
            lines.push((line.trim(), offset + (line.len() - line.trim_start().len())));
            offset += line.len();
        }
    }
    let near = nearest(wanted, lines.iter().map(|(line, _)| *line))?;
    lines
        .iter()
        .find(|(line, _)| *line == near)
        .map(|(_, offset)| *offset)
}

/// Old and new text of each hunk of a unified diff.
fn hunks(patch: &str) -> Result<Vec<(String, String)>, String> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in patch.lines() {
        if line.starts_with("--- ") || line.starts_with("+++ ") || line.starts_with("diff ") {
            continue;
        }
        if line.starts_with("@@") {
            hunks.push(Default::default());
            continue;
        }
        if hunks.is_empty() {
            hunks.push(Default::default());
        }
        let (old, new) = hunks.last_mut().expect("one was pushed above");
        let (sign, rest) = line.split_at(line.len().min(1));
        if matches!(sign, "" | " " | "-") {
            old.push_str(rest);
            old.push('\n');
        }
        if matches!(sign, "" | " " | "+") {
            new.push_str(rest);
            new.push('\n');
        }
        if !matches!(sign, "" | " " | "+" | "-" | "\\") {
            return Err(format!("`{line}` is no line of a unified diff"));
        }
    }
    hunks.retain(|(old, new)| old != new);
    for (old, new) in &mut hunks {
        // The match leaves the last newline where it is.
        old.truncate(old.trim_end_matches('\n').len());
        new.truncate(new.trim_end_matches('\n').len());
    }
    if hunks.is_empty() {
        Err("the patch changes nothing".into())
    } else {
        Ok(hunks)
    }
}
