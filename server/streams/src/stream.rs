//! One held stream: which frame it gets next, and what waits for it.
//!
//! Owns the id filter, the seam between replay and live frames, and the last word of a stream. Refuses
//! to know sockets (a closure writes) and the registry.
//! Invariant: `next` is one above the last frame that was queued or sent; only a frame with that number
//! is ever queued.

use crate::batch::Batch;
use crate::chunk::{self, Chunk};
use crate::end::{self, GapReason};
use crate::outbox::Outbox;
use bytes::Bytes;
use m0_framelog::{FrameLog, Next, Reader, Replay};

/// What a stream does with consecutive live frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// The stream's next frame is among them: send it and those after it.
    Send {
        /// The number of that frame.
        from: u64,
    },
    /// The stream had all of them already.
    Duplicate,
    /// Frames before them never came this way: the stream is to be told and cut.
    Gap,
    /// The stream is behind and will read them from the log, or ends and wants none.
    NotNow,
}

/// What the host's closure did with bytes that it was to write without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// The socket took this many; fewer than given means that it is full.
    Bytes(usize),
    /// The peer is gone.
    Gone,
}

/// How a stream stands after bytes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing waits; the stream is live.
    Clear,
    /// Bytes wait: call [`Stream::pump`] when the socket can take more.
    Blocked,
    /// The last word is out: close, in HTTP/1.1 the body is complete.
    Finished,
    /// The peer is gone.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    CatchingUp,
    Live,
    Ending,
}

/// What all streams of a worker share at a moment.
#[derive(Clone, Copy)]
pub struct Now<'a> {
    /// The frame log.
    pub log: FrameLog<'a>,
    /// The frame that the worker delivers next.
    pub live_next: u64,
    /// Bytes that may wait for one stream.
    pub budget: usize,
    /// Milliseconds.
    pub ms: u64,
}

/// A held stream.
#[derive(Debug)]
pub struct Stream {
    next: u64,
    mode: Mode,
    outbox: Outbox,
    active_ms: u64,
    http10: bool,
}

impl Stream {
    /// A stream whose head is out, beginning as `plan` says. Nothing is written yet: call
    /// [`pump`](Self::pump) next.
    pub fn join(plan: Replay, http10: bool, now: Now<'_>) -> Self {
        let (next, mode) = match plan {
            // Planned before the worker took a frame from the log: that frame is the stream's too.
            Replay::From(next) | Replay::LiveFrom(next) if next < now.live_next => {
                (next, Mode::CatchingUp)
            }
            // The worker may be behind the log: frames below `next` that it delivers are filtered.
            Replay::From(next) | Replay::LiveFrom(next) => (next, Mode::Live),
            Replay::Reset(_) => (now.live_next, Mode::Live),
        };
        let mut stream = Self {
            next,
            mode,
            outbox: Outbox::new(),
            active_ms: now.ms,
            http10,
        };
        if let Replay::Reset(reason) = plan {
            stream.push_notice(&end::reset(reason, now.log.id(next - 1)));
        }
        stream
    }

    /// Judges live frames `first` to `last` by their numbers alone; [`Offer::Send`] counts them as sent.
    pub fn offer(&mut self, first: u64, last: u64) -> Offer {
        if self.mode != Mode::Live {
            return Offer::NotNow;
        }
        if last < self.next {
            return Offer::Duplicate;
        }
        if first > self.next {
            return Offer::Gap;
        }
        let from = self.next;
        self.next = last + 1;
        Offer::Send { from }
    }

    /// Offers live frames and writes or queues those that it has not had. A gap, or an outbox over its
    /// budget, ends the stream with a notice.
    pub fn deliver(
        &mut self,
        batch: &Batch,
        now: Now<'_>,
        mut write: impl FnMut(&[u8]) -> Wrote,
    ) -> Fate {
        match self.offer(batch.first(), batch.last()) {
            Offer::Send { from } => {
                let bytes = batch.slice_from(from, self.http10);
                if bytes.is_empty() {
                    // Frames without text count, and there is nothing to send.
                    return self.fate();
                }
                self.active_ms = now.ms;
                let http10 = self.http10;
                self.send(bytes, || batch.bytes_from(from, http10), now, write)
            }
            Offer::Gap => {
                self.end_with_gap(GapReason::Lapped);
                self.flush(&mut write)
            }
            Offer::Duplicate | Offer::NotNow => self.fate(),
        }
    }

    /// Sends a heartbeat when nothing was sent for `interval_ms`. A stream that is blocked or behind has
    /// bytes on the way and needs none.
    pub fn heartbeat(
        &mut self,
        beat: &Chunk,
        interval_ms: u64,
        now: Now<'_>,
        write: impl FnMut(&[u8]) -> Wrote,
    ) -> Option<Fate> {
        let due = self.mode == Mode::Live
            && self.outbox.is_empty()
            && now.ms.saturating_sub(self.active_ms) >= interval_ms;
        due.then(|| {
            self.active_ms = now.ms;
            let http10 = self.http10;
            self.send(
                beat.slice_for(http10),
                || beat.bytes_for(http10),
                now,
                write,
            )
        })
    }

