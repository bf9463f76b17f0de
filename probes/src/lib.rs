//! Probes: one question each about the real binary, answered with figures beside a peer in the same run.
//!
//! Reading order: [`questions`] are the probes; each is given a [`session::Session`], starts a [`server::Server`] or
//! several, loads them from [`load`], reads [`cpu`] and [`memory`] out of `/proc` or counts with [`callgrind`], and hands its figures to a
//! [`report::Report`]. [`comparison`] pairs servers, [`samples`] holds the arithmetic, [`machine`] what the figures were measured on,
//! [`grown`] the repository that the traceability tool is measured on.
//!
//! Refuses to know any server crate: it drives binaries over loopback. What must hold at every end is the smokes'.
//! Invariant: a probe that measured nothing is an error and never a row of zeros.

pub mod callgrind;
pub mod comparison;
pub mod cpu;
pub mod grown;
pub mod load;
pub mod machine;
pub mod memory;
pub mod peak;
pub mod questions;
pub mod report;
pub mod samples;
pub mod server;
pub mod session;
pub mod trace;
