//! Which file beneath a root a path names, if any.
//!
//! Owns the judgement of a path, by its text alone. Refuses to know the disk. Invariant: what passes goes down and
//! nowhere else, names nothing hidden, and means the same however it is percent-encoded (RFC 3986 section 6.2.2).

/// The one name with a dot in front that is meant to be seen (RFC 8615).
const WELL_KNOWN: &[u8] = b".well-known";

/// Whether a path that the application gives needs no encoding and no judgement: `/a/b-c.d`.
pub(super) fn is_plain(path: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let steps = path.strip_prefix('/').map(|steps| steps.split('/'));
    let goes_down = |step: &str| !matches!(step, "" | "." | "..");
    path.bytes().all(fits) && steps.is_some_and(|mut steps| steps.all(goes_down))
}

/// What of `path` lies below `prefix` (`""` or `/static`), with its first slash; none where it does not, or where it
/// names what no file answers: a step up, a hidden name, an empty one, a NUL, a slash in an encoded form.
pub(super) fn below<'path>(prefix: &str, path: &'path str) -> Option<&'path str> {
    let rest = path.strip_prefix(prefix)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let mut steps = rest.strip_prefix('/')?.split('/').peekable();
    let mut first = true;
    while let Some(step) = steps.next() {
        let name = decode(step)?;
        let ends = steps.peek().is_none();
        let fits = match &name[..] {
            [] => ends,
            [b'.', ..] => first && name == WELL_KNOWN,
            name => !name.iter().any(|byte| matches!(byte, 0 | b'/' | b'\\')),
        };
        if !fits || std::str::from_utf8(&name).is_err() {
            return None;
        }
        first = false;
    }
    Some(rest)
}

/// Percent-decodes one step; none where a percent sign is followed by anything but two digits.
fn decode(step: &str) -> Option<Vec<u8>> {
    let mut bytes = step.bytes();
    let mut name = Vec::with_capacity(step.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            name.push((high << 4 | low) as u8);
        } else {
            name.push(byte);
        }
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use m0_spec::row;
    use proptest::prelude::*;

    use super::below;

    #[row(E117)]
    #[test]
    fn what_goes_up_or_is_hidden_or_written_oddly_names_no_file() {
        for (path, rest) in [
            ("/s/a.txt", "/a.txt"),
            ("/s/", "/"),
            ("/s", ""),
            ("/s/a%20b/c%2ehtml", "/a%20b/c%2ehtml"),
            ("/s/a..b/c", "/a..b/c"),
            ("/s/.well-known/x", "/.well-known/x"),
            ("/s/%C3%A4", "/%C3%A4"),
        ] {
            assert_eq!(below("/s", path), Some(rest), "{path}");
        }
        for path in [
            "/",
            "/sx/a",
            "/S/a",
            "/s/..",
            "/s/../a",
            "/s/a/../b",
            "/s/./a",
            "/s/.",
            "/s/%2e%2e/a",
            "/s/%2E./a",
            "/s/.%2e",
            "/s/..%2fa",
            "/s/a%2f..%2f..%2fb",
            "/s/a%5c..%5cb",
            "/s/a\\b",
            "/s/.env",
            "/s/%2eenv",
            "/s/a/.git/config",
            "/s/a/.well-known/x",
            "/s//a",
            "/s/a//b",
            "/s/a%00",
            "/s/%00",
            "/s/%",
            "/s/%4",
            "/s/%zz",
            "/s/%+1",
            "/s/%ff",
            "/s/%c0%ae%c0%ae/a",
        ] {
            assert_eq!(below("/s", path), None, "{path}");
        }
        assert_eq!(below("", "/a"), Some("/a"));
    }

    proptest! {
        #[row(E117)]
        #[test]
        fn what_passes_only_goes_down(path in "(/(\\.|%2e|%2E|a|%00|%2f|/|\\\\|%5c|%25|b|%){0,6}){0,4}") {
            if let Some(rest) = below("", &path) {
                let mut steps: Vec<String> = rest.split('/').map(|step| {
                    step.replace("%2e", ".").replace("%2E", ".").replace("%25", "%")
                }).collect();
                if steps.last().is_some_and(String::is_empty) {
                    steps.pop();
                }
                for step in steps.iter().skip(1) {
                    prop_assert!(!step.is_empty() && !step.starts_with('.'), "{} of {}", step, path);
                    prop_assert!(!step.contains(['\0', '\\']) && !step.contains("%00"), "{} of {}", step, path);
                }
            }
        }
    }

    proptest! {
        #[row(E117)]
        #[test]
        fn a_path_means_the_same_however_it_is_encoded(
            names in prop::collection::vec("[a-z.~ \u{e9}\0\\\\%/-]{0,5}", 1..4),
            encoded in any::<u64>(),
        ) {
            let write = |bits: u64| {
                let mut at = 0;
                let mut path = String::new();
                for name in &names {
                    path.push('/');
                    for byte in name.bytes() {
                        at += 1;
                        // What cannot stand as it is is encoded always.
                        let plain = byte.is_ascii_lowercase() || b".~-".contains(&byte);
                        if plain && bits >> (at % 64) & 1 == 0 {
                            path.push(char::from(byte));
                        } else if at % 2 == 0 {
                            write!(path, "%{byte:02x}").expect("a string takes every write");
                        } else {
                            write!(path, "%{byte:02X}").expect("a string takes every write");
                        }
                    }
                }
                path
            };
            let (plain, other) = (write(0), write(encoded));
            prop_assert_eq!(below("", &plain).is_some(), below("", &other).is_some(), "{} and {}", plain, other);
        }
    }
}
