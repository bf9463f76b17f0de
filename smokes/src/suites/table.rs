//! The table of raw requests, a phase for each group of it, whole and byte by byte.
//!
//! What a case sends and what must come stands in `smokes/table/`. Knows only which rows a group shows.
//! Invariant: every group of the table is a phase.

use anyhow::{Result, bail};
use m0_spec::{
    E67, E68, E69, E72, E90, E91, W1, W2, W3, W4, W5, W6, W7, W8, W9, W10, W16, W18, W20, W21, W22,
    W23, W24, W25, W26, W27, W28, W29, W30, W31, W32, W34, W38, W41, W43,
};

use super::http::launch;
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::table::play::{Cut, play};
use crate::table::{cases::Case, group};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside(
        "table-request-line",
        60,
        &[W1, W24, W26, W27, W32, W34],
        |run| played(run, "request-line"),
    ),
    beside("table-target", 60, &[W24, W28], |run| played(run, "target")),
    beside("table-host", 60, &[W5], |run| played(run, "host")),
    beside("table-field", 60, &[W6, W10, W25, W29], |run| {
        played(run, "field")
    }),
    beside("table-length", 60, &[W8, W24, E91], |run| {
        played(run, "length")
    }),
    beside(
        "table-coding",
        60,
        &[W7, W9, W20, W30, W31, W43, E72],
        |run| played(run, "coding"),
    ),
    beside("table-chunk", 60, &[W21, W22], |run| played(run, "chunk")),
    beside("table-connection", 60, &[W16, W38, E90, E91], |run| {
        played(run, "connection")
    }),
    beside("table-smuggling", 60, &[W7, W23, W41, E72], |run| {
        played(run, "smuggling")
    }),
    beside(
        "table-limit",
        60,
        &[W2, W3, W4, W18, W20, E67, E68, E69],
        |run| played(run, "limit"),
    ),
];

/// Plays every case of a group and tells each that came out otherwise.
fn played(run: &Run, name: &str) -> Result<Witness> {
    let group = group(name)?;
    let mut launch = launch(run);
    for (variable, value) in &group.env {
        launch = launch.env(variable, value);
    }
    let server = launch.start()?;
    let mut misses = Vec::new();
    for case in &group.cases {
        for cut in Cut::ALL {
            if let Some(miss) = play(server.addr(), case, cut)? {
                misses.push(format!(
                    "{} ({}, {}): expected {}, got {}",
                    case.name,
                    case.section,
                    cut.name(),
                    miss.expected,
                    miss.got
                ));
            }
        }
    }
    if !misses.is_empty() {
        bail!("{} came out otherwise: {}", misses.len(), misses.join("; "));
    }
    server.stop()?;
    let count = |refused: bool| {
        let of = |case: &&Case| case.refused == refused;
        group.cases.iter().filter(of).count()
    };
    Ok(Witness::of("requests served", count(false)).and("requests refused", count(true)))
}
