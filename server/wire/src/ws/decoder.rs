//! Follows the frames of a peer and hands out messages and control frames, one at a time.
//!
//! Owns the rules of RFC 6455 sections 5 and 7.4 about what a client may send. Refuses to know sockets and
//! what is answered: a [`Fault`] says with which code to close.
//! Invariants: any cut of the bytes into reads gives the same events and the same fault at the same byte;
//! a payload above a limit is refused by its head, before a byte of it is held; between messages nothing
//! is held on the heap.

use super::frame::{CONTROL_BYTES, may_close_with};
use super::{Limits, Opcode, code};

/// Most bytes that are reserved for a payload before they have come.
const RESERVE_BYTES: usize = 64 * 1024;

/// Head, length and mask of a client's frame at their longest.
const HEAD_BYTES: usize = 14;

/// Something whole that the peer has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message of text.
    Text(String),
    /// A message of bytes.
    Binary(Vec<u8>),
    /// A ping, with what the pong must carry.
    Ping(Vec<u8>),
    /// A pong.
    Pong(Vec<u8>),
    /// The peer's close frame, with its code where it gave one.
    Close(Option<u16>, String),
    /// What came is no WebSocket, or too much of it.
    Fault(Fault),
}

/// Why a connection is failed (RFC 6455 section 7.1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The code to close with: 1002, 1007 or 1009.
    pub code: u16,
    /// What was wrong, for the close frame and the log. No text of the peer's.
    pub why: &'static str,
}

/// The result of [`Decoder::feed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fed {
    /// How many of the shown bytes were used. All of them, unless an event came first.
    pub used: usize,
    /// What they completed.
    pub event: Option<Event>,
}

/// A frame's payload on its way.
#[derive(Debug)]
struct Payload {
    opcode: Opcode,
    fin: bool,
    left: u64,
    mask: [u8; 4],
}

/// A message that has begun.
#[derive(Debug)]
struct Message {
    text: bool,
    bytes: Vec<u8>,
    /// How many of the bytes are known to be UTF-8.
    sound: usize,
    fragments: u32,
}

/// Reads what a client sends. One per connection.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    head: [u8; HEAD_BYTES],
    /// Bytes of the head so far.
    known: u8,
    payload: Option<Payload>,
    message: Option<Message>,
    control: Vec<u8>,
    over: bool,
}

const fn protocol(why: &'static str) -> Fault {
    Fault {
        code: code::PROTOCOL,
        why,
    }
}

const fn too_big(why: &'static str) -> Fault {
    Fault {
        code: code::TOO_BIG,
        why,
    }
}

const NOT_UTF8: Fault = Fault {
    code: code::INVALID,
    why: "a text that is not UTF-8",
};

