//! One request and its answer: alone on its connection, or beside others over HTTP/2.
//!
//! Owns what differs between the two for the handler and for the answer's body. Refuses to know the wire. Invariant:
//! an exchange beside others ends by itself: nothing about it touches the connection that carries the others.

mod pieces;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::Request;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http_body::Body as _;
use m0_unix::clock::{monotonic_ms, monotonic_ns};
use m0_wire::Limits;
use m0_wire::http2::{Asked, Fault, judge};
use serde_json::json;

use crate::access::Entry;
use crate::body::{RequestBody, Stopped};
use crate::conn::Conn;
use crate::log;
use crate::settings::Level;

pub(crate) use pieces::Pieces;

/// One exchange, as the handler and the answer's body see it.
#[derive(Clone)]
pub(crate) enum Exchange {
    /// It has its connection for itself.
    Alone(Rc<Conn>),
    /// Others are under way on the same connection.
    Beside(Rc<Beside>),
}

/// An exchange beside others.
pub(crate) struct Beside {
    conn: Rc<Conn>,
    key: usize,
    /// When its head was with the host.
    head_ns: u64,
    /// Since when the peer has a piece of the answer to take.
    owed_ms: Cell<Option<u64>>,
    /// Why the request's body goes no further.
    stopped: Arc<Stopped>,
    cut: Cell<Option<&'static str>>,
    task: RefCell<Option<Waker>>,
}

impl Beside {
    /// A request has come on this connection, which speaks HTTP/2.
    pub(crate) fn new(conn: Rc<Conn>) -> Rc<Self> {
        Rc::new_cyclic(|itself: &Weak<Beside>| Beside {
            key: conn.http2().map_or(0, |http2| http2.enter(itself)),
            conn,
            head_ns: monotonic_ns(),
            owed_ms: Cell::new(None),
            stopped: Arc::default(),
            cut: Cell::new(None),
            task: RefCell::new(None),
        })
    }

    /// What the request's body says when it is not let in whole.
    pub(crate) fn stopped(&self) -> &Arc<Stopped> {
        &self.stopped
    }

    /// Since when the peer has a piece of the answer to take.
    pub(crate) fn owed_since(&self) -> Option<u64> {
        self.owed_ms.get()
    }

    /// The engine has a piece of the answer for the peer, or none.
    fn owes(&self, piece: bool) {
        self.owed_ms.set(piece.then(monotonic_ms));
    }

    /// Ends the exchange by a reset, and no other; told once.
    pub(crate) fn cut(&self, why: &'static str) {
        if self.cut.replace(Some(why)).is_none() {
            let peer = self.conn.peer().to_string();
            log::event(Level::Warn, "cut", json!({ "why": why, "peer": peer }));
        }
        if let Some(task) = self.task.borrow().as_ref() {
            task.wake_by_ref();
        }
    }

    /// Ready once the exchange was cut; remembers whom to wake.
    pub(crate) fn poll_cut(&self, cx: &Context<'_>) -> Poll<()> {
        if self.cut.get().is_some() {
            return Poll::Ready(());
        }
        *self.task.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(http2) = self.conn.http2() {
            http2.leave(self.key);
        }
        // Its driver may have waited for the last one.
        self.conn.wake();
    }
}

impl Exchange {
    pub(crate) fn conn(&self) -> &Rc<Conn> {
        match self {
            Exchange::Alone(conn) => conn,
            Exchange::Beside(beside) => &beside.conn,
        }
    }

    /// A request's head is with the host.
    pub(crate) fn request_begins(&self) {
        match self {
            Exchange::Alone(conn) => conn.request_begins(),
            Exchange::Beside(beside) => beside.conn.count_request(),
        }
    }

    /// The request has this id, which is its connection's only where nothing else is under way.
    pub(crate) fn identify(&self, id: &HeaderValue) {
        if let Exchange::Alone(conn) = self {
            conn.identify(id);
        }
    }

    /// When the head of the request came.
    pub(crate) fn head_ns(&self) -> u64 {
        match self {
            Exchange::Alone(conn) => conn.take_head_ns(),
            Exchange::Beside(beside) => beside.head_ns,
        }
    }

    /// What is wrong with a head that no scanner has seen.
    pub(crate) fn judge(
        &self,
        request: &Request<RequestBody>,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let Exchange::Beside(_) = self else {
            return Ok(());
        };
        let (uri, fields) = (request.uri(), request.headers());
        let hosts: Vec<&[u8]> = fields
            .get_all(HOST)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        // The engine has compared all of them.
        let told = fields
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        judge(
            &Asked {
                method: request.method().as_str(),
                target_bytes: uri.path_and_query().map_or(0, |path| path.as_str().len()),
                authority: uri.authority().map(http::uri::Authority::as_str),
                hosts: &hosts,
                fields: fields.len(),
                body_bytes: told.unwrap_or_else(|| request.body().size_hint().lower()),
            },
            limits,
        )
    }

    /// Why the request's body was not let in whole.
    pub(crate) fn body_fault(&self) -> Option<Fault> {
        match self {
            Exchange::Alone(_) => None,
            Exchange::Beside(beside) => beside.stopped.fault(),
        }
    }

    /// Whether this answer is the last of its connection, which its client is told in it.
    pub(crate) fn closes(&self, max_requests: u64, draining: bool) -> bool {
        match self {
            Exchange::Alone(conn) => {
                draining || conn.body_may_not_come() || conn.is_used_up(max_requests)
            }
            // The engine tells of that for all exchanges of the connection (RFC 9113 section 6.8).
            Exchange::Beside(_) => false,
        }
    }

    /// The application has answered.
    pub(crate) fn response_begins(&self) {
        if let Exchange::Alone(conn) = self {
            conn.response_begins();
        }
    }

    /// The answer's body has ended, or was given up. What the engine holds of it is still to be sent.
    pub(crate) fn response_ends(&self, entry: Option<Entry>) {
        match self {
            Exchange::Alone(conn) => conn.response_ends(entry),
            Exchange::Beside(beside) => beside.conn.await_last_byte(entry),
        }
    }

    /// Whether the host has ended it before it was over.
    pub(crate) fn was_cut(&self) -> bool {
        match self {
            Exchange::Alone(_) => false,
            Exchange::Beside(beside) => beside.cut.get().is_some(),
        }
    }

    /// Whether the answer can be a 101.
    pub(crate) fn may_upgrade(&self) -> bool {
        match self {
            Exchange::Alone(conn) => conn.may_upgrade(),
            Exchange::Beside(_) => false,
        }
    }
}
