//! The atomics of the page and of the frame log: the standard library's, or modelled ones when the
//! loom models run.
//!
//! Nothing else in the two crates names an atomic type, so a model explores the product's own code.

#[cfg(loom)]
pub use crate::modelled::AtomicU64;
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering, fence};

/// `count` zeroed words in private memory: for tests, models, examples and a host of one process.
pub fn words(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}
