//! The part of a connection that knows when: the moments of its requests, for the access log.
//!
//! Owns the times at which heads came, and the entries of answers whose last bytes are still to be sent. Refuses to
//! know what is logged. Invariant: nothing is held, and no clock read, where there is no access log.

use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

use m0_unix::clock::monotonic_ns;

use super::Conn;
use crate::access::Entry;

/// What the access log needs to know of a connection.
#[derive(Default)]
pub(super) struct Timing {
    /// When each head came whose request was not taken up yet. One read brings at most as many as fit into it.
    heads: VecDeque<u64>,
    /// When the socket took the first byte of the answer in hand; 0 until then.
    first_ns: u64,
    /// That byte went with all others that have gone since.
    at_once: bool,
    /// Of answers whose bodies have ended, and that are not all with the socket.
    ended: Vec<Entry>,
}

impl Conn {
    /// The peer as logs name it: a string of JSON, its quotes included.
    pub(crate) fn peer_json(&self) -> Rc<str> {
        let text = || {
            serde_json::Value::from(self.peer().to_string())
                .to_string()
                .into()
        };
        Rc::clone(self.peer_json.get_or_init(text))
    }

    /// Gives this connection's requests their times from now on.
    pub(crate) fn keep_time(&self) {
        *self.timing.borrow_mut() = Some(Box::default());
    }

    /// So many heads have become whole.
    pub(super) fn heads_came(&self, heads: u64) {
        if heads > 0
            && let Some(timing) = &mut *self.timing.borrow_mut()
        {
            let now = monotonic_ns();
            timing.heads.extend((0..heads).map(|_| now));
        }
    }

    /// When the head of the request that is taken up now came.
    pub(crate) fn take_head_ns(&self) -> u64 {
        let mut timing = self.timing.borrow_mut();
        let came = timing.as_mut().and_then(|timing| timing.heads.pop_front());
        came.unwrap_or_else(monotonic_ns)
    }

    /// The next byte that the socket takes is the first one of an answer. Of answers that go out together it is
    /// the first byte of them all.
    pub(super) fn await_first_byte(&self) {
        if let Some(timing) = &mut *self.timing.borrow_mut() {
            timing.first_ns = 0;
        }
    }

    /// The socket took bytes.
    pub(super) fn bytes_went(&self) {
        if let Some(timing) = &mut *self.timing.borrow_mut() {
            timing.at_once = timing.first_ns == 0;
            if timing.at_once {
                timing.first_ns = monotonic_ns();
            }
        }
    }

    /// When the socket took the first byte of the answer in hand; 0 when it has taken none.
    pub(crate) fn first_byte_ns(&self) -> u64 {
        let timing = self.timing.borrow();
        timing.as_ref().map_or(0, |timing| timing.first_ns)
    }

    /// The entry of an answer whose body has ended waits for its last byte to go out.
    pub(crate) fn await_last_byte(&self, entry: Option<Entry>) {
        if let Some(mut entry) = entry
            && let Some(timing) = &mut *self.timing.borrow_mut()
        {
            entry.moments.first = timing.first_ns;
            timing.ended.push(entry);
        }
    }

    /// Everything is with the socket: the entries that waited for it become lines.
    pub(super) fn last_bytes_went(&self) {
        let mut timing = self.timing.borrow_mut();
        let Some(timing) = &mut *timing else {
            return;
        };
        if timing.ended.is_empty() {
            return;
        }
        // What went in one piece has one moment, and a clock costs as much as half a line.
        let now = if timing.at_once && timing.first_ns > 0 {
            timing.first_ns
        } else {
            monotonic_ns()
        };
        let mut ended = mem::take(&mut timing.ended);
        for mut entry in ended.drain(..) {
            if entry.moments.first == 0 {
                entry.moments.first = timing.first_ns;
            }
            entry.moments.last = now;
        }
        timing.ended = ended;
    }
}
