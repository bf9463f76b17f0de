//! Reads a request head, or a trailer section, line by line as it arrives.
//!
//! Owns the rules of RFC 9112 sections 2.2, 3, 5 and 6 about lines and about the fields that decide
//! framing. Refuses to know the body and the buffer: the caller shows the block from its first byte
//! each time, this file remembers how far it has looked.
//! Invariant: what is found, and where, depends on the bytes alone and never on how they were cut into
//! reads; no byte is looked at twice except a CR that was the last one.

use crate::limits::Limits;
use crate::request_line;
use crate::scanner::Fault;
use crate::swar::{first_control, first_unusual};

/// Where the reading of one block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The block is not complete.
    More,
    /// The block ends after this many bytes.
    Done(usize),
    /// The block is refused.
    Refused(Fault),
}

/// Which block is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Request line, fields, blank line.
    Request,
    /// Fields of a trailer section, blank line.
    Trailers,
}

/// How the body of a request is framed (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body.
    None,
    /// This many bytes, at least one.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// What a head said, as far as it matters to the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    pub(crate) http10: bool,
    pub(crate) host_seen: bool,
    pub(crate) length: Option<u64>,
    pub(crate) codings: Codings,
    pub(crate) says_close: bool,
    pub(crate) says_keep_alive: bool,
    pub(crate) says_upgrade: bool,
    pub(crate) upgrade_seen: bool,
    pub(crate) expects_continue: bool,
}

/// The transfer codings of all Transfer-Encoding lines, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Codings {
    seen: bool,
    chunked: u8,
    chunked_is_last: bool,
    unknown: bool,
    malformed: bool,
}

impl Facts {
    /// Whether the connection may carry another request, as the head says (RFC 9112 section 9.3).
    pub(crate) fn keep_alive(&self) -> bool {
        !self.says_close && (!self.http10 || self.says_keep_alive)
    }

    /// Decides the framing once the head is complete.
    fn framing(&self, limits: &Limits) -> Result<Framing, Fault> {
        if !self.http10 && !self.host_seen {
            return Err(Fault::new(400, "HTTP/1.1 request has no Host"));
        }
        if self.codings.seen {
            if self.length.is_some() {
                return Err(Fault::new(400, "both Content-Length and Transfer-Encoding"));
            }
            if self.http10 {
                return Err(Fault::new(400, "Transfer-Encoding in an HTTP/1.0 request"));
            }
            return self.codings.framing();
        }
        match self.length {
            None | Some(0) => Ok(Framing::None),
            Some(length) if length > limits.max_body_bytes => {
                Err(Fault::new(413, "declared body is larger than the limit"))
            }
            Some(length) => Ok(Framing::Length(length)),
        }
    }
}

impl Codings {
    fn add_line(&mut self, value: &[u8]) {
        self.seen = true;
        for coding in value.split(|&byte| byte == b',') {
            let coding = trim(coding);
            self.chunked_is_last = coding.eq_ignore_ascii_case(b"chunked");
            if self.chunked_is_last {
                self.chunked = self.chunked.saturating_add(1);
            } else {
                let name = coding.split(|&byte| byte == b';').next().unwrap_or(coding);
                let name = trim(name);
                // `chunked;x=y` is not a coding anybody defined: chunked takes no parameters.
                self.malformed |= name.is_empty()
                    || !name.iter().all(|&byte| request_line::is_token(byte))
                    || name.eq_ignore_ascii_case(b"chunked");
                self.unknown = true;
            }
        }
    }

    fn framing(self) -> Result<Framing, Fault> {
        if self.malformed {
            Err(Fault::new(400, "Transfer-Encoding is malformed"))
        } else if self.chunked > 1 {
            Err(Fault::new(400, "Transfer-Encoding names chunked twice"))
        } else if !self.chunked_is_last {
            // Before the 501: RFC 9112 section 6.3 demands this 400, section 6.1 only advises that 501.
            Err(Fault::new(400, "Transfer-Encoding does not end in chunked"))
        } else if self.unknown {
            Err(Fault::new(
                501,
                "Transfer-Encoding names a coding other than chunked",
            ))
        } else {
            Ok(Framing::Chunked)
        }
    }
}

/// The reading of one block. Offsets count from the block's first byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    kind: Kind,
    /// Everything before this offset was looked at.
    looked_at: usize,
    line_start: usize,
    leading_empty: u8,
    request_line_seen: bool,
    fields: usize,
    facts: Facts,
    framing: Framing,
}

