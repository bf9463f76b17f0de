//! The header of a proxy: where it ends, what it tells, and what is refused, over every cut.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use m0_spec::row;
use m0_wire::proxy::{MOST_BYTES, Networks, Reader, Step, Told};
use proptest::prelude::*;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// What a header came to: how many bytes it had, and what it told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Unfinished,
    Header(usize, Told),
    /// No header, after so many bytes were held.
    None,
    Malformed(&'static str),
}

fn feed<'a>(required: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Found {
    let mut reader = Reader::new(required);
    let mut before = Vec::new();
    for piece in pieces {
        match reader.feed(piece) {
            Step::More => {
                before.extend_from_slice(piece);
                assert_eq!(reader.held(), before);
                assert!(reader.has_begun() && before.len() < MOST_BYTES);
            }
            Step::Header { used, told } => {
                assert!(0 < used && used <= piece.len());
                return Found::Header(before.len() + used, told);
            }
            Step::None => {
                assert_eq!(reader.held(), before, "all that came before is given back");
                return Found::None;
            }
            Step::Malformed(why) => return Found::Malformed(why),
        }
    }
    Found::Unfinished
}

/// What the bytes come to, which is the same whole, in single bytes and over every cut in two.
fn found(required: bool, bytes: &[u8]) -> Found {
    let whole = feed(required, [bytes]);
    assert_eq!(
        feed(required, bytes.chunks(1)),
        whole,
        "{}",
        bytes.escape_ascii()
    );
    for cut in 1..bytes.len() {
        let (first, second) = bytes.split_at(cut);
        let seen = feed(required, [first, second]);
        assert_eq!(seen, whole, "cut at {cut}: {}", bytes.escape_ascii());
    }
    whole
}

fn v2(version_command: u8, family_transport: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len())
        .expect("a short one")
        .to_be_bytes();
    [
        SIGNATURE,
        &[version_command, family_transport],
        &length,
        rest,
    ]
    .concat()
}

fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len())
        .expect("a short one")
        .to_be_bytes();
    [&[kind], &length[..], value].concat()
}

/// 192.0.2.7:40000 to 198.51.100.1:443.
const V4: &[u8] = &[192, 0, 2, 7, 198, 51, 100, 1, 0x9c, 0x40, 1, 0xbb];

fn client(text: &str) -> Told {
    Told::Client(text.parse().expect("an address"))
}

#[row(W44, W46)]
#[test]
fn a_header_tells_the_client_and_ends_where_the_request_begins() {
    let mut v6 = Ipv6Addr::LOCALHOST.octets().repeat(2);
    v6.extend([0x9c, 0x40, 1, 0xbb]);
    let fields = [
        tlv(0x02, b"a.example"),
        tlv(0xe0, &[]),
        tlv(0x20, &[0; 300]),
    ]
    .concat();
    let cases = [
        (
            b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r\n".to_vec(),
            client("192.0.2.7:40000"),
        ),
        (
            b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n".to_vec(),
            client("255.255.255.255:65535"),
        ),
        (
            b"PROXY TCP6 2001:db8::1 ::1 0 443\r\n".to_vec(),
            client("[2001:db8::1]:0"),
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), Told::Nothing),
        (
            b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n".to_vec(),
            Told::Nothing,
        ),
        // Whatever precedes the end of the line is to be ignored, text or not.
        (
            b"PROXY UNKNOWN \xff\0 \x80  1\t\r\n".to_vec(),
            Told::Nothing,
        ),
        (v2(0x21, 0x11, V4), client("192.0.2.7:40000")),
        (v2(0x21, 0x21, &v6), client("[::1]:40000")),
        (
            v2(0x21, 0x11, &[V4, &fields].concat()),
            client("192.0.2.7:40000"),
        ),
        // The proxy itself; a family that it does not know; datagrams; a unix socket.
        (v2(0x20, 0x00, b""), Told::Nothing),
        (v2(0x20, 0x11, V4), Told::Nothing),
        (v2(0x20, 0x11, b"any"), Told::Nothing),
        // Of LOCAL the family is ignored too, one that nobody knows included.
        (v2(0x20, 0x13, V4), Told::Nothing),
        (v2(0x20, 0xff, b""), Told::Nothing),
        (v2(0x21, 0x00, b"anything at all"), Told::Nothing),
        (v2(0x21, 0x12, V4), Told::Nothing),
        (v2(0x21, 0x31, &[1; 216]), Told::Nothing),
    ];
    for (header, told) in cases {
        for required in [true, false] {
            let bytes = [&header, REQUEST].concat();
            assert_eq!(found(required, &bytes), Found::Header(header.len(), told));
            assert_eq!(
                found(required, &header[..header.len() - 1]),
                Found::Unfinished
            );
        }
    }
}

