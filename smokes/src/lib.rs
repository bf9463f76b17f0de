//! The smoke harness: drives real processes over real sockets and awaits what they promise.
//!
//! Reading order: [`suites`] are the phases; a [`phase::Phase`] is given a [`run::Run`], starts a
//! [`server::Server`], is rude to it as a [`peer::Peer`], and returns a [`run::Witness`]. What is checked at
//! the end of every server whatever the phase is about stands in [`ends`]. [`runner`] runs phases, each
//! in a process of its own; [`report`] shows them.
//!
//! Refuses to know any server crate: it sees what an operator sees.
//! Invariant: nothing waits for a time where it could await a state, and nothing waits without a bound.

pub mod answer;
pub mod audience;
pub mod conformance;
pub mod ends;
pub mod events;
pub mod fake;
pub mod headroom;
pub mod helper;
pub mod http2;
pub mod launch;
pub mod lines;
pub mod load;
pub mod outcome;
pub mod owned;
pub mod peer;
pub mod phase;
pub mod planted;
pub mod proc;
pub mod report;
pub mod run;
pub mod runner;
pub mod server;
pub mod socket;
pub mod suites;
pub mod table;
pub mod tape;
pub mod tls;
mod until;

pub use until::{holds, until};
