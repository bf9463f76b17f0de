//! One row: its claim, its evidence and what each has come to.
//!
//! Owns what `trace explain` tells. Refuses to judge. Invariant: each edge of the row is told.

use serde::Serialize;

use crate::rows::read::{Area, Grade, Need, Row};
use crate::rows::{floor, place};
use crate::show::stale::{Changed, Changes};
use crate::show::words;
use crate::workspace::Workspace;

/// A row and all that is known of it.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// Its id.
    pub id: String,
    /// Its claim.
    pub claim: String,
    /// Why it is promised.
    pub why: String,
    /// Its state.
    pub state: &'static str,
    /// Where it stands.
    pub at: String,
    /// The grade that it must reach.
    pub floor: Grade,
    /// What it has reached.
    pub reached: Grade,
    /// The best of its edges.
    pub best: Grade,
    /// The kinds that it needs and how far each has come.
    pub needs: Vec<(Need, Grade)>,
    /// Its evidence.
    pub evidence: Vec<Evidence>,
    /// The sabotages of it: rule, expected checks.
    pub sabotages: Vec<(String, Vec<String>)>,
    /// Reason, issue, owner and last day of a row that is not active.
    pub waiver: Vec<(&'static str, String)>,
}

impl Explained {
    /// `test passed, loom proven`: each kind that it needs with how far it has come.
    pub(crate) fn needed(&self) -> String {
        let told = |(need, grade): &(Need, Grade)| format!("{} {}", need.word(), grade.word());
        let all: Vec<String> = self.needs.iter().map(told).collect();
        all.join(", ")
    }
}

/// A test, phase or probe of a row.
#[derive(Debug, Serialize)]
pub struct Evidence {
    /// The test.
    pub test: String,
    /// What kind it is.
    pub kind: Need,
    /// How far it has come.
    pub grade: Grade,
    /// Where it names the row.
    pub at: String,
    /// Seconds that it took.
    pub seconds: Option<f64>,
    /// The failure, where there is one.
    pub message: Option<String>,
    /// What changed since it was proven or accepted.
    pub stale: Option<String>,
    /// The words that changed since, where git holds the old ones.
    pub changes: Vec<Changed>,
    /// The commit and the day on which it was last written down as proven or accepted.
    pub locked: Option<(String, String)>,
    /// Sabotages that it caught, and what it said.
    pub caught: Vec<(String, String)>,
    /// Sabotages that it did not catch.
    pub missed: Vec<(String, String)>,
}

/// Explains a row.
pub fn explain(workspace: &Workspace, area: &Area, row: &Row, changes: &Changes) -> Explained {
    let id = &row.id.value;
    let standing = workspace.graph.standing(row);
    let evidence = workspace.graph.edges_of(id).map(|edge| {
        let shown = &workspace.graph.shown[edge.test];
        let outcomes = &shown.outcomes;
        Evidence {
            test: shown.test.id(),
            kind: shown.test.kind,
            grade: edge.grade,
            at: edge.at.to_string(),
            seconds: outcomes.iter().find_map(|outcome| outcome.seconds),
            message: outcomes.iter().find_map(|outcome| outcome.message.clone()),
            stale: edge.stale.clone(),
            changes: changes.get(id, &shown.test.id()),
            locked: changes
                .origin(workspace, id, &shown.test.id())
                .map(|origin| (origin.commit.clone(), origin.day.clone())),
            caught: edge.proven_by.clone(),
            missed: edge.hollow_by.clone(),
        }
    });
    let rules = workspace.rules.breaking(id).map(|rule| {
        let checks = rule.checks.iter().map(|(check, _)| check.clone());
        (rule.id.clone(), checks.collect())
    });
    let parts = [
        ("reason", &row.reason),
        ("issue", &row.issue),
        ("owner", &row.owner),
        ("until", &row.expires),
        ("retired on", &row.date),
    ];
    let waiver = parts
        .into_iter()
        .filter_map(|(name, part)| Some((name, part.as_ref()?.value.clone())));
    Explained {
        id: id.clone(),
        claim: row.claim.value.clone(),
        why: row.why.value.clone(),
        state: row.state.word(),
        at: place(area, row).to_string(),
        floor: floor(area, row),
        reached: standing.reached(),
        best: standing.best,
        needs: standing.needs,
        evidence: evidence.collect(),
        sabotages: rules.collect(),
        waiver: waiver.collect(),
    }
}

/// The text for people.
pub fn text(row: &Explained) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    let _ = writeln!(out, "{} {}", row.id, row.claim);
    let _ = writeln!(out, "  why      {}", row.why);
    let _ = writeln!(out, "  stands   {} ({})", row.at, row.state);
    for (name, text) in &row.waiver {
        let _ = writeln!(out, "  {name:<8} {text}");
    }
    let _ = writeln!(
        out,
        "  reached  {} (floor {}; {})",
        row.reached.word(),
        row.floor.word(),
        row.needed()
    );
    if row.evidence.is_empty() {
        out.push_str("  nothing shows it\n");
    }
    for evidence in &row.evidence {
        let time = evidence
            .seconds
            .map_or_else(String::new, |seconds| format!(", {seconds:.2} s"));
        let _ = writeln!(
            out,
            "  {:<8} {:<8} {} at {}{time}",
            evidence.grade.word(),
            evidence.kind.word(),
            evidence.test,
            evidence.at
        );
        for line in evidence
            .message
            .iter()
            .filter_map(|text| text.lines().next())
        {
            let _ = writeln!(out, "           said: {line}");
        }
        if let Some(what) = &evidence.stale {
            let _ = writeln!(out, "           stale: {what}");
        }
        for (what, words) in &evidence.changes {
            for line in words::plain(words).lines() {
                let _ = writeln!(out, "           {what}: {line}");
            }
        }
        for (rule, said) in &evidence.caught {
            let first = said.lines().next().unwrap_or_default();
            let _ = writeln!(out, "           caught {rule}: {first}");
        }
        for (rule, verdict) in &evidence.missed {
            let _ = writeln!(out, "           {rule} was {verdict}");
        }
    }
    for (rule, checks) in &row.sabotages {
        let _ = writeln!(
            out,
            "  sabotage {rule}, to be noticed by {}",
            checks.join(", ")
        );
    }
    out
}
