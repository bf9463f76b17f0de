//! A held stream over HTTP/2: the fan-out fills it, and the engine takes what its peer has room for.
//!
//! Owns the few bytes between the two. Refuses to know frames and sockets. Invariant: what is here is at most one
//! piece; all else waits in the stream's outbox, under the bound that every stream has.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use m0_framelog::Replay;
use m0_streams::{Fate, Key};

use crate::worker::Worker;

/// Bytes between the fan-out and the engine.
const PIPE_BYTES: usize = 16 * 1024;

/// Where the fan-out writes to.
pub(crate) struct Pipe {
    waiting: RefCell<BytesMut>,
    fate: Cell<Fate>,
    reader: RefCell<Option<Waker>>,
}

impl Pipe {
    /// Takes what there is room for; how many bytes that was.
    pub(crate) fn write(&self, bytes: &[u8]) -> usize {
        let mut waiting = self.waiting.borrow_mut();
        let taken = bytes.len().min(PIPE_BYTES.saturating_sub(waiting.len()));
        waiting.extend_from_slice(&bytes[..taken]);
        if taken > 0 {
            self.wake();
        }
        taken
    }

    /// How the stream stands, as the fan-out found.
    pub(crate) fn stands(&self, fate: Fate) {
        if self.fate.replace(fate) != fate {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The body of a held stream, for as long as the stream has a place.
pub(crate) struct Feed {
    worker: Rc<Worker>,
    key: Key,
    pipe: Rc<Pipe>,
}

impl Feed {
    /// A stream that begins so; none when the worker holds all it may.
    pub(crate) fn join(worker: &Rc<Worker>, plan: Replay) -> Option<Self> {
        let pipe = Rc::new(Pipe {
            waiting: RefCell::default(),
            fate: Cell::new(Fate::Clear),
            reader: RefCell::new(None),
        });
        let key = worker.fanout().join_pipe(&pipe, plan, worker.sockets())?;
        let feed = Feed {
            worker: Rc::clone(worker),
            key,
            pipe,
        };
        feed.pump();
        Some(feed)
    }

    /// Fills the pipe from what waits for the stream.
    fn pump(&self) {
        self.pipe.fate.set(self.worker.fanout().pump(self.key));
    }

    /// The stream was ended before its last word.
    pub(crate) fn count_cut(&self) {
        if self.pipe.fate.get() != Fate::Finished {
            self.worker.count_cut_stream();
        }
    }

    /// The next bytes; nothing once the stream has had its last word.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let take = || self.pipe.waiting.borrow_mut().split().freeze();
        let mut piece = take();
        if self.pipe.fate.get() == Fate::Blocked {
            // There is room again.
            self.pump();
            if piece.is_empty() {
                piece = take();
            }
        }
        if !piece.is_empty() {
            return Poll::Ready(Some(piece));
        }
        match self.pipe.fate.get() {
            Fate::Finished | Fate::Gone => Poll::Ready(None),
            Fate::Clear | Fate::Blocked => {
                *self.pipe.reader.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.worker.fanout().leave(self.key);
    }
}