#[row(W45)]
#[test]
fn what_is_broken_is_refused_whether_a_header_is_required_or_not() {
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(92));
    assert_eq!(long.len(), 108);
    let short = long.replacen('x', "", 1);
    let texts = [
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 443 \r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 443 1\r\n",
        "PROXY TCP4  192.0.2.7 198.51.100.1 40000 443\r\n",
        "PROXY TCP4 192.0.2.07 198.51.100.1 40000 443\r\n",
        "PROXY TCP4 192.0.2 198.51.100.1 40000 443\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 65536 443\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 +1 443\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 040 443\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 \r\n",
        "PROXY TCP4 ::1 ::1 40000 443\r\n",
        "PROXY TCP6 192.0.2.7 198.51.100.1 40000 443\r\n",
        "PROXY TCP5 192.0.2.7 198.51.100.1 40000 443\r\n",
        "PROXY tcp4 192.0.2.7 198.51.100.1 40000 443\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r ",
        "PROXY TCP4 192.0.2.7\t198.51.100.1 40000 443\r\n",
        "PROXY / HTTP/1.1\r\nHost: a\r\n\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY UNKNOWN\t\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1\u{e9} 40000 443\r\n",
        &long,
    ];
    let mut checked = tlv(0x03, &[1, 2, 3, 4]);
    checked.extend(tlv(0x04, b"noop"));
    let binaries = [
        v2(0x11, 0x11, V4),
        v2(0x31, 0x11, V4),
        v2(0x22, 0x11, V4),
        v2(0x21, 0x41, &[0; 216]),
        v2(0x21, 0x13, V4),
        v2(0x21, 0x11, &V4[..11]),
        v2(0x21, 0x21, V4),
        v2(0x21, 0x31, &[0; 215]),
        v2(0x21, 0x11, &[V4, &[1]].concat()),
        v2(0x21, 0x11, &[V4, &[1, 0, 1]].concat()),
        v2(0x21, 0x11, &[V4, &tlv(0x03, &[0; 3])].concat()),
        v2(0x21, 0x11, &[V4, &checked].concat()),
        v2(0x20, 0x00, &[0; MOST_BYTES - 15]),
    ];
    let all = texts
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .chain(binaries);
    for bytes in all {
        for required in [true, false] {
            let found = found(required, &bytes);
            assert!(
                matches!(found, Found::Malformed(_)),
                "{found:?}: {}",
                bytes.escape_ascii()
            );
        }
    }
    // Just within the bounds.
    assert_eq!(
        found(true, short.as_bytes()),
        Found::Header(107, Told::Nothing)
    );
    let most = v2(0x20, 0x00, &[0; MOST_BYTES - 16]);
    assert_eq!(
        feed(true, [&most[..]]),
        Found::Header(MOST_BYTES, Told::Nothing)
    );
    // A line that does not end is refused at its bound, not held.
    for endless in [long.repeat(9), long.replace("\r\n", "xx")] {
        let found = feed(true, endless.as_bytes()[..107].chunks(1));
        assert!(matches!(found, Found::Malformed(_)), "{endless}");
    }
}

