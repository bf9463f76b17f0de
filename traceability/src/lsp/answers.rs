//! What is known of the row under the cursor: its claim and grade, and where it, its tests and its sabotages stand.
//!
//! Owns the words of a hover and the choice of ids that a completion offers. Refuses to read anything but the text
//! around the cursor. Invariant: an id of no row has no answer, and the finding at it says why.

use std::fmt::Write as _;
use std::path::Path;

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemTag, Hover, HoverContents, Location,
    MarkupContent, MarkupKind, TextDocumentPositionParams,
};

use super::words::{self, Encoding};
use crate::files::{self, Open};
use crate::finding::At;
use crate::rows::place;
use crate::rows::read::{Area, Row, State};
use crate::show::row::{Explained, explain};
use crate::show::stale::Changes;
use crate::workspace::Workspace;

/// The repository, and how the editor counts.
pub(super) struct Answers<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) root: &'a Path,
    pub(super) open: &'a Open,
    pub(super) encoding: Encoding,
}

impl<'a> Answers<'a> {
    /// Claim, reason, grade and evidence.
    pub(super) fn hover(&self, at: &TextDocumentPositionParams) -> Option<Hover> {
        let (area, row) = self.named(at)?;
        let value = markdown(&explain(self.workspace, area, row, &Changes::default()));
        let kind = MarkupKind::Markdown;
        Some(Hover {
            contents: HoverContents::Markup(MarkupContent { kind, value }),
            range: None,
        })
    }

    /// Where the row stands.
    pub(super) fn row(&self, at: &TextDocumentPositionParams) -> Option<Location> {
        let (area, row) = self.named(at)?;
        self.location(&place(area, row))
    }

    /// Where its tests name it.
    pub(super) fn tests(&self, at: &TextDocumentPositionParams) -> Vec<Location> {
        let named = self.named(at);
        let places = named.into_iter().flat_map(|(_, row)| self.edges(row));
        places.filter_map(|at| self.location(at)).collect()
    }

    /// Where its tests and its sabotages name it, and where it stands itself if that is asked for.
    pub(super) fn everywhere(
        &self,
        at: &TextDocumentPositionParams,
        declaration: bool,
    ) -> Vec<Location> {
        let Some((area, row)) = self.named(at) else {
            return Vec::new();
        };
        let id = &row.id.value;
        let mut places: Vec<At> = Vec::new();
        places.extend(declaration.then(|| place(area, row)));
        places.extend(self.edges(row).cloned());
        let rules = self.workspace.rules.breaking(id);
        let named = rules.flat_map(|rule| rule.rows.iter().filter(|(row, _)| row == id));
        places.extend(named.map(|(_, at)| at.clone()));
        places.iter().filter_map(|at| self.location(at)).collect()
    }

    /// Every id that may be named, where one is asked for.
    pub(super) fn completion(&self, at: &TextDocumentPositionParams) -> Vec<CompletionItem> {
        let Some(text) = self.text(at) else {
            return Vec::new();
        };
        let before = self.encoding.before(&text, at.position);
        if !asks_for_id(before, &self.workspace.config.attribute) {
            return Vec::new();
        }
        let rows = self.workspace.rows.all();
        rows.filter(|(_, row)| row.state != State::Retired)
            .map(|(_, row)| {
                let planned = row.state == State::Planned;
                CompletionItem {
                    label: row.id.value.clone(),
                    kind: Some(CompletionItemKind::CONSTANT),
                    detail: Some(row.claim.value.clone()),
                    // A planned or waived row may not be named: the editor strikes it out.
                    tags: planned.then(|| vec![CompletionItemTag::DEPRECATED]),
                    ..CompletionItem::default()
                }
            })
            .collect()
    }

    fn text(&self, at: &TextDocumentPositionParams) -> Option<String> {
        let path = words::path_of(self.root, &at.text_document.uri)?;
        files::text(self.root, self.open, &path).ok()
    }

    /// The row whose id is at a position.
    fn named(&self, at: &TextDocumentPositionParams) -> Option<(&'a Area, &'a Row)> {
        let text = self.text(at)?;
        let id = self.encoding.id(&text, at.position)?;
        self.workspace.rows.find(id)
    }

    fn edges(&self, row: &Row) -> impl Iterator<Item = &'a At> {
        let edges = self.workspace.graph.edges_of(&row.id.value);
        edges.map(|edge| &edge.at)
    }

    fn location(&self, at: &At) -> Option<Location> {
        let text = files::text(self.root, self.open, &at.file).ok()?;
        let uri = words::uri_of(self.root, &at.file)?;
        let range = self.encoding.range(&text, at.line, at.column);
        Some(Location { uri, range })
    }
}

/// Whether a line so far ends within a list of row ids.
fn asks_for_id(before: &str, attribute: &str) -> bool {
    let call = format!("{attribute}(");
    let marks = ["proves:", "rows: [", "by: [", call.as_str()];
    let lists = |mark: &str| {
        let (_, rest) = before.rsplit_once(mark)?;
        Some(
            rest.chars()
                .all(|c| c.is_ascii_alphanumeric() || ", ".contains(c)),
        )
    };
    marks.iter().any(|mark| lists(mark) == Some(true))
}

fn markdown(row: &Explained) -> String {
    let mut out = format!("**{}** {}\n\n*Why:* {}\n\n", row.id, row.claim, row.why);
    let _ = writeln!(
        out,
        "{}: reached **{}**, floor {} ({})\n",
        row.state,
        row.reached.word(),
        row.floor.word(),
        row.needed()
    );
    for (name, text) in &row.waiver {
        let _ = writeln!(out, "- {name}: {text}");
    }
    for evidence in &row.evidence {
        let (grade, kind) = (evidence.grade.word(), evidence.kind.word());
        let _ = writeln!(out, "- {grade} {kind} `{}`", evidence.test);
    }
    for (rule, _) in &row.sabotages {
        let _ = writeln!(out, "- sabotage `{rule}`");
    }
    if row.evidence.is_empty() {
        out.push_str("- nothing shows it\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::asks_for_id;

    #[m0_spec::row(T20)]
    #[test]
    fn ids_are_offered_in_lists_of_ids_alone() {
        for (before, is) in [
            ("# proves: ", true),
            ("    // proves: E1, E", true),
            ("    #[m0_spec::row(E1, ", true),
            ("  rows: [", true),
            ("    by: [E4", true),
            ("# proves: E1) and more, ", false),
            ("    let row = (", false),
            ("claim: It is so in rows ", false),
        ] {
            assert_eq!(asks_for_id(before, "row"), is, "{before}");
        }
    }
}
