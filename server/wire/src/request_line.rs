//! Judges a request line and a Host value (RFC 9112 sections 3 and 3.2).
//!
//! Owns the grammar of method, target, version and authority. Refuses to know what a path means: only
//! the shape is judged, percent-encoding is the application's matter.
//! Invariant: a line that passes has exactly two blanks, so no recipient can split it differently.

use crate::limits::Limits;
use crate::scanner::Fault;

/// What the request line said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestLine {
    /// The version is HTTP/1.0.
    pub(crate) http10: bool,
}

/// Judges `line` (without its CRLF).
pub(crate) fn judge(line: &[u8], limits: &Limits) -> Result<RequestLine, Fault> {
    // A method is so short that a search for many bytes at once begins too late.
    let Some(first) = line.iter().position(|&byte| byte == b' ') else {
        return Err(Fault::new(400, "request line has no target"));
    };
    let method = &line[..first];
    if method.is_empty() {
        return Err(Fault::new(400, "request line begins with a blank"));
    }
    if !method.iter().all(|&byte| is_token(byte)) {
        return Err(Fault::new(400, "method is not a token"));
    }
    let rest = &line[first + 1..];
    let Some(second) = memchr::memchr(b' ', rest) else {
        // HTTP/0.9 had no version. A target beyond its bound is named first: it is the better hint.
        if rest.len() > limits.max_uri_bytes {
            return Err(Fault::new(414, "request target is too long"));
        }
        return Err(Fault::new(400, "request line has no version"));
    };
    let target = &rest[..second];
    if target.len() > limits.max_uri_bytes {
        return Err(Fault::new(414, "request target is too long"));
    }
    let http10 = judge_version(&rest[second + 1..])?;
    if method.len() > limits.max_method_bytes {
        return Err(Fault::new(501, "method is longer than any that exists"));
    }
    judge_target(method, target)?;
    Ok(RequestLine { http10 })
}

/// A preface where HTTP/2 is off, or a request line that is none of HTTP/2's.
const HTTP2_IS_ELSEWHERE: &str = "HTTP/2 is spoken behind its preface, where M0_HTTP2=1 lets it";

fn judge_version(version: &[u8]) -> Result<bool, Fault> {
    match version {
        b"HTTP/1.1" => Ok(false),
        b"HTTP/1.0" => Ok(true),
        b"HTTP/2.0" => Err(Fault::new(505, HTTP2_IS_ELSEWHERE)),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(Fault::new(505, "HTTP version is not 1.0 or 1.1"))
        }
        _ => Err(Fault::new(
            400,
            "request line does not end in an HTTP version",
        )),
    }
}

const NEEDS_ENCODING: &str = "request target holds a byte that must be percent-encoded";

/// The four forms of RFC 9112 section 3.2.
fn judge_target(method: &[u8], target: &[u8]) -> Result<(), Fault> {
    if target.is_empty() {
        return Err(Fault::new(400, "request target is empty"));
    }
    let common = target
        .iter()
        .take_while(|&&byte| is_target(byte) && byte != b'`');
    let (before, odd) = target.split_at(common.count());
    // A backtick belongs into a query alone.
    let in_query = before.contains(&b'?');
    if odd.iter().any(|&byte| !in_query || !is_target(byte)) {
        return Err(Fault::new(400, NEEDS_ENCODING));
    }
    if method == b"CONNECT" {
        // Authority form, port required. Valid or not, this host opens no tunnels (RFC 9110, 9.3.6).
        return Err(if is_authority(target, Port::Required) {
            Fault::new(501, "CONNECT is not implemented")
        } else {
            Fault::new(400, "CONNECT needs host and port as its target")
        });
    }
    if target[0] == b'/' {
        return Ok(());
    }
    if target == b"*" {
        return if method == b"OPTIONS" {
            Ok(())
        } else {
            Err(Fault::new(400, "only OPTIONS may have * as its target"))
        };
    }
    judge_absolute(target)
}

