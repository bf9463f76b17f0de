//! The report: a static site, a front page and a page a row; no server and no network.
//!
//! Owns the pages: what they show and in which order. Their style and the search are files beside this one, put
//! into each page. Refuses to judge. Invariant: every text of the repository is escaped, and a page
//! needs nothing that is not in it or beside it.

mod matrix;
mod mentions;
mod row;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::row::{Explained, explain};
use super::stale::Changes;
use crate::judge::Judged;
use crate::rows::read::{Grade, State};
use crate::workspace::Workspace;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// Writes the site; how many pages it has. A page that is there as it would be written is left alone.
///
/// # Errors
///
/// When a directory or a page cannot be written, or the repository cannot be listed.
pub fn write(workspace: &Workspace, judged: &Judged, dir: &Path) -> Result<usize> {
    let changes = Changes::of(workspace, None);
    let mentions = mentions::find(&workspace.root)?;
    let rows: Vec<Explained> = workspace
        .rows
        .all()
        .map(|(area, row)| explain(workspace, area, row, &changes))
        .collect();
    let pages = dir.join("rows");
    std::fs::create_dir_all(&pages).with_context(|| format!("cannot make {}", pages.display()))?;
    save(&dir.join("index.html"), &front(workspace, judged, &rows))?;
    for (at, row) in rows.iter().enumerate() {
        let around = row::Around {
            before: at.checked_sub(1).map(|at| rows[at].id.as_str()),
            after: rows.get(at + 1).map(|row| row.id.as_str()),
            mentions: mentions.get(&row.id).map_or(&[], Vec::as_slice),
        };
        let text = row::page_of(workspace, row, &around);
        save(&pages.join(format!("{}.html", row.id)), &text)?;
    }
    Ok(rows.len() + 1)
}

fn save(path: &Path, text: &str) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    // A file that is truncated and written again is flushed to the disk at once by some file systems, each by itself.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::write(path, text),
    }
    .with_context(|| format!("cannot write {}", path.display()))
}

/// Text inside an element or a quoted attribute.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title><style>{STYLE}</style></head>\n<body>\n<a class=\"skip\" href=\"#main\">To the content</a>\n{body}\
         <script>{SCRIPT}</script></body></html>\n",
        escape(title)
    )
}

fn badge(grade: Grade) -> String {
    let word = grade.word();
    format!("<span class=\"grade {word}\">{word}</span>")
}

/// What a row shows as its grade: its state where nothing is wanted of it.
fn standing(row: &Explained) -> String {
    if row.state == State::Active.word() {
        badge(row.reached)
    } else {
        format!("<span class=\"grade other\">{}</span>", row.state)
    }
}

fn front(workspace: &Workspace, judged: &Judged, rows: &[Explained]) -> String {
    let mut body = String::from("<header><h1>What is promised and shown</h1>");
    let active: Vec<&Explained> = rows
        .iter()
        .filter(|row| row.state == State::Active.word())
        .collect();
    let share = |what: &str, least: Grade| {
        let count = active.iter().filter(|row| row.reached >= least).count();
        let percent = (count * 100).checked_div(active.len()).unwrap_or(0);
        format!(
            "<div class=\"figure\"><strong>{percent} %</strong> {what}<small>{count} of {} rows</small>\
             <meter min=\"0\" max=\"100\" value=\"{percent}\" aria-label=\"{what}\"></meter></div>",
            active.len()
        )
    };
    let _ = write!(
        body,
        "<div class=\"figures\">{}{}{}{}</div>",
        share("mapped", Grade::Declared),
        share("ran", Grade::Ran),
        share("passed", Grade::Passed),
        share("proven", Grade::Proven)
    );
    let commit = workspace.now.provenance.commit.as_deref();
    let changed = if workspace.now.provenance.dirty == Some(true) {
        ", with changes"
    } else {
        ""
    };
    let _ = write!(
        body,
        "<p>Commit {}{changed}. A row has reached no more than the weakest kind of evidence that it needs.</p></header>\n<main id=\"main\">",
        escape(commit.unwrap_or("unknown"))
    );
    body.push_str(&findings(judged));
    body.push_str(&results(workspace));
    body.push_str(&matrix::matrix(workspace, rows));
    body.push_str("</main>\n");
    page("What is promised and shown", &body)
}

fn findings(judged: &Judged) -> String {
    if judged.found.is_empty() {
        return "<h2>Nothing falls short</h2>\n".into();
    }
    let count = judged.found.len();
    // A long list would push the rows off the page.
    let open = if count <= 25 { " open" } else { "" };
    let mut out = format!(
        "<details{open}><summary><h2>What falls short: {count}</h2></summary>\n<table><thead><tr><th scope=\"col\">finding</th>\
         <th scope=\"col\">where</th><th scope=\"col\">what</th></tr></thead><tbody>\n"
    );
    for (severity, fault) in &judged.found {
        let _ = writeln!(
            out,
            "<tr><td><span class=\"{}\">{}</span></td><td><code>{}</code></td><td>{}</td></tr>",
            severity.word(),
            fault.code,
            escape(&fault.finding.at.to_string()),
            escape(&fault.finding.message)
        );
    }
    out + "</tbody></table></details>\n"
}

fn results(workspace: &Workspace) -> String {
    let mut out = String::from("<details><summary><h2>Results</h2></summary>\n<ul>");
    for file in &workspace.results.files {
        let standing = match &file.standing {
            crate::results::Standing::Current => "of this tree".to_owned(),
            crate::results::Standing::Unattributed => "of a tree that they do not name".to_owned(),
            crate::results::Standing::Stale(why) => format!("stale, not counted: {why}"),
        };
        let _ = write!(
            out,
            "<li><code>{}</code>: {} results, {}</li>",
            escape(&file.path.to_string_lossy()),
            file.count,
            escape(&standing)
        );
    }
    out + "</ul></details>\n"
}
