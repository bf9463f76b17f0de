//! Judges the head of a request that came over HTTP/2, as the scanner does one of HTTP/1.1.
//!
//! Owns what the engine leaves open: the operator's limits, and who is asked (RFC 9113 section 8.3.1). Refuses to know
//! what the engine has refused already: pseudo-fields out of place, names in upper case, fields of a connection,
//! lengths that contradict the frames. Invariant: what passes here would pass the scanner as a head of HTTP/1.1.

use crate::limits::Limits;
use crate::request_line::is_host;

/// What was wrong: the status to answer, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The status to answer: 400, 413, 414, 431 or 501.
    pub status: u16,
    /// What was wrong, for the log and the short body of the answer. No text of the peer's.
    pub reason: &'static str,
}

/// A head, as far as it is judged here.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// `:method`.
    pub method: &'a str,
    /// Bytes of `:path`.
    pub target_bytes: usize,
    /// `:authority`.
    pub authority: Option<&'a str>,
    /// The value of each `host`.
    pub hosts: &'a [&'a [u8]],
    /// Fields, pseudo-fields not among them.
    pub fields: usize,
    /// `content-length`, or the least that the body will have.
    pub body_bytes: u64,
}

/// The first thing that is wrong with a head.
///
/// ```
/// use m0_wire::Limits;
/// use m0_wire::http2::{Asked, judge};
///
/// let asked = Asked {
///     method: "GET",
///     target_bytes: 1,
///     authority: Some("a.example"),
///     hosts: &[],
///     fields: 3,
///     body_bytes: 0,
/// };
/// assert_eq!(judge(&asked, &Limits::default()), Ok(()));
/// let nobody = Asked { authority: None, ..asked };
/// assert_eq!(judge(&nobody, &Limits::default()).unwrap_err().status, 400);
/// ```
pub fn judge(asked: &Asked<'_>, limits: &Limits) -> Result<(), Fault> {
    let fault = |status, reason| Err(Fault { status, reason });
    if asked.target_bytes > limits.max_uri_bytes {
        return fault(414, "request target is too long");
    }
    if asked.method.len() > limits.max_method_bytes {
        return fault(501, "method is longer than any that exists");
    }
    if asked.method == "CONNECT" {
        return fault(501, "CONNECT is not implemented");
    }
    if asked.fields > limits.max_headers {
        return fault(431, "too many field lines");
    }
    if asked.hosts.len() > 1 {
        return fault(400, "more than one Host");
    }
    let host = asked.hosts.first().copied();
    match (asked.authority.map(str::as_bytes), host) {
        (None, None) => return fault(400, "neither :authority nor Host"),
        (Some(one), Some(other)) if !one.eq_ignore_ascii_case(other) => {
            return fault(400, ":authority and Host differ");
        }
        (Some(name), _) | (None, Some(name)) if !is_host(name) => {
            return fault(400, "Host is not a host and port");
        }
        _ => {}
    }
    if asked.body_bytes > limits.max_body_bytes {
        return fault(413, "body is too long");
    }
    Ok(())
}
