//! The shared ring of published frames: every process appends, every process reads.
//!
//! Owns the ring's memory, the lock, the order of stores and what a death between two of them
//! leaves. Refuses to know what a frame says, who is told that one was appended (doorbells are the
//! bus's), and where the words come from.
//!
//! Invariant: the event-id word *is* the log's tail. One store of it commits a frame; before that
//! store no reader sees anything of the frame, after it every reader sees all of it, and there is no
//! state in between for a death to leave behind.
//!
//! ```
//! use m0_framelog::{FrameLog, Next, Reader, sync};
//!
//! let ids = sync::AtomicU64::new(0);
//! let words = sync::words(m0_framelog::words_needed(4096));
//! let log = FrameLog::format(&words, &ids, 0x5eed);
//!
//! let mut reader = Reader::at_tail(log);
//! let id = log.append(std::process::id(), |id, frame| {
//!     frame.extend_from_slice(format!("id: {id}\n").as_bytes());
//! })?;
//! let mut frame = Vec::new();
//! assert_eq!(reader.next(&mut frame), Next::Frame(id));
//! assert_eq!(frame, b"id: 5eed-1\n");
//! assert_eq!(reader.next(&mut frame), Next::Empty);
//! # Ok::<(), m0_framelog::AppendError>(())
//! ```

mod append;
mod id;
mod layout;
mod lock;
pub mod points;
mod read;
mod repair;
mod replay;
pub mod sync;

pub use append::AppendError;
pub use id::{FrameId, ParseIdError};
pub use layout::{AttachError, FrameLog, MAX_FRAME_BYTES, words_needed};
pub use read::{Gone, Next, Reader};
pub use repair::Repair;
pub use replay::{Reason, Replay, plan};
