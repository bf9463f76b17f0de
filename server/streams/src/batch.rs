//! Frames of one turn side by side, so that a stream takes all of them with one write.
//!
//! Owns where each frame begins in the bytes. Refuses to know the log and the streams.
//! Invariant: the frames are consecutive by number, and each is one whole chunk of its own
//! (RFC 9112 section 7.1); a frame without text takes a number and no bytes.

use bytes::{Bytes, BytesMut};
use std::cell::OnceCell;

use crate::chunk::write_chunk;

/// Where one frame ends, in both forms.
#[derive(Debug, Clone, Copy)]
struct Mark {
    payload_at: usize,
    payload_end: usize,
    /// End of its chunk, and start of the next one.
    end: usize,
    /// End of its payload among payloads alone.
    bare_end: usize,
}

/// Consecutive frames, as chunks and bare for HTTP/1.0 peers.
///
/// ```
/// let batch = m0_streams::Batch::of(7, [&b"data: a\n\n"[..], b"data: b\n\n"]);
/// assert_eq!((batch.first(), batch.last()), (7, 8));
/// assert_eq!(batch.slice_from(8, false), b"9\r\ndata: b\n\n\r\n");
/// assert_eq!(batch.slice_from(7, true), b"data: a\n\ndata: b\n\n");
/// ```
#[derive(Debug)]
pub struct Batch {
    first: u64,
    marks: Vec<Mark>,
    framed: Bytes,
    /// Made for the first HTTP/1.0 peer that asks; such peers are rare.
    bare: OnceCell<Bytes>,
}

/// A batch that still grows. Keeps its memory between batches where no stream holds on to it.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    framed: BytesMut,
    marks: Vec<Mark>,
}

impl Growing {
    /// Adds the next frame.
    pub(crate) fn push(&mut self, payload: &[u8]) {
        let (mut payload_at, mut payload_end) = (self.framed.len(), self.framed.len());
        if !payload.is_empty() {
            payload_at = write_chunk(&mut self.framed, payload);
            payload_end = payload_at + payload.len();
        }
        let bare = self.marks.last().map_or(0, |mark| mark.bare_end);
        self.marks.push(Mark {
            payload_at,
            payload_end,
            end: self.framed.len(),
            bare_end: bare + payload.len(),
        });
    }

    /// Bytes so far, framing included.
    pub(crate) fn len_bytes(&self) -> usize {
        self.framed.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Frames so far.
    pub(crate) fn frames(&self) -> usize {
        self.marks.len()
    }

    /// What has grown, with the number of its first frame. The next batch begins empty.
    pub(crate) fn take(&mut self, first: u64) -> Batch {
        Batch {
            first,
            marks: std::mem::take(&mut self.marks),
            framed: self.framed.split().freeze(),
            bare: OnceCell::new(),
        }
    }

    /// Takes back the list of a batch that everybody has had.
    pub(crate) fn recycle(&mut self, batch: Batch) {
        self.marks = batch.marks;
        self.marks.clear();
    }
}

impl Batch {
    /// A batch of these payloads, numbered from `first`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn of<'a>(first: u64, payloads: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut growing = Growing::default();
        payloads
            .into_iter()
            .for_each(|payload| growing.push(payload));
        assert!(!growing.is_empty(), "a batch has at least one frame");
        growing.take(first)
    }

    /// The number of its first frame.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of its last frame.
    pub fn last(&self) -> u64 {
        self.first + self.marks.len() as u64 - 1
    }

    /// The bytes of frame `seq` and those after it, for a peer of this version, to be kept.
    ///
    /// # Panics
    /// If `seq` is not in the batch.
    pub fn bytes_from(&self, seq: u64, http10: bool) -> Bytes {
        let (bytes, from) = self.from(seq, http10);
        bytes.slice(from..)
    }

    /// The same without a new reference.
    ///
    /// # Panics
    /// If `seq` is not in the batch.
    pub fn slice_from(&self, seq: u64, http10: bool) -> &[u8] {
        let (bytes, from) = self.from(seq, http10);
        &bytes[from..]
    }

    fn from(&self, seq: u64, http10: bool) -> (&Bytes, usize) {
        assert!(
            (self.first..=self.last()).contains(&seq),
            "frame {seq} is not in the batch"
        );
        let before = match seq - self.first {
            0 => return (self.whole(http10), 0),
            // No more than its length, which is a usize.
            frames => self.marks[frames as usize - 1],
        };
        if http10 {
            (self.whole(true), before.bare_end)
        } else {
            (self.whole(false), before.end)
        }
    }

    fn whole(&self, http10: bool) -> &Bytes {
        if !http10 {
            return &self.framed;
        }
        self.bare.get_or_init(|| {
            let payload = |mark: &Mark| &self.framed[mark.payload_at..mark.payload_end];
            self.marks
                .iter()
                .map(payload)
                .collect::<Vec<_>>()
                .concat()
                .into()
        })
    }
}
