//! The part of a connection that has become a WebSocket.
//!
//! Owns the raw way to the socket's bytes and the times of the peer. Refuses to know frames. Invariant: what
//! the scanner held back comes before what the socket brings.

use std::io;
use std::task::{Context, Poll, ready};

use m0_wire::ws::{Rhythm, Vitals};

use super::{Conn, SCRATCH};

impl Conn {
    /// Whether the answer in hand can be a 101: the request asked for it, and no byte of its body is owed.
    pub(crate) fn may_upgrade(&self) -> bool {
        self.scanner.borrow().is_undecided()
    }

    /// From now on every byte passes unseen; what came behind the handshake already.
    pub(crate) fn become_tunnel(&self) -> Vec<u8> {
        let mut scanner = self.scanner.borrow_mut();
        scanner.become_tunnel();
        let early = scanner.ready().to_vec();
        scanner.consume(early.len());
        early
    }

    /// Shows what the socket has to `look`; how many bytes, 0 at the end.
    pub(crate) fn poll_raw(
        &self,
        cx: &mut Context<'_>,
        look: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let got = ready!(self.poll_recv(cx, &mut scratch[..]))?;
            if got == 0 {
                self.eof.set(true);
            } else {
                look(&scratch[..got]);
            }
            Poll::Ready(Ok(got))
        })
    }

    /// Bytes that the peer's side has acknowledged; 0 where that cannot be told.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.sent_bytes()
            .saturating_sub(self.queue_bytes() as u64)
            .saturating_sub(self.unsent_bytes())
    }

    /// Remembers the times of the peer for the sweep.
    pub(crate) fn set_vitals(&self, vitals: Option<Vitals>) {
        self.vitals.set(vitals);
    }

    /// Wakes the driver where the peer's silence asks for something.
    pub(crate) fn wake_if_silent(&self, rhythm: &Rhythm, now_ms: u64) {
        if self
            .vitals
            .get()
            .is_some_and(|vitals| vitals.due(rhythm, now_ms).is_some())
        {
            self.wake();
        }
    }
}