    /// Writes what waits, reads on from the log while it is behind, and joins the live frames exactly
    /// where the worker stands.
    pub fn pump(&mut self, now: Now<'_>, mut write: impl FnMut(&[u8]) -> Wrote) -> Fate {
        loop {
            let fate = self.flush(&mut write);
            if fate == Fate::Gone || fate == Fate::Finished {
                return fate;
            }
            let read = self.catch_up(now);
            if fate == Fate::Blocked || !read {
                return fate;
            }
        }
    }

    /// Reads frames from the log into the outbox up to its budget; true when there is something new to
    /// write.
    fn catch_up(&mut self, now: Now<'_>) -> bool {
        let mut text = Vec::new();
        let mut any = false;
        while self.mode == Mode::CatchingUp {
            if self.next >= now.live_next {
                self.mode = Mode::Live;
                return any;
            }
            // Half the budget is left for the live frames that come once it has joined.
            if self.outbox.len_bytes() > now.budget / 2 {
                return any;
            }
            let read =
                Reader::after(now.log, self.next - 1).map(|mut reader| reader.next(&mut text));
            let Ok(Next::Frame(id)) = read else {
                self.end_with_gap(GapReason::Lapped);
                return true;
            };
            assert_eq!(
                id.seq, self.next,
                "a reader returned another frame than the one it stands at"
            );
            if !text.is_empty() {
                let bytes = Chunk::encode(&text).bytes_for(self.http10);
                if self.outbox.push(bytes, now.budget).is_err() {
                    // It is read again when there is room; the log keeps it, or the reader is told.
                    return any;
                }
                any = true;
                self.active_ms = now.ms;
            }
            self.next += 1;
        }
        any
    }

    /// Tells the stream that its worker drains; what waits is still sent.
    pub fn end_with_drain(&mut self, retry_ms: u64) {
        if self.mode != Mode::Ending {
            self.push_last_word(&end::drain(retry_ms));
        }
    }

    /// Tells the stream that it lost frames. What waits unsent is dropped, a chunk in flight is not.
    pub fn end_with_gap(&mut self, reason: GapReason) {
        if self.mode != Mode::Ending {
            self.outbox.drop_unsent();
            self.push_last_word(&end::gap(reason));
        }
    }

    /// The number of the frame that it gets next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether it still reads frames from the log.
    pub fn is_catching_up(&self) -> bool {
        self.mode == Mode::CatchingUp
    }

    /// Whether its last word was queued.
    pub fn is_ending(&self) -> bool {
        self.mode == Mode::Ending
    }

    /// What waits for the peer.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn push_last_word(&mut self, text: &[u8]) {
        self.push_notice(text);
        if !self.http10 {
            self.outbox.push_notice(chunk::LAST);
        }
        self.mode = Mode::Ending;
    }

    fn push_notice(&mut self, text: &[u8]) {
        self.outbox
            .push_notice(Chunk::encode(text).bytes_for(self.http10));
    }

    /// Straight to the socket when nothing waits, else into the outbox, for which `keep` gives the same
    /// bytes once more.
    fn send(
        &mut self,
        bytes: &[u8],
        keep: impl FnOnce() -> Bytes,
        now: Now<'_>,
        mut write: impl FnMut(&[u8]) -> Wrote,
    ) -> Fate {
        let mut sent = 0;
        if self.outbox.is_empty() {
            match write(bytes) {
                Wrote::Gone => return Fate::Gone,
                Wrote::Bytes(count) if count == bytes.len() => return Fate::Clear,
                Wrote::Bytes(count) => sent = count,
            }
        }
        if self.outbox.push_rest(keep(), sent, now.budget).is_err() {
            self.end_with_gap(GapReason::Slow);
        }
        Fate::Blocked
    }

    fn flush(&mut self, write: &mut impl FnMut(&[u8]) -> Wrote) -> Fate {
        while let Some(front) = self.outbox.front() {
            let wanted = front.len();
            match write(front) {
                Wrote::Gone => return Fate::Gone,
                Wrote::Bytes(count) => {
                    self.outbox.advance(count);
                    if count < wanted {
                        return Fate::Blocked;
                    }
                }
            }
        }
        self.fate()
    }

    fn fate(&self) -> Fate {
        match (self.outbox.is_empty(), &self.mode) {
            (false, _) => Fate::Blocked,
            (true, Mode::Ending) => Fate::Finished,
            (true, _) => Fate::Clear,
        }
    }
}