impl Block {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            looked_at: 0,
            line_start: 0,
            leading_empty: 0,
            request_line_seen: false,
            fields: 0,
            facts: Facts::default(),
            framing: Framing::None,
        }
    }

    /// What the head said; final only after [`Step::Done`].
    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    /// How the body is framed; final only after [`Step::Done`].
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether more than tolerated empty lines has arrived, `held` being the block so far.
    pub(crate) fn has_begun(&self, held: &[u8]) -> bool {
        self.request_line_seen || !matches!(held.get(self.line_start..), None | Some([] | b"\r"))
    }

    /// Looks at `block`, which begins where the block begins and is never shorter than last time.
    pub(crate) fn advance(&mut self, block: &[u8], limits: &Limits) -> Step {
        let end = block.len().min(limits.max_head_bytes);
        loop {
            let Some(stop) = first_control(&block[self.looked_at..end]) else {
                self.looked_at = end;
                return self.wait(limits);
            };
            let at = self.looked_at + stop;
            match block[at] {
                b'\r' => {}
                b'\n' => return Step::Refused(Fault::new(400, "line ends in a bare LF")),
                0 => return Step::Refused(Fault::new(400, "NUL in the head")),
                _ => return Step::Refused(Fault::new(400, "control character in the head")),
            }
            self.looked_at = at;
            match block[..end].get(at + 1) {
                None if at + 1 == limits.max_head_bytes => {
                    self.looked_at = at + 1;
                    return self.wait(limits);
                }
                None => return Step::More,
                Some(b'\n') => {}
                Some(_) => return Step::Refused(Fault::new(400, "CR without LF")),
            }
            let line = &block[self.line_start..at];
            self.looked_at = at + 2;
            self.line_start = at + 2;
            match self.take_line(line, limits) {
                Ok(false) => {}
                Ok(true) => return Step::Done(at + 2),
                Err(fault) => return Step::Refused(fault),
            }
        }
    }

    /// The block goes on beyond what was looked at: wait, unless it is already too long.
    fn wait(&self, limits: &Limits) -> Step {
        if self.looked_at < limits.max_head_bytes {
            return Step::More;
        }
        Step::Refused(match self.kind {
            Kind::Request if !self.request_line_seen => {
                Fault::new(414, "request line is longer than a head may be")
            }
            Kind::Request => Fault::new(431, "head is larger than the limit"),
            Kind::Trailers => Fault::new(431, "trailer section is larger than the limit"),
        })
    }

    /// Takes one whole line; true when it was the blank line that ends the block.
    fn take_line(&mut self, line: &[u8], limits: &Limits) -> Result<bool, Fault> {
        if self.kind == Kind::Request && !self.request_line_seen {
            if line.is_empty() {
                self.leading_empty += 1;
                if self.leading_empty > limits.max_leading_empty_lines {
                    return Err(Fault::new(400, "too many empty lines before the request"));
                }
                return Ok(false);
            }
            self.facts.http10 = request_line::judge(line, limits)?.http10;
            self.request_line_seen = true;
            return Ok(false);
        }
        if line.is_empty() {
            if self.kind == Kind::Request {
                self.framing = self.facts.framing(limits)?;
            }
            return Ok(true);
        }
        self.fields += 1;
        if self.fields > limits.max_headers {
            return Err(Fault::new(431, "too many field lines"));
        }
        let (name, value) = split_field(line)?;
        match self.kind {
            Kind::Request => self.take_field(name, value)?,
            Kind::Trailers => {
                if is_forbidden_in_trailers(name) {
                    return Err(Fault::new(400, "trailer section holds a framing field"));
                }
            }
        }
        Ok(false)
    }

    fn take_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        // The length first: most fields are none of ours and cost one comparison.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                if self.facts.host_seen {
                    return Err(Fault::new(400, "more than one Host"));
                }
                self.facts.host_seen = true;
                if !request_line::is_host(trim(value)) {
                    return Err(Fault::new(400, "Host is not a host and port"));
                }
            }
            6 if name.eq_ignore_ascii_case(b"expect") => {
                if !trim(value).eq_ignore_ascii_case(b"100-continue") {
                    return Err(Fault::new(417, "Expect is not 100-continue"));
                }
                self.facts.expects_continue = true;
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.facts.upgrade_seen = true,
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for option in value.split(|&byte| byte == b',') {
                    let option = trim(option);
                    self.facts.says_close |= option.eq_ignore_ascii_case(b"close");
                    self.facts.says_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    self.facts.says_upgrade |= option.eq_ignore_ascii_case(b"upgrade");
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                if self.facts.length.is_some() {
                    return Err(Fault::new(400, "more than one Content-Length"));
                }
                self.facts.length = Some(decimal(trim(value))?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.facts.codings.add_line(value);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Name and value of one field line (RFC 9112 section 5.1), the white space around the value included.
fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let usual = first_unusual(line).unwrap_or(line.len());
    let rest = &line[usual..];
    let end = rest
        .iter()
        .position(|&byte| !request_line::is_token(byte))
        .map_or(line.len(), |at| usual + at);
    let reason = match line.get(end) {
        Some(b':') if end > 0 => return Ok((&line[..end], &line[end + 1..])),
        Some(b' ' | b'\t') if end == 0 => "folded field line",
        Some(b' ' | b'\t') => "blank in or after a field name",
        Some(b':') => "field name is empty",
        Some(_) => "field name is not a token",
        None => "field line has no colon",
    };
    Err(Fault::new(400, reason))
}

/// Content-Length: digits and nothing else (RFC 9110 section 8.6).
fn decimal(value: &[u8]) -> Result<u64, Fault> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(Fault::new(400, "Content-Length is not a number"));
    }
    value
        .iter()
        .try_fold(0_u64, |sum, digit| {
            sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
        .ok_or(Fault::new(400, "Content-Length is too large to count"))
}

/// Fields that decide framing, routing or the connection have no place after the body (RFC 9110
/// section 6.5.1).
fn is_forbidden_in_trailers(name: &[u8]) -> bool {
    [
        &b"transfer-encoding"[..],
        b"content-length",
        b"host",
        b"connection",
        b"keep-alive",
        b"upgrade",
        b"te",
        b"trailer",
        b"expect",
        b"content-encoding",
        b"content-type",
        b"content-range",
        b"authorization",
        b"cookie",
    ]
    .iter()
    .any(|forbidden| name.eq_ignore_ascii_case(forbidden))
}

/// Optional white space off both ends: blank and tab only.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
