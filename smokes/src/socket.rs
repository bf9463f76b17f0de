//! A WebSocket client that writes its frames by hand, and can so be rude (RFC 6455).
//!
//! Owns one connection after its handshake. Never answers by itself: a ping stays unanswered and a close
//! too, unless the phase answers them. Invariant: each frame that it reads is one that a server may send.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::answer::Answer;
use crate::peer::{Closing, PATIENCE, Peer, request};

/// First byte of a text frame that is a whole message.
pub const TEXT: u8 = 0x81;
/// First byte of a binary frame that is a whole message.
pub const BINARY: u8 = 0x82;
/// First byte of a close frame.
pub const CLOSE: u8 = 0x88;
/// First byte of a ping.
pub const PING: u8 = 0x89;
/// First byte of a pong.
pub const PONG: u8 = 0x8a;

/// The key of RFC 6455 section 1.3, and what a server answers to it.
pub const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The fields of a right handshake.
pub const HANDSHAKE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Key", KEY),
    ("Sec-WebSocket-Version", "13"),
];

/// One frame of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The first byte: fin, reserved bits and opcode.
    pub first: u8,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of a close frame; 1005 where it has none.
    pub fn close_code(&self) -> Result<u16> {
        ensure!(self.first == CLOSE, "no close frame: {self:?}");
        Ok(match self.payload[..] {
            [high, low, ..] => u16::from_be_bytes([high, low]),
            _ => 1005,
        })
    }

    /// The reason of a close frame.
    pub fn close_reason(&self) -> String {
        String::from_utf8_lossy(self.payload.get(2..).unwrap_or_default()).into_owned()
    }

    /// The payload as text.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.payload).context("a text frame that is not UTF-8")
    }
}

/// A client's frame: masked, in its shortest form.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            bytes.push(0x80 | 0x7e);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 0x7f);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(b, m)| b ^ m));
    bytes
}

/// A close frame with this code.
pub fn close(code: u16) -> Vec<u8> {
    masked(CLOSE, &code.to_be_bytes())
}

fn frame(bytes: &[u8]) -> Result<Option<(Frame, usize)>> {
    let [first, second, ..] = *bytes else {
        return Ok(None);
    };
    ensure!(first & 0x70 == 0, "a reserved bit in {first:#x}");
    ensure!(second & 0x80 == 0, "a server's frame that is masked");
    let be = |bytes: &[u8]| bytes.iter().fold(0, |sum, b| sum << 8 | usize::from(*b));
    let (head, length) = match second {
        126 => (4, bytes.get(2..4).map(be)),
        127 => (10, bytes.get(2..10).map(be)),
        short => (2, Some(usize::from(short))),
    };
    let whole = length.and_then(|length| bytes.get(head..head + length));
    Ok(whole.map(|payload| {
        let payload = payload.to_vec();
        let used = head + payload.len();
        (Frame { first, payload }, used)
    }))
}

/// A WebSocket whose handshake is done.
#[derive(Debug)]
pub struct Socket {
    /// The connection.
    pub peer: Peer,
    slot: u32,
}

impl Socket {
    /// Opens one on a connection of its own.
    pub fn open(to: SocketAddr, path: &str) -> Result<Self> {
        Self::over(Peer::connect(to)?, path, &[])
    }

    /// Opens one over this connection, with further fields in the handshake.
    pub fn over(mut peer: Peer, path: &str, fields: &[(&str, &str)]) -> Result<Self> {
        peer.send(request(
            "GET",
            path,
            &[&HANDSHAKE[..], fields].concat(),
            b"",
        ))?;
        let head = peer.head(PATIENCE)?;
        ensure!(head.status == 101, "status {} for {path}", head.status);
        ensure!(
            head.field("sec-websocket-accept") == Some(ACCEPT),
            "a wrong accept: {head:?}"
        );
        for offer in ["sec-websocket-extensions", "sec-websocket-protocol"] {
            ensure!(head.field(offer).is_none(), "{offer} in {head:?}");
        }
        let slot = head.field("x-worker").context("no x-worker")?.parse()?;
        Ok(Self { peer, slot })
    }

    /// Takes a connection whose handshake the phase has done by hand.
    pub fn adopt(peer: Peer) -> Self {
        Self { peer, slot: 0 }
    }

    /// The answer to a handshake with these fields that is not a 101.
    pub fn refused(to: SocketAddr, path: &str, fields: &[(&str, &str)]) -> Result<Answer> {
        let mut peer = Peer::connect(to)?;
        peer.send(request("GET", path, fields, b""))?;
        let answer = peer.answer()?;
        ensure!(answer.status() != 101, "{fields:?} was taken");
        Ok(answer)
    }

    /// The slot of the worker that holds it.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Sends one frame.
    pub fn send(&mut self, first: u8, payload: &[u8]) -> Result<()> {
        self.peer.send(masked(first, payload))
    }

    /// Reads one frame within our patience.
    pub fn frame(&mut self) -> Result<Frame> {
        self.frame_within(PATIENCE)
    }

    /// Reads one frame within `bound`.
    pub fn frame_within(&mut self, bound: Duration) -> Result<Frame> {
        self.peer.take("a frame", Instant::now() + bound, frame)
    }

    /// Reads frames up to the close frame, which is the last; how many came before, and it.
    pub fn until_close(&mut self) -> Result<(usize, Frame)> {
        for before in 0.. {
            let frame = self.frame()?;
            if frame.first == CLOSE {
                return Ok((before, frame));
            }
        }
        bail!("frames without end")
    }

    /// Says close, awaits the answer with the same code, and the end of the connection behind it.
    pub fn close(mut self, code: u16) -> Result<()> {
        self.peer.send(close(code))?;
        let (_, answer) = self.until_close()?;
        ensure!(answer.close_code()? == code, "{code} answered {answer:?}");
        let how = self.peer.closed(PATIENCE)?;
        ensure!(how == Closing::Fin, "reset behind the close frame");
        Ok(())
    }
}
