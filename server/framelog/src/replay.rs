//! Where a stream that comes back goes on.
//!
//! Owns the answer to a `Last-Event-ID` header (WHATWG HTML, server-sent events). Knows nothing of
//! HTTP; reads the log's bounds and nothing else.
//!
//! Invariant: a stream is continued only right after a frame that this run of the host published and
//! only if everything since is still there; otherwise it is told, with the reason.

use crate::{FrameId, FrameLog};

/// How a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// No id was given: live frames from this sequence number on.
    LiveFrom(u64),
    /// Everything from this sequence number on is to be sent: replay first, then live.
    From(u64),
    /// The stream cannot be continued: say so, then go on live.
    Reset(Reason),
}

/// Why a stream cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Frames after the given one have left the log.
    TooOld,
    /// The given frame was not published yet.
    Future,
    /// The given id is of another run of the host.
    Epoch,
    /// The text is no id.
    Malformed,
}

impl Reason {
    /// The reason's name in the reset event: `too-old`, `future`, `epoch` or `malformed`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooOld => "too-old",
            Self::Future => "future",
            Self::Epoch => "epoch",
            Self::Malformed => "malformed",
        }
    }
}

/// Decides how a stream begins whose request carried `last_event_id`. An empty value is no id: that is
/// how a client says that it remembers none.
///
/// ```
/// use m0_framelog::{FrameLog, Reason, Replay, plan, sync};
///
/// let ids = sync::AtomicU64::new(0);
/// let words = sync::words(m0_framelog::words_needed(4096));
/// let log = FrameLog::format(&words, &ids, 0x5eed);
/// for _ in 0..3 {
///     log.append(1, |_, frame| frame.extend_from_slice(b"beat"))?;
/// }
/// assert_eq!(plan(None, log), Replay::LiveFrom(4));
/// assert_eq!(plan(Some("5eed-1"), log), Replay::From(2));
/// assert_eq!(plan(Some("5eed-4"), log), Replay::Reset(Reason::Future));
/// # Ok::<(), m0_framelog::AppendError>(())
/// ```
pub fn plan(last_event_id: Option<&str>, log: FrameLog<'_>) -> Replay {
    let text = match last_event_id {
        None | Some("") => return Replay::LiveFrom(log.tail()),
        Some(text) => text,
    };
    let Ok(FrameId { epoch, seq }) = text.parse() else {
        return Replay::Reset(Reason::Malformed);
    };
    if epoch != log.epoch() {
        return Replay::Reset(Reason::Epoch);
    }
    match crate::Reader::after(log, seq) {
        Ok(reader) => Replay::From(reader.position()),
        Err(crate::Gone::TooOld { .. }) => Replay::Reset(Reason::TooOld),
        Err(crate::Gone::Future { .. }) => Replay::Reset(Reason::Future),
    }
}
