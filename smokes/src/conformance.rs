//! The conformance tier: what people who never saw this server say about it.
//!
//! Reading order: `part` is what comes of a part; `table` plays raw requests that were written from the RFCs;
//! `sse` reads event streams with clients of other people (`client`), through a relay (`tap`) that sees what they
//! really send; `websocket` runs the Autobahn cases; `tools` fetches all of it. Refuses to know any server
//! crate. Invariant: what could not run is said and is no pass.

pub mod client;
pub mod part;
pub mod sse;
pub mod table;
pub mod tap;
pub mod tools;
pub mod websocket;
