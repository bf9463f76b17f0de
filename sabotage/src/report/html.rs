//! One page that needs nothing else: every rule with its patch, verdict and message, and a search.
//!
//! Owns the page. The report in the form of mutation-testing-elements stands inside it as data, for viewers and
//! dashboards; their web component is 400 kB of script from a network or a copy of it here, and it would show a
//! rule over several files as one place of one file. Refuses the network: its own policy forbids it.
//! Invariant: no text of a rule or of a message can become markup.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::told::{Told, severity};
use super::{elements, terminal};
use crate::source::patch::Patch;
use crate::verdict::{Record, Verdict};

const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n<title>Sabotage</title>\n<style>\n";

/// The page.
pub fn page(told: &Told, root: &Path) -> String {
    let mut text = String::from(HEAD);
    text.push_str(include_str!("page.css"));
    text.push_str("</style>\n</head>\n<body>\n<h1>Sabotage</h1>\n");
    let closing = terminal::closing(told);
    for line in anstream::adapter::strip_str(&closing).to_string().lines() {
        let _ = writeln!(text, "<p class=\"closing\">{}</p>", escape(line));
    }
    let commit = told.commit.as_deref().unwrap_or("none");
    let tree: String = told.tree.chars().take(16).collect();
    let _ = writeln!(
        text,
        "<p class=\"of\">commit {}, tree {}</p>",
        escape(commit),
        escape(&tree)
    );
    for note in &told.notes {
        let _ = writeln!(text, "<p class=\"of\">note: {}</p>", escape(note));
    }
    text.push_str(&form(told));
    let mut records: Vec<&Record> = told.rules.iter().collect();
    records.sort_by_key(|record| (severity(record.verdict), &record.rule));
    for record in records {
        rule(record, &mut text);
    }
    // `<` alone could end the element; as an escape of JSON it cannot.
    let data = elements::report(told, root)
        .to_string()
        .replace('<', "\\u003c");
    let _ = write!(
        text,
        "<script type=\"application/json\" id=\"mutation-testing-report\">{data}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
        include_str!("page.js")
    );
    text
}

/// The search, shown only where scripts run.
fn form(told: &Told) -> String {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for record in &told.rules {
        *counts.entry(severity(record.verdict)).or_default() += 1;
    }
    let mut text = String::from(
        "<form hidden><input type=\"search\" name=\"text\" placeholder=\"rule, row, file, check, message\" aria-label=\"Search\">\n",
    );
    for ((_, _, verdict), count) in counts {
        let _ = writeln!(
            text,
            "<label><input type=\"checkbox\" value=\"{0}\" checked> {0} {count}</label>",
            verdict.word()
        );
    }
    text + "<span id=\"shown\"></span></form>\n"
}

fn rule(record: &Record, text: &mut String) {
    let open = if record.verdict.is_fine() {
        ""
    } else {
        " open"
    };
    let _ = writeln!(
        text,
        "<details data-verdict=\"{0}\"{open}>\n<summary><span class=\"word {1}\">{0}</span> <span class=\"id\">{2}</span> <span>{3}</span> <span class=\"rows\">{4}</span></summary>",
        record.verdict.word(),
        class(record.verdict),
        escape(&record.rule),
        escape(&record.promise),
        escape(&record.rows.join(" "))
    );
    for patch in &record.patches {
        let _ = write!(text, "{}", shown(patch));
    }
    text.push_str("<dl>\n");
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "<dt>{name}</dt><dd>{}</dd>", escape(value));
        }
    };
    if let (Some(gate), Some(check)) = (&record.gate, &record.check) {
        line("check", &format!("{gate}: {check}"));
    }
    line(
        "noticed by",
        &record.noticed.clone().unwrap_or_default().join(", "),
    );
    line("why", &record.why);
    line("rule", &record.at);
    line(
        "time",
        &format!("{:.2} s, built {}", record.seconds, record.built),
    );
    text.push_str("</dl>\n");
    if let Some(message) = &record.message {
        let _ = writeln!(text, "<pre>{}</pre>", escape(message.trim_end()));
    }
    text.push_str("</details>\n");
}

fn shown(patch: &Patch) -> String {
    let mut text = format!(
        "<div class=\"at\">{}:{}:{}</div>\n<pre>",
        escape(&patch.file),
        patch.line,
        patch.column
    );
    for (class, sign, lines) in [("old", '-', &patch.old), ("new", '+', &patch.new)] {
        for line in lines.lines() {
            let _ = write!(
                text,
                "<span class=\"{class}\">{sign}{}</span>",
                escape(line)
            );
        }
    }
    text + "</pre>\n"
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Caught => "good",
        Verdict::Skipped | Verdict::KnownGap | Verdict::Pending => "calm",
        Verdict::Infra | Verdict::Timeout | Verdict::Flaky | Verdict::GapClosed => "odd",
        _ => "bad",
    }
}

/// Text inside an element or an attribute.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
