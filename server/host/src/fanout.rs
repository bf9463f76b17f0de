//! The worker's one fan-out: frames from the log, straight to where held streams go.
//!
//! Owns the worker's reader of the log, the registry of its streams and where each
//! goes. Refuses to know HTTP and the bus beyond its own doorbell. Invariant: a stream's socket is
//! written to only from here once its head is out.

use std::cell::RefCell;
use std::rc::Rc;

use m0_framelog::{FrameLog, Replay, plan};
use m0_page::{Share, WorkerCounter};
use m0_streams::{Delivered, Fate, Key, Registry, Wrote};
use m0_unix::clock::monotonic_ms;
use serde_json::json;

use crate::conn::Conn;
use crate::feed::Pipe;
use crate::held::Held;
use crate::log;
use crate::settings::{Level, Settings};

/// Most frames that go out together before other work of the loop gets its turn.
const BATCH: usize = 32;

/// Least and most milliseconds that a drained reader is asked to wait; the jitter between them keeps
/// a thousand readers from coming back in the same moment.
const RETRY_MS: (u64, u64) = (500, 2_500);

/// All held streams of one worker.
pub(crate) struct Fanout {
    inner: RefCell<Inner>,
    share: Share<'static>,
    heartbeat_ms: u64,
}

/// Where a stream goes.
enum Sink {
    /// A connection that carries nothing else.
    Socket(Rc<Conn>),
    /// The body of an answer beside others.
    Pipe(Rc<Pipe>),
}

impl Sink {
    fn stands(&self, fate: Fate) {
        match self {
            Sink::Socket(conn) => conn.stream_stands(fate),
            Sink::Pipe(pipe) => pipe.stands(fate),
        }
    }
}

struct Inner {
    registry: Registry<'static>,
    /// Where each stream goes, at its key's index.
    sinks: Vec<Option<Sink>>,
    changes: Vec<(Key, Fate)>,
}

/// Writes to where a stream goes, without waiting.
fn write(sinks: &[Option<Sink>], key: Key, bytes: &[u8]) -> Wrote {
    match sinks.get(key.index()).and_then(Option::as_ref) {
        Some(Sink::Socket(conn)) => conn.send_now(bytes).map_or(Wrote::Gone, Wrote::Bytes),
        Some(Sink::Pipe(pipe)) => Wrote::Bytes(pipe.write(bytes)),
        None => Wrote::Gone,
    }
}

impl Inner {
    /// Tells the drivers of the streams that changed.
    fn settle(&mut self) {
        for (key, fate) in self.changes.drain(..) {
            if let Some(Some(sink)) = self.sinks.get(key.index()) {
                sink.stands(fate);
            }
        }
    }
}

impl Fanout {
    /// A fan-out that delivers what is published from now on.
    pub(crate) fn new(log: FrameLog<'static>, share: Share<'static>, settings: &Settings) -> Self {
        Fanout {
            inner: RefCell::new(Inner {
                registry: Registry::new(log, settings.max_streams, settings.outbox_bytes),
                sinks: Vec::new(),
                changes: Vec::new(),
            }),
            share,
            heartbeat_ms: settings.heartbeat.as_millis() as u64,
        }
    }

    /// Whether another stream may be held beside the registered ones and `others`.
    pub(crate) fn has_room(&self, others: usize) -> bool {
        self.inner.borrow().registry.has_room_beside(others)
    }

    /// Where the stream of this answer begins. Asked before the head is written: a peer that has read
    /// the head gets every frame published from then on, however late the stream joins.
    pub(crate) fn plan(&self, held: &Held) -> Replay {
        plan(
            held.last_event_id.as_deref(),
            self.inner.borrow().registry.log(),
        )
    }

    /// Takes a connection whose head is out. None when the worker holds all it may, `others` included.
    pub(crate) fn join(
        &self,
        conn: &Rc<Conn>,
        plan: Replay,
        http10: bool,
        others: usize,
    ) -> Option<Key> {
        self.enter(Sink::Socket(Rc::clone(conn)), plan, http10, others)
    }

