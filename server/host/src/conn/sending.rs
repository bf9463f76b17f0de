//! The part of a connection that writes to the socket, and closes it.
//!
//! Owns what is known of a peer that does not read. Refuses to know what is written. Invariant: every byte that the
//! socket takes is counted once, and is progress.

use std::io;
use std::task::{Context, Poll};

use m0_page::WorkerCounter;
use m0_unix::clock::monotonic_ms;
use m0_unix::sockets;
use tokio::io::Interest;

use super::Conn;

impl Conn {
    /// Sends bytes for the engine.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.tls.get() {
            None => self.poll_send_raw(cx, bytes),
            Some(sealed) => self.poll_seal(sealed, cx, bytes),
        }
    }

    fn poll_send_raw(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = match self.socket.poll_write_ready(cx) {
                Poll::Ready(guard) => guard?,
                Poll::Pending => {
                    self.note_blocked();
                    return Poll::Pending;
                }
            };
            match guard.try_io(|socket| socket.get_ref().send(bytes)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(result) => {
                    if let Ok(sent) = result {
                        self.note_sent(sent);
                        self.note_on_wire(sent);
                    }
                    return Poll::Ready(result);
                }
                Err(_would_block) => {}
            }
        }
    }

    /// Sends what the socket takes now, without a task to wake: the fan-out's way.
    pub(crate) fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(sealed) = self.tls.get() {
            return self.seal_now(sealed, bytes);
        }
        let sent = self
            .socket
            .try_io(Interest::WRITABLE, |socket| socket.send(bytes));
        match sent {
            Ok(n) => {
                self.note_sent(n);
                self.note_on_wire(n);
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.note_blocked();
                Ok(0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    pub(super) fn note_blocked(&self) {
        if !self.blocked.replace(true) {
            self.queued.set(self.queue_bytes());
            self.note(|progress| progress.wrote(0, true, monotonic_ms()));
        }
    }

    /// Bytes that the peer has not acknowledged; as many as can be where that cannot be told.
    pub(super) fn queue_bytes(&self) -> usize {
        sockets::unacknowledged_bytes(self.socket.get_ref()).unwrap_or(usize::MAX)
    }

    /// Whether the peer has taken bytes since the last look although the socket still takes none: the
    /// kernel calls a socket writable again only when a third of its buffer is free, and a peer that
    /// reads steadily must not be cut for that. If so, its time starts anew.
    pub(crate) fn has_drained_a_little(&self) -> bool {
        if !self.blocked.get() {
            return false;
        }
        let before = self.queued.replace(self.queue_bytes());
        let drained = self.queued.get() < before;
        if drained {
            self.note(|progress| progress.wrote(1, true, monotonic_ms()));
        }
        drained
    }

    /// So many bytes of an answer are with the socket, or sealed for it.
    pub(super) fn note_sent(&self, bytes: usize) {
        self.sent.set(self.sent.get() + bytes as u64);
    }

    /// The socket took so many bytes.
    pub(super) fn note_on_wire(&self, bytes: usize) {
        self.bytes_went();
        if self.blocked.replace(false) {
            self.note(|progress| progress.wrote(bytes, false, monotonic_ms()));
        }
        self.share
            .counter(WorkerCounter::BytesSent)
            .add(bytes as u64);
    }

    /// Sends FIN, unless an answer of the host's own is still to be written.
    pub(crate) fn poll_engine_shutdown(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.refusal.get().is_some() {
            return Poll::Ready(());
        }
        self.poll_shutdown(cx)
    }

    /// Sends FIN once.
    pub(crate) fn shutdown(&self) {
        if !self.shut.replace(true) {
            // A peer that is gone already has nothing to be told.
            let _ = sockets::shutdown_write(self.socket.get_ref());
        }
    }

    /// Makes the close of this socket a reset: the peer must not take a cut answer for a whole one.
    pub(crate) fn reset_on_close(&self) {
        // Without it the close is an ordinary one.
        let _ = sockets::reset_on_close(self.socket.get_ref());
    }
}
