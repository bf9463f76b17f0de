//! Putting a frame into the log.
//!
//! Owns the order of an append's stores. Knows nothing of readers but what they check.
//!
//! Invariant: at most one appender is inside, and a death after any single store leaves a log that
//! every reader can go on reading and that repair brings back to work:
//!
//! | store | a death right after it leaves |
//! |---|---|
//! | 1. lock := pid | a lock to release |
//! | 2. lock := pid and s | the same, and the number that was not committed |
//! | 3. oldest := o (when frames have to go) | the same; the frames below o are given up early |
//! | 4. the body's words, one by one | the same; they lie outside every readable frame |
//! | 5. index entry of s | the same; no reader looks at an entry beyond the tail |
//! | 6. event id := s (the commit) | a whole frame that every reader sees, and a lock to release |
//! | 7. lock := 0 | nothing to repair |
//!
//! What the orderings carry: 1 acquires what 7 (or a repair) released, so each appender continues
//! from its predecessor's stores. 6 releases 4 and 5 to every reader that acquires the tail. A release
//! fence parts 3 from 4 and 5: a reader that caught a word of a new frame also sees, after its own
//! acquire fence, that the frame it was copying has been given up.

use std::cell::Cell;

use crate::layout::Entry;
use crate::lock::Held;
use crate::points::stored;
use crate::sync::Ordering::{Relaxed, Release};
use crate::sync::{AtomicU64, fence};
use crate::{FrameId, FrameLog};

/// Why a frame was not appended. Nothing of it is visible to anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The lock was not free within about 50 ms: its holder is stopped, or dead and not yet repaired.
    #[error("the frame log's lock is held by process {holder}")]
    Busy {
        /// The holder's pid when the wait was given up; 0 if it was just free.
        holder: u32,
    },
    /// The frame is longer than [`FrameLog::frame_limit_bytes`].
    #[error("a frame of {bytes} bytes, the frame log takes {limit}")]
    TooLarge {
        /// The frame's length.
        bytes: usize,
        /// The longest this log takes.
        limit: usize,
    },
}

thread_local! {
    /// The frame under construction; kept between appends so that none of them allocates.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl FrameLog<'_> {
    /// Appends one frame for process `owner_pid` (not 0). `write` is called once, under the lock, with the
    /// id that the frame gets, and writes the frame into the empty buffer it is given.
    ///
    /// Ids are given in the order of the commits, each one more than the one before. When `write`
    /// panics or the frame is too large, the lock is released, nothing is committed and the next frame
    /// gets the same id. `write` must be short, must not block and must not append itself (that is
    /// answered with [`AppendError::Busy`] after the bound).
    pub fn append(
        &self,
        owner_pid: u32,
        write: impl FnOnce(FrameId, &mut Vec<u8>),
    ) -> Result<FrameId, AppendError> {
        let Some(held) = Held::take(*self, owner_pid) else {
            let holder = self.lock().holder();
            return Err(AppendError::Busy { holder });
        };
        let mut frame = SCRATCH.take();
        frame.clear();
        let seq = self.ids.load(Relaxed) + 1;
        held.begin(seq);
        let id = self.id(seq);
        write(id, &mut frame);
        let limit = self.frame_limit_bytes();
        let bytes = frame.len();
        if bytes <= limit {
            self.commit(owner_pid, seq, &frame);
        }
        drop(held);
        if frame.capacity() <= 2 * limit {
            SCRATCH.set(frame);
        }
        if bytes <= limit {
            Ok(id)
        } else {
            Err(AppendError::TooLarge { bytes, limit })
        }
    }

    fn commit(&self, pid: u32, seq: u64, frame: &[u8]) {
        let entry = Entry {
            place: self.place_after(seq - 1),
            bytes: frame.len(),
        };
        self.give_up_frames_under(seq, entry, pid);
        fence(Release);
        self.store_body(entry, frame, pid);
        self.entry_word(seq).store(entry.pack(), Relaxed);
        stored(pid);
        self.ids.store(seq, Release);
        stored(pid);
    }

    /// The place right after the body of frame `seq`.
    fn place_after(&self, seq: u64) -> usize {
        let last = self.entry(seq);
        (last.place + last.words()) % self.ring.len()
    }

    /// Moves `oldest` past every frame whose words or index entry the new frame needs.
    fn give_up_frames_under(&self, seq: u64, new: Entry, pid: u32) {
        let before = self.oldest_word().load(Relaxed);
        let mut oldest = before;
        while oldest < seq && !self.fits_above(oldest, seq, new) {
            oldest += 1;
        }
        if oldest != before {
            self.oldest_word().store(oldest, Relaxed);
            stored(pid);
        }
    }

    /// Whether the new frame leaves the frames from `oldest` to `seq - 1` (at least one) alone. The
    /// ring is never filled to its last word, so "full" and "empty" differ.
    fn fits_above(&self, oldest: u64, seq: u64, new: Entry) -> bool {
        let size = self.ring.len();
        let used = (new.place + size - self.entry(oldest).place) % size;
        seq - oldest < self.index.len() as u64 && used + new.words() < size
    }

    fn store_body(&self, entry: Entry, frame: &[u8], pid: u32) {
        let (first, second) = self.body(entry.place, frame.len().div_ceil(8));
        let (chunks, rest) = frame.as_chunks::<8>();
        let mut words = first.iter().chain(second);
        for (chunk, word) in chunks.iter().zip(&mut words) {
            store_word(word, *chunk, pid);
        }
        if let Some(word) = words.next() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            store_word(word, last, pid);
        }
    }

    pub(crate) fn entry(&self, seq: u64) -> Entry {
        Entry::unpack(self.entry_word(seq).load(Relaxed))
    }
}

fn store_word(word: &AtomicU64, bytes: [u8; 8], pid: u32) {
    word.store(u64::from_ne_bytes(bytes), Relaxed);
    stored(pid);
}
