//! The table of raw requests: bytes, and the answers that the RFCs demand, played to a server.
//!
//! Owns the groups, one file each under `smokes/table/`; `cases` reads them, `play` plays them. Refuses to know
//! how a server decides: it sees bytes and the end of a connection. Invariant: every group has cases that are
//! served and cases that are refused, so neither a server that serves all nor one that refuses all passes.

pub mod cases;
pub mod play;

use anyhow::Result;

use cases::Group;

/// The files of the table, in the order in which they are shown.
const FILES: [(&str, &str); 10] = [
    ("request-line", include_str!("../table/request-line.yaml")),
    ("target", include_str!("../table/target.yaml")),
    ("host", include_str!("../table/host.yaml")),
    ("field", include_str!("../table/field.yaml")),
    ("length", include_str!("../table/length.yaml")),
    ("coding", include_str!("../table/coding.yaml")),
    ("chunk", include_str!("../table/chunk.yaml")),
    ("connection", include_str!("../table/connection.yaml")),
    ("smuggling", include_str!("../table/smuggling.yaml")),
    ("limit", include_str!("../table/limit.yaml")),
];

/// Every group of the table.
///
/// # Errors
/// A file that does not say what a case needs, with the file, line and column.
pub fn groups() -> Result<Vec<Group>> {
    FILES
        .iter()
        .map(|(name, text)| cases::read(name, text))
        .collect()
}

/// The group of this name.
///
/// # Errors
/// There is none, or its file is wrong.
pub fn group(name: &str) -> Result<Group> {
    let found = FILES.iter().find(|(each, _)| *each == name);
    let (name, text) = found.ok_or_else(|| anyhow::anyhow!("no group is named {name}"))?;
    cases::read(name, text)
}

#[cfg(test)]
mod tests;
