//! What falls short among sabotage rules and in trace.lock.
//!
//! Owns these two parts of the judgement. Invariant: a rule whose check is not known because results are missing
//! is left open, not told.

use std::collections::BTreeSet;

use super::Judge;
use crate::code::Code;
use crate::finding::{At, hint};
use crate::graph::is_check;

impl Judge<'_> {
    pub(super) fn rules(&mut self) {
        let workspace = self.workspace;
        let rows = workspace.rows.by_id();
        for rule in workspace.rules.iter() {
            if rule.rows.is_empty() {
                let message = format!("the sabotage {} names no row", rule.id);
                self.say(Code::SabotageWithoutRow, rule.at.clone(), message);
            }
            if rule.checks.is_empty() {
                let message = format!("the sabotage {} expects no check to notice", rule.id);
                self.say(Code::SabotageWithoutCheck, rule.at.clone(), message);
                continue;
            }
            for (id, at) in &rule.rows {
                let Some((_, row)) = rows.get(id.as_str()) else {
                    let hint = hint(id, rows.keys().copied());
                    let message = format!("there is no row {id}{hint}");
                    self.say(Code::RowUnknown, at.clone(), message);
                    continue;
                };
                let shown = &workspace.graph.shown;
                let claims = |check: &str| {
                    let mut edges = workspace.graph.edges_of(id);
                    edges.any(|edge| is_check(check, &shown[edge.test].test))
                };
                let claimed = rule.checks.iter().any(|(check, _)| claims(check));
                // A check that nothing known is named like may be a phase whose results are missing.
                let known = || {
                    let mut checks = rule.checks.iter();
                    checks.any(|(check, _)| workspace.graph.knows(check))
                };
                let open = !claimed
                    && !known()
                    && row
                        .needs
                        .value
                        .iter()
                        .any(|need| workspace.results.lacks(*need));
                if !claimed && !open {
                    let checks = &rule.checks;
                    let names: Vec<&str> = checks.iter().map(|(check, _)| check.as_str()).collect();
                    let message = format!(
                        "the sabotage {} of {id} is to be noticed by {}, which does not claim {id}",
                        rule.id,
                        names.join(", ")
                    );
                    self.say(Code::SabotageUnclaimed, at.clone(), message);
                }
            }
        }
    }

    pub(super) fn lock(&mut self) {
        let workspace = self.workspace;
        let graph = &workspace.graph;
        let there: BTreeSet<(&str, String)> = graph
            .edges
            .iter()
            .map(|edge| (edge.row.as_str(), graph.shown[edge.test].test.id()))
            .collect();
        for (line, number) in workspace.lock.lines.values() {
            let kinds = self
                .rows
                .get(line.row.as_str())
                .map(|(_, row)| &row.needs.value);
            let open =
                kinds.is_some_and(|kinds| kinds.iter().any(|need| workspace.results.lacks(*need)));
            if !there.contains(&(line.row.as_str(), line.test.clone())) && !open {
                let at = At::line(&workspace.lock.path, *number);
                let message = format!("{} no longer names {}", line.test, line.row);
                self.say(Code::LockStale, at, message);
            }
        }
    }
}