/// Absolute form: a server must accept it (RFC 9112 section 3.2.2), of the schemes it serves.
fn judge_absolute(target: &[u8]) -> Result<(), Fault> {
    let after_scheme = [&b"http://"[..], b"https://"]
        .into_iter()
        .find_map(|scheme| {
            let (head, tail) = target.split_at_checked(scheme.len())?;
            head.eq_ignore_ascii_case(scheme).then_some(tail)
        });
    let Some(rest) = after_scheme else {
        return Err(Fault::new(
            400,
            "request target is neither a path nor an http URI",
        ));
    };
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?'))
        .unwrap_or(rest.len());
    let authority = &rest[..end];
    // An empty host is no http URI (RFC 9110 section 4.2.1); user names are refused (section 4.2.4).
    if authority.is_empty() || authority[0] == b':' || !is_authority(authority, Port::Optional) {
        return Err(Fault::new(400, "request target has an invalid authority"));
    }
    Ok(())
}

/// Whether a Host value is `uri-host [":" port]` or empty (RFC 9112 section 3.2, RFC 3986 3.2.2).
///
/// A comma is refused although the grammar has it: it is what two Host lines look like after a
/// recipient joined them.
pub(crate) fn is_host(value: &[u8]) -> bool {
    value.is_empty() || is_authority(value, Port::Optional)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Port {
    Optional,
    Required,
}

fn is_authority(value: &[u8], port: Port) -> bool {
    let (host_is_right, rest) = if value.first() == Some(&b'[') {
        let Some(end) = memchr::memchr(b']', value) else {
            return false;
        };
        (is_ip_literal(&value[1..end]), &value[end + 1..])
    } else {
        let end = reg_name_end(value);
        (end > 0, &value[end..])
    };
    let port_is_right = match rest {
        [] => port == Port::Optional,
        [b':', digits @ ..] => {
            digits.iter().all(u8::is_ascii_digit)
                && digits.len() <= 5
                && (port == Port::Optional || !digits.is_empty())
        }
        _ => false,
    };
    host_is_right && port_is_right
}

/// How many of the first bytes are a registered name (RFC 3986 section 3.2.2). A colon is in none.
fn reg_name_end(value: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        match byte {
            byte if REG_NAME[byte as usize] => at += 1,
            b'%' if matches!(value.get(at + 1..at + 3), Some([a, b]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()) =>
            {
                at += 3;
            }
            _ => break,
        }
    }
    at
}

/// An IPv6 address or an IPvFuture, without the brackets.
fn is_ip_literal(literal: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(literal) else {
        return false;
    };
    if let Some(future) = text.strip_prefix(['v', 'V']) {
        return future.split_once('.').is_some_and(|(version, address)| {
            !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !address.is_empty()
                && address
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&byte))
        });
    }
    text.parse::<std::net::Ipv6Addr>().is_ok()
}

/// `tchar` of RFC 9110 section 5.6.2.
pub(crate) const fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

const TOKEN: [bool; 256] = letters_digits_and(b"!#$%&'*+-.^_`|~");

/// What a registered name holds beside what is percent-encoded: `unreserved` and `sub-delims` of RFC 3986, a comma excepted.
const REG_NAME: [bool; 256] = letters_digits_and(b"-._~!$&'()*+;=");

const TARGET: [bool; 256] = letters_digits_and(b"!$%&'()*+,-./:;=?@[\\]^_`{|}~");

/// A table of the bytes that are letters, digits, or one of these.
const fn letters_digits_and(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut other = 0;
    while other < others.len() {
        table[others[other] as usize] = true;
        other += 1;
    }
    table
}

/// Visible ASCII without what every browser encodes. RFC 3986 is narrower, but browsers send
/// `` [ ] { } | \ ^ ` `` bare in queries (the query percent-encode set of the URL standard), and none of
/// them can move the framing; the engine's own parser takes them there too. A fragment never belongs
/// in a target.
const fn is_target(byte: u8) -> bool {
    TARGET[byte as usize]
}
