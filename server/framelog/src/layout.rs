//! Where everything lies in the log's words, and refusing words that are no log.
//!
//! Owns the offsets, the geometry and the index entry's form. Knows nothing of the order of stores.
//!
//! Invariant: the geometry follows from the number of words alone, so two processes that attach to
//! the same words agree.
//!
//! | words | meaning | written by |
//! |---|---|---|
//! | 0 | the magic word | `format`, last |
//! | 1 | version | `format` |
//! | 2 | epoch | `format` |
//! | 3 | number of words in all | `format` |
//! | 8 | lock: the holder's pid and the frame it has begun, 0 when free | the appender that takes it; the supervisor's repair |
//! | 16 | oldest: the first sequence number still readable | the lock's holder |
//! | 24.. | index: for frame `s`, entry `s` modulo its length: place and bytes | the lock's holder |
//! | then | ring: the frames' bodies, each from its own word on, wrapping at the end | the lock's holder |
//!
//! The tail is the page's event-id word. Why an index and not a header before each frame: a reader that
//! returns with a sequence number finds its frame by one load, however large the ring is; and a reader
//! needs no place of its own that a writer could invalidate. The price is one word for 64 bytes of
//! ring, and that frames which are shorter on average run out of entries before they run out of bytes.

use crate::FrameId;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// The longest frame any log takes: 1 MiB.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// What word 0 says once the log is complete.
const MAGIC: u64 = u64::from_be_bytes(*b"m0 flog1");
const VERSION: u64 = 1;

const MAGIC_WORD: usize = 0;
const VERSION_WORD: usize = 1;
const EPOCH: usize = 2;
const LENGTH: usize = 3;
const LOCK: usize = 8;
const OLDEST: usize = 16;
const HEADER: usize = 24;

/// Words of ring for one index entry.
const RING_PER_ENTRY: usize = 8;
const MIN_INDEX: usize = 2;
const MIN_RING: usize = 8;
/// A frame takes at most this share of the ring, so one frame never drives out all others.
const LARGEST_SHARE: usize = 4;

/// Words that a log with room for `capacity_bytes` of frames takes. Multiply by 8 for bytes.
///
/// ```
/// assert_eq!(m0_framelog::words_needed(4096), 24 + 64 + 512);
/// ```
pub const fn words_needed(capacity_bytes: usize) -> usize {
    let ring = max(capacity_bytes.div_ceil(8), MIN_RING);
    HEADER + max(ring.div_ceil(RING_PER_ENTRY), MIN_INDEX) + ring
}

/// Why some words are not a log of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// Too few words for the smallest log.
    #[error("the frame log has {words} words, the smallest one has {needed}")]
    TooSmall {
        /// Words given.
        words: usize,
        /// Words of the smallest log.
        needed: usize,
    },
    /// The magic word is 0: nobody has formatted these words, or the format was not finished.
    #[error("the frame log has no magic word: it was never formatted")]
    Unformatted,
    /// The magic word is another one: these words are something else.
    #[error("the frame log's magic word is {found:#018x}, these words are something else")]
    NotALog {
        /// The word found.
        found: u64,
    },
    /// A log of another build.
    #[error("the frame log has version {found}, this build reads {expected}")]
    Version {
        /// The version found.
        found: u64,
        /// The version of this build.
        expected: u64,
    },
    /// The log was formatted over another number of words.
    #[error("the frame log was made of {made} words, {words} are given")]
    Length {
        /// Words given.
        words: usize,
        /// Words it was formatted with.
        made: u64,
    },
}

/// A view of the log. Copying it copies pointers.
#[derive(Clone, Copy)]
pub struct FrameLog<'a> {
    header: &'a [AtomicU64],
    pub(crate) index: &'a [AtomicU64],
    pub(crate) ring: &'a [AtomicU64],
    pub(crate) ids: &'a AtomicU64,
    epoch: u64,
}

impl<'a> FrameLog<'a> {
    /// Makes an empty log of `words` (all of them) for the run `epoch`. The first frame's number is one
    /// more than what `ids`, the page's event-id word, holds.
    ///
    /// Only one process may format, before any other can attach.
    ///
    /// # Panics
    ///
    /// When there are fewer words than [`words_needed`] says for a capacity of 0.
    pub fn format(words: &'a [AtomicU64], ids: &'a AtomicU64, epoch: u64) -> Self {
        assert!(
            words.len() >= words_needed(0),
            "{} words for a frame log",
            words.len()
        );
        for word in words {
            word.store(0, Relaxed);
        }
        words[VERSION_WORD].store(VERSION, Relaxed);
        words[EPOCH].store(epoch, Relaxed);
        words[LENGTH].store(words.len() as u64, Relaxed);
        // The index entry of the frame before the first says 0 bytes at place 0, as cleared.
        words[OLDEST].store(ids.load(Relaxed) + 1, Relaxed);
        words[MAGIC_WORD].store(MAGIC, Release);
        Self::over(words, ids, epoch)
    }

