//! What a client sees: an event stream read as the HTML standard says, and chunks as RFC 9112 says.
//!
//! Written from the texts and not from this crate's encoders, of which it uses nothing. Refuses to be
//! lenient: bytes that no reader would take are an error.

#![allow(dead_code, reason = "each test binary uses a part")]

/// An event that a page's listener would get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
    pub(crate) last_event_id: String,
}

/// Everything that a reader took from a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<Event>,
    pub(crate) retry: Option<u64>,
    pub(crate) comments: usize,
    pub(crate) last_event_id: String,
    /// Bytes of whole events (and comments) that were read; what follows is not complete.
    pub(crate) complete: usize,
}

/// HTML standard, 9.2.6 "Interpreting an event stream": lines end in CRLF, LF or CR; an empty line
/// dispatches; an event that is not complete is dropped.
pub(crate) fn interpret(bytes: &[u8]) -> Seen {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut seen = Seen::default();
    let (mut data, mut name, mut id) = (String::new(), String::new(), String::new());
    let mut rest = text;
    while let Some(end) = rest.find(['\r', '\n']) {
        let line = &rest[..end];
        let ends_with = if rest[end..].starts_with("\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + ends_with..];
        if line.is_empty() {
            seen.last_event_id.clone_from(&id);
            if data.is_empty() {
                name.clear();
            } else {
                if data.ends_with('\n') {
                    data.pop();
                }
                let name = std::mem::take(&mut name);
                seen.events.push(Event {
                    name: if name.is_empty() {
                        "message".to_owned()
                    } else {
                        name
                    },
                    data: std::mem::take(&mut data),
                    last_event_id: id.clone(),
                });
            }
            seen.complete = text.len() - rest.len();
            continue;
        }
        let (field, value) = match line.split_once(':') {
            Some(("", _)) => {
                seen.comments += 1;
                continue;
            }
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line, ""),
        };
        match field {
            "event" => value.clone_into(&mut name),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                seen.retry = value.parse().ok();
            }
            _ => {}
        }
    }
    seen
}

/// The content of chunks, and whether the last chunk was there. Bytes of a chunk that is not complete
/// are left out.
///
/// # Panics
/// If the bytes are no chunks, or if anything follows the last one.
pub(crate) fn unchunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    loop {
        let Some(line_end) = bytes.windows(2).position(|two| two == b"\r\n") else {
            assert!(
                bytes
                    .iter()
                    .all(|byte| byte.is_ascii_hexdigit() || *byte == b'\r'),
                "no chunk: {}",
                bytes.escape_ascii()
            );
            return (content, false);
        };
        let size = std::str::from_utf8(&bytes[..line_end]).expect("a size is ASCII");
        assert!(
            !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "no size: {size:?}"
        );
        let size = usize::from_str_radix(size, 16).expect("a size is a number");
        let rest = &bytes[line_end + 2..];
        if size == 0 {
            assert!(
                rest.len() <= 2 && b"\r\n".starts_with(rest),
                "after the last chunk: {}",
                rest.escape_ascii()
            );
            return (content, rest == b"\r\n");
        }
        if rest.len() < size + 2 {
            return (content, false);
        }
        content.extend_from_slice(&rest[..size]);
        assert_eq!(&rest[size..size + 2], b"\r\n", "the end of a chunk");
        bytes = &rest[size + 2..];
    }
}
