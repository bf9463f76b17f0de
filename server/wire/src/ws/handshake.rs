//! Judges the request that asks for a WebSocket (RFC 6455 section 4.2).
//!
//! Owns which request is one, what a wrong one is answered, and whose page may open one. Refuses to know
//! the HTTP types of the host: a head is its method, version and fields.
//! Invariant: an extension or a subprotocol that the client offers is never part of the answer, so none is
//! ever in use.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

/// The one version of the protocol (RFC 6455 section 4.1).
pub const VERSION: &str = "13";

/// What a key is hashed with (RFC 6455 section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A request that is no handshake, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// 400, 403, 405 or 426.
    pub status: u16,
    /// One line of ours for the body.
    pub why: &'static str,
}

const fn refused(status: u16, why: &'static str) -> Refused {
    Refused { status, why }
}

/// Whose pages may open a WebSocket. A browser always says where a script came from; anything else that
/// connects says nothing, and is let in: it could say what it liked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    any: bool,
    allowed: Vec<String>,
}

impl Origins {
    /// Reads a list of origins (`https://a.example`, `http://b.example:8080`) between commas; `*` lets
    /// every origin in. An empty list leaves the origins of the server itself.
    ///
    /// ```
    /// use m0_wire::ws::handshake::Origins;
    /// assert!(Origins::parse("https://a.example,http://b.example:8080").is_some());
    /// assert!(Origins::parse("a.example").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut origins = Self::default();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            if item == "*" {
                origins.any = true;
            } else {
                let (scheme, host, port) = split(item)?;
                origins.allowed.push(join(scheme, host, port));
            }
        }
        Some(origins)
    }

    /// Whether a page of this origin may open a WebSocket on a server that it reached as `host`.
    fn admits(&self, origin: &str, host: &str) -> bool {
        if self.any {
            return true;
        }
        // An origin of no scheme that we know (`null`, of a sandboxed page) is nobody's.
        let Some((scheme, name, port)) = split(origin) else {
            return false;
        };
        // A proxy may have taken the TLS off, so the page's scheme is not compared with ours.
        split_host(host, default_port(scheme)) == Some((name.to_ascii_lowercase(), port))
            || self.allowed.contains(&join(scheme, name, port))
    }
}

fn default_port(scheme: &str) -> u16 {
    if scheme.eq_ignore_ascii_case("https") {
        443
    } else {
        80
    }
}

/// Scheme, host and port of an origin (RFC 6454 section 6.2).
fn split(origin: &str) -> Option<(&str, &str, u16)> {
    let (scheme, rest) = origin.split_once("://")?;
    let known = ["http", "https"].map(|known| scheme.eq_ignore_ascii_case(known));
    if !known.contains(&true) || rest.contains(['/', '?', '#', '@']) {
        return None;
    }
    let (host, port) = host_and_port(rest)?;
    Some((scheme, host, port.unwrap_or_else(|| default_port(scheme))))
}

fn split_host(host: &str, default: u16) -> Option<(String, u16)> {
    let (name, port) = host_and_port(host)?;
    Some((name.to_ascii_lowercase(), port.unwrap_or(default)))
}

fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    // The colons of an IPv6 address stand in brackets.
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port.parse().ok()?)),
        _ => (text, None),
    };
    (!name.is_empty()).then_some((name, port))
}

fn join(scheme: &str, host: &str, port: u16) -> String {
    format!("{scheme}://{host}:{port}").to_ascii_lowercase()
}

/// The head of a request, as far as a handshake goes.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a str,
    /// Whether the version is HTTP/1.1.
    pub http11: bool,
    /// Names and values of all fields.
    pub fields: &'a [(&'a str, &'a [u8])],
}

impl<'a> Head<'a> {
    fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let name = name.to_owned();
        self.fields
            .iter()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(&name))
            .map(|(_, value)| *value)
    }

    /// The value of a field that stands once; `Err` where it stands again.
    fn one(&self, name: &str, again: &'static str) -> Result<Option<&'a [u8]>, Refused> {
        let mut values = self.values(name);
        let first = values.next();
        match values.next() {
            None => Ok(first.map(<[u8]>::trim_ascii)),
            Some(_) => Err(refused(400, again)),
        }
    }

    fn names(&self, name: &str, option: &[u8]) -> bool {
        self.values(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|item| item.trim_ascii().eq_ignore_ascii_case(option))
    }
}

/// Judges a request; the value of `Sec-WebSocket-Accept` where it is a right handshake.
///
/// ```
/// use m0_wire::ws::handshake::{Head, Origins, judge};
///
/// // RFC 6455 section 1.3.
/// let fields: &[(&str, &[u8])] = &[
///     ("host", b"server.example.com"),
///     ("upgrade", b"websocket"),
///     ("connection", b"Upgrade"),
///     ("sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="),
///     ("sec-websocket-version", b"13"),
/// ];
/// let head = Head { method: "GET", http11: true, fields };
/// let accept = judge(&head, &Origins::default());
/// assert_eq!(accept.as_deref(), Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
/// ```
///
/// # Errors
/// What the request is answered instead, with `connection: close` where bytes may follow.
pub fn judge(head: &Head<'_>, origins: &Origins) -> Result<String, Refused> {
    if head.method != "GET" {
        return Err(refused(405, "a WebSocket is asked for with GET"));
    }
    if !head.http11 {
        return Err(refused(426, "a WebSocket needs HTTP/1.1"));
    }
    if !head.names("upgrade", b"websocket") {
        return Err(refused(426, "this is a WebSocket; ask to upgrade to it"));
    }
    if !head.names("connection", b"upgrade") {
        return Err(refused(400, "Connection does not name Upgrade"));
    }
    if head.values("content-length").any(|length| length != b"0")
        || head.values("transfer-encoding").next().is_some()
    {
        return Err(refused(400, "a handshake has no body"));
    }
    let version = head.one("sec-websocket-version", "more than one version")?;
    if version != Some(VERSION.as_bytes()) {
        return Err(refused(426, "the version of the protocol is 13"));
    }
    let key = head
        .one("sec-websocket-key", "more than one key")?
        .ok_or(refused(400, "no key"))?;
    if STANDARD.decode(key).map(|nonce| nonce.len()) != Ok(16) {
        return Err(refused(400, "the key is not 16 bytes in base64"));
    }
    if let Some(origin) = head.one("origin", "more than one origin")? {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let host = text(head.one("host", "more than one host")?.unwrap_or_default());
        if !origins.admits(text(origin), host) {
            return Err(refused(403, "this origin may not open a WebSocket here"));
        }
    }
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    Ok(STANDARD.encode(digest))
}
