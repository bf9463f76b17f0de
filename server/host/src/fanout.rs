//! The worker's one fan-out: frames from the log, straight to the sockets of held streams.
//!
//! Owns the worker's reader of the log, the registry of its streams and which connection belongs to
//! which. Refuses to know HTTP and the bus beyond its own doorbell. Invariant: a stream's socket is
//! written to only from here once its head is out.

use std::cell::RefCell;
use std::rc::Rc;

use m0_framelog::{FrameLog, Replay, plan};
use m0_page::{Share, WorkerCounter};
use m0_streams::{Delivered, Fate, Key, Registry, Wrote};
use m0_unix::clock::monotonic_ms;
use serde_json::json;

use crate::conn::Conn;
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

struct Inner {
    registry: Registry<'static>,
    /// The connection of each stream, at its key's index.
    conns: Vec<Option<Rc<Conn>>>,
    changes: Vec<(Key, Fate)>,
}

/// Writes to the socket of a stream without waiting.
fn write(conns: &[Option<Rc<Conn>>], key: Key, bytes: &[u8]) -> Wrote {
    match conns.get(key.index()).and_then(Option::as_ref) {
        Some(conn) => conn.send_now(bytes).map_or(Wrote::Gone, Wrote::Bytes),
        None => Wrote::Gone,
    }
}

impl Inner {
    /// Tells the drivers of the streams that changed.
    fn settle(&mut self) {
        for (key, fate) in self.changes.drain(..) {
            if let Some(Some(conn)) = self.conns.get(key.index()) {
                conn.stream_stands(fate);
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
                conns: Vec::new(),
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
        let mut inner = self.inner.borrow_mut();
        if !inner.registry.has_room_beside(others) {
            return None;
        }
        let key = inner.registry.insert(plan, http10, monotonic_ms()).ok()?;
        if inner.conns.len() <= key.index() {
            inner.conns.resize(key.index() + 1, None);
        }
        inner.conns[key.index()] = Some(Rc::clone(conn));
        self.share.stream_opened();
        Some(key)
    }

    /// Lets a stream go.
    pub(crate) fn leave(&self, key: Key) {
        let mut inner = self.inner.borrow_mut();
        if inner.registry.remove(key).is_some() {
            inner.conns[key.index()] = None;
            self.share.stream_closed();
        }
    }

    /// Writes what waits for one stream.
    pub(crate) fn pump(&self, key: Key) -> Fate {
        let Inner {
            registry, conns, ..
        } = &mut *self.inner.borrow_mut();
        registry.pump(key, monotonic_ms(), |bytes| write(conns, key, bytes))
    }

    /// Delivers the new frames of one turn; whether there may be more.
    pub(crate) fn deliver(&self) -> bool {
        let mut inner = self.inner.borrow_mut();
        let Inner {
            registry,
            conns,
            changes,
        } = &mut *inner;
        let delivered = registry.deliver(BATCH, monotonic_ms(), changes, |key, bytes| {
            write(conns, key, bytes)
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
            conns,
            changes,
        } = &mut *inner;
        registry.heartbeats(self.heartbeat_ms, monotonic_ms(), changes, |key, bytes| {
            write(conns, key, bytes)
        });
        inner.settle();
    }

    /// Tells every stream that the worker drains; how many were told.
    pub(crate) fn tell_drain(&self) -> usize {
        let mut inner = self.inner.borrow_mut();
        let Inner {
            registry,
            conns,
            changes,
        } = &mut *inner;
        let mut jitter = Jitter::new();
        registry.drain(
            monotonic_ms(),
            |_| jitter.between(RETRY_MS),
            changes,
            |key, bytes| write(conns, key, bytes),
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
