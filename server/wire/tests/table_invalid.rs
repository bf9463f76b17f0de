//! Requests that must be refused, as a table: what they are, which rule they break, the status.
//!
//! Each is fed whole, one byte at a time and cut once at every place; nothing of a refused head may
//! come out. To add one, add a row.

mod drive;

use m0_wire::{Limits, Place};

/// A head that is refused.
struct Bad {
    name: &'static str,
    /// Section of RFC 9112 unless it says otherwise.
    section: &'static str,
    status: u16,
    bytes: &'static [u8],
}

const fn bad(name: &'static str, section: &'static str, status: u16, bytes: &'static [u8]) -> Bad {
    Bad {
        name,
        section,
        status,
        bytes,
    }
}

/// A right request, to stand before the refused ones.
const BEFORE: &[u8] = b"POST /before HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";

/// A right request, to stand after: whatever the refused head was, this must not come out.
const AFTER: &[u8] = b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n";

fn check(limits: Limits, table: &[Bad]) {
    assert!(!table.is_empty());
    for case in table {
        let name = format!("{} ({})", case.name, case.section);
        let alone = drive::outcome(limits, case.bytes);
        let refusal = alone.refusal.unwrap_or_else(|| panic!("{name}: passed"));
        assert_eq!(
            (refusal.status, refusal.place, refusal.after_requests),
            (case.status, Place::Head, 0),
            "{name}: {}",
            refusal.reason
        );
        assert_eq!(
            alone.released, b"",
            "{name}: something of the head came out"
        );

        let bytes = [BEFORE, case.bytes, AFTER].concat();
        let between = drive::outcome(limits, &bytes);
        let second = between
            .refusal
            .unwrap_or_else(|| panic!("{name}: passed as the second"));
        assert_eq!(
            (second.status, second.reason, second.after_requests),
            (case.status, refusal.reason, 1),
            "{name}"
        );
        assert_eq!(between.released, BEFORE, "{name}: as the second");
    }
}

fn check_default(table: &[Bad]) {
    check(Limits::default(), table);
}

