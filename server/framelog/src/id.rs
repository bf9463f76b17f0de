//! The name of a frame: which run of the host, and which frame of that run.
//!
//! Owns the text form that goes into the `id:` field of an event and comes back in
//! `Last-Event-ID`. Knows nothing of the log.
//!
//! Invariant: each id has one text, and only that text is read: what parses prints the same again.

use std::fmt;
use std::str::FromStr;

/// The longest text of an id: 16 hexadecimal digits, a dash, 20 decimal digits.
const MAX_TEXT: usize = 16 + 1 + 20;

/// A frame's id. The text form is `EPOCH-SEQ`: epoch in lower-case hexadecimal, sequence number in
/// decimal, neither with leading zeros.
///
/// ```
/// use m0_framelog::FrameId;
///
/// let id = FrameId { epoch: 0x5eed, seq: 7 };
/// assert_eq!(id.to_string(), "5eed-7");
/// assert_eq!("5eed-7".parse(), Ok(id));
/// assert!("5eed-+7".parse::<FrameId>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId {
    /// The host run that published the frame.
    pub epoch: u64,
    /// The frame's place in that run: 1 for the first, then one more for each.
    pub seq: u64,
}

/// A text that is no frame id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a frame id of the form EPOCH-SEQ")]
pub struct ParseIdError;

impl fmt::Display for FrameId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}-{}", self.epoch, self.seq)
    }
}

impl FromStr for FrameId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if text.len() > MAX_TEXT {
            return Err(ParseIdError);
        }
        let (epoch, seq) = text.split_once('-').ok_or(ParseIdError)?;
        Ok(Self {
            epoch: number(epoch, 16)?,
            seq: number(seq, 10)?,
        })
    }
}

/// Reads digits only: no sign, no space, no capital letter, no leading zero, no overflow.
fn number(text: &str, radix: u32) -> Result<u64, ParseIdError> {
    let plain = |byte: u8| byte.is_ascii_digit() || (radix == 16 && (b'a'..=b'f').contains(&byte));
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if text.is_empty() || leading_zero || !text.bytes().all(plain) {
        return Err(ParseIdError);
    }
    u64::from_str_radix(text, radix).map_err(|_| ParseIdError)
}
