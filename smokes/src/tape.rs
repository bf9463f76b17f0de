//! A recording of one event stream, made by a thread of its own.
//!
//! Owns the thread and the list of items with their times. Knows nothing of what the items should be.
//! Invariant: the last item of a tape whose stream has ended is how it ended.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::events::{Beat, EventStream, Id, Item};
use crate::until::{holds, until};

/// An item and when it had been read.
#[derive(Debug, Clone)]
pub struct Taped {
    /// The moment of reading.
    pub at: Instant,
    /// What came.
    pub item: Item,
}

/// What one stream brought so far. Parsed once, as it comes: whoever waits only counts.
#[derive(Debug, Default)]
struct Recorded {
    items: Vec<Taped>,
    beats: Vec<Beat>,
    ids: Vec<Id>,
    /// The first item that was ill-formed, or the error that ended the reading.
    fault: Option<String>,
}

impl Recorded {
    fn take(&mut self, at: Instant, item: Item) -> Result<()> {
        if let Item::Event(event) = &item {
            self.beats.extend(Beat::of(at, event)?);
            if let Some(id) = &event.id {
                self.ids.push(Id::parse(id)?);
            }
        }
        self.items.push(Taped { at, item });
        Ok(())
    }
}

/// Records one stream in a thread of its own until it ends, is cut, or the tape is dropped.
#[derive(Debug)]
pub struct Tape {
    slot: u32,
    shared: Arc<Mutex<Recorded>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tape {
    /// Opens a stream and records it.
    pub fn open(to: SocketAddr, last_id: Option<&str>) -> Result<Self> {
        Self::of(EventStream::open(to, last_id)?)
    }

    /// Records a stream that is open.
    pub fn of(mut stream: EventStream) -> Result<Self> {
        let slot = stream.slot()?;
        let shared = Arc::new(Mutex::new(Recorded::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (shared, stop) = (Arc::clone(&shared), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let read = stream.next(Duration::from_millis(50));
                    let mut recorded = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let taken = match read {
                        Ok(None) => continue,
                        Ok(Some(item)) => {
                            let last = matches!(item, Item::End | Item::Cut(_));
                            recorded.take(Instant::now(), item).map(|()| last)
                        }
                        Err(error) => Err(error),
                    };
                    match taken {
                        Ok(false) => {}
                        Ok(true) => break,
                        Err(error) => {
                            recorded.fault = Some(format!("{error:#}"));
                            break;
                        }
                    }
                }
            }
        });
        Ok(Self {
            slot,
            shared,
            stop,
            thread: Some(thread),
        })
    }

    /// The slot of the worker that holds the stream.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Looks at what is recorded. What was ill-formed is an error.
    fn look<T>(&self, look: impl FnOnce(&Recorded) -> T) -> Result<T> {
        let recorded = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = &recorded.fault {
            bail!("a stream of slot {}: {fault}", self.slot);
        }
        Ok(look(&recorded))
    }

    /// Everything so far.
    pub fn items(&self) -> Vec<Taped> {
        let recorded = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.items.clone()
    }

    /// Every beat so far.
    pub fn beats(&self) -> Result<Vec<Beat>> {
        self.look(|recorded| recorded.beats.clone())
    }

    /// The id of every event that has one, in the order of arrival.
    pub fn ids(&self) -> Result<Vec<Id>> {
        self.look(|recorded| recorded.ids.clone())
    }

    /// How the stream ended, if it has.
    pub fn end(&self) -> Option<Taped> {
        let recorded = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        recorded
            .items
            .last()
            .filter(|taped| matches!(taped.item, Item::End | Item::Cut(_)))
            .cloned()
    }

    /// Awaits `count` beats in all.
    pub fn await_beats(&self, count: usize, bound: Duration) -> Result<Vec<Beat>> {
        until(
            &format!("{count} beats on a stream of slot {}", self.slot),
            bound,
            || {
                let seen = self
                    .look(|recorded| recorded.beats.len())
                    .map_err(|error| format!("{error:#}"))?;
                holds(seen >= count, || format!("{seen} beats"))
            },
        )?;
        self.beats()
    }

    /// Awaits the end of the stream, in order or not.
    pub fn await_end(&self, bound: Duration) -> Result<Taped> {
        until(
            &format!("the end of a stream of slot {}", self.slot),
            bound,
            || {
                let seen = self
                    .look(|recorded| recorded.items.len())
                    .map_err(|error| format!("{error:#}"))?;
                self.end().ok_or_else(|| format!("{seen} items, no end"))
            },
        )
    }

    /// Stops recording and answers everything, or what was ill-formed.
    pub fn finish(mut self) -> Result<Vec<Taped>> {
        self.halt();
        self.look(|recorded| recorded.items.clone())
    }

    fn halt(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic: what goes wrong is its record.
            let _ = thread.join();
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        self.halt();
    }
}
