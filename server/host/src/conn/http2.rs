//! The part of a connection that speaks HTTP/2: what is open on it, and what its sweep looks at.
//!
//! Owns the moment at which the first bytes say so, and the exchanges that go on beside each other. Refuses to know
//! frames beyond what `m0_wire::http2` says. Invariant: every byte behind the preface passes the ledger, in both
//! directions, and what it calls in flight is in flight for the drain and the deadlines.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use m0_unix::clock::monotonic_ms;
use m0_wire::http2::{Ledger, PREFACE, Preface, Step};
use m0_wire::{Deadlines, Expired, Phase, Scanner};
use slab::Slab;
use tokio::task::yield_now;

use super::{Conn, Interruption, Response, SCRATCH};
use crate::exchange::Beside;

/// Reads in one turn of a connection before the others have theirs. A peer that sends without a pause frames that
/// cost it nothing would else be read for as long as the loop lets a task run.
const READS_A_TURN: u32 = 2;

/// What a connection that speaks HTTP/2 has beside one of HTTP/1.1.
#[derive(Default)]
pub(crate) struct Http2 {
    /// Received and not seen by the engine: the preface, and what came with it.
    early: RefCell<Vec<u8>>,
    ledger: RefCell<Ledger>,
    exchanges: RefCell<Slab<Weak<Beside>>>,
    reads: Cell<u32>,
    /// When the socket last took a byte, or an answer was last with the engine in full.
    moved_ms: Cell<u64>,
}

impl Http2 {
    pub(super) fn phase(&self) -> Phase {
        self.ledger.borrow().phase()
    }

    /// Whether nothing is under way, half a head included.
    pub(crate) fn is_quiet(&self) -> bool {
        self.ledger.borrow().is_quiet()
    }

    /// Exchanges that are open as far as the socket knows, and what came behind the last one that is taken.
    pub(crate) fn open(&self) -> usize {
        self.ledger.borrow().open()
    }

    /// A turn of the connection begins.
    pub(crate) fn begin_turn(&self) {
        self.reads.set(0);
    }

    /// Remembers an exchange until the key is given back.
    pub(crate) fn enter(&self, exchange: &Weak<Beside>) -> usize {
        self.exchanges.borrow_mut().insert(Weak::clone(exchange))
    }

    /// The exchange of this key is over, for the application and the engine.
    pub(crate) fn leave(&self, key: usize) {
        self.exchanges.borrow_mut().remove(key);
        // What is left of it has yet to be offered to the socket.
        self.moved_ms.set(monotonic_ms());
    }

    /// Exchanges that the application or the engine is not done with.
    pub(crate) fn exchanges(&self) -> usize {
        self.exchanges.borrow().len()
    }

    /// Ends the exchanges whose peer does not take what it was given, and says whether the connection is to end: all
    /// of an answer is with the engine, and the peer takes none of it.
    pub(crate) fn expired(&self, deadlines: &Deadlines, now_ms: u64) -> Option<Expired> {
        let late: Vec<(Rc<Beside>, Expired)> = self
            .exchanges
            .borrow()
            .iter()
            .filter_map(|(_, exchange)| {
                let exchange = exchange.upgrade()?;
                let expired = deadlines.write_verdict(exchange.owed_since()?, now_ms)?;
                Some((exchange, expired))
            })
            .collect();
        for (exchange, expired) in late {
            exchange.cut(expired.why);
        }
        let unsent = self.open() > self.exchanges();
        unsent
            .then(|| deadlines.write_verdict(self.moved_ms.get(), now_ms))
            .flatten()
    }
}

impl Conn {
    /// The first bytes may be the preface of HTTP/2.
    pub(crate) fn expect_preface(&self) {
        self.preface.set(Some(Preface::default()));
    }

    /// What the connection has as one of HTTP/2.
    pub(crate) fn http2(&self) -> Option<&Http2> {
        self.http2.get().map(Box::as_ref)
    }

