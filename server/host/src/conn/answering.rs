//! The part of a connection that knows how far the answer in hand is.
//!
//! Owns the steps from a request's head to the last byte of its answer. Refuses to know what is answered.
//! Invariant: an answer counts as out once all of it is with the socket, not once its body has ended:
//! in between neither a drain, a deadline nor a refusal may take the connection for an idle one.

use http::HeaderValue;
use m0_page::WorkerCounter;
use m0_unix::clock::monotonic_ms;
use m0_wire::keepalive::{After, Facts, after_answer, used_up};
use m0_wire::{Place, Refusal};

use super::{Conn, Interruption};
use crate::access::Entry;

/// How far a response is, from the engine's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Response {
    /// No request is being answered.
    None,
    /// The application has the request.
    Pending,
    /// The application has answered; bytes may be on the wire.
    Ready,
    /// The body has ended, and not all of it is with the socket.
    Unsent,
}

impl Conn {
    /// A request's head is with the application.
    pub(crate) fn request_begins(&self) {
        self.response.set(Response::Pending);
        self.count_request();
    }

    /// One more request that is answered, alone or beside others.
    pub(crate) fn count_request(&self) {
        self.requests.set(self.requests.get() + 1);
        self.share.counter(WorkerCounter::Requests).add(1);
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// The application has answered.
    pub(crate) fn response_begins(&self) {
        self.response.set(Response::Ready);
        self.await_first_byte();
    }

    /// The response's body has ended, or was given up. What the engine holds of it is still to be sent.
    pub(crate) fn response_ends(&self, entry: Option<Entry>) {
        self.await_last_byte(entry);
        self.response.set(Response::Unsent);
        self.unsent.set(self.unsent.get() + 1);
    }

    /// The engine has handed everything it had to the socket: only now is an answer out.
    pub(crate) fn flushed(&self) {
        self.head_flushed();
        let out = self.unsent.take();
        if out == 0 {
            return;
        }
        // The next request may be with the application already.
        if self.response.get() == Response::Unsent {
            self.response.set(Response::None);
        }
        self.last_bytes_went();
        let mut scanner = self.scanner.borrow_mut();
        let heads = scanner.requests_seen();
        (0..out).for_each(|_| scanner.answered());
        // What waited behind a request to upgrade is judged now.
        self.heads_came(scanner.requests_seen() - heads);
        self.note(|progress| progress.answered(scanner.phase(), monotonic_ms()));
        if let Some(refusal) = scanner.refusal() {
            // It waited for these answers, or was found behind a request to upgrade, which had to be answered before
            // it could be judged.
            self.refuse(refusal, scanner.unanswered());
        }
    }

    /// The bytes that came next are refused; so many requests are not answered, a refused body's own included.
    pub(super) fn refuse(&self, refusal: Refusal, unanswered: u64) {
        self.refusal.set(Some(refusal));
        // A refused head waits for the answers before it. A refused body waits for those to earlier requests, and is
        // answered in the middle of its own.
        if refusal.place == Place::Body && unanswered <= 1 {
            self.interrupt(Interruption::Refused(refusal));
        }
    }

    /// Whether a refusal can still be answered: its request has no answer yet, or it was none.
    pub(crate) fn is_unanswered(&self, refusal: &Refusal) -> bool {
        refusal.place == Place::Head || self.scanner.borrow().unanswered() > 0
    }

    /// The request in hand has this id.
    pub(crate) fn identify(&self, id: &HeaderValue) {
        *self.id.borrow_mut() = Some(id.clone());
    }

    /// The id of the request that the application was handed last.
    pub(crate) fn request_id(&self) -> Option<HeaderValue> {
        self.id.borrow().clone()
    }

    pub(crate) fn response(&self) -> Response {
        self.response.get()
    }

    /// Whether the request in hand is the last of this connection, because it may carry no more.
    pub(crate) fn is_used_up(&self, max_requests: u64) -> bool {
        used_up(self.requests.get(), max_requests)
    }

    /// Whether the peer may have sent another request before it read that the answer was the last one.
    pub(crate) fn may_have_crossed(&self, max_requests: u64) -> bool {
        let facts = Facts {
            head_keeps_alive: self.scanner.borrow().keep_alive(),
            requests: self.requests.get(),
            max_requests,
            body_complete: true,
            ..Facts::default()
        };
        matches!(after_answer(&facts), After::Close { linger: true, .. })
    }
}
