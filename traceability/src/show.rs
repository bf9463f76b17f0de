//! How findings, rows and the matrix are shown: for people, for programs, for a forge.
//!
//! Owns the choice of form. Each form is a file below. Refuses to judge. Invariant: every form is made of the same
//! judgement, so none says more or less than another.

pub mod badge;
pub mod html;
pub mod json;
pub mod markdown;
pub mod row;
pub mod sarif;
pub mod stale;
pub mod text;
pub mod words;

use crate::rows::read::{Grade, State};
use crate::workspace::Workspace;

/// Active rows by what they have reached.
pub fn by_grade(workspace: &Workspace) -> Vec<(Grade, usize)> {
    let active = workspace.rows.all();
    let reached: Vec<Grade> = active
        .filter(|(_, row)| row.state == State::Active)
        .map(|(_, row)| workspace.graph.standing(row).reached())
        .collect();
    Grade::ALL
        .into_iter()
        .rev()
        .map(|grade| {
            let count = reached.iter().filter(|reached| **reached == grade).count();
            (grade, count)
        })
        .collect()
}
