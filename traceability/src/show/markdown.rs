//! The judgement as Markdown, for the summary of a run.
//!
//! Owns two tables: rows by grade, and the findings, worst first. Invariant: a cell cannot break its table.

use std::fmt::Write as _;

use super::by_grade;
use crate::judge::Judged;
use crate::workspace::Workspace;

/// The most findings that a summary shows.
const MOST: usize = 50;

/// The page.
pub fn page(workspace: &Workspace, judged: &Judged) -> String {
    let mut out =
        String::from("## What is promised and shown\n\n| grade | active rows |\n|---|---:|\n");
    for (grade, count) in by_grade(workspace) {
        let _ = writeln!(out, "| {} | {count} |", grade.word());
    }
    if judged.found.is_empty() {
        out.push_str("\nNothing falls short.\n");
        return out;
    }
    out.push_str("\n| finding | where | what |\n|---|---|---|\n");
    for (_, fault) in judged.found.iter().take(MOST) {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            fault.code,
            cell(&fault.finding.at.to_string()),
            cell(&fault.finding.message)
        );
    }
    if judged.found.len() > MOST {
        let _ = writeln!(out, "\nand {} more.", judged.found.len() - MOST);
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('\n', " ")
}
