//! The matrix of the front page: rows by kinds of evidence and sabotages, with its search.
//!
//! Owns the table and the form above it. Refuses to filter: the script beside the style does. Invariant: a row that has
//! no page is in no table.

use std::fmt::Write as _;

use super::{badge, escape, standing};
use crate::rows::read::{Grade, Need};
use crate::show::by_grade;
use crate::show::row::Explained;
use crate::workspace::Workspace;

/// Form and table.
pub(super) fn matrix(workspace: &Workspace, rows: &[Explained]) -> String {
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
    out.push_str("</select></label> <output id=\"count\" aria-live=\"polite\"></output></form>\n<table id=\"matrix\"><caption>Rows by kind of evidence. A dot is a kind that is neither needed nor there.</caption><colgroup><col class=\"of-id\"><col class=\"of-grade\"><col span=\"5\" class=\"of-kind\"><col class=\"of-count\"><col></colgroup><thead><tr><th scope=\"col\">row</th><th scope=\"col\">reached</th>");
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
                (None, false) => "<span class=\"other\">·</span>".into(),
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
    out + "</tbody></table>\n<p id=\"none\" hidden>No row fits. Escape empties the search.</p>\n"
}
