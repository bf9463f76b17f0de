//! The streams that a worker holds, and the fan-out over them.
//!
//! Owns keys, places and the worker's position in the log. Refuses to know sockets: a closure writes,
//! and a list tells the host which streams need something of it.
//! Invariant: a key names one stream for ever; a key of a removed stream names none.

use crate::batch::Growing;
use crate::chunk::{Chunk, MOST_FRAMING_BYTES};
use crate::end::{self, GapReason};
use crate::stream::{Fate, Now, Stream, Wrote};
use m0_framelog::{FrameId, FrameLog, Next, Reader, Replay};

/// Bytes after which a batch takes no further frame: about what a socket takes at once.
const LARGEST_BATCH_BYTES: usize = 64 * 1024;

/// Names a stream of this worker. Never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    place: u32,
    generation: u32,
}

impl Key {
    /// A small number that no other held stream has now: the place for what the host keeps beside it.
    pub fn index(self) -> usize {
        self.place as usize
    }
}

/// What the worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Streams held.
    pub streams: usize,
    /// Bytes that wait in all outboxes.
    pub outbox_bytes: usize,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    stream: Option<Stream>,
}

/// What a turn of [`Registry::deliver`] found in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// These frames went to every stream that wanted them.
    Frames {
        /// The last of them.
        last: FrameId,
        /// How many there were, at least one.
        count: usize,
    },
    /// Nothing new is published.
    Empty,
    /// The worker was overtaken by the log: live streams were told of the gap and end.
    Lapped {
        /// Frames that this worker will never see.
        missed: u64,
    },
}

/// The worker's streams and its place in the frame log.
///
/// ```
/// use m0_framelog::{FrameLog, plan, sync};
/// use m0_streams::{Delivered, Fate, Frame, Registry, Wrote};
///
/// let ids = sync::AtomicU64::new(0);
/// let words = sync::words(m0_framelog::words_needed(4096));
/// let log = FrameLog::format(&words, &ids, 0x5eed);
/// let mut registry = Registry::new(log, 1_000, 262_144);
///
/// let key = registry.insert(plan(None, log), false, 0).expect("room for one");
/// let mut socket = Vec::new();
/// let mut write = |bytes: &[u8]| {
///     socket.extend_from_slice(bytes);
///     Wrote::Bytes(bytes.len())
/// };
/// assert_eq!(registry.pump(key, 0, &mut write), Fate::Clear);
///
/// let id = log.append(1, |id, text| Frame::new(Some(id), text).data("hello").finish())?;
/// let mut changes = Vec::new();
/// let delivered = registry.deliver(1, 0, &mut changes, |_, bytes| write(bytes));
/// assert_eq!(delivered, Delivered::Frames { last: id, count: 1 });
/// assert_eq!(socket, b"18\r\nid: 5eed-1\ndata: hello\n\n\r\n");
/// # Ok::<(), m0_framelog::AppendError>(())
/// ```
pub struct Registry<'a> {
    log: FrameLog<'a>,
    /// Stands at the frame that the worker delivers next.
    live: Reader<'a>,
    text: Vec<u8>,
    batch: Growing,
    places: Vec<Place>,
    free: Vec<u32>,
    held: usize,
    max_streams: usize,
    budget: usize,
    heartbeat: Chunk,
}

