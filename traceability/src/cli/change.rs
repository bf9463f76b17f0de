//! Commands that change the rows or the lock: `new`, `retire`, `accept`.
//!
//! Owns the edits of the YAML, made on its text so that comments and order stay. Refuses to write anything
//! that the reader would not take: the edited text is read and judged before it is written.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::code::Severity;
use crate::config::Config;
use crate::lock::Line;
use crate::rows::check::{free, is_day};
use crate::rows::read::{self, Grade, Row};
use crate::rows::{self, Rows};
use crate::workspace::Workspace;

/// Flags of `new`.
#[derive(Debug, Args)]
pub(super) struct New {
    /// The area's letters; its file is made when it is not there.
    area: String,
    /// One testable sentence.
    claim: String,
    /// What goes wrong without it.
    #[arg(long)]
    why: String,
    /// Kinds of evidence that it needs.
    #[arg(long, value_delimiter = ',', default_value = "test")]
    needs: Vec<String>,
    /// Title of an area that is made.
    #[arg(long, default_value = "Untitled")]
    title: String,
}

/// Flags of `retire`.
#[derive(Debug, Args)]
pub(super) struct Retire {
    /// The row.
    row: String,
    /// Its successors; none when the promise is dropped.
    #[arg(long, value_delimiter = ',')]
    by: Vec<String>,
    /// Why.
    #[arg(long)]
    reason: String,
    /// The day; today.
    #[arg(long, value_name = "DAY")]
    date: Option<String>,
}

/// Flags of `accept`.
#[derive(Debug, Args)]
pub(super) struct Accept {
    /// The row; with `--proven` none.
    row: Option<String>,
    /// What was looked at.
    #[arg(long)]
    why: Option<String>,
    /// Write down every edge that is proven on this tree.
    #[arg(long, conflicts_with_all = ["row", "why"])]
    proven: bool,
}

