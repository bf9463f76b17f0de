//! How much one connection sends before the others of its worker have their turn.
//!
//! Owns the count of bytes and the way back into the loop. Refuses to know sockets and the engine. Invariant: after
//! [`TURN_BYTES`] a sender waits until the loop has looked for what else came, however much its socket would take.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

/// Most bytes that a connection sends before the loop looks at the others. A kernel takes some megabytes
/// from a peer that reads nothing, and copying them takes milliseconds.
pub(crate) const TURN_BYTES: usize = 128 * 1024;

/// What a connection has sent in its turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    sent: usize,
}

impl Turn {
    /// Bytes that may go now. None means that the turn is over; the next begins when the task is polled again.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let room = TURN_BYTES - self.sent;
        if room > 0 {
            return Poll::Ready(room);
        }
        self.sent = 0;
        // Not the waker at once: with a task that is always ready the loop looks for events at every 61st turn only.
        pin!(tokio::task::yield_now()).poll(cx).map(|()| TURN_BYTES)
    }

    /// So many bytes went, no more than there was room for.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }
}