    /// Takes `words` for a log that some process has formatted; `ids` is the word it was formatted with.
    pub fn attach(words: &'a [AtomicU64], ids: &'a AtomicU64) -> Result<Self, AttachError> {
        let needed = words_needed(0);
        if words.len() < needed {
            return Err(AttachError::TooSmall {
                words: words.len(),
                needed,
            });
        }
        match words[MAGIC_WORD].load(Acquire) {
            MAGIC => {}
            0 => return Err(AttachError::Unformatted),
            found => return Err(AttachError::NotALog { found }),
        }
        let version = words[VERSION_WORD].load(Relaxed);
        if version != VERSION {
            return Err(AttachError::Version {
                found: version,
                expected: VERSION,
            });
        }
        let made = words[LENGTH].load(Relaxed);
        if made != words.len() as u64 {
            return Err(AttachError::Length {
                words: words.len(),
                made,
            });
        }
        Ok(Self::over(words, ids, words[EPOCH].load(Relaxed)))
    }

    fn over(words: &'a [AtomicU64], ids: &'a AtomicU64, epoch: u64) -> Self {
        let (header, body) = words.split_at(HEADER);
        let entries = body.len().div_ceil(RING_PER_ENTRY + 1).max(MIN_INDEX);
        let (index, ring) = body.split_at(entries);
        Self {
            header,
            index,
            ring,
            ids,
            epoch,
        }
    }

    /// The number that tells this run of the host from every other.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The sequence number that the next frame gets. Everything below it is committed.
    pub fn tail(&self) -> u64 {
        self.ids.load(Acquire) + 1
    }

    /// The first sequence number that is still in the log; equal to [`FrameLog::tail`] when none is.
    pub fn oldest(&self) -> u64 {
        self.oldest_word().load(Relaxed)
    }

    /// The longest frame this log takes, in bytes: a quarter of the ring, at most
    /// [`MAX_FRAME_BYTES`].
    pub fn frame_limit_bytes(&self) -> usize {
        (self.ring.len() / LARGEST_SHARE * 8).min(MAX_FRAME_BYTES)
    }

    /// Bytes of frames the ring has room for.
    pub fn capacity_bytes(&self) -> usize {
        self.ring.len() * 8
    }

    /// The id of frame `seq` of this run.
    pub fn id(&self, seq: u64) -> FrameId {
        FrameId {
            epoch: self.epoch,
            seq,
        }
    }

    pub(crate) fn lock_word(&self) -> &'a AtomicU64 {
        &self.header[LOCK]
    }

    pub(crate) fn oldest_word(&self) -> &'a AtomicU64 {
        &self.header[OLDEST]
    }

    /// The index word of frame `seq`.
    pub(crate) fn entry_word(&self, seq: u64) -> &'a AtomicU64 {
        &self.index[(seq % self.index.len() as u64) as usize]
    }

    /// The ring's words from `place` on, `count` of them, in two runs because of the wrap.
    pub(crate) fn body(&self, place: usize, count: usize) -> (&'a [AtomicU64], &'a [AtomicU64]) {
        let first = count.min(self.ring.len() - place);
        (
            &self.ring[place..place + first],
            &self.ring[..count - first],
        )
    }
}

/// Where a frame's body is: one word of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The first word, as an index into the ring.
    pub(crate) place: usize,
    /// The body's length.
    pub(crate) bytes: usize,
}

impl Entry {
    pub(crate) fn pack(self) -> u64 {
        (self.place as u64) << 32 | self.bytes as u64
    }

    pub(crate) fn unpack(word: u64) -> Self {
        Self {
            place: (word >> 32) as usize,
            bytes: (word & 0xffff_ffff) as usize,
        }
    }

    /// Words the body takes: at least one, so that two frames never start at the same place and a
    /// ring with frames is never taken for an empty one.
    pub(crate) fn words(self) -> usize {
        self.bytes.div_ceil(8).max(1)
    }
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}
