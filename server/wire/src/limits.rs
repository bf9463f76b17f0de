//! The sizes a peer may reach before it is refused.
//!
//! Owns the defaults; refuses to know where other values come from (the host parses variables).
//! Invariant: every limit on what is held is finite, so what one connection can make the host hold is finite.

/// Bounds on what one request may send. All sizes are bytes unless the name says otherwise.
///
/// ```
/// let limits = m0_wire::Limits { max_body_bytes: 1024, ..m0_wire::Limits::default() };
/// assert_eq!(limits.max_head_bytes, 16_384);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Request line, field lines and the blank line together; beyond it 431 (414 inside the request
    /// line). Also bounds a trailer section.
    pub max_head_bytes: usize,
    /// The request target alone; beyond it 414.
    pub max_uri_bytes: usize,
    /// Field lines of one head, or of one trailer section; beyond it 431.
    pub max_headers: usize,
    /// The content, declared or actual, without chunk framing; beyond it 413.
    pub max_body_bytes: u64,
    /// All chunk extensions of one message together; beyond it 400.
    pub max_chunk_ext_bytes: usize,
    /// Empty lines tolerated before a request line (RFC 9112 section 2.2 asks for at least one).
    pub max_leading_empty_lines: u8,
    /// The method token; beyond it 501 (RFC 9112 section 3).
    pub max_method_bytes: usize,
    /// Requests of one connection; what comes behind the last of them is dropped. 0 means any number.
    pub max_requests: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_head_bytes: 16_384,
            max_uri_bytes: 8_192,
            max_headers: 100,
            max_body_bytes: 10_485_760,
            max_chunk_ext_bytes: 4_096,
            max_leading_empty_lines: 2,
            max_method_bytes: 32,
            max_requests: 0,
        }
    }
}
