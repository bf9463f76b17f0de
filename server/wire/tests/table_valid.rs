//! Requests that must pass, untouched, as a table: what they are, why they are right, the bytes.
//!
//! Each is fed whole, one byte at a time and cut once at every place. To add one, add a row.

mod drive;

use m0_wire::{Limits, Phase};

/// A stream of bytes that passes.
struct Valid {
    name: &'static str,
    /// Section of RFC 9112 unless it says otherwise.
    section: &'static str,
    bytes: &'static [u8],
    requests: u64,
    keep_alive: bool,
}

const fn one(name: &'static str, section: &'static str, bytes: &'static [u8]) -> Valid {
    Valid {
        name,
        section,
        bytes,
        requests: 1,
        keep_alive: true,
    }
}

const fn last(name: &'static str, section: &'static str, bytes: &'static [u8]) -> Valid {
    Valid {
        name,
        section,
        bytes,
        requests: 1,
        keep_alive: false,
    }
}

const fn many(
    name: &'static str,
    section: &'static str,
    requests: u64,
    bytes: &'static [u8],
) -> Valid {
    Valid {
        name,
        section,
        bytes,
        requests,
        keep_alive: true,
    }
}

fn check(table: &[Valid]) {
    assert!(!table.is_empty());
    for case in table {
        let name = format!("{} ({})", case.name, case.section);
        let outcome = drive::outcome(Limits::default(), case.bytes);
        assert_eq!(outcome.refusal, None, "{name}");
        assert_eq!(
            outcome.released.escape_ascii().to_string(),
            case.bytes.escape_ascii().to_string(),
            "{name}"
        );
        assert_eq!(outcome.requests, case.requests, "{name}");
        assert_eq!(outcome.phase, Phase::Complete, "{name}");
        assert_eq!(outcome.keep_alive, case.keep_alive, "{name}");
    }
}

