//! The report: a static site, a front page and a page a row; no server and no network.
//!
//! Owns the pages: what they show and in which order. Their style and the search are files beside this one, put
//! into each page. Refuses to judge. Invariant: every text of the repository is escaped, and a page
//! needs nothing that is not in it or beside it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::row::{Explained, explain};
use crate::judge::Judged;
use crate::rows::read::{Grade, Need, State};
use crate::show::by_grade;
use crate::workspace::Workspace;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// Writes the site; how many pages it has.
pub fn write(workspace: &Workspace, judged: &Judged, dir: &Path) -> Result<usize> {
    let rows: Vec<Explained> = workspace
        .rows
        .all()
        .map(|(area, row)| explain(workspace, area, row))
        .collect();
    let save = |name: String, text: String| {
        let path = dir.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let pages = dir.join("rows");
    std::fs::create_dir_all(&pages).with_context(|| format!("cannot make {}", pages.display()))?;
    save("index.html".into(), front(workspace, judged, &rows))?;
    for row in &rows {
        save(format!("rows/{}.html", row.id), page_of(row))?;
    }
    Ok(rows.len() + 1)
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

fn page(title: &str, body: &str, script: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title><style>{STYLE}</style></head>\n<body>\n{body}{script}</body></html>\n",
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
            "<div class=\"figure\"><strong>{percent} %</strong> {what}<small>{count} of {} rows</small></div>",
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
        "<p>Commit {}{changed}. A row has reached no more than the weakest kind of evidence that it needs.</p></header>\n<main>",
        escape(commit.unwrap_or("unknown"))
    );
    body.push_str(&findings(judged));
    body.push_str(&results(workspace));
    body.push_str(&matrix(workspace, rows));
    body.push_str("</main>\n");
    page(
        "What is promised and shown",
        &body,
        &format!("<script>{SCRIPT}</script>"),
    )
}

fn findings(judged: &Judged) -> String {
    if judged.found.is_empty() {
        return "<h2>Nothing falls short</h2>\n".into();
    }
    let count = judged.found.len();
    let mut out = format!(
        "<details open><summary><h2>What falls short: {count}</h2></summary>\n<table><thead><tr><th scope=\"col\">finding</th>\
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

fn matrix(workspace: &Workspace, rows: &[Explained]) -> String {
    let mut out = String::from(
        "<h2 id=\"rows\">Rows</h2>\n<form role=\"search\"><label>Search <input id=\"search\" type=\"search\" \
         placeholder=\"id or words, / to come here\"></label> <label>Reached <select id=\"grade\"><option value=\"\">any</option>",
    );
    for (grade, count) in by_grade(workspace) {
        let word = grade.word();
        let _ = write!(out, "<option value=\"{word}\">{word} ({count})</option>");
    }
    out.push_str(
        "</select></label> <label>Area <select id=\"area\"><option value=\"\">any</option>",
    );
    for area in &workspace.rows.areas {
        let letters = escape(&area.letters.value);
        let title = escape(&area.title.value);
        let _ = write!(
            out,
            "<option value=\"{letters}\">{letters} {title}</option>"
        );
    }
    out.push_str("</select></label> <output id=\"count\" aria-live=\"polite\"></output></form>\n<table id=\"matrix\"><thead><tr><th scope=\"col\">row</th><th scope=\"col\">reached</th>");
    for need in Need::ALL {
        let _ = write!(out, "<th scope=\"col\">{}</th>", need.word());
    }
    out.push_str(
        "<th scope=\"col\">sabotages</th><th scope=\"col\">claim</th></tr></thead><tbody>\n",
    );
    for row in rows {
        let letters = row.id.trim_end_matches(|c: char| c.is_ascii_digit());
        let id = escape(&row.id);
        let _ = write!(
            out,
            "<tr data-grade=\"{}\" data-area=\"{}\"><th scope=\"row\"><a href=\"rows/{id}.html\">{id}</a></th><td>{}</td>",
            row.reached.word(),
            escape(letters),
            standing(row)
        );
        for need in Need::ALL {
            let best = row
                .evidence
                .iter()
                .filter(|evidence| evidence.kind == need)
                .map(|evidence| evidence.grade)
                .max();
            let needed = row.needs.iter().any(|(wanted, _)| *wanted == need);
            let cell = match (best, needed) {
                (Some(grade), _) => badge(grade),
                (None, true) => badge(Grade::None),
                (None, false) => String::new(),
            };
            let _ = write!(out, "<td>{cell}</td>");
        }
        let _ = writeln!(
            out,
            "<td>{}</td><td>{}</td></tr>",
            row.sabotages.len(),
            escape(&row.claim)
        );
    }
    out + "</tbody></table>\n"
}

fn page_of(row: &Explained) -> String {
    let id = escape(&row.id);
    let mut body = format!(
        "<header><p><a href=\"../index.html\">All rows</a></p><h1>{id} {}</h1><p>{}</p></header>\n<main><dl>",
        standing(row),
        escape(&row.claim)
    );
    let mut term = |name: &str, text: &str| {
        let _ = write!(body, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(text));
    };
    term("Why", &row.why);
    term("Stands at", &row.at);
    term("Floor", row.floor.word());
    for (name, text) in &row.waiver {
        term(name, text);
    }
    if let Some((need, grade)) = row.needs.iter().min_by_key(|(_, grade)| *grade) {
        term(
            "Weakest kind",
            &format!("{}: {}", need.word(), grade.word()),
        );
    }
    body.push_str("</dl>\n<h2>Evidence</h2>\n");
    if row.evidence.is_empty() {
        body.push_str("<p>Nothing shows it.</p>\n");
    } else {
        body.push_str("<table><thead><tr><th scope=\"col\">grade</th><th scope=\"col\">kind</th><th scope=\"col\">test</th><th scope=\"col\">where</th><th scope=\"col\">seconds</th></tr></thead><tbody>\n");
    }
    for evidence in &row.evidence {
        let _ = write!(
            body,
            "<tr><td>{}</td><td>{}</td><td><code>{}</code>",
            badge(evidence.grade),
            evidence.kind.word(),
            escape(&evidence.test)
        );
        if let Some(text) = &evidence.message {
            let _ = write!(body, "<pre>{}</pre>", escape(text));
        }
        if let Some(text) = &evidence.stale {
            let _ = write!(body, "<p class=\"inconclusive\">{}</p>", escape(text));
        }
        for (rule, said) in &evidence.caught {
            let _ = write!(
                body,
                "<p>caught {}: <code>{}</code></p>",
                escape(rule),
                escape(said)
            );
        }
        for (rule, verdict) in &evidence.missed {
            let _ = write!(
                body,
                "<p class=\"error\">{} was {}</p>",
                escape(rule),
                escape(verdict)
            );
        }
        let seconds = evidence
            .seconds
            .map_or_else(String::new, |seconds| format!("{seconds:.2}"));
        let _ = writeln!(
            body,
            "</td><td><code>{}</code></td><td>{seconds}</td></tr>",
            escape(&evidence.at)
        );
    }
    if !row.evidence.is_empty() {
        body.push_str("</tbody></table>\n");
    }
    body.push_str("<h2>Sabotages</h2>\n<ul>");
    for (rule, checks) in &row.sabotages {
        let checks = escape(&checks.join(", "));
        let _ = write!(
            body,
            "<li>{}, to be noticed by <code>{checks}</code></li>",
            escape(rule)
        );
    }
    if row.sabotages.is_empty() {
        body.push_str("<li>No sabotage breaks it.</li>");
    }
    body.push_str("</ul></main>\n");
    page(&format!("{}: {}", row.id, row.claim), &body, "")
}
