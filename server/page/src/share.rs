//! A worker's accept share: what it holds, and whether it can be counted on.
//!
//! Owns the words of one share line and the order in which they change. Knows nothing of sockets;
//! does not decide who takes a connection (that is `verdict`).
//!
//! Invariant: one process at a time writes a slot's line (its worker, and after the worker is
//! reaped the supervisor), except the flags, where each writer changes its own bit with one atomic
//! operation. `repair` takes the state away before it clears the count, and readers read the count
//! before the state, so nobody takes a dead worker for an idle one.

use crate::layout::line;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::{AtomicU64, Page, WorkerCounter};

/// The watch thread found the loop busy.
const BUSY: u64 = 1;
/// The loop has no descriptor left to accept with.
const STARVED: u64 = 2;
/// The supervisor saw the process stopped.
const STOPPED: u64 = 4;
/// A sibling whose loop is away left one connection to this worker, whatever it holds.
const HANDED: u64 = 8;
/// The flags that say that a worker cannot accept.
const UNABLE: u64 = BUSY | STARVED | STOPPED;

/// What a worker is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum WorkerState {
    /// No worker in this slot, or a dead one that was repaired.
    Absent = 0,
    /// Forked; its handler is being made.
    Starting = 1,
    /// Takes connections.
    Serving = 2,
    /// Finishes what it holds and takes nothing new.
    Draining = 3,
}

impl WorkerState {
    /// The state's name in figures and logs.
    ///
    /// ```
    /// use m0_page::WorkerState;
    ///
    /// assert_eq!(WorkerState::Absent.name(), "absent");
    /// assert_eq!(WorkerState::Draining.name(), "draining");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Draining => "draining",
        }
    }

    fn of(word: u64) -> Self {
        match word & 0xff {
            1 => Self::Starting,
            2 => Self::Serving,
            3 => Self::Draining,
            _ => Self::Absent,
        }
    }
}

/// The lines of the worker in one slot.
#[derive(Clone, Copy)]
pub struct Share<'a> {
    page: Page<'a>,
    slot: usize,
}

impl<'a> Page<'a> {
    /// The share of the worker in `slot`.
    ///
    /// # Panics
    ///
    /// When `slot` is not below [`Page::workers`].
    pub fn share(&self, slot: usize) -> Share<'a> {
        assert!(
            slot < self.workers,
            "slot {slot} of a page for {} workers",
            self.workers
        );
        Share { page: *self, slot }
    }

    /// All shares, slot 0 first.
    pub fn shares(&self) -> impl Iterator<Item = Share<'a>> + use<'a> {
        let page = *self;
        (0..page.workers).map(move |slot| page.share(slot))
    }
}

/// For the worker itself.
impl Share<'_> {
    /// Registers process `pid` as this slot's worker, in state Starting.
    ///
    /// # Panics
    ///
    /// When the slot is not Absent: a predecessor was not repaired before its successor started.
    pub fn begin(&self, pid: u32) {
        let before = self.word(line::STATE).load(Acquire);
        assert!(
            WorkerState::of(before) == WorkerState::Absent,
            "slot {} still belongs to pid {}",
            self.slot,
            before >> 32
        );
        self.word(line::STATE)
            .store(u64::from(pid) << 32 | WorkerState::Starting as u64, Release);
    }

    /// From now on this worker takes connections.
    pub fn serving(&self) {
        self.enter(WorkerState::Serving);
    }

    /// From now on this worker takes nothing new.
    pub fn draining(&self) {
        self.enter(WorkerState::Draining);
    }

    /// Leaves the slot in good order: as [`Share::repair`], by the worker itself, as its last act.
    pub fn leave(&self) {
        self.repair();
    }

    /// One connection was accepted: it is held and counted.
    pub fn opened(&self) {
        self.word(line::HELD).fetch_add(1, Release);
        self.word(line::ACCEPTED).fetch_add(1, Relaxed);
    }

    /// One held connection is gone.
    ///
    /// # Panics
    ///
    /// When none is held: the caller closed one twice.
    pub fn closed(&self) {
        self.take_one(line::HELD, "a connection was closed that was not held");
    }

    /// One held connection became a stream.
    pub fn stream_opened(&self) {
        self.word(line::STREAMS).fetch_add(1, Release);
        self.counter(WorkerCounter::StreamsOpened).add(1);
    }

    /// One stream is gone (its connection is reported by [`Share::closed`]).
    ///
    /// # Panics
    ///
    /// When none is held: the caller closed one twice.
    pub fn stream_closed(&self) {
        self.take_one(line::STREAMS, "a stream was closed that was not held");
    }

    /// Counts a connection left to a sibling after [`crate::Verdict::Defer`]. The count also turns
    /// the choice among equal siblings, so it is called for each verdict that was followed.
    pub fn deferred(&self) {
        self.word(line::DEFERRALS).fetch_add(1, Relaxed);
    }

    /// Counts a wake-up for the listener or by a sibling's doorbell.
    pub fn woke(&self) {
        self.word(line::WAKEUPS).fetch_add(1, Relaxed);
    }

    /// Counts a wake-up that found nothing to accept.
    pub fn fruitless(&self) {
        self.word(line::FRUITLESS).fetch_add(1, Relaxed);
    }

    /// Says whether the loop is too busy to accept. Written by the watch thread.
    pub fn mark_busy(&self, busy: bool) {
        self.mark(BUSY, busy);
    }

    /// Says whether accepting failed for lack of descriptors. Written by the loop.
    pub fn mark_starved(&self, starved: bool) {
        self.mark(STARVED, starved);
    }

    /// Leaves one connection that waits at the listener to the worker of this share, whatever it
    /// holds. Written by the watch thread of a sibling, before it rings the doorbell.
    pub fn hand_one(&self) {
        self.mark(HANDED, true);
    }

    /// Whether a sibling left a connection to this worker since the last call. For its watch thread.
    pub fn take_handed(&self) -> bool {
        self.word(line::FLAGS).fetch_and(!HANDED, AcqRel) & HANDED != 0
    }
}

