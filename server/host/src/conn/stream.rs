//! The part of a connection that a held stream needs: the takeover and what follows it.
//!
//! Owns the moment at which the engine's part ends: the head is out and the body has been asked for.
//! Refuses to know frames. Invariant: `Ready` comes after `Armed`, and only once every byte of the head
//! is with the socket.

use std::io;
use std::task::{Context, Poll, ready};

use m0_framelog::Replay;
use m0_streams::Fate;
use m0_unix::clock::monotonic_ms;
use m0_wire::Phase;

use super::{Conn, SCRATCH, Takeover};
use crate::access::Entry;
use crate::websocket::Begin;
use crate::worker::SocketHeld;

/// What a connection becomes once the head of its answer is out.
pub(crate) enum Held {
    /// An event stream that begins so.
    Events(Replay),
    /// A WebSocket, and its place among the streams of the worker.
    Socket(Begin, SocketHeld),
}

impl Conn {
    /// The answer in hand holds the connection.
    pub(crate) fn hold(&self, held: Held, entry: Option<Entry>) {
        *self.held.borrow_mut() = Some((held, entry));
    }

    /// What the connection becomes and its log entry, for whoever takes the connection over.
    pub(crate) fn take_held(&self) -> Option<(Held, Option<Entry>)> {
        self.held.borrow_mut().take()
    }

    /// The body of a held stream was dropped. Whether that ends the answer: it does when the stream
    /// was never armed.
    pub(crate) fn release_held(&self) -> bool {
        if self.takeover.get() != Takeover::None {
            return false;
        }
        self.take_held();
        true
    }

    /// How the stream of this connection stands, as the fan-out found; wakes the driver when it has to act.
    pub(crate) fn stream_stands(&self, fate: Fate) {
        if self.fate.replace(fate) != fate {
            self.wake();
        }
    }

    pub(crate) fn stream_fate(&self) -> Fate {
        self.fate.get()
    }

    /// Waits until the socket may take bytes again.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        // A failed registration is found by the write that follows.
        self.socket.poll_write_ready(cx).map(|_| ())
    }

    /// Reads and drops what the peer sends; ready when it has closed, failed, or sent `most` bytes.
    pub(crate) fn poll_discard(&self, cx: &mut Context<'_>, most: usize) -> Poll<()> {
        self.discard(most, |into| self.poll_recv(cx, into))
    }

    pub(super) fn discard(
        &self,
        most: usize,
        mut poll_recv: impl FnMut(&mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<()> {
        SCRATCH.with_borrow_mut(|scratch| {
            loop {
                match ready!(poll_recv(&mut scratch[..])) {
                    Ok(0) | Err(_) => return Poll::Ready(()),
                    Ok(n) => {
                        self.discarded.set(self.discarded.get() + n);
                        if self.discarded.get() > most {
                            return Poll::Ready(());
                        }
                    }
                }
            }
        })
    }

    /// Bytes sent on this connection.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent.get()
    }

    /// Everything that the engine had is with the socket, and so is the head of a held stream.
    pub(super) fn head_flushed(&self) {
        if self.takeover.get() == Takeover::Armed {
            self.takeover.set(Takeover::Ready);
            // What its peer still sends is dropped unseen: nothing is waited for that could be late.
            self.note(|progress| progress.answered(Phase::Complete, monotonic_ms()));
            self.wake();
        }
    }

    /// The engine asks for the first byte of a held stream's body.
    pub(crate) fn arm_takeover(&self) {
        if self.takeover.get() == Takeover::None {
            self.takeover.set(Takeover::Armed);
        }
    }

    pub(crate) fn taken_over(&self) -> bool {
        self.takeover.get() == Takeover::Ready
    }
}
