//! Version 2 of the PROXY protocol: a binary header (section 2.2 of its specification).
//!
//! Owns the sixteen fixed bytes, the addresses, and the walk over the fields (TLVs) behind them. Refuses to know what
//! the fields mean, but for the checksum, which a receiver that knows of it must verify.
//! Invariant: nothing behind the length that the header declares is looked at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Look, MOST_BYTES, Told};

/// What a header begins with. No request does: a NUL stands behind two empty lines.
pub(super) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, length.
const FIXED: usize = 16;

/// A field: its kind and the length of its value, before the value.
const FIELD: usize = 3;

/// The kind of the field that holds the checksum of the header.
const CHECKSUM: u8 = 0x03;

/// Judges bytes that begin with [`SIGNATURE`].
pub(super) fn look(bytes: &[u8]) -> Look {
    let Some(&[version_command, family_transport, high, low]) = bytes.get(SIGNATURE.len()..FIXED)
    else {
        // What is there is judged when all of it is: a wrong version may have another length.
        return Look::More;
    };
    if version_command >> 4 != 2 {
        return Look::Malformed("PROXY header of a version other than 1 and 2");
    }
    let length = FIXED + usize::from(u16::from_be_bytes([high, low]));
    if length > MOST_BYTES {
        return Look::Malformed("PROXY header of version 2 is longer than 4096 bytes");
    }
    let command = version_command & 0xf;
    if command > 1 {
        return Look::Malformed("PROXY header of version 2 with an unknown command");
    }
    let is_local = command == 0;
    let (family, transport) = (family_transport >> 4, family_transport & 0xf);
    // Of LOCAL even the family is to be ignored.
    if !is_local && (family > 3 || transport > 2) {
        return Look::Malformed("PROXY header of version 2 with an unknown family");
    }
    let Some(header) = bytes.get(..length) else {
        return Look::More;
    };
    // The proxy speaks for itself, or does not know the family: nothing of the rest is meant for us.
    if is_local || family == 0 {
        return Look::Header(length, Told::Nothing);
    }
    let size = [0, 12, 36, 216][usize::from(family)];
    let Some((addresses, fields)) = header[FIXED..].split_at_checked(size) else {
        return Look::Malformed("PROXY header of version 2 is too short for its addresses");
    };
    match are_sound(header, fields) {
        Ok(()) => Look::Header(length, told(family, transport, addresses)),
        Err(why) => Look::Malformed(why),
    }
}

/// The client's address, where it is one of TCP.
fn told(family: u8, transport: u8, addresses: &[u8]) -> Told {
    let port = |at: usize| u16::from_be_bytes([addresses[at], addresses[at + 1]]);
    let client = match (family, transport) {
        (1, 1) => {
            let address: [u8; 4] = addresses[..4].try_into().expect("twelve bytes are here");
            SocketAddr::new(IpAddr::V4(Ipv4Addr::from(address)), port(8))
        }
        (2, 1) => {
            let address: [u8; 16] = addresses[..16].try_into().expect("36 bytes are here");
            SocketAddr::new(IpAddr::V6(Ipv6Addr::from(address)), port(32))
        }
        _ => return Told::Nothing,
    };
    Told::Client(client)
}

/// Whether the fields fill the rest of the header, and the checksum, where there is one, is right.
fn are_sound(header: &[u8], mut fields: &[u8]) -> Result<(), &'static str> {
    const BROKEN: &str = "PROXY header of version 2 with a broken field";
    // At most one turn for each three bytes.
    while !fields.is_empty() {
        let (head, rest) = fields.split_at_checked(FIELD).ok_or(BROKEN)?;
        let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
        let (value, rest) = rest.split_at_checked(length).ok_or(BROKEN)?;
        if head[0] == CHECKSUM {
            let told: [u8; 4] = value.try_into().map_err(|_| BROKEN)?;
            let at = header.len() - rest.len() - told.len();
            // Over the whole header, with its own place zeroed.
            let found = [&header[..at], &[0; 4], rest].into_iter().fold(!0, crc32c);
            if !found != u32::from_be_bytes(told) {
                return Err("PROXY header of version 2 with a wrong checksum");
            }
        }
        fields = rest;
    }
    Ok(())
}

/// CRC-32C (RFC 4960 appendix B), bit by bit: a header is short and comes once.
fn crc32c(before: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(before, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            crc >> 1 ^ (crc & 1).wrapping_neg() & 0x82f6_3b78
        })
    })
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[m0_spec::row(W45)]
    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        // The check value of CRC-32C, and RFC 3720 appendix B.4.
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(!crc32c(!0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(!crc32c(!0, &[0xff; 32]), 0x62a8_ab43);
    }
}
