//! Writes the server's own frames: whole, unmasked (RFC 6455 section 5.1), in their shortest form.
//!
//! Owns the bytes. Refuses to know when a frame is sent.
//! Invariant: the payload of a control frame is at most [`CONTROL_BYTES`] long, whatever is asked for.

use super::Opcode;

/// Most bytes of a control frame's payload (RFC 6455 section 5.5).
pub const CONTROL_BYTES: usize = 125;

/// Longest head of a frame of ours.
const HEAD_BYTES: usize = 10;

/// One message or control frame.
///
/// ```
/// use m0_wire::ws::{Opcode, frame};
/// assert_eq!(frame::encode(Opcode::Text, b"hi"), b"\x81\x02hi");
/// ```
///
/// # Panics
/// If the payload of a control frame is longer than [`CONTROL_BYTES`].
pub fn encode(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    assert!(
        !opcode.is_control() || payload.len() <= CONTROL_BYTES,
        "a control frame that the peer must refuse"
    );
    let mut bytes = Vec::with_capacity(HEAD_BYTES + payload.len());
    bytes.push(0x80 | opcode.byte());
    match payload.len() {
        length @ 0..=CONTROL_BYTES => bytes.push(length as u8),
        length @ 126..=0xffff => {
            bytes.push(126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// Bytes of the frame that [`encode`] makes of a payload of this length.
pub fn encoded_bytes(payload: usize) -> usize {
    payload
        + match payload {
            0..=CONTROL_BYTES => 2,
            126..=0xffff => 4,
            _ => HEAD_BYTES,
        }
}

/// A close frame. A reason that is too long is cut at a character.
///
/// ```
/// use m0_wire::ws::{code, frame};
/// assert_eq!(frame::close(Some(code::AWAY), "drain"), b"\x88\x07\x03\xe9drain");
/// assert_eq!(frame::close(None, ""), b"\x88\x00");
/// ```
pub fn close(code: Option<u16>, reason: &str) -> Vec<u8> {
    let Some(code) = code else {
        // A reason cannot stand without a code.
        return encode(Opcode::Close, &[]);
    };
    let reason = &reason[..reason.floor_char_boundary(CONTROL_BYTES - 2)];
    let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
    encode(Opcode::Close, &payload)
}

/// Whether a code may stand in a close frame, of either side: those of RFC 6455 section 7.4.1 and of its
/// registry that are not for use inside an endpoint alone, those of libraries and those of applications.
pub fn may_close_with(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
