//! One connection: its socket, what has come and gone, and what its driver should do about it.
//!
//! Owns the socket and the record that the deadline sweep reads. Refuses to know HTTP beyond what the
//! scanner of `m0_wire` says. Invariant: every received byte passes the scanner before the engine
//! sees it, and only this file reads from or writes to the socket.

mod answering;
mod driving;
mod emptied;
mod header;
mod http2;
mod sealing;
mod sending;
mod shaking;
mod stream;
mod timing;
mod upgraded;

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use http::HeaderValue;
use m0_page::{Share, WorkerCounter};
use m0_streams::Fate;
use m0_unix::clock::monotonic_ms;
use m0_unix::sockets::Peer;
use m0_wire::http2::Preface;
use m0_wire::proxy::Reader;
use m0_wire::ws::Vitals;
use m0_wire::{Expired, Phase, Place, Progress, Refusal, Scanner, Verdict};
use serde_json::json;
use socket2::Socket;
use tokio::io::unix::AsyncFd;

use crate::access::Entry;
use crate::log;
use crate::settings::Level;
use crate::tls::Sealed;

pub(crate) use answering::Response;
pub(crate) use http2::Http2;
pub(crate) use shaking::Unshaken;
pub(crate) use stream::Held;

/// Largest single read. One buffer of this size serves all connections of a worker.
const READ_BYTES: usize = 16 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8; READ_BYTES]>> = RefCell::new(Box::new([0; READ_BYTES]));
}

/// Why the driver must act now, whatever the engine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// A deadline passed.
    Expired(Expired),
    /// The bytes in the middle of a body were refused.
    Refused(Refusal),
    /// The header of a proxy is not there, or is broken.
    Header(&'static str),
    /// What came is not what the handshake of TLS has agreed on.
    Disagreed(&'static str),
    /// The drain's bound passed.
    Cut,
}

/// How far a stream's takeover is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takeover {
    /// No held stream.
    None,
    /// The engine has asked the body for its first byte: the head is in its buffer.
    Armed,
    /// The head is out; the socket is the fan-out's.
    Ready,
}

/// One connection. Shared between its driver, the engine's I/O, the sweep and the fan-out.
pub(crate) struct Conn {
    socket: AsyncFd<Socket>,
    /// The peer of the socket, until a proxy's header tells of another.
    peer: Cell<Peer>,
    peer_json: OnceCell<Rc<str>>,
    /// Of a connection whose first bytes are a proxy's header, until it is whole.
    header: RefCell<Option<Box<Reader>>>,
    /// Of a connection that may speak HTTP/2, until its first bytes have said.
    preface: Cell<Option<Preface>>,
    /// Of a connection that speaks it.
    http2: OnceCell<Box<Http2>>,
    /// Of a connection over TLS, from the first byte of its handshake on.
    tls: OnceCell<Box<RefCell<Sealed>>>,
    /// Came while its worker drains.
    late: bool,
    over_tcp: bool,
    share: Share<'static>,
    scanner: RefCell<Scanner>,
    eof: Cell<bool>,
    refusal: Cell<Option<Refusal>>,
    /// Of the request that the application was handed last, where requests have one.
    id: RefCell<Option<HeaderValue>>,
    interruption: Cell<Option<Interruption>>,
    response: Cell<Response>,
    /// Requests that the application was handed, or the host answered in its place.
    requests: Cell<u64>,
    /// Answers whose bodies have ended and that are not all with the socket.
    unsent: Cell<u64>,
    takeover: Cell<Takeover>,
    held: RefCell<Option<(Held, Option<Entry>)>>,
    progress: Cell<Progress>,
    blocked: Cell<bool>,
    /// Unacknowledged bytes when the socket was last looked at while blocked.
    queued: Cell<usize>,
    shut: Cell<bool>,
    fate: Cell<Fate>,
    discarded: Cell<usize>,
    /// Of a connection that is a WebSocket.
    vitals: Cell<Option<Vitals>>,
    sent: Cell<u64>,
    /// Only where there is an access log.
    timing: RefCell<Option<Box<timing::Timing>>>,
    driver: RefCell<Option<Waker>>,
}

