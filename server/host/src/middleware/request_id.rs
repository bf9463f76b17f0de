//! The id of a request, from a peer that gave a good one or made here.
//!
//! Owns what a good id is, and how one is made. Refuses to know who reads it. Invariant: an id has 1 to 128 characters
//! that need no quoting in a field, a log, an address or a shell.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::process;

use http::{HeaderMap, HeaderName, HeaderValue};
use m0_unix::clock::monotonic_ns;

/// The field that carries the id, in requests and answers.
pub(crate) const FIELD: HeaderName = HeaderName::from_static(FIELD_NAME);
pub(crate) const FIELD_NAME: &str = "x-request-id";

/// Most characters of an id that a peer chose.
const MOST: usize = 128;

thread_local! {
    static DRAWN: RefCell<Drawn> = RefCell::new(Drawn {
        keys: (RandomState::new(), RandomState::new()),
        process: process::id(),
        since_ns: monotonic_ns(),
        made: 0,
    });
}

/// What the ids of this loop are made of.
struct Drawn {
    /// The system drew them, but maybe before the fork: a thread that has ever made a hash map has its keys, and its
    /// children count on from the same ones.
    keys: (RandomState, RandomState),
    /// These two no other loop of the machine has.
    process: u32,
    since_ns: u64,
    /// How many ids there were.
    made: u64,
}

/// The id of the request with these fields, which hold it and no other from then on.
pub(crate) fn settle(headers: &mut HeaderMap) -> HeaderValue {
    let mut given = headers.get_all(FIELD).iter();
    let id = match (given.next(), given.next()) {
        (Some(id), None) if is_good(id.as_bytes()) => return id.clone(),
        _ => make(),
    };
    headers.insert(FIELD, id.clone());
    id
}

/// Whether an id is short, and of letters, digits and `-._~` alone (`unreserved` of RFC 3986 section 2.3).
fn is_good(id: &[u8]) -> bool {
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    (1..=MOST).contains(&id.len()) && id.iter().all(good)
}

/// 128 bits that nobody drew before, as 32 digits.
pub(crate) fn make() -> HeaderValue {
    let (high, low) = DRAWN.with_borrow_mut(|drawn| {
        drawn.made += 1;
        let all = (drawn.process, drawn.since_ns, drawn.made);
        (drawn.keys.0.hash_one(all), drawn.keys.1.hash_one(all))
    });
    let mut text = [0; 32];
    for (at, digit) in text.iter_mut().enumerate() {
        let half = if at < 16 { high } else { low };
        *digit = b"0123456789abcdef"[(half >> (60 - at % 16 * 4) & 0xf) as usize];
    }
    HeaderValue::from_bytes(&text).expect("hexadecimal digits are the value of a field")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use m0_spec::row;
    use proptest::prelude::*;

    use super::*;

    /// What becomes of requests with these ids.
    fn settled(given: &[&[u8]]) -> HeaderValue {
        let mut headers = HeaderMap::new();
        for id in given {
            headers.append(
                FIELD,
                HeaderValue::from_bytes(id).expect("a value of a field"),
            );
        }
        let id = settle(&mut headers);
        let left: Vec<_> = headers.get_all(FIELD).iter().collect();
        assert_eq!(left, [&id], "the application sees another one");
        id
    }

    #[row(E116)]
    #[test]
    fn a_good_id_of_a_peer_stays_and_any_other_is_replaced() {
        let longest = [b'x'; MOST];
        for good in [&b"a"[..], b"7d3f-A.b_c~", &longest] {
            assert_eq!(settled(&[good]).as_bytes(), good);
        }
        let too_long = [b'x'; MOST + 1];
        for bad in [
            &b""[..],
            b"a b",
            b"a,b",
            b"a\"b",
            b"a\\b",
            b"a\tb",
            b"\xff",
            b"a;b",
            b"<b>",
            &too_long,
        ] {
            assert_ne!(settled(&[bad]).as_bytes(), bad);
        }
        let both = settled(&[b"one", b"two"]);
        assert!(both != "one" && both != "two", "{both:?}");
    }

    #[row(E116)]
    #[test]
    fn made_ids_are_good_and_never_the_same() {
        let made: BTreeSet<Vec<u8>> = (0..10_000).map(|_| make().as_bytes().to_vec()).collect();
        assert_eq!(made.len(), 10_000);
        assert!(made.iter().all(|id| is_good(id) && id.len() == 32));
        // A worker that comes back does not begin anew.
        let others = std::thread::spawn(|| (0..100).map(|_| make()).collect::<Vec<_>>());
        let others = others.join().expect("no panic");
        assert!(others.iter().all(|id| !made.contains(id.as_bytes())));
    }

    proptest! {
        #[row(E116)]
        #[test]
        fn whatever_a_peer_sends_what_stands_is_good(given in prop::collection::vec(b' '..=255, 0..200)) {
            let mut headers = HeaderMap::new();
            if let Ok(value) = HeaderValue::from_bytes(&given) {
                headers.insert(FIELD, value);
            }
            let id = settle(&mut headers);
            prop_assert!(is_good(id.as_bytes()));
            prop_assert_eq!(is_good(&given), id.as_bytes() == given);
        }
    }
}
