//! Rules and gates: their YAML, and what must hold among them.
//!
//! Reading order: `rule`, `gate`, `read` (files to values), `check` (values among each other).

pub mod check;
pub mod gate;
pub mod read;
pub mod rule;

use std::path::PathBuf;

/// Everything that a repository declares.
#[derive(Debug)]
pub struct Declared {
    /// Root of the repository.
    pub root: PathBuf,
    /// The gates.
    pub gates: gate::Gates,
    /// The rules in the order of their files.
    pub rules: Vec<rule::Rule>,
}
