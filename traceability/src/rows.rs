//! The rows: what is promised, read from YAML, judged among each other, and what is generated from them.
//!
//! Reading order: `read` (files to values), `check` (values among each other), `emit` (generated texts).
//! Refuses to know evidence. Invariant: no id that was ever used is used again.

pub mod check;
pub mod emit;
pub mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::code::{Code, Fault};
use crate::files::Open;
use crate::finding::{At, Finding};
use read::{Area, Grade, Recorded, Row};

/// All rows of a repository.
#[derive(Debug)]
pub struct Rows {
    /// Directory of the YAML files, relative to the repository.
    pub dir: PathBuf,
    /// The areas in the order of their files.
    pub areas: Vec<Area>,
    /// The ids that were ever used.
    pub ledger: Vec<Recorded>,
}

impl Rows {
    /// Reads the rows under `root/dir` and judges them. With a fault `row-unreadable` the rows are not
    /// whole, and nothing else is judged: a file that does not parse would make all its rows look lost.
    pub fn read(root: &Path, dir: &Path) -> Result<(Self, Vec<Fault>)> {
        Self::read_with(root, dir, &Open::new())
    }

    /// As [`Rows::read`], where an editor holds some of the files.
    pub fn read_with(root: &Path, dir: &Path, open: &Open) -> Result<(Self, Vec<Fault>)> {
        let (areas, mut faults) = read::areas(root, dir, open)?;
        let ledger = read::ledger(root, dir)?;
        if faults.is_empty() {
            faults = check::check(dir, &areas, &ledger);
        }
        let dir = dir.to_owned();
        Ok((Self { dir, areas, ledger }, faults))
    }

    /// Each row with its area, in the order of the files.
    pub fn all(&self) -> impl Iterator<Item = (&Area, &Row)> {
        let with = |area| move |row| (area, row);
        self.areas
            .iter()
            .flat_map(move |area: &Area| area.rows.iter().map(with(area)))
    }

    /// The row of an id.
    pub fn find(&self, id: &str) -> Option<(&Area, &Row)> {
        self.all().find(|(_, row)| row.id.value == id)
    }

    /// Rows by id, for who asks often.
    pub fn by_id(&self) -> BTreeMap<&str, (&Area, &Row)> {
        self.all()
            .map(|(area, row)| (row.id.value.as_str(), (area, row)))
            .collect()
    }

    /// What is generated from the rows: paths relative to the repository, and texts. The document and the
    /// ledger stand beside the rows; `constants` is where a Rust crate of constants wants its own.
    pub fn generated(&self, constants: Option<&Path>) -> Vec<(PathBuf, String)> {
        let mut files = vec![
            (self.dir.join(DOCUMENT), emit::document(&self.areas)),
            (
                self.dir.join(read::LEDGER),
                emit::ledger(&self.areas, &self.ledger),
            ),
        ];
        if let Some(path) = constants {
            files.push((path.to_owned(), emit::constants(&self.areas)));
        }
        files
    }
}

/// Generated files that differ from what is on disk. One that is not there counts only where `wanted`
/// says so: a repository need not keep it.
pub fn stale(root: &Path, files: &[(PathBuf, String)], wanted: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, fresh) in files {
        let old = std::fs::read_to_string(root.join(path));
        if old.is_err() && !wanted {
            continue;
        }
        let old = old.unwrap_or_default();
        if old != *fresh {
            let at = At::line(path, emit::first_difference(&old, fresh));
            let message = "is stale: generate it from the rows and commit it".into();
            let finding = Finding { at, message };
            faults.push(Fault::new(Code::GeneratedStale, finding));
        }
    }
    faults
}

/// Writes the files that differ; their paths.
pub fn write(root: &Path, files: &[(PathBuf, String)]) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (path, fresh) in files {
        let full = root.join(path);
        if std::fs::read_to_string(&full).unwrap_or_default() != *fresh {
            std::fs::write(&full, fresh)
                .with_context(|| format!("cannot write {}", path.display()))?;
            written.push(path.clone());
        }
    }
    Ok(written)
}

/// The generated document, within the directory of the rows.
pub const DOCUMENT: &str = "SPEC.md";

/// The grade that a row must reach.
pub fn floor(area: &Area, row: &Row) -> Grade {
    row.floor.unwrap_or(area.floor)
}

/// Where a row stands.
pub fn place(area: &Area, row: &Row) -> At {
    At::location(&area.file, &row.id.referenced)
}