/// Adds a row and prints its id.
pub(super) fn new(root: &Path, new: &New) -> Result<u8> {
    let config = Config::read(root)?;
    std::fs::create_dir_all(root.join(&config.spec))
        .with_context(|| format!("cannot make {}", config.spec.display()))?;
    let (all, _) = Rows::read(root, &config.spec)?;
    let file = config.spec.join(format!("{}.yaml", new.area));
    let id = format!("{}{}", new.area, next_free(&all, &new.area));
    let mut text = match std::fs::read_to_string(root.join(&file)) {
        Ok(text) => text,
        Err(_) => format!(
            "area: {}\ntitle: {}\nfloor: passed\nrows:\n",
            new.area,
            quoted(&new.title)
        ),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = write!(
        text,
        "  - id: {id}\n    claim: {}\n    why: {}\n    state: active\n    needs: [{}]\n",
        quoted(&new.claim),
        quoted(&new.why),
        new.needs.join(", ")
    );
    save(root, &config, &file, &text)?;
    println!("{id} in {}", file.display());
    Ok(0)
}

/// The number after the highest that rows or ledger know.
pub(super) fn next_free(all: &Rows, letters: &str) -> u32 {
    let area = all.areas.iter().find(|area| area.letters.value == letters);
    let used = all.ledger.iter().filter_map(|(id, _)| {
        let number = id.strip_prefix(letters)?;
        number.parse::<u32>().ok()
    });
    let next = area.and_then(|area| free(area).strip_prefix(letters)?.parse().ok());
    used.map(|used| used + 1).chain(next).max().unwrap_or(1)
}

/// Today.
pub(super) fn today() -> String {
    super::ask(Grade::None).today
}

/// Retires a row.
pub(super) fn retire(root: &Path, retire: &Retire) -> Result<u8> {
    let config = Config::read(root)?;
    let (all, _) = Rows::read(root, &config.spec)?;
    let (area, row) = super::find(&all, &retire.row)?;
    let date = retire.date.clone().unwrap_or_else(today);
    ensure!(is_day(&date), "`{date}` is no day, such as 2027-06-30");
    let file = area.file.clone();
    let text = std::fs::read_to_string(root.join(&file))
        .with_context(|| format!("cannot read {}", file.display()))?;
    let text = retired(&text, row, &retire.reason, &retire.by, &date)?;
    save(root, &config, &file, &text)?;
    println!("{} is retired", retire.row);
    Ok(0)
}

/// The text of a file of rows with one of them retired.
pub(super) fn retired(
    text: &str,
    row: &Row,
    reason: &str,
    by: &[String],
    date: &str,
) -> Result<String> {
    let first = row.id.referenced.line() as usize;
    let begins = |line: &str| line.trim_start().starts_with("- ");
    let mut out = String::new();
    let (mut inside, mut done) = (false, false);
    for (index, line) in text.lines().enumerate() {
        if index + 1 == first {
            inside = true;
        } else if begins(line) && line.contains("id:") {
            inside = false;
        }
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        let waiver = ["reason:", "expires:", "issue:", "owner:"];
        if inside && !done && trimmed.starts_with("state:") {
            let _ = write!(
                out,
                "{indent}state: retired\n{indent}reason: {}\n{indent}by: [{}]\n{indent}date: {date}\n",
                quoted(reason),
                by.join(", ")
            );
            done = true;
        } else if inside && waiver.iter().any(|key| trimmed.starts_with(key)) {
            // A retired row is waived no more.
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    ensure!(done, "{} has no `state:` of its own line", row.id.value);
    Ok(out)
}

/// Writes a file of rows when the reader takes it, and what is generated from all rows.
pub(super) fn save(root: &Path, config: &Config, file: &PathBuf, text: &str) -> Result<()> {
    let area = read::area(file, text).map_err(|finding| anyhow::anyhow!("{finding}"))?;
    let (mut all, _) = Rows::read(root, &config.spec)?;
    all.areas.retain(|other| other.file != *file);
    all.areas.push(area);
    all.areas.sort_by(|a, b| a.file.cmp(&b.file));
    let faults = rows::check::check(&config.spec, &all.areas, &all.ledger);
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    ensure!(faults.is_empty(), "nothing is written: {}", told.join("; "));
    std::fs::write(root.join(file), text)
        .with_context(|| format!("cannot write {}", file.display()))?;
    rows::write(root, &all.generated(config.constants.as_deref()))?;
    Ok(())
}

/// Accepts edges as they are.
pub(super) fn accept(root: &Path, accept: &Accept) -> Result<u8> {
    let workspace = Workspace::read(root, &super::given(&[]))?;
    let unreadable = |severity| severity == Severity::Unreadable;
    let broken = workspace
        .faults
        .iter()
        .find(|fault| unreadable(fault.code.severity()));
    if let Some(fault) = broken {
        anstream::eprintln!("{fault}");
        return Ok(2);
    }
    if let Some(id) = &accept.row {
        super::find(&workspace.rows, id)?;
        ensure!(accept.why.is_some(), "say what was looked at: --why");
    } else {
        ensure!(accept.proven, "name a row, or all proven edges by --proven");
    }
    let graph = &workspace.graph;
    let by_id = workspace.rows.by_id();
    let mut fresh: Vec<Line> = Vec::new();
    for (at, edge) in graph.edges.iter().enumerate() {
        let chosen = match &accept.row {
            Some(id) => edge.row == *id,
            None => edge.grade == Grade::Proven,
        };
        let Some((_, row)) = by_id.get(edge.row.as_str()).filter(|_| chosen) else {
            continue;
        };
        let line = workspace.lock.line_of(graph, at, row, &workspace.rules);
        let why = accept.why.clone().unwrap_or_else(|| "proven".into());
        fresh.push(Line { why, ..line });
    }
    ensure!(!fresh.is_empty(), "there is no such edge");
    let count = fresh.len();
    let exists = |line: &Line| {
        graph
            .edges_of(&line.row)
            .any(|edge| graph.shown[edge.test].test.id() == line.test)
    };
    let text = workspace.lock.renewed(fresh, exists);
    let path = root.join(&workspace.lock.path);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{count} edges in {}", workspace.lock.path.display());
    Ok(0)
}

/// A text as a YAML scalar on one line.
pub(super) fn quoted(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.contains([':', '#', '\n', '"', '\''])
        && text.trim() == text;
    if plain {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}
