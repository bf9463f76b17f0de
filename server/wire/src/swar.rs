//! Looks at eight bytes of a head at a time, in one word ("SIMD within a register").
//!
//! Owns which bytes are control characters, and which fill most field names. Refuses to know what they mean there.
//! Invariant: the answer is that of a look at each byte in turn.

/// The same byte eight times.
const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of each byte.
const HIGH: u64 = eight(0x80);

/// Where the first control character is; a tab is none (RFC 9110 section 5.5).
pub(crate) fn first_control(bytes: &[u8]) -> Option<usize> {
    first(bytes, controls, |byte| {
        byte.is_ascii_control() && byte != b'\t'
    })
}

/// Where the first byte is that is neither a letter nor a hyphen.
pub(crate) fn first_unusual(name: &[u8]) -> Option<usize> {
    first(name, unusual, |byte| {
        !(byte.is_ascii_alphabetic() || byte == b'-')
    })
}

/// Where the first byte is that `find` marks in its word, and `is` in the rest.
#[inline]
fn first(bytes: &[u8], find: impl Fn(u64) -> u64, is: impl Fn(u8) -> bool) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (turn, word) in words.iter().enumerate() {
        let found = find(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(turn * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&byte| is(byte))?;
    Some(words.len() * 8 + at)
}

/// The highest bit of each byte that is a control character other than a tab.
#[inline]
const fn controls(word: u64) -> u64 {
    let below_blank = word.wrapping_sub(eight(b' '));
    let is_delete = (word ^ eight(0x7f)).wrapping_sub(eight(1));
    // A byte that borrows marks itself, and those above it perhaps wrongly: it is enough to know that there is one.
    if (below_blank | is_delete) & !word & HIGH == 0 {
        return 0;
    }
    let low = word & !HIGH;
    let from_blank = low + eight(0x80 - b' ');
    ((!from_blank & !is(low, b'\t')) | is(low, 0x7f)) & !word & HIGH
}

/// The highest bit of each byte that is neither a letter nor a hyphen.
#[inline]
const fn unusual(word: u64) -> u64 {
    let low = word & !HIGH;
    let lower = low | eight(0x20);
    let letter = (lower + eight(0x80 - b'a')) & !(lower + eight(0x7f - b'z'));
    (!(letter | is(low, b'-')) | word) & HIGH
}

/// The highest bit of each byte that is this one; no byte of `low` has its highest bit set, so none carries.
#[inline]
const fn is(low: u64, byte: u8) -> u64 {
    !((low ^ eight(byte)) + !HIGH) & HIGH
}

#[cfg(test)]
mod tests {
    use m0_spec::row;
    use proptest::prelude::*;

    use super::{first_control, first_unusual};

    fn check(bytes: &[u8]) {
        let position = |is: fn(&u8) -> bool| bytes.iter().position(is);
        let control = position(|byte| byte.is_ascii_control() && *byte != b'\t');
        assert_eq!(first_control(bytes), control, "{bytes:?}");
        let unusual = position(|byte| !byte.is_ascii_alphabetic() && *byte != b'-');
        assert_eq!(first_unusual(bytes), unusual, "{bytes:?}");
    }

    #[row(W25)]
    #[test]
    fn every_byte_is_known_at_every_place_beside_every_other() {
        for byte in 0..=u8::MAX {
            for beside in 0..=u8::MAX {
                for at in 0..9 {
                    let mut bytes = [beside; 9];
                    bytes[at] = byte;
                    check(&bytes);
                }
            }
        }
    }

    proptest! {
        #[row(W25)]
        #[test]
        fn what_is_found_is_where_a_look_at_each_byte_finds_it(
            bytes in proptest::collection::vec(prop_oneof![9 => b'A'..=b'Z', 1 => any::<u8>()], 0..80),
        ) {
            check(&bytes);
        }
    }
}
