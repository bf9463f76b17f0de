//! What the last answer of a connection says of it.
//!
//! Owns the field Connection of such an answer. Refuses to know why it is the last one. Invariant: what the answer
//! says beside that stands.

use http::header::{CONNECTION, HeaderMap, HeaderValue};

/// Makes an answer the last one of its connection. A field that is for this hop alone stays named, such as `upgrade`
/// beside Upgrade (RFC 9110 sections 7.6.1 and 7.8).
pub(crate) fn say_close(headers: &mut HeaderMap) {
    let values = headers.get_all(CONNECTION).iter();
    let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    let options = texts
        .iter()
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|option| !is_about_the_end(option));
    let all: Vec<&str> = std::iter::once("close").chain(options).collect();
    let value = match &all[..] {
        [_] => HeaderValue::from_static("close"),
        all => HeaderValue::try_from(all.join(", ")).expect("parts of values are one"),
    };
    headers.insert(CONNECTION, value);
}

fn is_about_the_end(option: &str) -> bool {
    ["", "close", "keep-alive"]
        .iter()
        .any(|name| option.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(E127)]
    #[test]
    fn close_is_said_once_and_beside_what_was_said() {
        for (before, after) in [
            (&[][..], "close"),
            (&["upgrade"], "close, upgrade"),
            (&["Upgrade, x-hop"], "close, Upgrade, x-hop"),
            (&["x-hop", "keep-alive, X-Other"], "close, x-hop, X-Other"),
            (&["keep-alive"], "close"),
            (&["Close"], "close"),
            (&[" , ,"], "close"),
        ] {
            let mut headers = HeaderMap::new();
            for value in before {
                headers.append(CONNECTION, value.parse().expect("a value"));
            }
            say_close(&mut headers);
            let said: Vec<_> = headers.get_all(CONNECTION).iter().collect();
            assert_eq!(said, [after], "{before:?}");
        }
    }
}
