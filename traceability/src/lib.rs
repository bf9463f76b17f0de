//! Traceability: what is promised (rows), what shows it (tests, phases, probes) and what proves that the
//! evidence would notice (sabotages), joined and judged.
//!
//! Owns the whole way from YAML, source and results to findings, a matrix and a report. Refuses to run a test or
//! to know any repository: what differs from one to the next stands in its `trace.yaml`.
//! Invariant: nothing counts as passed but a runner's verdict on this very tree, and measuring nothing is
//! never green.
//!
//! Reading order: `rows`, `source`, `sabotage`, `results` read; `graph` joins; `judge` finds; `show` prints.

pub mod cli;
pub mod code;
pub mod compare;
pub mod config;
mod cores;
pub mod files;
pub mod finding;
pub mod graph;
pub mod history;
pub mod judge;
pub mod lock;
pub mod lsp;
pub mod planted;
pub mod results;
pub mod rows;
pub mod sabotage;
pub mod show;
pub mod source;
pub mod tree;
pub mod workspace;