impl Decoder {
    /// A decoder for a connection that has just been upgraded. Holds no heap memory.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            head: [0; HEAD_BYTES],
            known: 0,
            payload: None,
            message: None,
            control: Vec::new(),
            over: false,
        }
    }

    /// Looks at the next bytes until something is whole. Show what was not used again, behind it. After a
    /// close frame or a fault every byte is used and means nothing.
    pub fn feed(&mut self, bytes: &[u8]) -> Fed {
        let mut used = 0;
        // Each turn uses a byte, begins a payload or ends a frame.
        while !self.over {
            let turn = if self.payload.is_some() {
                self.take_payload(&bytes[used..], &mut used)
            } else if used < bytes.len() {
                self.take_head(bytes[used], &mut used)
            } else {
                break;
            };
            match turn {
                Ok(Turn::Event(event)) => {
                    self.over = matches!(event, Event::Close(..));
                    let event = Some(event);
                    return Fed { used, event };
                }
                Ok(Turn::More) => {}
                Ok(Turn::Starved) => break,
                Err(fault) => {
                    self.over = true;
                    self.message = None;
                    self.control = Vec::new();
                    let event = Some(Event::Fault(fault));
                    return Fed { used, event };
                }
            }
        }
        Fed {
            used: bytes.len(),
            event: None,
        }
    }

    /// Bytes of memory on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.control.capacity() + self.message.as_ref().map_or(0, |m| m.bytes.capacity())
    }

    /// Adds a byte to the head, and judges the head as far as it is known.
    fn take_head(&mut self, byte: u8, used: &mut usize) -> Result<Turn, Fault> {
        self.head[usize::from(self.known)] = byte;
        self.known += 1;
        *used += 1;
        match self.known {
            1 => self.judge_first(byte)?,
            2 => self.judge_second(byte)?,
            _ => {}
        }
        if self.known < 2 || self.known < self.head_bytes() {
            return Ok(Turn::More);
        }
        self.begin_payload()?;
        Ok(Turn::More)
    }

    fn judge_first(&self, byte: u8) -> Result<(), Fault> {
        if byte & 0x70 != 0 {
            return Err(protocol("a reserved bit is set"));
        }
        let fin = byte & 0x80 != 0;
        let opcode = Opcode::of(byte).ok_or(protocol("a reserved opcode"))?;
        match (opcode, &self.message) {
            (control, _) if control.is_control() && !fin => {
                Err(protocol("a control frame in fragments"))
            }
            (Opcode::Continuation, None) => Err(protocol("a continuation of nothing")),
            (Opcode::Text | Opcode::Binary, Some(_)) => Err(protocol("a message inside a message")),
            (Opcode::Continuation, Some(message)) if message.fragments >= self.limits.fragments => {
                Err(too_big("a message of too many fragments"))
            }
            _ => Ok(()),
        }
    }

    fn judge_second(&self, byte: u8) -> Result<(), Fault> {
        if byte & 0x80 == 0 {
            return Err(protocol("a frame that is not masked"));
        }
        let control = self.opcode().is_control();
        if control && usize::from(byte & 0x7f) > CONTROL_BYTES {
            return Err(protocol("a control frame that is too long"));
        }
        Ok(())
    }

    fn opcode(&self) -> Opcode {
        Opcode::of(self.head[0]).expect("a reserved opcode was refused")
    }

    /// Bytes of the head, by its first two.
    fn head_bytes(&self) -> u8 {
        match self.head[1] & 0x7f {
            126 => 8,
            127 => 14,
            _ => 6,
        }
    }

    fn begin_payload(&mut self) -> Result<(), Fault> {
        let at = usize::from(self.known);
        let be = |bytes: &[u8]| bytes.iter().fold(0, |sum, b| sum << 8 | u64::from(*b));
        let length = match self.head[1] & 0x7f {
            126 => be(&self.head[2..4]),
            127 => be(&self.head[2..10]),
            short => u64::from(short),
        };
        if at > 6 && (length <= CONTROL_BYTES as u64 || at > 8 && length <= 0xffff) {
            return Err(protocol("a length in more bytes than it needs"));
        }
        if length > i64::MAX as u64 {
            return Err(protocol("a length with its highest bit set"));
        }
        let opcode = self.opcode();
        if !opcode.is_control() {
            self.admit(opcode, length)?;
        }
        let mut mask = [0; 4];
        mask.copy_from_slice(&self.head[at - 4..at]);
        self.payload = Some(Payload {
            opcode,
            fin: self.head[0] & 0x80 != 0,
            left: length,
            mask,
        });
        self.known = 0;
        Ok(())
    }

    /// Begins or goes on with a message, if so much more of it may come.
    fn admit(&mut self, opcode: Opcode, length: u64) -> Result<(), Fault> {
        if length > self.limits.frame_bytes as u64 {
            return Err(too_big("a frame above the limit"));
        }
        let message = self.message.get_or_insert_with(|| Message {
            text: opcode == Opcode::Text,
            bytes: Vec::new(),
            sound: 0,
            fragments: 0,
        });
        if message.bytes.len() as u64 + length > self.limits.message_bytes as u64 {
            return Err(too_big("a message above the limit"));
        }
        message.fragments += 1;
        message.bytes.reserve((length as usize).min(RESERVE_BYTES));
        Ok(())
    }

    fn take_payload(&mut self, bytes: &[u8], used: &mut usize) -> Result<Turn, Fault> {
        let payload = self.payload.as_mut().expect("asked only with a payload");
        let take = payload.left.min(bytes.len() as u64) as usize;
        let into = if payload.opcode.is_control() {
            &mut self.control
        } else {
            let message = self.message.as_mut().expect("a data frame has its message");
            &mut message.bytes
        };
        let from = into.len();
        into.extend_from_slice(&bytes[..take]);
        unmask(&mut into[from..], &mut payload.mask);
        payload.left -= take as u64;
        *used += take;
        let (left, fin, opcode) = (payload.left, payload.fin, payload.opcode);
        let ends = left == 0;
        if !opcode.is_control() {
            let message = self.message.as_mut().expect("a data frame has its message");
            message.check_text(ends && fin)?;
        }
        if !ends {
            return Ok(Turn::Starved);
        }
        self.payload = None;
        if opcode.is_control() {
            let control = std::mem::take(&mut self.control);
            return Ok(Turn::Event(match opcode {
                Opcode::Ping => Event::Ping(control),
                Opcode::Pong => Event::Pong(control),
                _ => close(&control)?,
            }));
        }
        if !fin {
            return Ok(Turn::More);
        }
        let message = self.message.take().expect("a data frame has its message");
        Ok(Turn::Event(message.whole()?))
    }
}

/// What one look at the bytes came to.
enum Turn {
    Event(Event),
    More,
    /// All bytes are used, and the payload is not complete.
    Starved,
}

impl Message {
    /// Checks the bytes that came, and at the end that no character is half there: a peer learns at once
    /// that its text is none, not when it has sent all of it.
    fn check_text(&mut self, ends: bool) -> Result<(), Fault> {
        if !self.text {
            return Ok(());
        }
        match std::str::from_utf8(&self.bytes[self.sound..]) {
            Ok(_) => self.sound = self.bytes.len(),
            Err(error) if error.error_len().is_some() || ends => return Err(NOT_UTF8),
            Err(error) => self.sound += error.valid_up_to(),
        }
        Ok(())
    }

    fn whole(self) -> Result<Event, Fault> {
        if self.text {
            let text = String::from_utf8(self.bytes).map_err(|_| NOT_UTF8)?;
            Ok(Event::Text(text))
        } else {
            Ok(Event::Binary(self.bytes))
        }
    }
}

/// Takes the mask off, and turns it to where the next byte stands.
fn unmask(bytes: &mut [u8], mask: &mut [u8; 4]) {
    let word = u32::from_ne_bytes(*mask);
    let mut words = bytes.chunks_exact_mut(4);
    for chunk in &mut words {
        let plain = u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]) ^ word;
        chunk.copy_from_slice(&plain.to_ne_bytes());
    }
    let rest = words.into_remainder();
    for (byte, key) in rest.iter_mut().zip(*mask) {
        *byte ^= key;
    }
    let turned = rest.len();
    mask.rotate_left(turned);
}

/// A close frame's code and reason (RFC 6455 section 5.5.1).
fn close(payload: &[u8]) -> Result<Event, Fault> {
    let (code, reason) = match payload {
        [] => return Ok(Event::Close(None, String::new())),
        [_] => return Err(protocol("a close code of one byte")),
        [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
    };
    if !may_close_with(code) {
        return Err(protocol("a close code that must not be sent"));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| NOT_UTF8)?;
    Ok(Event::Close(Some(code), reason.to_owned()))
}
