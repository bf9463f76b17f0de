//! The part of a connection over TLS before its first request: a proxy's header, then the handshake.
//!
//! Owns the moment at which the first byte makes it a handshake, and the one at which it is done. Refuses to know what a
//! handshake says. Invariant: it has the time of a request's head, from its first byte on; the request behind it then
//! has its own.

use std::cell::RefCell;
use std::task::{Context, Poll, ready};

use m0_unix::clock::monotonic_ms;
use m0_wire::http2::Preface;
use m0_wire::{Phase, Progress};

use super::Conn;
use crate::tls::{Identity, Sealed};

/// How a handshake ended that was not completed.
#[derive(Debug)]
pub(crate) enum Unshaken {
    /// Nothing was ever said: a spare connection, or a check of the port.
    Silent,
    /// Why it cannot go on. An alert may wait to be sent.
    Failed(String),
}

impl Conn {
    /// Whether the peer has not said anything.
    pub(crate) fn is_untouched(&self) -> bool {
        self.progress.get().phase() == Phase::FirstByte && !self.has_input()
    }

    /// Goes on with the handshake, which begins with what `identity` gives once the first byte of it is there.
    pub(crate) fn poll_handshake(
        &self,
        cx: &mut Context<'_>,
        identity: impl Fn() -> Identity,
    ) -> Poll<Result<(), Unshaken>> {
        loop {
            if let Some(sealed) = self.tls.get() {
                let sent = ready!(self.poll_unsent(sealed, cx));
                sent.map_err(|error| self.left(&error.to_string()))?;
                if !sealed.borrow().is_handshaking() {
                    self.handshake_is_over(sealed);
                    return Poll::Ready(Ok(()));
                }
            }
            if self.is_to_close() {
                return Poll::Pending;
            }
            let came = ready!(self.poll_records(cx, |came| self.shake(came, &identity)));
            came.unwrap_or_else(|error| Err(self.left(&error.to_string())))?;
        }
    }

    /// Takes what came for the handshake, which is none of it while a header is not whole.
    fn shake(&self, came: &[u8], identity: &impl Fn() -> Identity) -> Result<(), Unshaken> {
        if came.is_empty() {
            return Err(self.left("the peer left"));
        }
        let mut bytes = came.to_vec();
        if self.awaits_header() {
            let mut held = Vec::new();
            let Some(used) = self.read_header(came, |missed| held.extend_from_slice(missed)) else {
                return Ok(());
            };
            held.extend_from_slice(&came[used..]);
            bytes = held;
            // The client behind the proxy has its own time.
            self.progress.set(Progress::new(monotonic_ms()));
        }
        let Some(first) = bytes.first() else {
            return Ok(());
        };
        self.note(|progress| progress.received(Phase::Head, false, monotonic_ms()));
        let begins = self.tls.get().is_none();
        let begin = || Box::new(RefCell::new(Sealed::new(&identity())));
        let fed = self.tls.get_or_init(begin).borrow_mut().feed(&bytes);
        fed.map_err(|error| {
            // Records begin with their type, a small number; a letter begins somebody's request.
            if begins && first.is_ascii_alphabetic() {
                Unshaken::Failed("plain text where TLS is spoken".to_owned())
            } else {
                Unshaken::Failed(error.to_string())
            }
        })
    }

    /// How it ended where its peer has gone.
    fn left(&self, why: &str) -> Unshaken {
        match self.tls.get() {
            None => Unshaken::Silent,
            Some(_) => Unshaken::Failed(why.to_owned()),
        }
    }

    fn handshake_is_over(&self, sealed: &RefCell<Sealed>) {
        self.progress.set(Progress::new(monotonic_ms()));
        // Without the agreement the preface is none (RFC 9113 section 3.2).
        let agreed = sealed.borrow().speaks_http2();
        self.preface.set(agreed.then(Preface::default));
    }
}
