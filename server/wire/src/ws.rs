//! The WebSocket protocol (RFC 6455) as the server speaks it: bytes and time in, a verdict out.
//!
//! [`handshake`] judges the request that asks for a WebSocket, [`Decoder`] follows the frames of the peer,
//! [`frame`] writes ours, [`Vitals`] says when a peer has been silent too long. Refuses to know sockets,
//! clocks and what messages mean.
//!
//! Invariant: no extension is ever agreed on, so the three reserved bits of a frame are always zero.

mod decoder;
pub mod frame;
pub mod handshake;
mod vitals;

pub use decoder::{Decoder, Event, Fault, Fed};
pub use vitals::{Due, Rhythm, Vitals};

/// What kind of frame this is (RFC 6455 section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message that has begun.
    Continuation,
    /// A message of UTF-8.
    Text,
    /// A message of bytes.
    Binary,
    /// The peer's last frame.
    Close,
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

impl Opcode {
    /// The opcode of a frame's first byte; `None` for a reserved one.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Some(match byte & 0x0f {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xa => Self::Pong,
            _ => return None,
        })
    }

    fn byte(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xa,
        }
    }

    /// Whether the frame is about the connection, not part of a message.
    pub fn is_control(self) -> bool {
        self.byte() & 0x8 != 0
    }
}

/// Why a connection closes, as it stands in a close frame (RFC 6455 section 7.4.1).
pub mod code {
    /// All is said.
    pub const NORMAL: u16 = 1000;
    /// The server goes down, or a page is left.
    pub const AWAY: u16 = 1001;
    /// The peer broke the protocol.
    pub const PROTOCOL: u16 = 1002;
    /// A text that is not UTF-8.
    pub const INVALID: u16 = 1007;
    /// A rule of the server: here, a peer that reads too slowly.
    pub const POLICY: u16 = 1008;
    /// A message, frame or count of fragments above its limit.
    pub const TOO_BIG: u16 = 1009;
    /// The server met an error of its own.
    pub const FAILED: u16 = 1011;
}

/// Bytes that one peer may make the server hold, and frames that one message may have.
///
/// ```
/// use m0_wire::ws::{Decoder, Event, Limits};
///
/// let mut decoder = Decoder::new(Limits { message_bytes: 16, frame_bytes: 16, fragments: 4 });
/// // A masked text frame of two letters (RFC 6455 section 5.2).
/// let fed = decoder.feed(b"\x81\x82\x01\x02\x03\x04ik");
/// assert_eq!((fed.used, fed.event), (8, Some(Event::Text("hi".into()))));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All payloads of one message together, in bytes.
    pub message_bytes: usize,
    /// The payload of one frame, in bytes.
    pub frame_bytes: usize,
    /// Frames of one message.
    pub fragments: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 20,
            frame_bytes: 1 << 20,
            fragments: 65_536,
        }
    }
}
