//! Reading the log at one's own pace.
//!
//! Owns a reader's cursor and the check that makes a torn frame impossible. Takes no lock and stores
//! nothing: a reader can be stopped or killed anywhere, and nobody waits for it.
//!
//! Invariant: a frame is returned only if, after its last word was copied, it had not been given up
//! for reuse; a reader that was overtaken is told how many frames it missed, always.

use crate::layout::Entry;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::{AtomicU64, fence};
use crate::{FrameId, FrameLog};

/// What [`Reader::next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next frame; its bytes are in the buffer.
    Frame(FrameId),
    /// Nothing new.
    Empty,
    /// The log went on too far: `missed` frames are gone, and the next call looks for `resumed_at`.
    Lapped {
        /// The next frame this reader looks for.
        resumed_at: FrameId,
        /// How many frames it will never see, at least 1.
        missed: u64,
    },
}

/// Why a reader cannot start where it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// Frames after the given one have left the log.
    #[error("the frame log begins at {oldest}")]
    TooOld {
        /// The first sequence number still there.
        oldest: u64,
    },
    /// The given frame was never published.
    #[error("the frame log ends before {tail}")]
    Future {
        /// The sequence number that the next frame gets.
        tail: u64,
    },
}

/// A cursor: the sequence number of the next frame to read.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    log: FrameLog<'a>,
    seq: u64,
}

impl<'a> Reader<'a> {
    /// A reader of everything that is published from now on.
    pub fn at_tail(log: FrameLog<'a>) -> Self {
        Self {
            log,
            seq: log.tail(),
        }
    }

    /// A reader of everything after frame `seq`, which was the last one seen (0 for none).
    pub fn after(log: FrameLog<'a>, seq: u64) -> Result<Self, Gone> {
        let tail = log.tail();
        if seq >= tail {
            return Err(Gone::Future { tail });
        }
        let oldest = log.oldest();
        if seq + 1 < oldest {
            return Err(Gone::TooOld { oldest });
        }
        Ok(Self { log, seq: seq + 1 })
    }

    /// The sequence number of the next frame this reader returns.
    pub fn position(&self) -> u64 {
        self.seq
    }

    /// Copies the next frame into `out` (which is cleared first) and moves on.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Next {
        out.clear();
        if self.seq >= self.log.tail() {
            return Next::Empty;
        }
        let oldest = self.log.oldest();
        if self.seq < oldest {
            return self.lapped(oldest);
        }
        copy(self.log, self.log.entry(self.seq), out);
        // Whatever new words the copy may have caught, the load below sees that they are new.
        fence(Acquire);
        let oldest = self.log.oldest_word().load(Relaxed);
        if self.seq < oldest {
            out.clear();
            return self.lapped(oldest);
        }
        let id = self.log.id(self.seq);
        self.seq += 1;
        Next::Frame(id)
    }

    fn lapped(&mut self, oldest: u64) -> Next {
        let missed = oldest - self.seq;
        self.seq = oldest;
        Next::Lapped {
            resumed_at: self.log.id(oldest),
            missed,
        }
    }
}

/// Copies a body. The entry may be a later frame's by now: then the copy is thrown away.
fn copy(log: FrameLog<'_>, entry: Entry, out: &mut Vec<u8>) {
    out.resize(entry.bytes, 0);
    let (first, second) = log.body(entry.place, entry.bytes.div_ceil(8));
    let (chunks, rest) = out.as_chunks_mut::<8>();
    let mut words = first.iter().chain(second);
    for (chunk, word) in chunks.iter_mut().zip(&mut words) {
        *chunk = load(word);
    }
    if let Some(word) = words.next() {
        let length = rest.len();
        rest.copy_from_slice(&load(word)[..length]);
    }
}

fn load(word: &AtomicU64) -> [u8; 8] {
    word.load(Relaxed).to_ne_bytes()
}
