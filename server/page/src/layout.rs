//! Which word of the page means what.
//!
//! Owns every offset; no other file adds numbers to find a word. Knows nothing of what is done
//! with the words.
//!
//! Invariant: words that different processes write often stand on different 64-byte lines, and the
//! meaning of words 0 to 3 never changes between versions, so that any build can refuse any page.
//!
//! | word | meaning | written by | after a death |
//! |---|---|---|---|
//! | 0 | event id: the last sequence number committed to the frame log | the holder of the log's lock | the log's `repair` releases the lock; the word is the commit itself, so it is never half written |
//! | 1 | epoch of this host run | `format` | constant |
//! | 2 | the magic word | `format`, last | constant |
//! | 3 | version and number of workers | `format` | constant |
//! | 8.. | the supervisor's counters | the supervisor | the host ends with the supervisor |
//! | 16 | owner of the producer (pid and slot, 0 for none) | the producer's worker | [`crate::ProducerLine::repair`] |
//! | 17.. | the producer's counters | the producer | kept: they count the host's run |
//! | share line + 0 | connections held | the worker's loop | [`crate::Share::repair`] sets 0 |
//! | share line + 1 | state and pid | the worker's loop | `repair` sets Absent |
//! | share line + 2..=5 | accepted, deferrals, wake-ups, fruitless | the worker | kept |
//! | share line + 6 | streams held | the worker's loop | `repair` sets 0 |
//! | share line + 7 | flags: busy (the watch thread), starved (the loop), stopped (the supervisor) | each its own bit, by one atomic or/and | `repair` sets 0 |
//! | counter lines | the worker's counters | the worker | kept |

use crate::{AtomicU64, Page};

/// The most workers a page can describe (a set of slots fits one word).
pub const MAX_WORKERS: usize = 64;

/// What word 2 says once the page is complete: `m0 page` and a digit, as bytes.
pub(crate) const MAGIC: u64 = u64::from_be_bytes(*b"m0 page1");
/// The version of everything after word 3.
pub(crate) const VERSION: u32 = 2;

pub(crate) const EVENT_ID: usize = 0;
pub(crate) const EPOCH: usize = 1;
pub(crate) const MAGIC_WORD: usize = 2;
pub(crate) const SHAPE: usize = 3;
/// Words that every version has; a shorter page is refused before anything is read from it.
pub(crate) const PREFIX: usize = 4;

/// Words in a cache line of 64 bytes.
const LINE: usize = 8;
pub(crate) const SUPERVISOR: usize = LINE;
pub(crate) const PRODUCER: usize = 2 * LINE;
const SHARES: usize = 3 * LINE;
const PER_WORKER: usize = 3 * LINE;

/// Offsets inside a share line.
pub(crate) mod line {
    pub(crate) const HELD: usize = 0;
    pub(crate) const STATE: usize = 1;
    pub(crate) const ACCEPTED: usize = 2;
    pub(crate) const DEFERRALS: usize = 3;
    pub(crate) const WAKEUPS: usize = 4;
    pub(crate) const FRUITLESS: usize = 5;
    pub(crate) const STREAMS: usize = 6;
    pub(crate) const FLAGS: usize = 7;
    /// The two counter lines follow the share line.
    pub(crate) const COUNTERS: usize = 8;
}

/// Words that a page for `workers` workers takes. Multiply by 8 for bytes.
///
/// ```
/// assert_eq!(m0_page::words_needed(1), 48);
/// assert_eq!(m0_page::words_needed(4), 120);
/// ```
pub const fn words_needed(workers: usize) -> usize {
    SHARES + workers * PER_WORKER
}

impl<'a> Page<'a> {
    /// A word of the page's own lines.
    pub(crate) fn word(&self, index: usize) -> &'a AtomicU64 {
        &self.words[index]
    }

    /// A word of the three lines of the worker in `slot`.
    pub(crate) fn worker_word(&self, slot: usize, offset: usize) -> &'a AtomicU64 {
        assert!(
            slot < self.workers,
            "slot {slot} of a page for {} workers",
            self.workers
        );
        &self.words[SHARES + slot * PER_WORKER + offset]
    }
}
