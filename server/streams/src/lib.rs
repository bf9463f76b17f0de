//! Held streams: SSE encoding, outbox budget, replay that joins live frames.
//!
//! Owns what a worker knows of each stream it holds and the text that goes out on it. Refuses to know
//! sockets, threads and clocks: the host writes through a closure and passes the time in milliseconds.
//!
//! Invariant: the sequence numbers that a stream is sent are consecutive from where it joined, or it
//! was told (`reset`, `gap`, `drain`) that they are not.

pub mod batch;
pub mod chunk;
pub mod end;
pub mod outbox;
pub mod registry;
pub mod sse;
pub mod stream;

pub use batch::Batch;
pub use chunk::Chunk;
pub use end::GapReason;
pub use outbox::{Outbox, OverBudget};
pub use registry::{Delivered, Full, Key, Registry, Totals};
pub use sse::Frame;
pub use stream::{Fate, Now, Offer, Stream, Wrote};