/// For the supervisor.
impl Share<'_> {
    /// Says whether the process is stopped by a signal.
    pub fn mark_stopped(&self, stopped: bool) {
        self.mark(STOPPED, stopped);
    }

    /// Brings the words of a dead worker to rest: Absent, nothing held, no stream, no flag. What it
    /// counted is kept. Called once the worker is reaped and before its successor is forked;
    /// calling it again changes nothing.
    pub fn repair(&self) {
        // The state goes first: see the invariant above.
        self.word(line::STATE)
            .store(WorkerState::Absent as u64, Release);
        self.word(line::HELD).store(0, Release);
        self.word(line::STREAMS).store(0, Release);
        self.word(line::FLAGS).store(0, Release);
    }
}

/// For everyone.
impl<'a> Share<'a> {
    /// This share's slot.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Connections held now.
    pub fn held(&self) -> u64 {
        self.word(line::HELD).load(Acquire)
    }

    /// Streams held now.
    pub fn streams(&self) -> u64 {
        self.word(line::STREAMS).load(Acquire)
    }

    /// What the worker is about.
    pub fn state(&self) -> WorkerState {
        WorkerState::of(self.word(line::STATE).load(Acquire))
    }

    /// The worker's process id; 0 when Absent.
    pub fn pid(&self) -> u32 {
        (self.word(line::STATE).load(Acquire) >> 32) as u32
    }

    /// The watch thread found the loop busy.
    pub fn busy(&self) -> bool {
        self.flag(BUSY)
    }

    /// The loop has no descriptor left to accept with.
    pub fn starved(&self) -> bool {
        self.flag(STARVED)
    }

    /// The supervisor saw the process stopped.
    pub fn stopped(&self) -> bool {
        self.flag(STOPPED)
    }

    /// Whether this worker can take a connection now, and how many it holds if so. The count is read
    /// before the flags and the state: see the invariant above.
    pub(crate) fn load_if_live(&self) -> Option<u64> {
        let held = self.held();
        let free = self.word(line::FLAGS).load(Acquire) & UNABLE == 0;
        (free && self.state() == WorkerState::Serving).then_some(held)
    }

    pub(crate) fn figure(&self, offset: usize) -> u64 {
        self.word(offset).load(Relaxed)
    }

    pub(crate) fn word(&self, offset: usize) -> &'a AtomicU64 {
        self.page.worker_word(self.slot, offset)
    }

    fn flag(&self, bit: u64) -> bool {
        self.word(line::FLAGS).load(Acquire) & bit != 0
    }

    fn mark(&self, bit: u64, set: bool) {
        if set {
            self.word(line::FLAGS).fetch_or(bit, Release);
        } else {
            self.word(line::FLAGS).fetch_and(!bit, Release);
        }
    }

    fn enter(&self, state: WorkerState) {
        let before = self.word(line::STATE).load(Relaxed);
        assert!(
            WorkerState::of(before) != WorkerState::Absent,
            "slot {} has no worker",
            self.slot
        );
        self.word(line::STATE)
            .store(before & !0xff | state as u64, Release);
    }

    fn take_one(&self, offset: usize, mistake: &str) {
        let taken = self
            .word(offset)
            .fetch_update(Release, Relaxed, |held| held.checked_sub(1));
        assert!(taken.is_ok(), "{mistake}");
    }
}
