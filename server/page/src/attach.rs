//! Making a page, and refusing what is not one.
//!
//! Owns words 1 to 3. Knows nothing of the lines that follow.
//!
//! Invariant: the magic word is stored after all other words, so whoever sees it sees a whole page.

use crate::layout::{EPOCH, EVENT_ID, MAGIC, MAGIC_WORD, PREFIX, SHAPE, VERSION};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::{AtomicU64, MAX_WORKERS, Page, words_needed};

/// Why some words are not a page of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// Fewer words than a page with this many workers takes.
    TooSmall {
        /// Words given.
        words: usize,
        /// Words needed.
        needed: usize,
    },
    /// The magic word is 0: nobody has formatted these words, or the format was not finished.
    Unformatted,
    /// The magic word is another one: these words are something else.
    NotAPage {
        /// The word found.
        found: u64,
    },
    /// A page of another build.
    Version {
        /// The version found.
        found: u32,
        /// The version of this build.
        expected: u32,
    },
    /// A number of workers outside 1 to [`MAX_WORKERS`].
    Workers {
        /// The number found.
        found: u32,
    },
}

impl std::fmt::Display for AttachError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooSmall { words, needed } => {
                write!(
                    out,
                    "the shared page has {words} words, {needed} are needed"
                )
            }
            Self::Unformatted => write!(
                out,
                "the shared page has no magic word: it was never formatted"
            ),
            Self::NotAPage { found } => {
                write!(
                    out,
                    "the shared page's magic word is {found:#018x}, not {MAGIC:#018x}"
                )
            }
            Self::Version { found, expected } => {
                write!(
                    out,
                    "the shared page has version {found}, this build reads {expected}"
                )
            }
            Self::Workers { found } => {
                write!(
                    out,
                    "the shared page is for {found} workers, outside 1 to {MAX_WORKERS}"
                )
            }
        }
    }
}

impl std::error::Error for AttachError {}

impl<'a> Page<'a> {
    /// Makes a page of `words` for `workers` workers (1 to [`MAX_WORKERS`]) in the run `epoch`.
    ///
    /// Every word is cleared first, whatever it held; words beyond [`words_needed`] stay as they
    /// are. Only one process may format, before any other can attach.
    ///
    /// # Panics
    ///
    /// When `workers` is out of range or `words` is too short: both are the caller's arithmetic.
    pub fn format(words: &'a [AtomicU64], workers: usize, epoch: u64) -> Self {
        assert!(
            (1..=MAX_WORKERS).contains(&workers),
            "{workers} workers, outside 1 to {MAX_WORKERS}"
        );
        let needed = words_needed(workers);
        assert!(
            words.len() >= needed,
            "{} words, {needed} are needed",
            words.len()
        );
        words[MAGIC_WORD].store(0, Relaxed);
        for (index, word) in words[..needed].iter().enumerate() {
            if index != MAGIC_WORD {
                word.store(0, Relaxed);
            }
        }
        words[EPOCH].store(epoch, Relaxed);
        words[SHAPE].store(u64::from(VERSION) << 32 | workers as u64, Relaxed);
        words[MAGIC_WORD].store(MAGIC, Release);
        Self { words, workers }
    }

    /// Takes `words` for a page that some process has formatted.
    pub fn attach(words: &'a [AtomicU64]) -> Result<Self, AttachError> {
        if words.len() < PREFIX {
            return Err(AttachError::TooSmall {
                words: words.len(),
                needed: words_needed(1),
            });
        }
        match words[MAGIC_WORD].load(Acquire) {
            MAGIC => {}
            0 => return Err(AttachError::Unformatted),
            found => return Err(AttachError::NotAPage { found }),
        }
        let shape = words[SHAPE].load(Relaxed);
        let (version, workers) = ((shape >> 32) as u32, shape as u32);
        if version != VERSION {
            return Err(AttachError::Version {
                found: version,
                expected: VERSION,
            });
        }
        if workers == 0 || workers as usize > MAX_WORKERS {
            return Err(AttachError::Workers { found: workers });
        }
        let needed = words_needed(workers as usize);
        if words.len() < needed {
            return Err(AttachError::TooSmall {
                words: words.len(),
                needed,
            });
        }
        Ok(Self {
            words,
            workers: workers as usize,
        })
    }

    /// The number of workers this page was formatted for.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The number that tells this run of the host from every other.
    pub fn epoch(&self) -> u64 {
        self.word(EPOCH).load(Relaxed)
    }

    /// The sequence number of the last frame committed; 0 before the first.
    pub fn event_id(&self) -> u64 {
        self.event_id_word().load(Acquire)
    }

    /// The event-id word itself, for the frame log, its only writer.
    pub fn event_id_word(&self) -> &'a AtomicU64 {
        self.word(EVENT_ID)
    }
}
