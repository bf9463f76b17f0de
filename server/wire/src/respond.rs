//! The bytes of the answers that the engine never sees.
//!
//! Owns their form: whole, self-delimiting, closing, text that names the reason. Refuses to know the
//! date and the peer's text, so nothing a peer sent can come back in them.
//! Invariant: `content-length` is the length of the body that follows.

/// An answer that ends the connection: head and short text body.
///
/// `reason` is one line of ours ([`Refusal::reason`](crate::Refusal), [`Expired::why`](crate::Expired)).
///
/// ```
/// let bytes = m0_wire::respond::error_answer(408, "head not complete in time", &[]);
/// assert!(bytes.starts_with(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n"));
/// assert!(bytes.ends_with(b"\r\n\r\n408 Request Timeout: head not complete in time\n"));
/// ```
///
/// # Panics
/// If `reason` or a field holds CR or LF: they are ours, not the peer's.
pub fn error_answer(status: u16, reason: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let phrase = phrase(status);
    let body = format!("{status} {phrase}: {reason}\n");
    let mut head = format!(
        "HTTP/1.1 {status} {phrase}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in fields {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    assert_eq!(
        head.matches(['\r', '\n']).count(),
        2 * (4 + fields.len()),
        "a line break in a field of an answer"
    );
    head.push_str("\r\n");
    assert_eq!(
        body.matches(['\r', '\n']).count(),
        1,
        "a line break in a reason"
    );
    head.push_str(&body);
    head.into_bytes()
}

/// `100 Continue`, for a request whose body is wanted.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The reason phrase of the statuses that are answered here (RFC 9110 section 15, RFC 6585).
pub fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}
