//! An atomic word for the loom models that hides no race from loom.
//!
//! Why it exists: to find the orders worth trying, loom 0.7 remembers one last access of an atomic
//! (`rt/atomic.rs`, `last_access`). When thread A loads a word, and thread B loads it and then stores
//! to it, B's own load has taken A's place, and loom never tries the store before A's load: models of
//! the frame log passed after a single execution. So every access first touches a shadow of the word
//! with a relaxed read-modify-write. Those depend on each other pair by pair, so every order of
//! accesses to one word is tried; being relaxed they order nothing else, and the access itself stays
//! what the product wrote, stale values included.
//!
//! Invariant: each method is the shadow's touch and then the one access it names.

use loom::sync::atomic::{AtomicU64 as Word, Ordering};

/// As `std::sync::atomic::AtomicU64`, for the operations that the product uses.
#[derive(Debug)]
pub struct AtomicU64 {
    shadow: Word,
    word: Word,
}

#[expect(
    missing_docs,
    reason = "the names and meanings are those of the standard library"
)]
impl AtomicU64 {
    pub fn new(value: u64) -> Self {
        Self {
            shadow: Word::new(0),
            word: Word::new(value),
        }
    }

    #[track_caller]
    pub fn load(&self, order: Ordering) -> u64 {
        self.touched().load(order)
    }

    #[track_caller]
    pub fn store(&self, value: u64, order: Ordering) {
        self.touched().store(value, order);
    }

    #[track_caller]
    pub fn fetch_add(&self, amount: u64, order: Ordering) -> u64 {
        self.touched().fetch_add(amount, order)
    }

    #[track_caller]
    pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.touched().fetch_or(bits, order)
    }

    #[track_caller]
    pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.touched().fetch_and(bits, order)
    }

    #[track_caller]
    pub fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.touched()
            .compare_exchange(current, new, success, failure)
    }

    #[track_caller]
    pub fn fetch_update(
        &self,
        success: Ordering,
        failure: Ordering,
        update: impl FnMut(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        self.touched().fetch_update(success, failure, update)
    }

    #[track_caller]
    fn touched(&self) -> &Word {
        self.shadow.fetch_add(1, Ordering::Relaxed);
        &self.word
    }
}
