//! What a stream is told beside its frames.
//!
//! Owns the text of `reset`, `gap`, `drain` and the heartbeat. Refuses to know when they are due.
//! Invariant: each notice carries data (a reader drops an event without), and only `reset` moves the
//! reader's last event id: after a gap or a drain it must come back with the last frame it had.

use crate::sse::Frame;
use m0_framelog::{FrameId, Reason};

/// A comment that keeps proxies from closing an idle stream.
pub const HEARTBEAT: &[u8] = b": hb\n\n";

/// Why a stream lost frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapReason {
    /// The peer reads too slowly: its outbox was full.
    Slow,
    /// The log was overwritten before the frames were read from it.
    Lapped,
}

impl GapReason {
    /// The word in the event's data.
    pub fn word(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Lapped => "lapped",
        }
    }
}

/// The event of a reader that must start anew; `now` is the last frame before those it will get.
///
/// ```
/// use m0_framelog::{FrameId, Reason};
/// use m0_streams::end;
///
/// let text = end::reset(Reason::Epoch, FrameId { epoch: 2, seq: 9 });
/// assert_eq!(text, b"id: 2-9\nevent: reset\ndata: {\"reason\":\"epoch\"}\n\n");
/// ```
pub fn reset(reason: Reason, now: FrameId) -> Vec<u8> {
    notice(Some(now), "reset", reason.name(), None)
}

/// The last event of a stream that lost frames.
pub fn gap(reason: GapReason) -> Vec<u8> {
    notice(None, "gap", reason.word(), None)
}

/// The last event of a stream whose worker drains. `retry_ms` is how long the reader should wait; the
/// caller adds the jitter.
pub fn drain(retry_ms: u64) -> Vec<u8> {
    notice(None, "drain", "drain", Some(retry_ms))
}

fn notice(id: Option<FrameId>, event: &str, reason: &str, retry_ms: Option<u64>) -> Vec<u8> {
    let mut text = Vec::new();
    let mut frame = Frame::new(id, &mut text);
    frame.event(event);
    if let Some(milliseconds) = retry_ms {
        frame.retry(milliseconds);
    }
    frame.data(&format!("{{\"reason\":\"{reason}\"}}"));
    drop(frame);
    text
}
