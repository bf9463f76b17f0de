//! The meaning of the words that all processes of a host share.
//!
//! Owns the layout of the host's page (which word means what, who writes it, what repairs it after
//! a death) and the two questions that are asked of it: who should take the next connection, and
//! what are the figures. It refuses to know where the words come from (a memfd, a vector in a
//! test, a loom model), what a connection is, and how a sibling is told.
//!
//! Invariant: every word can be written by a process that dies right after the store; the words
//! still make sense to the others, and [`Share::repair`] brings the dead worker's words to rest.
//!
//! ```
//! use m0_page::{Page, Verdict, words};
//!
//! let memory = words(m0_page::words_needed(2));
//! let page = Page::format(&memory, 2, 0x5eed);
//! for slot in 0..2 {
//!     page.share(slot).begin(100 + slot as u32);
//!     page.share(slot).serving();
//! }
//! page.share(0).opened();
//! // Worker 0 holds one connection more than worker 1: the next one is for worker 1.
//! assert_eq!(page.verdict(0), Verdict::Defer { to: 1 });
//! assert_eq!(page.verdict(1), Verdict::Take);
//! ```

mod attach;
mod counters;
mod layout;
#[cfg(loom)]
mod modelled;
mod producer;
mod share;
mod snapshot;
pub mod sync;
mod verdict;

pub use attach::AttachError;
pub use counters::{Counter, SupervisorCounter, WorkerCounter};
pub use layout::{MAX_WORKERS, words_needed};
pub use producer::{ProducerCounter, ProducerLine};
pub use share::{Share, WorkerState};
pub use snapshot::{PageSnapshot, ProducerSnapshot, ShareSnapshot, SupervisorSnapshot};
pub use sync::{AtomicU64, words};
pub use verdict::Verdict;

/// The host's page: a view of the shared words. Copying it copies two pointers.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    words: &'a [AtomicU64],
    workers: usize,
}
