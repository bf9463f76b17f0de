//! Requests that must be refused, as a table: their lines, targets, hosts and field names.
//!
//! Each names the rule that it breaks and the status. To add one, add a row.

mod drive;

use drive::refused::{Bad, bad, check_default};

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
    bad("no method", "3", 400, b" / HTTP/1.1\r\nHost: a\r\n\r\n"),
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
    bad("version with a major that is no digit", "2.3", 400, b"GET / HTTP/x.1\r\nHost: a\r\n\r\n"),
    bad("version with a minor that is no digit", "2.3", 400, b"GET / HTTP/1.x\r\nHost: a\r\n\r\n"),
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
    bad("a future address without its version", "RFC 3986 3.2.2", 400, b"GET / HTTP/1.1\r\nHost: [v.a]\r\n\r\n"),
    bad("a future address whose version is no number", "RFC 3986 3.2.2", 400, b"GET / HTTP/1.1\r\nHost: [vg.a]\r\n\r\n"),
    bad("a future version without its address", "RFC 3986 3.2.2", 400, b"GET / HTTP/1.1\r\nHost: [v1.]\r\n\r\n"),
    bad("a future address with a blank of URIs", "RFC 3986 3.2.2", 400, b"GET / HTTP/1.1\r\nHost: [v1.a%20]\r\n\r\n"),
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
    bad("blank before the colon of any field", "5.1", 400, b"GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n"),
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
