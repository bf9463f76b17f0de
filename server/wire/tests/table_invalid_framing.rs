//! Requests that must be refused, as a table: their lengths, codings, expectations and sizes.
//!
//! Each names the rule that it breaks and the status. To add one, add a row.

mod drive;

use drive::refused::{Bad, bad, check, check_default};
use m0_wire::Limits;

#[rustfmt::skip]
const LENGTHS: &[Bad] = &[
    bad("two that differ", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    bad("two of the same", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    bad("a list", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello"),
    bad("a list that ends", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5,\r\n\r\nhello"),
    bad("plus sign", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"),
    bad("minus sign", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello"),
    bad("minus zero", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -0\r\n\r\n"),
    bad("empty", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
    bad("hexadecimal", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello"),
    bad("a letter after it", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5a\r\n\r\nhello"),
    bad("a blank inside", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 0\r\n\r\nhellohello"),
    bad("a fraction", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\nhello"),
    bad("an exponent", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1e1\r\n\r\nhello"),
    bad("in quotes", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \"5\"\r\n\r\nhello"),
    bad("2^64", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\nhello"),
    bad("far more", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999999\r\n\r\nhello"),
    bad("digits above ASCII", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \xd9\xa5\r\n\r\nhello"),
    bad("wrong although there is no body", "6.3", 400, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"),
];

#[m0_spec::row(W8)]
#[test]
fn a_length_that_is_not_one_number_is_refused() {
    check_default(LENGTHS);
}

#[rustfmt::skip]
const BOTH: &[Bad] = &[
    bad("length, then chunked", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("chunked, then length", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    bad("length of zero and chunked", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("in capitals", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nCONTENT-LENGTH: 5\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\n0\r\n\r\n"),
    bad("length and another coding", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: identity\r\n\r\nhello"),
];

#[m0_spec::row(W7)]
#[test]
fn both_lengths_are_refused() {
    check_default(BOTH);
}

#[rustfmt::skip]
const CODINGS: &[Bad] = &[
    bad("not chunked at all", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"),
    bad("identity", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
    bad("chunked is not the last", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
    bad("chunked is not the last, on two lines", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    bad("chunked twice", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    bad("chunked twice, on two lines", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("empty", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n"),
    bad("empty element in front", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"),
    bad("empty element behind", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n0\r\n\r\n"),
    bad("chunked with a parameter", "7", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"),
    bad("chunked with a parameter, then chunked", "7", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1, chunked\r\n\r\n0\r\n\r\n"),
    bad("what is no token, then chunked", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: g@zip, chunked\r\n\r\n0\r\n\r\n"),
    bad("in quotes", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
    bad("two words", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x chunked\r\n\r\n0\r\n\r\n"),
    bad("chunked in HTTP/1.0", "6.1", 400, b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("misspelt", "6.3", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    bad("a byte above ASCII in front", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \xa0chunked\r\n\r\n0\r\n\r\n"),
];

#[m0_spec::row(W9)]
#[test]
fn a_coding_whose_end_cannot_be_known_is_refused() {
    check_default(CODINGS);
}

#[rustfmt::skip]
const UNKNOWN: &[Bad] = &[
    bad("gzip, chunked", "6.1", 501, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    bad("gzip, chunked on two lines", "6.1", 501, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    bad("identity, chunked", "6.1", 501, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
    bad("a parameter", "6.1", 501, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x;a=b, chunked\r\n\r\n0\r\n\r\n"),
];

#[m0_spec::row(W30)]
#[test]
fn a_coding_before_chunked_is_answered_501() {
    check_default(UNKNOWN);
}

#[rustfmt::skip]
const EXPECTATIONS: &[Bad] = &[
    bad("another word", "RFC 9110 10.1.1", 417, b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 1\r\n\r\nx"),
    bad("a list", "RFC 9110 10.1.1", 417, b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, x\r\n\r\n"),
    bad("empty", "RFC 9110 10.1.1", 417, b"POST / HTTP/1.1\r\nHost: a\r\nExpect:\r\n\r\n"),
];

#[m0_spec::row(W31)]
#[test]
fn an_expectation_that_cannot_be_met_is_answered_417() {
    check_default(EXPECTATIONS);
}

fn small() -> Limits {
    Limits {
        max_head_bytes: 120,
        max_uri_bytes: 20,
        max_headers: 3,
        max_body_bytes: 8,
        ..Limits::default()
    }
}

#[rustfmt::skip]
const TOO_LONG_TARGETS: &[Bad] = &[
    bad("one byte over", "3", 414, b"GET /01234567890123456789 HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("over, without a version", "3", 414, b"GET /01234567890123456789\r\n\r\n"),
    bad("absolute form, over", "3", 414, b"GET http://a/12345678901234567890 HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("a request line that never ends", "3", 414, b"GET /0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"),
];

#[m0_spec::row(W3)]
#[test]
fn a_target_over_its_limit_is_answered_414() {
    check(small(), TOO_LONG_TARGETS);
    let exact = drive::outcome(
        small(),
        b"GET /0123456789012345678 HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!((exact.refusal, exact.requests), (None, 1));
    let exact = drive::outcome(small(), b"GET /0123456789012345678\r\n\r\n");
    let refusal = exact.refusal.expect("it has no version");
    assert_eq!(refusal.status, 400, "its target is not too long");
}

#[rustfmt::skip]
const TOO_LARGE_HEADS: &[Bad] = &[
    bad("one long field", "RFC 6585 5", 431, b"GET / HTTP/1.1\r\nHost: a\r\nA: 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n\r\n"),
    bad("a field that never ends", "RFC 6585 5", 431, b"GET / HTTP/1.1\r\nHost: a\r\nA: 01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"),
];

#[m0_spec::row(W2)]
#[test]
fn a_head_over_its_limit_is_answered_431() {
    check(small(), TOO_LARGE_HEADS);
    let limits = Limits {
        max_headers: 100,
        ..small()
    };
    for length in 100..140 {
        let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\nA: ".to_vec();
        bytes.resize(length - 4, b'x');
        bytes.extend_from_slice(b"\r\n\r\n");
        let outcome = drive::outcome(limits, &bytes);
        let status = outcome.refusal.map(|refusal| refusal.status);
        assert_eq!(
            status,
            (length > 120).then_some(431),
            "a head of {length} bytes"
        );
    }
}

#[rustfmt::skip]
const TOO_MANY_FIELDS: &[Bad] = &[
    bad("one over", "RFC 6585 5", 431, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nC: d\r\nE: f\r\n\r\n"),
];

#[m0_spec::row(W4)]
#[test]
fn too_many_fields_are_answered_431() {
    check(small(), TOO_MANY_FIELDS);
    let exact = drive::outcome(
        small(),
        b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nC: d\r\n\r\n",
    );
    assert_eq!((exact.refusal, exact.requests), (None, 1));
}

#[rustfmt::skip]
const TOO_LARGE_BODIES: &[Bad] = &[
    bad("declared", "RFC 9110 15.5.14", 413, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789"),
    bad("declared, and none of it sent", "RFC 9110 15.5.14", 413, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n"),
];

#[m0_spec::row(W18)]
#[test]
fn a_declared_body_over_the_limit_is_answered_413() {
    check(small(), TOO_LARGE_BODIES);
    let exact = drive::outcome(
        small(),
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n12345678",
    );
    assert_eq!((exact.refusal, exact.requests), (None, 1));
}

#[rustfmt::skip]
const EXPECTED_BODIES: &[Bad] = &[
    bad("expectation before a body over the limit", "RFC 9110 10.1.1", 413, b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"),
];

#[m0_spec::row(W20)]
#[test]
fn an_expectation_before_a_body_over_the_limit_is_refused_at_the_head() {
    check(small(), EXPECTED_BODIES);
}
