//! Version 1 of the PROXY protocol: one line of text (section 2.1 of its specification).
//!
//! Owns the line and its six words. Refuses to know what precedes it: the caller has seen the prefix.
//! Invariant: a line is judged only once its CRLF is there, and never beyond 107 bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use super::{Look, Told};

/// What a header begins with. No request line does: behind the method stands a target, and no family.
pub(super) const PREFIX: &[u8] = b"PROXY ";

/// Most bytes of a header, its CRLF included.
const MOST_BYTES: usize = 107;

/// Judges bytes that begin with [`PREFIX`].
pub(super) fn look(bytes: &[u8]) -> Look {
    let shown = &bytes[..bytes.len().min(MOST_BYTES)];
    let Some(end) = shown.iter().position(|&byte| matches!(byte, b'\r' | b'\n')) else {
        return if shown.len() < MOST_BYTES {
            Look::More
        } else {
            Look::Malformed("PROXY header of version 1 has no end within 107 bytes")
        };
    };
    match shown.get(end..end + 2) {
        Some(b"\r\n") => {}
        None if shown[end] == b'\r' && shown.len() < MOST_BYTES => return Look::More,
        _ => return Look::Malformed("PROXY header of version 1 does not end in CRLF"),
    }
    match line(&shown[PREFIX.len()..end]) {
        Some(told) => Look::Header(end + 2, told),
        None => Look::Malformed("PROXY header of version 1 is malformed"),
    }
}

/// What stands between the prefix and the end of the line.
fn line(bytes: &[u8]) -> Option<Told> {
    let mut words = bytes.split(|&byte| byte == b' ');
    let told = match words.next()? {
        // Whatever follows is to be ignored, text or not.
        b"UNKNOWN" => return Some(Told::Nothing),
        b"TCP4" => addresses::<Ipv4Addr>(&mut words)?,
        b"TCP6" => addresses::<Ipv6Addr>(&mut words)?,
        _ => return None,
    };
    words.next().is_none().then_some(Told::Client(told))
}

/// The client's address out of both: each word stands there once, and each must be right.
fn addresses<'a, A: FromStr + Into<IpAddr>>(
    words: &mut impl Iterator<Item = &'a [u8]>,
) -> Option<SocketAddr> {
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let source: A = word()?.parse().ok()?;
    let _destination: A = word()?.parse().ok()?;
    let source_port = port(word()?)?;
    let _destination_port = port(word()?)?;
    Some(SocketAddr::new(source.into(), source_port))
}

/// Digits without a sign or a leading zero, as 0 to 65535.
fn port(text: &str) -> Option<u16> {
    let plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}
