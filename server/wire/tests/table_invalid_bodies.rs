//! Chunked bodies that must be refused, as a table: which rule they break, the status, what passes before.
//!
//! Each is fed whole, one byte at a time and cut once at every place. To add one, add a row.

mod drive;

use m0_wire::{Limits, Place};

/// A right request, to stand after: whatever the refused body was, this must not come out.
const AFTER: &[u8] = b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n";

fn small() -> Limits {
    Limits {
        max_head_bytes: 120,
        max_uri_bytes: 20,
        max_headers: 3,
        max_body_bytes: 8,
        ..Limits::default()
    }
}

/// A body that is refused, after the head was released.
struct BadBody {
    name: &'static str,
    section: &'static str,
    status: u16,
    /// What the engine sees of it.
    passes: &'static [u8],
    refused: &'static [u8],
}

const fn body(
    name: &'static str,
    section: &'static str,
    status: u16,
    passes: &'static [u8],
    refused: &'static [u8],
) -> BadBody {
    BadBody {
        name,
        section,
        status,
        passes,
        refused,
    }
}

const CHUNKED_HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn check_bodies(limits: Limits, table: &[BadBody]) {
    assert!(!table.is_empty());
    for case in table {
        let name = format!("{} ({})", case.name, case.section);
        let passes = [CHUNKED_HEAD, case.passes].concat();
        let outcome = drive::outcome(limits, &[&passes, case.refused, AFTER].concat());
        let refusal = outcome.refusal.unwrap_or_else(|| panic!("{name}: passed"));
        assert_eq!(
            (refusal.status, refusal.place, refusal.after_requests),
            (case.status, Place::Body, 1),
            "{name}: {}",
            refusal.reason
        );
        assert_eq!(
            outcome.released.escape_ascii().to_string(),
            passes.escape_ascii().to_string(),
            "{name}"
        );
    }
}

#[rustfmt::skip]
const SIZES: &[BadBody] = &[
    body("plus sign", "7.1", 400, b"", b"+5\r\nhello\r\n0\r\n\r\n"),
    body("minus sign", "7.1", 400, b"", b"-5\r\nhello\r\n0\r\n\r\n"),
    body("0x", "7.1", 400, b"0", b"x5\r\nhello\r\n0\r\n\r\n"),
    body("blank in front", "7.1", 400, b"", b" 5\r\nhello\r\n0\r\n\r\n"),
    body("blank behind", "7.1", 400, b"5", b" \r\nhello\r\n0\r\n\r\n"),
    body("tab behind", "7.1", 400, b"5", b"\t\r\nhello\r\n0\r\n\r\n"),
    body("blank before an extension", "7.1.1", 400, b"5", b" ;a\r\nhello\r\n0\r\n\r\n"),
    body("underscore", "7.1", 400, b"1", b"_0\r\nhello\r\n0\r\n\r\n"),
    body("a letter beyond f", "7.1", 400, b"", b"g\r\nhello\r\n0\r\n\r\n"),
    body("empty", "7.1", 400, b"", b"\r\nhello\r\n0\r\n\r\n"),
    body("extension alone", "7.1", 400, b"", b";a\r\nhello\r\n0\r\n\r\n"),
    body("2^64", "7.1", 400, b"1000000000000000", b"0\r\nhello\r\n0\r\n\r\n"),
    body("2^64 + 5, which wraps to 5", "7.1", 400, b"1000000000000000", b"5\r\nhello\r\n0\r\n\r\n"),
    body("zeros without end", "7.1", 400, b"0000000000000000", b"5\r\nhello\r\n0\r\n\r\n"),
    body("NUL", "7.1", 400, b"5", b"\0\r\nhello\r\n0\r\n\r\n"),
    body("a quote", "7.1", 400, b"", b"'5\r\nhello\r\n0\r\n\r\n"),
    body("wrong second size", "7.1", 400, b"5\r\nhello\r\n", b"x\r\n0\r\n\r\n"),
];

#[m0_spec::row(W21)]
#[test]
fn a_chunk_size_that_is_not_one_number_is_refused() {
    check_bodies(Limits::default(), SIZES);
}

#[rustfmt::skip]
const CHUNK_LINES: &[BadBody] = &[
    body("bare LF after a size", "7.1", 400, b"5", b"\nhello\r\n0\r\n\r\n"),
    body("CR alone after a size", "7.1", 400, b"5\r", b"hello\r\n0\r\n\r\n"),
    body("CR CR LF after a size", "7.1", 400, b"5\r", b"\r\nhello\r\n0\r\n\r\n"),
    body("bare LF after data", "7.1", 400, b"5\r\nhello", b"\n0\r\n\r\n"),
    body("CR alone after data", "7.1", 400, b"5\r\nhello\r", b"0\r\n\r\n"),
    body("nothing after data", "7.1", 400, b"5\r\nhello", b"0\r\n\r\n"),
    body("more data than the size", "7.1", 400, b"5\r\nhello", b"!\r\n0\r\n\r\n"),
    body("bare LF after the last size", "7.1", 400, b"0", b"\n\n"),
    body("bare LF in an extension", "7.1.1", 400, b"5;a", b"\nhello\r\n0\r\n\r\n"),
    body("NUL in an extension", "7.1.1", 400, b"5;a", b"\0\r\nhello\r\n0\r\n\r\n"),
    body("CR in an extension", "7.1.1", 400, b"5;a\r", b"b\r\nhello\r\n0\r\n\r\n"),
    body("bare LF as the end", "7.1", 400, b"0\r\n", b"\n"),
    body("CR alone as the end", "7.1", 400, b"0\r\n", b"\rGET"),
    body("extension over its limit", "7.1.1", 400, b"5;aaaaaaaaa", b"a\r\nhello\r\n0\r\n\r\n"),
    body("extensions of all chunks together", "7.1.1", 400, b"1;aaaa\r\nx\r\n1;aaaa", b"a\r\nx\r\n0\r\n\r\n"),
];