/// The worker holds as many streams as it may: answer 503 with `Retry-After`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl<'a> Registry<'a> {
    /// A registry of a worker that delivers what is published from now on. `budget` is bytes per stream.
    #[must_use]
    pub fn new(log: FrameLog<'a>, max_streams: usize, budget: usize) -> Self {
        Self {
            log,
            live: Reader::at_tail(log),
            text: Vec::new(),
            batch: Growing::default(),
            places: Vec::new(),
            free: Vec::new(),
            held: 0,
            max_streams,
            budget,
            heartbeat: Chunk::encode(end::HEARTBEAT),
        }
    }

    /// Whether another stream may be held: ask before the head is written.
    pub fn has_room(&self) -> bool {
        self.held < self.max_streams
    }

    /// Whether another stream may be held when `others` are held elsewhere under the same limit.
    pub fn has_room_beside(&self, others: usize) -> bool {
        self.held + others < self.max_streams
    }

    /// Holds a stream whose head is out; `plan` is what [`m0_framelog::plan`] said. Call
    /// [`pump`](Self::pump) next: a replay or a reset has something to write.
    pub fn insert(&mut self, plan: Replay, http10: bool, now_ms: u64) -> Result<Key, Full> {
        if !self.has_room() {
            return Err(Full);
        }
        let stream = Stream::join(plan, http10, self.now(now_ms));
        let place = if let Some(place) = self.free.pop() {
            place
        } else {
            self.places.push(Place {
                generation: 0,
                stream: None,
            });
            (self.places.len() - 1) as u32
        };
        let slot = &mut self.places[place as usize];
        slot.stream = Some(stream);
        self.held += 1;
        Ok(Key {
            place,
            generation: slot.generation,
        })
    }

    /// Lets a stream go; `None` if it went before.
    pub fn remove(&mut self, key: Key) -> Option<Stream> {
        let slot = self.places.get_mut(key.place as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let stream = slot.stream.take()?;
        self.held -= 1;
        // A place whose generations are used up is never filled again.
        if let Some(generation) = slot.generation.checked_add(1) {
            slot.generation = generation;
            self.free.push(key.place);
        }
        Some(stream)
    }

    /// The stream of a key.
    pub fn get(&self, key: Key) -> Option<&Stream> {
        let slot = self.places.get(key.place as usize)?;
        (slot.generation == key.generation).then_some(slot.stream.as_ref())?
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Stream> {
        let slot = self.places.get_mut(key.place as usize)?;
        (slot.generation == key.generation).then_some(slot.stream.as_mut())?
    }

    /// Takes the next frames from the log, at most `most` of them, and gives them to every stream, all in
    /// one write; call it until it says [`Delivered::Empty`]. `write` writes without waiting; `changes` gets
    /// the streams that are now blocked, finished or gone (it is not cleared). Frames of one turn are
    /// together no larger than the budget of a stream, or one frame where a single frame is larger.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn deliver(
        &mut self,
        most: usize,
        now_ms: u64,
        changes: &mut Vec<(Key, Fate)>,
        mut write: impl FnMut(Key, &[u8]) -> Wrote,
    ) -> Delivered {
        assert!(most > 0, "a turn delivers at least one frame");
        let first = self.live.position();
        let mut last = None;
        while self.batch.frames() < most {
            let before = self.live;
            match self.live.next(&mut self.text) {
                Next::Frame(id) => {
                    let with = self.batch.len_bytes() + self.text.len() + MOST_FRAMING_BYTES;
                    let over = with > self.budget.min(LARGEST_BATCH_BYTES);
                    if over && !self.batch.is_empty() {
                        self.live = before;
                        break;
                    }
                    self.batch.push(&self.text);
                    last = Some(id);
                }
                Next::Empty => break,
                Next::Lapped { missed, .. } if self.batch.is_empty() => {
                    self.tell_lapped(now_ms, changes, write);
                    return Delivered::Lapped { missed };
                }
                // What was read before is whole: it goes out, and the next turn finds the gap again.
                Next::Lapped { .. } => {
                    self.live = before;
                    break;
                }
            }
        }
        let Some(last) = last else {
            return Delivered::Empty;
        };
        let batch = self.batch.take(first);
        let count = (last.seq - first) as usize + 1;
        let now = self.now(now_ms);
        self.each(changes, |key, stream| {
            stream.deliver(&batch, now, |bytes| write(key, bytes))
        });
        self.batch.recycle(batch);
        Delivered::Frames { last, count }
    }

    /// Tells the live streams that miss frames which this worker never saw.
    fn tell_lapped(
        &mut self,
        now_ms: u64,
        changes: &mut Vec<(Key, Fate)>,
        mut write: impl FnMut(Key, &[u8]) -> Wrote,
    ) {
        let now = self.now(now_ms);
        self.each(changes, |key, stream| {
            if stream.next() < now.live_next && !stream.is_catching_up() {
                stream.end_with_gap(GapReason::Lapped);
            }
            stream.pump(now, |bytes| write(key, bytes))
        });
    }

    /// Sends a heartbeat on every stream that was silent for `interval_ms`.
    pub fn heartbeats(
        &mut self,
        interval_ms: u64,
        now_ms: u64,
        changes: &mut Vec<(Key, Fate)>,
        mut write: impl FnMut(Key, &[u8]) -> Wrote,
    ) {
        let now = self.now(now_ms);
        let beat = self.heartbeat.clone();
        self.each(changes, |key, stream| {
            stream
                .heartbeat(&beat, interval_ms, now, |bytes| write(key, bytes))
                .unwrap_or(Fate::Clear)
        });
    }

    /// Tells every stream that the worker drains. `retry_ms` gives each its own wait (with jitter).
    pub fn drain(
        &mut self,
        now_ms: u64,
        mut retry_ms: impl FnMut(Key) -> u64,
        changes: &mut Vec<(Key, Fate)>,
        mut write: impl FnMut(Key, &[u8]) -> Wrote,
    ) {
        let now = self.now(now_ms);
        self.each(changes, |key, stream| {
            stream.end_with_drain(retry_ms(key));
            stream.pump(now, |bytes| write(key, bytes))
        });
    }

    /// Writes what waits for one stream, after its join and whenever its socket can take more.
    pub fn pump(&mut self, key: Key, now_ms: u64, write: impl FnMut(&[u8]) -> Wrote) -> Fate {
        let now = self.now(now_ms);
        self.get_mut(key)
            .map_or(Fate::Gone, |stream| stream.pump(now, write))
    }

    /// The frame that the worker delivers next.
    pub fn live_next(&self) -> u64 {
        self.live.position()
    }

    /// The frame log, for [`m0_framelog::plan`].
    pub fn log(&self) -> FrameLog<'a> {
        self.log
    }

    /// Streams held.
    pub fn len(&self) -> usize {
        self.held
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// What is held, by a walk over all streams.
    pub fn totals(&self) -> Totals {
        let streams = self.places.iter().filter_map(|place| place.stream.as_ref());
        streams.fold(Totals::default(), |sum, stream| Totals {
            streams: sum.streams + 1,
            outbox_bytes: sum.outbox_bytes + stream.outbox().len_bytes(),
        })
    }

    fn now(&self, ms: u64) -> Now<'a> {
        Now {
            log: self.log,
            live_next: self.live.position(),
            budget: self.budget,
            ms,
        }
    }

    fn each(
        &mut self,
        changes: &mut Vec<(Key, Fate)>,
        mut act: impl FnMut(Key, &mut Stream) -> Fate,
    ) {
        for (place, slot) in self.places.iter_mut().enumerate() {
            let Some(stream) = &mut slot.stream else {
                continue;
            };
            let key = Key {
                place: place as u32,
                generation: slot.generation,
            };
            match act(key, stream) {
                Fate::Clear => {}
                fate => changes.push((key, fate)),
            }
        }
    }
}
