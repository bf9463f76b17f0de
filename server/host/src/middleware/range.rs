//! Which part of a file is asked for, and whether it is still the same file (RFC 9110 sections 13.1.5 and 14).
//!
//! Owns the reading of Range and If-Range. Refuses to know the file beyond its validators. Invariant: what is not
//! understood is ignored, so that the answer is the whole and never a wrong part.

use http::header::{ETAG, IF_RANGE, LAST_MODIFIED, RANGE};
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use jiff::fmt::strtime;

/// The one range of bytes that a request asks for. Range is defined for GET alone (section 14.2); a unit that we do not
/// know must be ignored, and several ranges, or what is none, may be (section 14.2).
pub(super) fn wanted<'a>(method: &Method, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    let mut given = headers.get_all(RANGE).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return None;
    };
    let (unit, set) = value.to_str().ok()?.split_once('=')?;
    let fits = method == Method::GET && unit.eq_ignore_ascii_case("bytes") && is_one_range(set);
    fits.then_some(value)
}

/// `int-range` or `suffix-range` of section 14.1.1.
fn is_one_range(set: &str) -> bool {
    let set = set.trim_matches([' ', '\t']);
    let Some((first, last)) = set.split_once('-') else {
        return false;
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(first) || !digits(last) {
        return false;
    }
    let number = |text: &str| text.parse::<u64>();
    match (number(first), number(last)) {
        (Ok(first), Ok(last)) => first <= last,
        (Ok(_), Err(_)) => last.is_empty(),
        (Err(_), Ok(_)) => first.is_empty(),
        (Err(_), Err(_)) => false,
    }
}

/// Whether a range that is [`wanted`] is of the last bytes, and of at least one.
pub(super) fn is_some_suffix(range: &HeaderValue) -> bool {
    let set = range.to_str().ok().and_then(|text| text.split_once('='));
    let last = set.and_then(|(_, set)| set.trim_matches([' ', '\t']).strip_prefix('-'));
    last.is_some_and(|last| last.bytes().any(|digit| digit != b'0'))
}

/// Whether the part may be of the file with these validators: there is no condition, or it is the strong ETag or the
/// date, compared strongly (sections 13.1.5 and 8.8.3.2). A date of this very second is not strong (8.8.2.2).
pub(super) fn is_same(asked: &HeaderMap, file: &HeaderMap) -> bool {
    let mut given = asked.get_all(IF_RANGE).iter();
    let condition = match (given.next(), given.next()) {
        (None, _) => return true,
        (Some(one), None) => one.as_bytes(),
        (Some(_), Some(_)) => return false,
    };
    let strong = |tag: &[u8]| tag.starts_with(b"\"");
    let is = |name| {
        file.get(name)
            .is_some_and(|value| value.as_bytes() == condition)
    };
    if strong(condition) {
        return is(ETAG);
    }
    is(LAST_MODIFIED)
        && strtime::format(DATE, Timestamp::now()).is_ok_and(|now| now.as_bytes() != condition)
}

/// `IMF-fixdate` of section 5.6.7.
const DATE: &str = "%a, %d %b %Y %H:%M:%S GMT";

#[cfg(test)]
mod tests {
    use m0_spec::row;
    use proptest::prelude::*;

    use super::*;

    fn fields(all: &[(http::HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(name, value.parse().expect("a value"));
        }
        headers
    }

    #[row(E118)]
    #[test]
    fn one_range_of_bytes_is_wanted_and_all_else_ignored() {
        let is_wanted = |method, ranges: &[&str]| {
            let ranges: Vec<_> = ranges.iter().map(|range| (RANGE, *range)).collect();
            wanted(&method, &fields(&ranges)).is_some()
        };
        for one in [
            "bytes=0-",
            "bytes=0-0",
            "bytes=5-9",
            "bytes=-7",
            "Bytes=1-2",
            "bytes= 1-2 ",
        ] {
            assert!(is_wanted(Method::GET, &[one]), "{one}");
            assert!(!is_wanted(Method::HEAD, &[one]), "HEAD {one}");
        }
        for other in [
            "lines=1-2",
            "bytes=1-2,4-5",
            "bytes=2-1",
            "bytes=-",
            "bytes=a-b",
            "bytes=1",
            "bytes=+1-2",
            "bytes",
            "bytes=",
            "bytes=1-2-3",
            "bytes=1 -2",
            "bytes=99999999999999999999-",
        ] {
            assert!(!is_wanted(Method::GET, &[other]), "{other}");
        }
        assert!(!is_wanted(Method::GET, &["bytes=0-1", "bytes=2-3"]));
    }

    #[row(E118)]
    #[test]
    fn a_part_is_of_the_same_file_by_its_strong_validator_alone() {
        const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        let file = fields(&[(ETAG, "\"a\""), (LAST_MODIFIED, THEN)]);
        let same = |condition: &[&str]| {
            let all: Vec<_> = condition.iter().map(|value| (IF_RANGE, *value)).collect();
            is_same(&fields(&all), &file)
        };
        assert!(same(&[]) && same(&["\"a\""]) && same(&[THEN]));
        for other in [
            "W/\"a\"",
            "\"b\"",
            "\"a\", \"b\"",
            "*",
            "a",
            "Sun, 06 Nov 1994 08:49:38 GMT",
        ] {
            assert!(!same(&[other]), "{other}");
        }
        assert!(!same(&["\"a\"", "\"a\""]));
        let weak = fields(&[(ETAG, "W/\"a\"")]);
        assert!(!is_same(&fields(&[(IF_RANGE, "W/\"a\"")]), &weak));
        // Two writes of one second have the same date.
        let now = |at: Timestamp| strtime::format(DATE, at).expect("a date");
        let (before, date) = (Timestamp::now(), now(Timestamp::now()));
        let fresh = fields(&[(LAST_MODIFIED, &date)]);
        let judged = is_same(&fields(&[(IF_RANGE, &date)]), &fresh);
        assert!(!judged || now(Timestamp::now()) != now(before), "{date}");
    }

    /// One range, read in the simplest way: split, and count.
    fn is_one(value: &str) -> bool {
        let [unit, set] = value.splitn(2, '=').collect::<Vec<_>>()[..] else {
            return false;
        };
        let set = set.trim_matches([' ', '\t']);
        let [first, last] = set.split('-').collect::<Vec<_>>()[..] else {
            return false;
        };
        let number = |text: &str| {
            let digits = !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit());
            let value = text.chars().filter_map(|digit| digit.to_digit(10));
            // Of 42 digits it is the most there is, which is as wrong as the number itself.
            let more = |sum: u128, digit| sum.saturating_mul(10).saturating_add(u128::from(digit));
            let value = value.fold(0, more);
            digits
                .then_some(value)
                .filter(|value| *value <= u128::from(u64::MAX))
        };
        let right = match (number(first), number(last)) {
            (Some(first), Some(last)) => first <= last,
            (Some(_), None) => last.is_empty(),
            (None, Some(_)) => first.is_empty(),
            (None, None) => false,
        };
        right && unit.eq_ignore_ascii_case("bytes")
    }

    proptest! {
        #[row(E118)]
        #[test]
        fn any_range_is_read_as_by_another_reader(
            value in "(bytes|Bytes|byte|lines|)=?[ \t]?[+0]?[0-9]{0,21}[-+,= ]{0,2}[0-9]{0,21}[ ,-]?"
        ) {
            let asked = fields(&[(RANGE, &value)]);
            prop_assert_eq!(wanted(&Method::GET, &asked).is_some(), is_one(value.trim_matches([' ', '\t'])), "{:?}", value);
        }
    }
}
