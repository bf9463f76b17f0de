//! Holds what a slow peer has not taken yet, within a budget.
//!
//! Owns the queue and how far its front was sent. Refuses to know sockets and what the bytes say.
//! Invariants: `len_bytes` is what is left to send; it is at most the budget, or one chunk where a
//! single one is larger; a front that was sent in part is sent to its end, whatever else happens.

use bytes::Bytes;
use std::collections::VecDeque;

/// The queue had no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBudget {
    /// Bytes that were waiting already.
    pub waiting: usize,
    /// The budget in bytes.
    pub budget: usize,
}

/// Chunks that wait for one peer. Empty, it holds no heap memory.
#[derive(Debug, Default)]
pub struct Outbox {
    chunks: VecDeque<Bytes>,
    /// Bytes of the front chunk that were sent.
    sent: usize,
    /// Bytes left to send.
    len: usize,
}

impl Outbox {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a chunk at the end. One chunk is always taken by an empty queue, so a frame larger than the
    /// budget can still be delivered to a peer that reads.
    pub fn push(&mut self, chunk: Bytes, budget: usize) -> Result<(), OverBudget> {
        self.push_rest(chunk, 0, budget)
    }

    /// Adds a chunk of which `sent` bytes went out already, which only an empty queue can take.
    ///
    /// # Panics
    /// If something waits while `sent` is not 0, or if `sent` is more than the chunk has.
    pub fn push_rest(
        &mut self,
        chunk: Bytes,
        sent: usize,
        budget: usize,
    ) -> Result<(), OverBudget> {
        assert!(
            sent == 0 || self.is_empty(),
            "a chunk was sent ahead of the queue"
        );
        let left = chunk
            .len()
            .checked_sub(sent)
            .expect("no more of a chunk is sent than it has");
        if !self.is_empty() && self.len + left > budget {
            return Err(OverBudget {
                waiting: self.len,
                budget,
            });
        }
        self.append(chunk, sent, left);
        Ok(())
    }

    /// Adds the few bytes of a last word, whatever the budget.
    pub fn push_notice(&mut self, notice: Bytes) {
        let left = notice.len();
        self.append(notice, 0, left);
    }

    /// Drops every chunk of which nothing was sent.
    pub fn drop_unsent(&mut self) {
        let in_flight = usize::from(self.sent > 0);
        self.chunks.truncate(in_flight);
        self.len = self
            .chunks
            .front()
            .map_or(0, |front| front.len() - self.sent);
        self.free_if_empty();
    }

    /// What to send next.
    pub fn front(&self) -> Option<&[u8]> {
        self.chunks.front().map(|front| &front[self.sent..])
    }

    /// Everything that waits, in order, for a vectored write.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let rest = self.chunks.iter().skip(1).map(|chunk| &chunk[..]);
        self.front().into_iter().chain(rest)
    }

    /// The peer took `count` bytes.
    ///
    /// # Panics
    /// If fewer were waiting.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len, "more was taken than was waiting");
        self.len -= count;
        self.sent += count;
        while let Some(front) = self.chunks.front() {
            if self.sent < front.len() {
                break;
            }
            self.sent -= front.len();
            self.chunks.pop_front();
        }
        self.free_if_empty();
    }

    /// Bytes left to send.
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Places for chunks on the heap; 0 when nothing waits.
    pub fn capacity(&self) -> usize {
        self.chunks.capacity()
    }

    fn append(&mut self, chunk: Bytes, sent: usize, left: usize) {
        if left == 0 {
            return;
        }
        if self.chunks.is_empty() {
            self.sent = sent;
        }
        self.chunks.push_back(chunk);
        self.len += left;
    }

    fn free_if_empty(&mut self) {
        if self.chunks.is_empty() {
            self.chunks = VecDeque::new();
            self.sent = 0;
        }
    }
}
