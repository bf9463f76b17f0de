//! The table of raw requests, as a part of the tier: group by group, each on a server of its own.
//!
//! Owns the count. What a case is stands in `table`. Invariant: a case passes only if it passes in every cut.

use anyhow::Result;

use super::part::{Failure, Part};
use crate::run::Run;
use crate::server::Server;
use crate::table::cases::Group;
use crate::table::play::{Cut, play};

/// Plays these groups.
///
/// # Errors
/// A server that does not start or does not end well.
pub fn run(run: &Run, groups: &[Group]) -> Result<Part> {
    let cases = groups.iter().map(|group| group.cases.len()).sum();
    let mut part = Part::new("table", cases);
    for group in groups {
        let mut launch = Server::launch(run).env("M0_HOSTCHECK_PERIOD_MS", 1000);
        for (variable, value) in &group.env {
            launch = launch.env(variable, value);
        }
        let server = launch.start()?;
        for case in &group.cases {
            let side = if case.refused { "refused" } else { "served" };
            let name = format!("{} {side}", group.name);
            let mut missed = None;
            for cut in Cut::ALL {
                if let Some(miss) = play(server.addr(), case, cut)? {
                    missed = missed.or(Some((cut, miss)));
                }
            }
            match missed {
                None => part.passed(&name),
                Some((cut, miss)) => part.failed(Failure {
                    group: name,
                    case: case.name.clone(),
                    section: case.section.clone(),
                    expected: miss.expected,
                    got: format!("{} ({})", miss.got, cut.name()),
                }),
            }
        }
        server.stop()?;
    }
    Ok(part)
}