#[m0_spec::row(W21)]
#[test]
fn a_chunk_line_that_is_not_plain_is_refused() {
    check_bodies(
        Limits {
            max_chunk_ext_bytes: 10,
            ..Limits::default()
        },
        CHUNK_LINES,
    );
}

#[rustfmt::skip]
const ACTUAL_BODIES: &[BadBody] = &[
    body("one chunk", "RFC 9110 15.5.14", 413, b"9\r", b"\n123456789\r\n0\r\n\r\n"),
    body("a second chunk", "RFC 9110 15.5.14", 413, b"8\r\n12345678\r\n1\r", b"\n9\r\n0\r\n\r\n"),
    body("a size near 2^64", "RFC 9110 15.5.14", 413, b"1\r\n1\r\nffffffffffffffff\r", b"\n"),
];

#[m0_spec::row(W18)]
#[test]
fn a_chunked_body_over_the_limit_is_answered_413() {
    check_bodies(small(), ACTUAL_BODIES);
    let exact = [CHUNKED_HEAD, b"4\r\n1234\r\n4\r\n5678\r\n0\r\n\r\n"].concat();
    let outcome = drive::outcome(small(), &exact);
    assert_eq!((outcome.refusal, outcome.released), (None, exact));
}

#[rustfmt::skip]
const TRAILERS: &[BadBody] = &[
    body("length", "RFC 9110 6.5.1", 400, b"0\r\n", b"Content-Length: 5\r\n\r\n"),
    body("coding", "RFC 9110 6.5.1", 400, b"0\r\n", b"transfer-encoding: chunked\r\n\r\n"),
    body("Host", "RFC 9110 6.5.1", 400, b"0\r\n", b"A: b\r\nHost: c\r\n\r\n"),
    body("Connection", "RFC 9110 6.5.1", 400, b"0\r\n", b"Connection: close\r\n\r\n"),
    body("authorization", "RFC 9110 6.5.1", 400, b"0\r\n", b"Authorization: a\r\n\r\n"),
    body("cookie", "RFC 9110 6.5.1", 400, b"0\r\n", b"Cookie: a=b\r\n\r\n"),
    body("te", "RFC 9110 6.5.1", 400, b"0\r\n", b"TE: trailers\r\n\r\n"),
    body("expect", "RFC 9110 6.5.1", 400, b"0\r\n", b"Expect: 100-continue\r\n\r\n"),
    body("upgrade", "RFC 9110 6.5.1", 400, b"0\r\n", b"Upgrade: a\r\n\r\n"),
    body("trailer", "RFC 9110 6.5.1", 400, b"0\r\n", b"Trailer: a\r\n\r\n"),
    body("keep-alive", "RFC 9110 6.5.1", 400, b"0\r\n", b"Keep-Alive: timeout=5\r\n\r\n"),
    body("content-type", "RFC 9110 6.5.1", 400, b"0\r\n", b"Content-Type: a/b\r\n\r\n"),
    body("content-encoding", "RFC 9110 6.5.1", 400, b"0\r\n", b"Content-Encoding: gzip\r\n\r\n"),
    body("content-range", "RFC 9110 6.5.1", 400, b"0\r\n", b"Content-Range: bytes 0-1/2\r\n\r\n"),
    body("folded line", "5.2", 400, b"0\r\n", b"A: b\r\n c\r\n\r\n"),
    body("no colon", "5", 400, b"0\r\n", b"GET / HTTP/1.1\r\n\r\n"),
    body("bare LF", "2.2", 400, b"0\r\n", b"A: b\n\r\n"),
    body("NUL", "RFC 9110 5.5", 400, b"0\r\n", b"A: \0\r\n\r\n"),
    body("one too many", "RFC 6585 5", 431, b"0\r\n", b"A: b\r\nC: d\r\nE: f\r\nG: h\r\n\r\n"),
    body("over the limit in bytes", "RFC 6585 5", 431, b"0\r\n", b"A: 012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n\r\n"),
];

#[m0_spec::row(W22)]
#[test]
fn trailers_are_bounded_and_hold_no_framing() {
    check_bodies(small(), TRAILERS);
}
