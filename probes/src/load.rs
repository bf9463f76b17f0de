//! The load of the probes: callers that ask the same again and again, and an audience that holds streams.
//!
//! Owns what a client must read of HTTP/1.1 to count answers and events. Refuses to know a server, and does as little
//! as it can: it runs on the processors that the server needs.
//! Invariant: everything ends, by a count and by a bound in time, and what was not answered is an error.

pub mod audience;
pub mod beats;
pub mod callers;
pub mod head;
pub mod slow;
