//! The atomics of this crate: the standard library's, or loom's when the models run.
//!
//! Nothing else in the crate names an atomic type, so a model explores the product's own code.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering};

/// `count` zeroed words in private memory: for tests, models, examples and a host of one process.
pub fn words(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}
