//! The part of a connection over TLS that moves its records: out of the socket before they are opened, into it once
//! they are sealed.
//!
//! Owns when sealed bytes go. Refuses to know TLS beyond what [`Sealed`] says. Invariant: nothing is sealed while the
//! socket has not taken what was sealed before, but for one write; so an answer is out when [`Conn::poll_flush`] is ready.

use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;

use super::{Conn, READ_BYTES};
use crate::tls::Sealed;

thread_local! {
    /// Records as they came: beside the buffer into which they are opened.
    static RECORDS: RefCell<Box<[u8; READ_BYTES]>> = RefCell::new(Box::new([0; READ_BYTES]));
}

impl Conn {
    /// Whether it speaks TLS.
    pub(crate) fn is_sealed(&self) -> bool {
        self.tls.get().is_some()
    }

    /// Whether bytes, or an end, can be read without the socket.
    pub(super) fn has_opened(&self) -> bool {
        let sealed = self.tls.get();
        sealed.is_some_and(|sealed| sealed.borrow_mut().has_opened())
    }

    /// Bytes of an answer that are sealed and not with the socket.
    pub(super) fn unsent_bytes(&self) -> u64 {
        let sealed = self.tls.get();
        sealed.map_or(0, |sealed| sealed.borrow().unsent_bytes())
    }

    /// What the socket has as it came; 0 bytes at its end.
    pub(super) fn poll_records<T>(
        &self,
        cx: &mut Context<'_>,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        RECORDS.with_borrow_mut(|records| {
            let got = ready!(self.poll_recv_raw(cx, &mut records[..]))?;
            Poll::Ready(Ok(look(&records[..got])))
        })
    }

    /// Receives what the peer has sealed.
    pub(super) fn poll_open(
        &self,
        sealed: &RefCell<Sealed>,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut opened = sealed.borrow_mut().open(into);
            if let Ok(None) = opened {
                // An end without a word is an end: what HTTP frames cannot be cut unseen.
                let take = |came: &[u8]| match came {
                    [] => Ok(Some(0)),
                    came => sealed.borrow_mut().feed(came).map(|()| None),
                };
                opened = ready!(self.poll_records(cx, take))?;
            }
            // An alert, or the answer to new keys. Where the socket takes nothing now, the next write sends it first.
            let _ = self.poll_unsent(sealed, cx);
            if let Some(got) = opened? {
                return Poll::Ready(Ok(got));
            }
        }
    }

    /// Sends what is sealed; ready once the socket has all of it.
    pub(super) fn poll_unsent(
        &self,
        sealed: &RefCell<Sealed>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while sealed.borrow().has_unsent() {
            let mut guard = match self.socket.poll_write_ready(cx) {
                Poll::Ready(guard) => guard?,
                Poll::Pending => {
                    self.note_blocked();
                    return Poll::Pending;
                }
            };
            match guard.try_io(|socket| sealed.borrow_mut().send(&mut socket.get_ref())) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(sent) => self.note_on_wire(sent?),
                Err(_would_block) => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Seals bytes and sends them, for as long as the socket takes them; how many were sealed.
    pub(super) fn poll_seal(
        &self,
        sealed: &RefCell<Sealed>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut taken = 0;
        loop {
            match self.poll_unsent(sealed, cx) {
                Poll::Ready(Ok(())) if taken < bytes.len() => {}
                Poll::Ready(Err(error)) if taken == 0 => return Poll::Ready(Err(error)),
                Poll::Pending if taken == 0 => return Poll::Pending,
                // An error is met again by the next write.
                _ => return Poll::Ready(Ok(taken)),
            }
            let more = sealed.borrow_mut().seal(&bytes[taken..])?;
            self.note_sent(more);
            taken += more;
        }
    }

    /// The same without a task to wake: the fan-out's way. What the socket does not take now is the driver's to send.
    pub(super) fn seal_now(&self, sealed: &RefCell<Sealed>, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while self.unsent_goes(sealed)? {
            if taken == bytes.len() {
                return Ok(taken);
            }
            let more = sealed.borrow_mut().seal(&bytes[taken..])?;
            self.note_sent(more);
            taken += more;
        }
        self.note_blocked();
        self.wake();
        Ok(taken)
    }

    /// Sends what the socket takes now; whether that was all.
    fn unsent_goes(&self, sealed: &RefCell<Sealed>) -> io::Result<bool> {
        while sealed.borrow().has_unsent() {
            let sent = self.socket.try_io(Interest::WRITABLE, |mut socket| {
                sealed.borrow_mut().send(&mut socket)
            });
            match sent {
                Ok(sent) => self.note_on_wire(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Ready once everything that was sent is with the socket.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.tls.get() {
            None => Poll::Ready(Ok(())),
            Some(sealed) => self.poll_unsent(sealed, cx),
        }
    }

    /// Sends FIN once; over TLS behind what is sealed, and the word that nothing follows.
    pub(crate) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(sealed) = self.tls.get()
            && !self.shut.get()
        {
            sealed.borrow_mut().say_end();
            // A peer that is gone already has nothing to be told.
            let _ = ready!(self.poll_unsent(sealed, cx));
        }
        self.shutdown();
        Poll::Ready(())
    }

    /// Reads and drops what is on the wire, opened or not: behind an alert nothing else is to be had.
    pub(crate) fn poll_discard_raw(&self, cx: &mut Context<'_>, most: usize) -> Poll<()> {
        self.discard(most, |into| self.poll_recv_raw(cx, into))
    }
}