    /// Whether the preface has begun to arrive and is not whole.
    pub(super) fn preface_has_begun(&self) -> bool {
        self.preface
            .get()
            .is_some_and(|preface| !preface.held().is_empty())
    }

    /// Looks at the first bytes. Whether they are the scanner's; what it missed is shown to it.
    pub(super) fn read_preface(&self, bytes: &[u8], scanner: &mut Scanner) -> bool {
        let Some(mut preface) = self.preface.get() else {
            return true;
        };
        if bytes.is_empty() {
            return true;
        }
        let held = preface.held();
        match preface.feed(bytes) {
            Step::More => {
                self.preface.set(Some(preface));
                // It is given as long as a head is, from its first byte on.
                self.note(|progress| progress.received(Phase::Head, false, monotonic_ms()));
                false
            }
            Step::Whole { used } => {
                self.preface.set(None);
                self.become_http2(&bytes[used..]);
                false
            }
            Step::Other if self.is_sealed() => {
                let why = "HTTP/2 was agreed on, and something else came";
                self.interrupt(Interruption::Disagreed(why));
                false
            }
            Step::Other => {
                self.preface.set(None);
                // Fewer bytes than any head has, so none of them is released yet.
                scanner.feed(held);
                true
            }
        }
    }

    /// The connection speaks HTTP/2; `behind` came with its preface.
    fn become_http2(&self, behind: &[u8]) {
        let http2 = Http2::default();
        http2.early.borrow_mut().extend_from_slice(PREFACE);
        http2.early.borrow_mut().extend_from_slice(behind);
        http2.ledger.borrow_mut().received(behind);
        http2.moved_ms.set(monotonic_ms());
        let first = self.http2.set(Box::new(http2)).is_ok();
        assert!(first, "a connection has one preface");
        self.http2_moved(0);
    }

    /// Bytes for the engine of HTTP/2, at most `room` of them. Nothing handed over means that there will be no more.
    pub(crate) fn poll_read_http2(
        &self,
        cx: &mut Context<'_>,
        room: usize,
        give: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        let http2 = self.http2().expect("its engine is made after the preface");
        let mut early = http2.early.borrow_mut();
        if !early.is_empty() {
            let given = early.len().min(room);
            give(&early[..given]);
            early.drain(..given);
            if early.is_empty() {
                *early = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        if http2.reads.replace(http2.reads.get() + 1) >= READS_A_TURN {
            // Not the waker at once: with a task that is always ready the loop looks for events at every 61st turn only.
            let _ = pin!(yield_now()).poll(cx);
            return Poll::Pending;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let limit = scratch.len().min(room);
            let got = ready!(self.poll_recv(cx, &mut scratch[..limit]))?;
            if got == 0 {
                self.eof.set(true);
            } else {
                let bytes = &scratch[..got];
                let begun = http2.ledger.borrow().begun();
                http2.ledger.borrow_mut().received(bytes);
                self.http2_moved(http2.ledger.borrow().begun() - begun);
                give(bytes);
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Sends bytes for the engine of HTTP/2.
    pub(crate) fn poll_send_http2(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(self.poll_send(cx, bytes))?;
        if let Some(http2) = self.http2() {
            http2.ledger.borrow_mut().sent(&bytes[..sent]);
            http2.moved_ms.set(monotonic_ms());
            self.http2_moved(0);
        }
        Poll::Ready(Ok(sent))
    }

    /// Everything that the engine had is with the socket.
    pub(crate) fn flushed_http2(&self) {
        self.last_bytes_went();
    }

    /// Brings the record of the sweep and of the drain up to the ledger; so many requests have come.
    fn http2_moved(&self, heads: u64) {
        let Some(http2) = self.http2() else {
            return;
        };
        let phase = http2.phase();
        self.note(|progress| progress.received(phase, heads > 0, monotonic_ms()));
        let response = if http2.open() > 0 {
            Response::Pending
        } else {
            Response::None
        };
        if self.response.replace(response) != response {
            self.wake();
        }
    }
}