impl Conn {
    /// Takes a freshly accepted socket; must be called on the worker's loop.
    pub(crate) fn new(
        socket: Socket,
        peer: Peer,
        scanner: Scanner,
        share: Share<'static>,
        late: bool,
    ) -> io::Result<Self> {
        let now = monotonic_ms();
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that might change their descriptor; a Socket never does"
        )]
        let socket = AsyncFd::with_interest(socket, emptied::INTEREST)?;
        let conn = Conn {
            socket,
            peer: Cell::new(peer),
            peer_json: OnceCell::new(),
            header: RefCell::new(None),
            preface: Cell::new(None),
            http2: OnceCell::new(),
            tls: OnceCell::new(),
            late,
            over_tcp: matches!(peer, Peer::Tcp(_)),
            share,
            scanner: RefCell::new(scanner),
            eof: Cell::new(false),
            refusal: Cell::new(None),
            id: RefCell::new(None),
            interruption: Cell::new(None),
            response: Cell::new(Response::None),
            requests: Cell::new(0),
            unsent: Cell::new(0),
            takeover: Cell::new(Takeover::None),
            held: RefCell::new(None),
            progress: Cell::new(Progress::new(now)),
            blocked: Cell::new(false),
            queued: Cell::new(0),
            shut: Cell::new(false),
            fate: Cell::new(Fate::Clear),
            discarded: Cell::new(0),
            vitals: Cell::new(None),
            sent: Cell::new(0),
            timing: RefCell::new(None),
            driver: RefCell::new(None),
        };
        share.opened();
        Ok(conn)
    }

    pub(crate) fn is_late(&self) -> bool {
        self.late
    }

    pub(crate) fn peer(&self) -> Peer {
        self.peer.get()
    }

    /// Bytes for the engine, at most `room` of them, all seen by the scanner. Nothing handed over
    /// means that the engine will get no more.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        room: usize,
        give: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        loop {
            let mut scanner = self.scanner.borrow_mut();
            let held_back = scanner.ready();
            if !held_back.is_empty() {
                let given = held_back.len().min(room);
                give(&held_back[..given]);
                scanner.consume(given);
                return Poll::Ready(Ok(()));
            }
            match self.refusal.get() {
                // The driver answers in the middle of the body: an end here would have the application
                // answer first.
                Some(refusal) if refusal.place == Place::Body => return Poll::Pending,
                Some(_) => return Poll::Ready(Ok(())),
                // Nobody knows yet what comes next; it waits in the socket until the answer is out.
                None if scanner.is_undecided() => return Poll::Pending,
                None if self.eof.get() => return Poll::Ready(Ok(())),
                // The driver gives it to another engine.
                None if self.http2().is_some() => return Poll::Pending,
                // The driver closes.
                None if self.is_to_close() => return Poll::Pending,
                None => {}
            }
            let read = SCRATCH.with_borrow_mut(|scratch| {
                let limit = scratch.len().min(room);
                let got = ready!(self.poll_recv(cx, &mut scratch[..limit]))?;
                if got == 0 {
                    self.eof.set(true);
                    return Poll::Ready(Ok(false));
                }
                let mut bytes = &scratch[..got];
                let told = if self.awaits_header() {
                    let missed = |held: &[u8]| {
                        scanner.feed(held);
                    };
                    let Some(rest) = self.read_header(bytes, missed) else {
                        return Poll::Ready(Ok(false));
                    };
                    bytes = &bytes[rest..];
                    true
                } else {
                    false
                };
                let requests = scanner.requests_seen();
                if !self.read_preface(bytes, &mut scanner) {
                    return Poll::Ready(Ok(false));
                }
                let fed = scanner.feed(bytes);
                if fed.pass > 0 {
                    give(&bytes[..fed.pass]);
                }
                let heads = scanner.requests_seen() - requests;
                self.heads_came(heads);
                let new_request = told || heads > 0;
                self.note(|progress| {
                    progress.received(scanner.phase(), new_request, monotonic_ms());
                });
                if let Verdict::Refuse(refusal) = fed.verdict {
                    self.refuse(refusal, scanner.unanswered());
                }
                Poll::Ready(Ok::<bool, io::Error>(fed.pass > 0))
            });
            match read {
                Poll::Pending => {
                    // Of a body alone it matters since when nothing came.
                    if self.progress.get().phase() == Phase::Body {
                        self.note(|progress| progress.waits(monotonic_ms()));
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(true)) => return Poll::Ready(Ok(())),
                // The end, a refusal, or bytes held back until their head is complete: look again.
                Poll::Ready(Ok(false)) => {}
            }
        }
    }

    fn note(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.get();
        change(&mut progress);
        self.progress.set(progress);
    }

    /// Receives bytes of the peer's, past the scanner: for lingering and for held streams.
    pub(crate) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self.tls.get() {
            None => self.poll_recv_raw(cx, into),
            Some(sealed) => self.poll_open(sealed, cx, into),
        }
    }

    /// Receives what is on the wire.
    fn poll_recv_raw(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            match guard.try_io(|socket| read(socket.get_ref(), into)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(result) => {
                    if let Ok(got) = result
                        && self.is_emptied(got, into.len())
                    {
                        guard.clear_ready();
                    }
                    return Poll::Ready(result);
                }
                Err(_would_block) => {}
            }
        }
    }

    /// Whether bytes or an end wait to be read right now.
    pub(crate) fn has_input(&self) -> bool {
        if self.has_opened() {
            return true;
        }
        let mut one = [std::mem::MaybeUninit::uninit(); 1];
        !matches!(self.socket.get_ref().peek(&mut one), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    pub(crate) fn is_http10(&self) -> bool {
        self.scanner.borrow().is_http10()
    }

    /// A handler or a body panicked and was caught.
    pub(crate) fn count_panic(&self) {
        self.share.counter(WorkerCounter::Panics).add(1);
    }

    /// The application's body failed midway: the peer sees a cut, the log the reason.
    pub(crate) fn body_failed(&self, message: &str) {
        log::event(
            Level::Warn,
            "cut",
            json!({ "why": "the answer's body failed", "message": message, "peer": self.peer().to_string() }),
        );
    }

    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal.get()
    }

    /// A final answer now leaves it open whether the next bytes are a body that was not asked for.
    pub(crate) fn body_may_not_come(&self) -> bool {
        self.scanner.borrow().body_may_not_come()
    }

    pub(crate) fn phase(&self) -> Phase {
        if self.header_has_begun() || self.preface_has_begun() {
            return Phase::Head;
        }
        if let Some(http2) = self.http2() {
            return http2.phase();
        }
        self.scanner.borrow().phase()
    }

    /// Whether the peer may still be sending something that nobody has read.
    pub(crate) fn owes_input(&self) -> bool {
        !self.eof.get()
            && (self.refusal.get().is_some() || self.phase() == Phase::Body || self.has_input())
    }

    /// Nothing is asked and nothing is being answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.response.get() == Response::None
            && matches!(self.phase(), Phase::FirstByte | Phase::Idle)
            && !self.has_input()
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.share.closed();
    }
}

fn read(socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
    use std::io::Read;
    let mut socket = socket;
    socket.read(into)
}