    /// Takes the body of an answer beside others, which has no framing of HTTP/1.1. None when the worker holds all it
    /// may, `others` included.
    pub(crate) fn join_pipe(&self, pipe: &Rc<Pipe>, plan: Replay, others: usize) -> Option<Key> {
        self.enter(Sink::Pipe(Rc::clone(pipe)), plan, true, others)
    }

    /// A place for a stream; `bare` without chunks around its frames.
    fn enter(&self, sink: Sink, plan: Replay, bare: bool, others: usize) -> Option<Key> {
        let mut inner = self.inner.borrow_mut();
        if !inner.registry.has_room_beside(others) {
            return None;
        }
        let key = inner.registry.insert(plan, bare, monotonic_ms()).ok()?;
        if inner.sinks.len() <= key.index() {
            inner.sinks.resize_with(key.index() + 1, || None);
        }
        inner.sinks[key.index()] = Some(sink);
        self.share.stream_opened();
        Some(key)
    }

    /// Lets a stream go.
    pub(crate) fn leave(&self, key: Key) {
        let mut inner = self.inner.borrow_mut();
        if inner.registry.remove(key).is_some() {
            inner.sinks[key.index()] = None;
            self.share.stream_closed();
        }
    }

    /// Writes what waits for one stream.
    pub(crate) fn pump(&self, key: Key) -> Fate {
        let Inner {
            registry, sinks, ..
        } = &mut *self.inner.borrow_mut();
        registry.pump(key, monotonic_ms(), |bytes| write(sinks, key, bytes))
    }

    /// Delivers the new frames of one turn; whether there may be more.
    pub(crate) fn deliver(&self) -> bool {
        let mut inner = self.inner.borrow_mut();
        let Inner {
            registry,
            sinks,
            changes,
        } = &mut *inner;
        let delivered = registry.deliver(BATCH, monotonic_ms(), changes, |key, bytes| {
            write(sinks, key, bytes)
        });
        match delivered {
            Delivered::Empty => return false,
            Delivered::Frames { count, .. } => self
                .share
                .counter(WorkerCounter::FramesDelivered)
                .add((count * registry.len()) as u64),
            Delivered::Lapped { missed } => log::event(
                Level::Warn,
                "log-lapped",
                json!({ "missed": missed, "message": "this worker was overtaken by the frame log; its streams were told" }),
            ),
        }
        inner.settle();
        true
    }

    /// Sends heartbeats where they are due.
    pub(crate) fn heartbeats(&self) {
        let mut inner = self.inner.borrow_mut();
        let Inner {
            registry,
            sinks,
            changes,
        } = &mut *inner;
        registry.heartbeats(self.heartbeat_ms, monotonic_ms(), changes, |key, bytes| {
            write(sinks, key, bytes)
        });
        inner.settle();
    }

    /// Tells every stream that the worker drains; how many were told.
    pub(crate) fn tell_drain(&self) -> usize {
        let mut inner = self.inner.borrow_mut();
        let Inner {
            registry,
            sinks,
            changes,
        } = &mut *inner;
        let mut jitter = Jitter::new();
        registry.drain(
            monotonic_ms(),
            |_| jitter.between(RETRY_MS),
            changes,
            |key, bytes| write(sinks, key, bytes),
        );
        let told = registry.len();
        inner.settle();
        told
    }
}

/// Numbers that differ between streams and workers; nothing about them is secret.
struct Jitter(u64);

impl Jitter {
    fn new() -> Self {
        Jitter(m0_unix::clock::monotonic_ns() ^ (u64::from(std::process::id()) << 32) | 1)
    }

    /// The next number of a xorshift generator (Marsaglia 2003), within the bounds.
    fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + self.0 % (most - least + 1)
    }
}