#[rustfmt::skip]
const LINES: &[Bad] = &[
    bad("bare LF after the request line", "2.2", 400, b"GET / HTTP/1.1\nHost: a\r\n\r\n"),
    bad("bare LF after a field", "2.2", 400, b"GET / HTTP/1.1\r\nHost: a\nA: b\r\n\r\n"),
    bad("bare LF as the end of the head", "2.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\n\n"),
    bad("bare LF before the request", "2.2", 400, b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("all lines end in LF", "2.2", 400, b"GET / HTTP/1.1\nHost: a\n\n"),
    bad("CR in a value", "2.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n"),
    bad("CR CR LF", "2.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"),
    bad("CR alone as a line end", "2.2", 400, b"GET / HTTP/1.1\rHost: a\r\r"),
    bad("CR in the request line", "2.2", 400, b"GET /\rHTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("CR before the request", "2.2", 400, b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("LF LF after CR", "2.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\n\n\r\n"),
    bad("a request hidden behind a bare LF", "11.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\n\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("three empty lines in front", "2.2", 400, b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
];

#[m0_spec::row(W6, W41)]
#[test]
fn a_line_that_does_not_end_in_crlf_is_refused() {
    check_default(LINES);
}

#[rustfmt::skip]
const CONTROLS: &[Bad] = &[
    bad("NUL in the target", "2.2", 400, b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("NUL in a value", "RFC 9110 5.5", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n"),
    bad("NUL in a name", "5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA\0: b\r\n\r\n"),
    bad("bell in a value", "RFC 9110 5.5", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: \x07\r\n\r\n"),
    bad("vertical tab in a value", "RFC 9110 5.5", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\x0bc\r\n\r\n"),
    bad("form feed in a value", "RFC 9110 5.5", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\x0cc\r\n\r\n"),
    bad("DEL in a value", "RFC 9110 5.5", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\x7f\r\n\r\n"),
    bad("escape in the target", "3.2", 400, b"GET /\x1b[2J HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("control in a framing value", "6.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    bad("a TLS greeting", "2.2", 400, b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"),
    bad("NUL first", "2.2", 400, b"\0"),
];

#[m0_spec::row(W25)]
#[test]
fn a_control_character_in_a_head_is_refused() {
    check_default(CONTROLS);
}

#[rustfmt::skip]
const REQUEST_LINES: &[Bad] = &[
    bad("no version", "3", 400, b"GET /\r\n\r\n"),
    bad("method alone", "3", 400, b"GET\r\nHost: a\r\n\r\n"),
    bad("two blanks before the target", "3", 400, b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("two blanks before the version", "3", 400, b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("blank after the version", "3", 400, b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
    bad("blank before the method", "3", 400, b" GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("blank in the target", "3", 400, b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("tab before the target", "3", 400, b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("tab before the version", "3", 400, b"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("tab in the target", "3", 400, b"GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("method with a colon", "RFC 9110 9.1", 400, b"GE:T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("method with a slash", "RFC 9110 9.1", 400, b"G/T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("method above ASCII", "RFC 9110 9.1", 400, b"G\xc3\x89T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("method in quotes", "RFC 9110 9.1", 400, b"\"GET\" / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("a field in place of the request line", "3", 400, b"Host: a\r\nGET / HTTP/1.1\r\n\r\n"),
    bad("version in lower case", "2.3", 400, b"GET / http/1.1\r\nHost: a\r\n\r\n"),
    bad("version without a minor", "2.3", 400, b"GET / HTTP/1\r\nHost: a\r\n\r\n"),
    bad("version with two digits", "2.3", 400, b"GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
    bad("version with a comma", "2.3", 400, b"GET / HTTP/1,1\r\nHost: a\r\n\r\n"),
    bad("another protocol", "2.3", 400, b"GET / RTSP/1.0\r\nHost: a\r\n\r\n"),
    bad("method longer than any", "3", 501, b"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\nHost: a\r\n\r\n"),
];

#[m0_spec::row(W26)]
#[test]
fn a_malformed_request_line_is_refused() {
    check_default(REQUEST_LINES);
}

#[rustfmt::skip]
const VERSIONS: &[Bad] = &[
    bad("HTTP/2 preface", "RFC 9113 3.4", 505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    bad("HTTP/2.0", "2.3", 505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    bad("HTTP/3.0", "2.3", 505, b"GET / HTTP/3.0\r\nHost: a\r\n\r\n"),
    bad("HTTP/0.9", "2.3", 505, b"GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
    bad("HTTP/1.2", "2.3", 505, b"GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
    bad("HTTP/9.9", "2.3", 505, b"GET / HTTP/9.9\r\nHost: a\r\n\r\n"),
];

#[m0_spec::row(W27)]
#[test]
fn a_version_that_is_not_served_is_answered_505() {
    check_default(VERSIONS);
}

#[rustfmt::skip]
const TARGETS: &[Bad] = &[
    bad("no slash in front", "3.2", 400, b"GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("query alone", "3.2.1", 400, b"GET ?a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("asterisk for GET", "3.2.4", 400, b"GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("asterisk and more", "3.2.4", 400, b"OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("authority for GET", "3.2.3", 400, b"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("path for CONNECT", "3.2.3", 400, b"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("CONNECT without a port", "3.2.3", 400, b"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("CONNECT with an empty port", "3.2.3", 400, b"CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("CONNECT as it should be", "RFC 9110 9.3.6", 501, b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"),
    bad("fragment", "3.2", 400, b"GET /#a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("angle bracket", "RFC 3986 2", 400, b"GET /<a> HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("quote", "RFC 3986 2", 400, b"GET /\"a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("backtick in the path", "RFC 3986 2", 400, b"GET /`a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("bytes above ASCII", "RFC 3986 2", 400, b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("absolute form of another scheme", "3.2.2", 400, b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("absolute form without a host", "RFC 9110 4.2.1", 400, b"GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("absolute form, port without a host", "RFC 9110 4.2.1", 400, b"GET http://:80/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("absolute form with a user", "RFC 9110 4.2.4", 400, b"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("absolute form, port of letters", "RFC 3986 3.2.3", 400, b"GET http://a:b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("absolute form without its slashes", "3.2.2", 400, b"GET http:a HTTP/1.1\r\nHost: a\r\n\r\n"),
    bad("absolute form without Host", "3.2.2", 400, b"GET http://a/ HTTP/1.1\r\n\r\n"),
];

#[m0_spec::row(W28)]
#[test]
fn a_target_of_no_accepted_form_is_refused() {
    check_default(TARGETS);
}

#[rustfmt::skip]
const HOSTS: &[Bad] = &[
    bad("none", "3.2", 400, b"GET / HTTP/1.1\r\n\r\n"),
    bad("none among fields", "3.2", 400, b"GET / HTTP/1.1\r\nAccept: a\r\nHosts: b\r\n\r\n"),
    bad("two", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    bad("two of the same", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    bad("two, in two cases", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n\r\n"),
    bad("two, one of them empty", "3.2", 400, b"GET / HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n"),
    bad("two in HTTP/1.0", "3.2", 400, b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
    bad("a list", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
    bad("a list without blanks", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"),
    bad("a path", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    bad("a URI", "3.2", 400, b"GET / HTTP/1.1\r\nHost: http://a\r\n\r\n"),
    bad("a user", "3.2", 400, b"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
    bad("a port of letters", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"),
    bad("a port too long", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n"),
    bad("two ports", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n"),
    bad("a port alone", "3.2", 400, b"GET / HTTP/1.1\r\nHost: :80\r\n\r\n"),
    bad("an address without brackets", "3.2", 400, b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n"),
    bad("an address without its end", "3.2", 400, b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"),
    bad("an address that is none", "3.2", 400, b"GET / HTTP/1.1\r\nHost: [a.b]\r\n\r\n"),
    bad("an address with a zone", "RFC 3986 3.2.2", 400, b"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n"),
    bad("text after an address", "3.2", 400, b"GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n"),
    bad("a future address without its dot", "RFC 3986 3.2.2", 400, b"GET / HTTP/1.1\r\nHost: [v1]\r\n\r\n"),
    bad("a blank inside", "3.2", 400, b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    bad("a percent sign alone", "RFC 3986 2.1", 400, b"GET / HTTP/1.1\r\nHost: a%2\r\n\r\n"),
    bad("bytes above ASCII", "3.2", 400, b"GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n"),
];

#[m0_spec::row(W5)]
#[test]
fn a_host_that_is_missing_doubled_or_wrong_is_refused() {
    check_default(HOSTS);
}

#[rustfmt::skip]
const FIELDS: &[Bad] = &[
    bad("folded line", "5.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n"),
    bad("folded by a tab", "5.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\tc\r\n\r\n"),
    bad("folded first line", "2.2", 400, b"GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    bad("line of one blank", "5.2", 400, b"GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n"),
    bad("blank before the colon", "5.1", 400, b"GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
    bad("tab before the colon", "5.1", 400, b"GET / HTTP/1.1\r\nHost\t: a\r\n\r\n"),
    bad("blank before the colon of a length", "5.1", 400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello"),
];

#[m0_spec::row(W10)]
#[test]
fn white_space_where_a_field_has_none_is_refused() {
    check_default(FIELDS);
}

#[rustfmt::skip]
const NAMES: &[Bad] = &[
    bad("no colon", "5", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n"),
    bad("empty name", "5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
    bad("colon alone", "5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\n:\r\n\r\n"),
    bad("blank in the name", "RFC 9110 5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA B: c\r\n\r\n"),
    bad("brackets in the name", "RFC 9110 5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA(b): c\r\n\r\n"),
    bad("quote in the name", "RFC 9110 5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\n\"A\": c\r\n\r\n"),
    bad("slash in the name", "RFC 9110 5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA/b: c\r\n\r\n"),
    bad("equals sign in the name", "RFC 9110 5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA=b: c\r\n\r\n"),
    bad("bytes above ASCII in the name", "RFC 9110 5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\n\xc3\xa9: c\r\n\r\n"),
    bad("a second request line", "5", 400, b"GET / HTTP/1.1\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
];

#[m0_spec::row(W29)]
#[test]
fn a_field_name_that_is_no_token_is_refused() {
    check_default(NAMES);
}

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
