//! The rows of the specification as constants, and the attribute by which a test names them.
//!
//! Owns: `rows` (generated from the YAML beside this crate by `cargo xtask spec`), [`Row`], the
//! attribute [`row`] and the few lines that run at the start of a test. Refuses to know the product,
//! runners and reports. A dev-dependency only: nothing that is shipped depends on it.
//! Invariant: a constant exists for each id that was ever in the ledger, retired ones deprecated.

// Lets the attribute name `::m0_spec` inside this crate's own tests too.
extern crate self as m0_spec;

#[rustfmt::skip]
pub mod rows;
pub mod runtime;

pub use rows::*;
pub use traceability_attr::row;

/// One promise: what a test or a smoke phase names to say what it shows.
///
/// ```
/// assert_eq!(m0_spec::E22.id, "E22");
/// assert!(m0_spec::E22.title.starts_with("At two workers"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// Area letter(s) and number; never reused.
    pub id: &'static str,
    /// The claim, one sentence.
    pub title: &'static str,
}
