//! Writes one event in the text form that an `EventSource` reads.
//!
//! Owns the encoding of each field (HTML standard, "Server-sent events", 9.2.5 and 9.2.6). Refuses to
//! know frames, logs and chunk framing.
//!
//! No field can end the event early or forge another:
//!
//! - data: CR, LF and CRLF each begin a new `data:` line, so a reader gets LF for each of them.
//!   NUL and U+2028/2029 are data like any other there; the reader's algorithm ends lines at CR and LF only.
//! - event name, comment: CR, LF, NUL, U+2028 and U+2029 become one blank each. They are replaced and not
//!   stripped, so that two words do not become one; the last three are no line ends for a reader, but they
//!   are for people and tools that print the stream.
//! - id: made of a number pair, has no such character.
//!
//! Invariant: between two empty lines stands exactly one event, whatever text the fields hold.

use m0_framelog::FrameId;
use std::io::Write;

/// One event under construction, at the end of a buffer that belongs to somebody else.
///
/// [`finish`](Self::finish) writes the empty line; an event that is dropped without it is finished by
/// the drop, so that the next one in the buffer cannot be read as a part of it.
///
/// ```
/// use m0_framelog::FrameId;
/// use m0_streams::Frame;
///
/// let mut text = Vec::new();
/// let id = Some(FrameId { epoch: 0xa1, seq: 7 });
/// Frame::new(id, &mut text).event("beat").data("one\ntwo").finish();
/// assert_eq!(text, b"id: a1-7\nevent: beat\ndata: one\ndata: two\n\n");
/// ```
#[derive(Debug)]
pub struct Frame<'a> {
    id: Option<FrameId>,
    text: &'a mut Vec<u8>,
    finished: bool,
}

impl<'a> Frame<'a> {
    /// Begins an event at the end of `text`. An event with an id moves the reader's last event id.
    pub fn new(id: Option<FrameId>, text: &'a mut Vec<u8>) -> Self {
        if let Some(id) = id {
            writeln!(text, "id: {id}").expect("a vector takes every write");
        }
        Self {
            id,
            text,
            finished: false,
        }
    }

    /// The id that was stamped on the event.
    pub fn id(&self) -> Option<FrameId> {
        self.id
    }

    /// Names the event's type; without it a reader says `message`. The last name counts.
    pub fn event(&mut self, name: &str) -> &mut Self {
        self.one_line("event: ", name)
    }

    /// Adds data: one line for each line of `data`, an empty one for an empty string. A second call
    /// goes on with a new line. An event without data is not dispatched by a reader.
    pub fn data(&mut self, data: &str) -> &mut Self {
        let mut rest = data.as_bytes();
        loop {
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            // Always with the blank: a reader takes off one, so data that begins with a blank keeps it.
            self.text.extend_from_slice(b"data: ");
            self.text
                .extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            self.text.push(b'\n');
            let Some(end) = end else { return self };
            let ends_with = if rest[end..].starts_with(b"\r\n") {
                2
            } else {
                1
            };
            rest = &rest[end + ends_with..];
        }
    }

    /// Asks the reader to wait this long, in milliseconds, before it connects again.
    pub fn retry(&mut self, milliseconds: u64) -> &mut Self {
        writeln!(self.text, "retry: {milliseconds}").expect("a vector takes every write");
        self
    }

    /// Adds a line that readers ignore.
    pub fn comment(&mut self, comment: &str) -> &mut Self {
        self.one_line(": ", comment)
    }

    /// Ends the event.
    pub fn finish(&mut self) {
        if !self.finished {
            self.text.push(b'\n');
            self.finished = true;
        }
    }

    fn one_line(&mut self, field: &str, value: &str) -> &mut Self {
        self.text.extend_from_slice(field.as_bytes());
        let mut rest = value;
        while let Some(at) = rest.find(['\r', '\n', '\0', '\u{2028}', '\u{2029}']) {
            self.text.extend_from_slice(&rest.as_bytes()[..at]);
            self.text.push(b' ');
            let width = rest[at..].chars().next().map_or(1, char::len_utf8);
            rest = &rest[at + width..];
        }
        self.text.extend_from_slice(rest.as_bytes());
        self.text.push(b'\n');
        self
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}
