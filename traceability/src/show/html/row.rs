//! The page of one row: claim, reason, evidence with its code and last result, sabotages with their patches.
//!
//! Owns the order of a page. Refuses to judge. Invariant: each edge and each sabotage of the row is on it.

use std::fmt::Write as _;

use super::{badge, escape, page, standing};
use crate::files::{self, Open};
use crate::finding::At;
use crate::graph::Shown;
use crate::results::Verdict;
use crate::show::row::{Evidence, Explained};
use crate::show::stale::code;
use crate::show::words::Side;
use crate::workspace::Workspace;

/// What stands around a page.
pub(super) struct Around<'a> {
    /// The row before.
    pub(super) before: Option<&'a str>,
    /// The row after.
    pub(super) after: Option<&'a str>,
    /// Where the product's code names the row.
    pub(super) mentions: &'a [At],
}

/// Words that changed, as a page marks them.
fn marked(words: &[(Side, String)]) -> String {
    words.iter().fold(String::new(), |out, (side, text)| {
        let text = escape(text);
        match side {
            Side::Both => out + &text,
            Side::Old => format!("{out}<del>{text}</del>"),
            Side::New => format!("{out}<ins>{text}</ins>"),
        }
    })
}

/// The whole page.
pub(super) fn page_of(workspace: &Workspace, row: &Explained, around: &Around<'_>) -> String {
    let id = escape(&row.id);
    let beside = |id: Option<&str>, rel: &str, word: &str| {
        id.map_or_else(String::new, |id| {
            let id = escape(id);
            format!(" <a rel=\"{rel}\" href=\"{id}.html\">{word} {id}</a>")
        })
    };
    let mut body = format!(
        "<header><nav aria-label=\"Rows\"><a rel=\"up\" href=\"../index.html#rows\">All rows</a>{}{}</nav>\
         <h1>{id} {}</h1><p class=\"claim\">{}</p></header>\n<main id=\"main\"><dl>",
        beside(around.before, "prev", "before:"),
        beside(around.after, "next", "after:"),
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
        let text = format!("{}: {}", need.word(), grade.word());
        term("Weakest kind", &text);
    }
    let locked = row
        .evidence
        .iter()
        .filter_map(|evidence| evidence.locked.as_ref());
    if let Some((commit, day)) = locked.max_by_key(|(_, day)| day) {
        let short: String = commit.chars().take(12).collect();
        term("Last proven or accepted", &format!("{day}, commit {short}"));
    }
    for at in around.mentions {
        term("Product code", &at.to_string());
    }
    body.push_str("</dl>\n<h2>Evidence</h2>\n");
    if row.evidence.is_empty() {
        body.push_str("<p>Nothing shows it.</p>\n");
    }
    let edges = workspace.graph.edges_of(&row.id);
    for (edge, one) in edges.zip(&row.evidence) {
        body.push_str(&evidence(workspace, &workspace.graph.shown[edge.test], one));
    }
    body.push_str("<h2>Sabotages</h2>\n");
    if row.sabotages.is_empty() {
        body.push_str("<p>No sabotage breaks it.</p>\n");
    }
    for rule in workspace.rules.breaking(&row.id) {
        let checks: Vec<&str> = rule
            .checks
            .iter()
            .map(|(check, _)| check.as_str())
            .collect();
        let _ = write!(
            body,
            "<article><h3>{}</h3><p>{}</p><p>To be noticed by <code>{}</code>; stands at <code>{}</code></p>",
            escape(&rule.id),
            escape(&rule.promise),
            escape(&checks.join(", ")),
            escape(&rule.at.to_string())
        );
        for one in &row.evidence {
            for (_, said) in one.caught.iter().filter(|(caught, _)| *caught == rule.id) {
                let (test, said) = (escape(&one.test), escape(said));
                let _ = write!(
                    body,
                    "<p><span class=\"proven\">caught</span> by <code>{test}</code>:</p><pre>{said}</pre>"
                );
            }
            for (_, verdict) in one.missed.iter().filter(|(missed, _)| *missed == rule.id) {
                let (test, verdict) = (escape(&one.test), escape(verdict));
                let _ = write!(
                    body,
                    "<p><span class=\"hollow\">{verdict}</span> by <code>{test}</code></p>"
                );
            }
        }
        let _ = writeln!(
            body,
            "<details><summary>Patch</summary><pre>{}</pre></details></article>",
            escape(&rule_text(workspace, &rule.at))
        );
    }
    body.push_str("</main>\n");
    page(&format!("{}: {}", row.id, row.claim), &body)
}

fn evidence(workspace: &Workspace, shown: &Shown, one: &Evidence) -> String {
    let mut out = format!(
        "<article><h3><code>{}</code></h3><p>{} {} · ",
        escape(&one.test),
        badge(one.grade),
        one.kind.word()
    );
    let verdict = match shown.verdict() {
        Some(Verdict::Passed) => "passed",
        Some(Verdict::Failed) => "<span class=\"error\">failed</span>",
        Some(Verdict::Flaky) => "<span class=\"warning\">passed only when it was run again</span>",
        Some(Verdict::Skipped) => "<span class=\"warning\">skipped</span>",
        None => "no result",
    };
    out.push_str(verdict);
    if let Some(seconds) = one.seconds {
        let _ = write!(out, " in {seconds:.3} s");
    }
    let _ = writeln!(out, " · <code>{}</code></p>", escape(&one.at));
    if let Some(text) = &one.message {
        let _ = writeln!(out, "<pre>{}</pre>", escape(text));
    }
    if let Some(text) = &one.stale {
        let _ = writeln!(out, "<p class=\"inconclusive\">{}</p>", escape(text));
    }
    for (what, words) in &one.changes {
        let _ = writeln!(out, "<p>{what}:</p><pre>{}</pre>", marked(words));
    }
    let text = if shown.in_source {
        code(&workspace.root, &shown.test)
    } else {
        String::new()
    };
    if !text.is_empty() {
        let _ = write!(
            out,
            "<details><summary>Code</summary><pre>{}</pre></details>",
            escape(&text)
        );
    }
    out + "</article>\n"
}

/// The text of a rule: from its place to the next entry of the same list.
fn rule_text(workspace: &Workspace, at: &At) -> String {
    let text = files::text(&workspace.root, &Open::new(), &at.file).unwrap_or_default();
    let mut lines = text.lines().skip(at.line.saturating_sub(1) as usize);
    let first = lines.next().unwrap_or_default();
    let indent = first.len() - first.trim_start().len();
    let begins = |line: &&str| {
        !line
            .get(indent..)
            .is_some_and(|rest| rest.starts_with("- "))
    };
    let rest = lines.take_while(begins);
    rest.fold(format!("{first}\n"), |text, line| text + line + "\n")
}
