//! Publishing to every stream on every worker.
//!
//! Owns the bus: the frame log and one doorbell a worker. Refuses to let anyone publish to a subset or
//! choose an id. Invariant: a frame is in the log before any doorbell rings, and every live worker's
//! doorbell rings for it.

use std::fmt;
use std::sync::Arc;

use m0_framelog::{AppendError, FrameId, FrameLog};
use m0_page::{Page, ProducerCounter};
use m0_streams::sse::Frame;
use m0_unix::fds::Doorbell;

/// What all processes of one host share. Made before the fork.
pub(crate) struct Bus {
    pub(crate) page: Page<'static>,
    pub(crate) log: FrameLog<'static>,
    /// Rung when there is a new frame; one for each slot.
    pub(crate) frame_bells: Vec<Doorbell>,
    /// Rung when a slot should look at the listener; one for each slot.
    pub(crate) accept_bells: Vec<Doorbell>,
}

/// What became of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The id that the frame carries.
    pub id: FrameId,
    /// Workers whose doorbell could not be rung; they see the frame with the next one.
    pub unreached: usize,
}

/// Why nothing was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishError {
    /// The frame is larger than the log takes.
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most that would have been taken.
        limit: usize,
    },
    /// The log's lock was not free within its bound.
    Busy,
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublishError::TooLarge { bytes, limit } => {
                write!(f, "a frame of {bytes} bytes is over the limit of {limit}")
            }
            PublishError::Busy => f.write_str("the frame log was locked for longer than its bound"),
        }
    }
}

impl std::error::Error for PublishError {}

/// The way to every stream on every worker.
#[derive(Clone)]
pub struct Publisher {
    bus: Arc<Bus>,
}

impl Publisher {
    pub(crate) fn new(bus: Arc<Bus>) -> Self {
        Publisher { bus }
    }

    /// Publishes one frame. `write` runs under the log's lock with the frame's id already stamped, so
    /// it should only write; the id can be read from the frame.
    ///
    /// # Errors
    /// [`PublishError`] when the frame is too large or the log stayed locked; either is counted.
    pub fn publish(
        &mut self,
        write: impl FnOnce(&mut Frame<'_>),
    ) -> Result<Published, PublishError> {
        let appended = self.bus.log.append(std::process::id(), |id, buffer| {
            let mut frame = Frame::new(Some(id), buffer);
            write(&mut frame);
            frame.finish();
        });
        let id = match appended {
            Ok(id) => id,
            Err(error) => {
                self.count(ProducerCounter::RefusedPublishes, 1);
                return Err(match error {
                    AppendError::TooLarge { bytes, limit } => {
                        PublishError::TooLarge { bytes, limit }
                    }
                    AppendError::Busy { .. } => PublishError::Busy,
                });
            }
        };
        let unreached = self.ring();
        self.count(ProducerCounter::Published, 1);
        self.count(ProducerCounter::RefusedPublishes, unreached as u64);
        Ok(Published { id, unreached })
    }

    /// Rings every live worker; returns how many could not be rung.
    fn ring(&self) -> usize {
        let mut unreached = 0;
        for bell in &self.bus.frame_bells {
            match bell.ring() {
                Ok(true) => {}
                Ok(false) | Err(_) => unreached += 1,
            }
        }
        unreached
    }

    /// Adds to one of the producer's figures on the page.
    pub(crate) fn count(&self, counter: ProducerCounter, amount: u64) {
        self.bus.page.producer().counter(counter).add(amount);
    }

    /// Registers this process's producer as the host's only one; false when there is another.
    pub(crate) fn claim_producer(&self, slot: usize) -> bool {
        self.bus.page.producer().claim(std::process::id(), slot)
    }

    /// The producer of this process has ended.
    pub(crate) fn release_producer(&self) {
        self.bus.page.producer().release(std::process::id());
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}