#[rustfmt::skip]
const TARGETS: &[Valid] = &[
    one("root", "3.2.1", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("path and query", "3.2.1", b"GET /a/b.c;v=1?x=1&y=%20 HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("query that is empty", "3.2.1", b"GET /? HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("path that begins with two slashes", "3.2.1", b"GET //a//b HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("dots are the application's", "3.2.1", b"GET /../a/./b HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("percent signs are the application's", "3.2.1", b"GET /%zz%00 HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("brackets as browsers send them", "URL standard, query state", b"GET /?a[0]={b}|`^\\ HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("pchar", "RFC 3986 3.3", b"GET /-._~!$&'()*+,;=:@ HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("colon in the path", "3.2.1", b"GET /http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("absolute form", "3.2.2", b"GET http://a/b?c HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("absolute form of https", "3.2.2", b"GET https://a:443/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("absolute form, scheme in capitals", "RFC 3986 3.1", b"GET HTTP://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("absolute form without a path", "3.2.2", b"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("absolute form, query without a path", "3.2.2", b"GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("absolute form of an IPv6 address", "3.2.2", b"GET http://[::1]:80/ HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
    one("absolute form that differs from Host: Host is ignored", "3.2.2", b"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"),
    one("absolute form, port that is empty", "RFC 3986 3.2.3", b"GET http://a:/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("asterisk form", "3.2.4", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("OPTIONS of a path", "3.2.1", b"OPTIONS /a HTTP/1.1\r\nHost: a\r\n\r\n"),
];

#[m0_spec::row(W24)]
#[test]
fn every_form_of_target_that_a_server_accepts_passes() {
    check(TARGETS);
}

#[rustfmt::skip]
const METHODS: &[Valid] = &[
    one("GET", "RFC 9110 9.3.1", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("HEAD", "RFC 9110 9.3.2", b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("POST without a body", "6.3", b"POST / HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("PUT", "RFC 9110 9.3.4", b"PUT /a HTTP/1.1\r\nHost: a\r\ncontent-length: 1\r\n\r\nx"),
    one("DELETE", "RFC 9110 9.3.5", b"DELETE /a HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("TRACE", "RFC 9110 9.3.8", b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("PATCH", "RFC 5789", b"PATCH /a HTTP/1.1\r\nHost: a\r\ncontent-length: 2\r\n\r\n{}"),
    one("QUERY", "RFC 10008", b"QUERY /a HTTP/1.1\r\nHost: a\r\ncontent-length: 2\r\n\r\n{}"),
    one("lower case is another method", "RFC 9110 9.1", b"get / HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("every token character", "RFC 9110 5.6.2", b"A!#$%&'*+-.^_`|~09z / HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("32 characters", "3", b"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF / HTTP/1.1\r\nHost: a\r\n\r\n"),
];

#[m0_spec::row(W24)]
#[test]
fn every_method_that_is_a_token_passes() {
    check(METHODS);
}

#[rustfmt::skip]
const HOSTS: &[Valid] = &[
    one("name", "3.2", b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"),
    one("name and port", "3.2", b"GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
    one("IPv4 address", "3.2", b"GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n"),
    one("IPv6 address", "3.2", b"GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n"),
    one("IPv6 address and port", "3.2", b"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"),
    one("IPv6 address that ends in IPv4", "RFC 3986 3.2.2", b"GET / HTTP/1.1\r\nHost: [::ffff:1.2.3.4]\r\n\r\n"),
    one("address of a future version", "RFC 3986 3.2.2", b"GET / HTTP/1.1\r\nHost: [v1.a:b]\r\n\r\n"),
    one("empty", "3.2", b"GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    one("empty port", "RFC 3986 3.2.3", b"GET / HTTP/1.1\r\nHost: a:\r\n\r\n"),
    one("underscore and percent sign", "RFC 3986 3.2.2", b"GET / HTTP/1.1\r\nHost: a_b%2dc\r\n\r\n"),
    one("any case of the name", "RFC 9110 5.1", b"GET / HTTP/1.1\r\nhOsT: a\r\n\r\n"),
    one("blanks around", "RFC 9110 5.5", b"GET / HTTP/1.1\r\nHost: \t a \t \r\n\r\n"),
    one("not the first field", "RFC 9110 7.2", b"GET / HTTP/1.1\r\nAccept: */*\r\nHost: a\r\n\r\n"),
];

#[m0_spec::row(W5)]
#[test]
fn every_right_host_passes() {
    check(HOSTS);
}

#[rustfmt::skip]
const FIELDS: &[Valid] = &[
    one("no blank after the colon", "5.1", b"GET / HTTP/1.1\r\nHost:a\r\nA:b\r\n\r\n"),
    one("empty value", "5.1", b"GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB: \r\n\r\n"),
    one("tab in a value", "RFC 9110 5.5", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\tc\r\n\r\n"),
    one("colons in a value", "5.1", b"GET / HTTP/1.1\r\nHost: a\r\nA: b:c::d\r\n\r\n"),
    one("bytes above ASCII in a value", "RFC 9110 5.5", b"GET / HTTP/1.1\r\nHost: a\r\nA: \x80\xff\xc3\xa9\r\n\r\n"),
    one("every token character in a name", "RFC 9110 5.6.2", b"GET / HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~09Az: b\r\n\r\n"),
    one("a field twice", "RFC 9110 5.3", b"GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\nAccept: c\r\n\r\n"),
    one("names like those that frame", "6", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Lengths: x\r\nXTransfer-Encoding: y\r\nHosts: //\r\n\r\n"),
    one("quoted string", "RFC 9110 5.6.4", b"GET / HTTP/1.1\r\nHost: a\r\nIf-Match: \"a\\\"b\"\r\n\r\n"),
];

#[m0_spec::row(W24)]
#[test]
fn every_right_field_line_passes() {
    check(FIELDS);
}

#[rustfmt::skip]
const BODIES: &[Valid] = &[
    one("length", "6.2", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    one("length of zero", "6.2", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
    one("length with zeros in front", "RFC 9110 8.6", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0005\r\n\r\nhello"),
    one("length with blanks around", "RFC 9110 5.5", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \t5 \r\n\r\nhello"),
    one("GET with a body", "6.3", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    one("a body that looks like a head", "6.2", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.1\n\n\0\r"),
    one("any case of the name", "RFC 9110 5.1", b"POST / HTTP/1.1\r\nHost: a\r\ncOnTeNt-LeNgTh: 1\r\n\r\nx"),
    one("expectation", "RFC 9110 10.1.1", b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"),
];

#[m0_spec::row(W8)]
#[test]
fn every_right_length_passes() {
    check(BODIES);
}

#[rustfmt::skip]
const CHUNKS: &[Valid] = &[
    one("one chunk", "7.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    one("two chunks", "7.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
    one("no data", "7.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    one("hexadecimal, both cases", "7.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n"),
    one("zeros in front", "7.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0001\r\nx\r\n000\r\n\r\n"),
    one("coding in capitals", "7", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
    one("coding with blanks around", "6.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \t chunked \t\r\n\r\n0\r\n\r\n"),
    one("extension", "7.1.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0;c\r\n\r\n"),
    one("extension in quotes", "7.1.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\"b; c\"\r\nx\r\n0\r\n\r\n"),
    one("data that looks like chunks", "7.1", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"),
    one("trailers", "7.1.2", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nDigest: c\r\n\r\n"),
    last("close after chunks", "9.6", b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
];

#[m0_spec::row(W21, W22)]
#[test]
fn every_right_chunked_body_passes() {
    check(CHUNKS);
}

#[rustfmt::skip]
const CONNECTIONS: &[Valid] = &[
    last("close", "9.6", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    last("close among others", "9.6", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: te, Close ,x\r\n\r\n"),
    last("close on a second line", "9.6", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n"),
    last("close wins over keep-alive", "9.3", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n"),
    one("keep-alive", "9.3", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"),
    one("a word that begins with close", "9.6", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n"),
    last("HTTP/1.0 without Host", "9.3", b"GET / HTTP/1.0\r\n\r\n"),
    last("HTTP/1.0 with a length", "6.2", b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab"),
    one("HTTP/1.0 that asks for keep-alive", "9.3", b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
    last("HTTP/1.0 with both", "9.3", b"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"),
    one("upgrade", "RFC 9110 7.8", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
];

#[m0_spec::row(W16)]
#[test]
fn the_head_says_whether_the_connection_goes_on() {
    check(CONNECTIONS);
}

#[rustfmt::skip]
const SEQUENCES: &[Valid] = &[
    one("an empty line in front", "2.2", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("two empty lines in front", "2.2", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    many("two heads", "9.3.2", 2, b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"),
    many("an empty line after a body", "2.2", 2, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    many("body, chunks, head", "9.3.2", 3, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    many("trailers, head", "9.3.2", 2, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    many("a Host for each", "3.2", 2, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n"),
];

#[m0_spec::row(W1, W23)]
#[test]
fn requests_follow_each_other_exactly_where_the_one_before_ends() {
    check(SEQUENCES);
}
