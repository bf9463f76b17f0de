//! How a worker's watch thread and its loop speak.
//!
//! Owns the orders of the one and the answers of the other. Refuses to know what they are about.
//! Invariant: an order is never lost: it is a bit that stays set until the loop has taken it; an answer
//! is written before the bell that tells of it rings.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use m0_unix::fds::Doorbell;
use tokio::sync::Notify;

/// The loop shall look at the listener.
pub(crate) const LOOK: u32 = 1;
/// The loop shall accept at least one connection, whatever the others hold.
pub(crate) const FORCE: u32 = 2;
/// The worker shall drain.
pub(crate) const DRAIN: u32 = 4;
/// The supervisor is gone: drain, but not for long.
pub(crate) const ORPHAN: u32 = 8;

/// Where the word of an answer says that a connection was taken.
const TOOK_BIT: u32 = 8;

/// What came of a look at the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) end: End,
    /// Whether a connection was taken.
    pub(crate) took: bool,
}

/// What ended a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum End {
    /// The queue is empty.
    Empty = 0,
    /// A whole batch was taken; there may be more.
    More,
    /// The rest is for a sibling that holds less.
    Deferred,
    /// No descriptor or memory is left.
    Starved,
    /// The worker holds all the connections that it may.
    Full,
}

/// The meeting place of the two threads.
#[derive(Debug)]
pub(crate) struct Link {
    orders: AtomicU32,
    given: Notify,
    looked: AtomicU32,
    answered: Doorbell,
    /// Rung once by the loop when it serves.
    serves: AtomicU32,
}

impl Link {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Link {
            orders: AtomicU32::new(0),
            given: Notify::new(),
            looked: AtomicU32::new(0),
            answered: Doorbell::new()?,
            serves: AtomicU32::new(0),
        })
    }

    /// Gives orders to the loop.
    pub(crate) fn order(&self, bits: u32) {
        self.orders.fetch_or(bits, Ordering::AcqRel);
        self.given.notify_one();
    }

    /// The loop waits for orders and takes them.
    pub(crate) async fn orders(&self) -> u32 {
        loop {
            let bits = self.orders.swap(0, Ordering::AcqRel);
            if bits != 0 {
                return bits;
            }
            self.given.notified().await;
        }
    }

    /// The loop has looked.
    pub(crate) fn answer(&self, looked: Looked) {
        self.looked.store(
            looked.end as u32 | u32::from(looked.took) << TOOK_BIT,
            Ordering::Release,
        );
        self.ring();
    }

    /// The loop serves from now on: the listener may be watched.
    pub(crate) fn serve(&self) {
        self.serves.store(1, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        // A bell that cannot be rung has rung already.
        let _ = self.answered.ring();
    }

    /// Whether the loop serves.
    pub(crate) fn serves(&self) -> bool {
        self.serves.load(Ordering::Acquire) == 1
    }

    /// The bell of the answers.
    pub(crate) fn bell(&self) -> &Doorbell {
        &self.answered
    }

    /// What came of the last look.
    pub(crate) fn looked(&self) -> Looked {
        let word = self.looked.load(Ordering::Acquire);
        let end = match word & !(1 << TOOK_BIT) {
            1 => End::More,
            2 => End::Deferred,
            3 => End::Starved,
            4 => End::Full,
            _ => End::Empty,
        };
        Looked {
            end,
            took: word >> TOOK_BIT & 1 == 1,
        }
    }
}
