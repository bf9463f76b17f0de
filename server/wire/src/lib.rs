//! What a connection may send and when: bytes and time in, a verdict out.
//!
//! The HTTP engine behind the host is lenient where RFC 9112 leaves a choice and silent where a peer is
//! slow. This crate is the strict gate in front of it: the host shows every received byte to a
//! [`Scanner`] before the engine sees it, and asks [`Deadlines`] once a sweep whether a connection has
//! used up its time. [`ws`] is the same gate for a connection that has become a WebSocket, [`http2`] follows one that
//! speaks HTTP/2, and [`proxy`] reads what a proxy says before the first request.
//!
//! Refuses to know: sockets, clocks, files, the environment, the engine. Times are milliseconds on a
//! clock that the caller chose; the crate only compares them.
//!
//! Invariant: no byte of a request head that is refused is ever released, and what is released is
//! byte for byte what was received, in order.

mod chunked;
pub mod deadline;
mod head;
pub mod http2;
pub mod keepalive;
pub mod limits;
pub mod proxy;
mod request_line;
pub mod respond;
pub mod scanner;
mod swar;
pub mod ws;

pub use deadline::{Deadlines, Expired, Progress};
pub use keepalive::{After, Facts};
pub use limits::Limits;
pub use scanner::{Fed, Phase, Place, Refusal, Scanner, Verdict};