#[row(W45)]
#[test]
fn a_right_checksum_passes_and_any_wrong_bit_does_not() {
    // Made by another implementation of the checksum (table-driven) over the header with zeros in its place.
    let with = |sum: u32| {
        v2(
            0x21,
            0x11,
            &[
                V4,
                &tlv(0x04, b"x"),
                &tlv(0x03, &sum.to_be_bytes()),
                &tlv(0x05, b"id"),
            ]
            .concat(),
        )
    };
    let sum = table_driven(&with(0));
    let right = with(sum);
    let told = client("192.0.2.7:40000");
    assert_eq!(found(true, &right), Found::Header(right.len(), told));
    for bit in 0..right.len() * 8 {
        let mut wrong = right.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let found = feed(true, [&wrong[..]]);
        let kind_changed = bit / 8 == 16 + 12 + 4;
        let length_or_command = (12..16).contains(&(bit / 8));
        assert!(
            !matches!(found, Found::Header(..)) || kind_changed || length_or_command,
            "bit {bit}: {found:?}"
        );
    }
}

/// CRC-32C by a table, as another implementation has it.
fn table_driven(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|index| {
            (0..8).fold(index, |value, _| {
                if value & 1 == 1 {
                    value >> 1 ^ 0x82f6_3b78
                } else {
                    value >> 1
                }
            })
        })
        .collect();
    !bytes.iter().fold(!0, |crc: u32, byte| {
        crc >> 8 ^ table[usize::from(crc.to_le_bytes()[0] ^ byte)]
    })
}

#[row(W44, W45)]
#[test]
fn what_is_no_header_is_a_request_where_none_is_required() {
    for bytes in [
        REQUEST,
        b"P",
        b"PRO",
        b"PUT / HTTP/1.1\r\n\r\n",
        b"PROXY",
        b"PROXY2 / HTTP/1.1\r\n",
        b"\r\nGET / HTTP/1.1\r\n",
        b"\r\n\r\nGET / HTTP/1.1\r\n",
        b"\r\n\r\n\0\r\nQUITE",
        b"\0",
    ] {
        let required = found(true, bytes);
        let optional = found(false, bytes);
        if b"PROXY ".starts_with(bytes) {
            assert_eq!((required, optional), (Found::Unfinished, Found::Unfinished));
        } else {
            assert_eq!(required, Found::Malformed("no PROXY header"));
            assert_eq!(optional, Found::None, "{}", bytes.escape_ascii());
        }
    }
}

fn any_header() -> impl Strategy<Value = (Vec<u8>, Told)> {
    let address = || {
        (any::<bool>(), any::<u128>(), any::<u16>()).prop_map(|(six, bits, port)| {
            let ip = if six {
                IpAddr::V6(bits.into())
            } else {
                IpAddr::V4(Ipv4Addr::from(u32::from_le_bytes(
                    bits.to_le_bytes()[..4].try_into().expect("four"),
                )))
            };
            SocketAddr::new(ip, port)
        })
    };
    let fields = prop::collection::vec(
        (4..=255_u8, prop::collection::vec(any::<u8>(), 0..40)),
        0..6,
    );
    (address(), any::<bool>(), fields).prop_map(|(client, text, fields)| {
        let header = match (client, text) {
            (SocketAddr::V4(at), true) => {
                format!("PROXY TCP4 {} 192.0.2.1 {} 80\r\n", at.ip(), at.port()).into_bytes()
            }
            (SocketAddr::V6(at), true) => {
                format!("PROXY TCP6 {} ::1 {} 80\r\n", at.ip(), at.port()).into_bytes()
            }
            (at, false) => {
                let port = at.port().to_be_bytes();
                let (family, mut rest) = match at.ip() {
                    IpAddr::V4(ip) => (0x11, [&ip.octets()[..], &[0; 4], &port, &[0; 2]].concat()),
                    IpAddr::V6(ip) => (0x21, [&ip.octets()[..], &[0; 16], &port, &[0; 2]].concat()),
                };
                rest.extend(fields.iter().flat_map(|(kind, value)| tlv(*kind, value)));
                v2(0x21, family, &rest)
            }
        };
        (header, Told::Client(client))
    })
}

