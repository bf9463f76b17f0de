//! Breaks one promise at a time in a copy of a repository, and says which gate noticed.
//!
//! Reading order: `schema` (rules and gates), `source` (edits), `slot` (the copy), `run` (processes in a
//! jail), `results` (what a gate reported), `session` (baseline, rules, verdicts), `report`.
//! Refuses to know any repository: all it learns stands in `sabotage/` of the repository it is run in.
//! Invariant: the user's working tree is never written, but by the commands that make or renew rules.

pub mod cli;
pub mod finding;
pub mod glob;
pub mod log;
pub mod pins;
pub mod prove;
pub mod report;
pub mod results;
pub mod revert;
pub mod run;
pub mod schema;
pub mod session;
pub mod slot;
pub mod source;
pub mod tree;
pub mod verdict;