fn cuts(bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}

proptest! {
    #[row(W44)]
    #[test]
    fn any_header_is_read_over_any_cut((header, told) in any_header(), sizes in prop::collection::vec(1..30_usize, 1..5)) {
        let bytes = [&header[..], REQUEST].concat();
        let pieces = cuts(&bytes, &sizes);
        let seen = feed(true, pieces.iter().map(Vec::as_slice));
        prop_assert_eq!(seen, Found::Header(header.len(), told));
    }

    #[row(W44, W45)]
    #[test]
    fn any_bytes_have_one_verdict_over_any_cut(
        (header, _) in any_header(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        tail in prop::collection::vec(any::<u8>(), 0..60),
        sizes in prop::collection::vec(1..30_usize, 1..5),
        required in any::<bool>(),
    ) {
        let mut bytes = [header, tail].concat();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let pieces = cuts(&bytes, &sizes);
        let seen = feed(required, pieces.iter().map(Vec::as_slice));
        prop_assert_eq!(seen, feed(required, [&bytes[..]]));
    }

    #[row(W47)]
    #[test]
    fn a_network_holds_what_shares_its_prefix(bits in any::<u128>(), other in any::<u128>(), prefix in 0..=128_u32, six in any::<bool>()) {
        let prefix = if six { prefix } else { prefix % 33 };
        let width = if six { 128 } else { 32 };
        let cut = |bits: u128| if prefix == 0 { 0 } else { bits >> (width - prefix) };
        let mask = |bits: u128| if six { bits } else { bits & u128::from(u32::MAX) };
        let (bits, other) = (mask(bits), mask(other));
        let ip = |bits: u128| if six { IpAddr::V6(bits.into()) } else { IpAddr::V4((bits as u32).into()) };
        let first = if prefix == 0 { 0 } else { cut(bits) << (width - prefix) };
        prop_assume!(ip(first).to_canonical() == ip(first));
        let networks = Networks::parse(&format!("unix,{}/{prefix}", ip(first))).expect("a network");
        prop_assert!(networks.hold(ip(bits)));
        let same = cut(other) == cut(bits) && ip(other).to_canonical() == ip(other);
        prop_assert_eq!(networks.hold(ip(other)), same);
    }
}

#[row(W47)]
#[test]
fn a_list_means_what_it_says_and_nothing_else_is_read() {
    let hold = |list: &str, address: &str| {
        let networks = Networks::parse(list).expect("a list");
        networks.hold(address.parse().expect("an address"))
    };
    assert!(hold("192.0.2.7", "192.0.2.7") && !hold("192.0.2.7", "192.0.2.8"));
    assert!(hold("10.0.0.0/8 , ::1", "::1") && hold("::/0", "2001:db8::1"));
    assert!(
        hold("10.0.0.0/8", "::ffff:10.1.2.3"),
        "an IPv4 peer at an IPv6 socket"
    );
    assert!(
        !hold("::/0", "10.1.2.3") && !hold("0.0.0.0/0", "::1"),
        "each family its own"
    );
    let nobody = Networks::parse("").expect("nobody");
    assert!(nobody.is_empty() && !nobody.hold_unix());
    let unix = Networks::parse("unix").expect("a list");
    assert!(!unix.is_empty() && unix.hold_unix());
    for wrong in [
        ",",
        "10.0.0.0/8,",
        "10.0.0.0/33",
        "10.0.0.1/8",
        "::1/129",
        "10.0.0.0/",
        "10.0.0.0/+8",
        "proxy.example",
        "10.0.0.0/8/8",
        "192.0.2.7:80",
        "unix:/run/a",
        "::ffff:10.0.0.0/104",
        "::ffff:10.0.0.1",
    ] {
        assert_eq!(Networks::parse(wrong), None, "{wrong}");
    }
}
