//! What holds for every stream of bytes and every cut of it into reads.
//!
//! Owns a generator of right requests, and of wrong ones that differ from right ones in a few bytes,
//! which is where parsers disagree.

mod drive;

use m0_wire::{Limits, Phase, Place};
use proptest::prelude::*;

/// A generated request and where its parts end.
#[derive(Debug, Clone)]
struct Request {
    head: Vec<u8>,
    body: Vec<u8>,
}

fn token() -> impl Strategy<Value = String> {
    "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}"
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        "/[a-zA-Z0-9._~!$&'()*+,;=:@%/-]{0,30}",
        "/[a-z/]{0,10}\\?[a-zA-Z0-9=&\\[\\]{}|/?-]{0,20}",
        "http://[a-z0-9.-]{1,10}(:[0-9]{1,5})?/[a-z]{0,5}",
    ]
}

/// A field that frames nothing.
fn field() -> impl Strategy<Value = Vec<u8>> {
    let value = proptest::collection::vec(
        prop_oneof![Just(b'\t'), 0x20..0x7f_u8, 0x80..=0xff_u8],
        0..30,
    );
    let blank = prop_oneof![Just(""), Just(" "), Just("\t ")];
    (token(), blank, value).prop_map(|(name, blank, value)| {
        // The prefix keeps it from being one of the fields that the scanner judges.
        [
            b"X-",
            name.as_bytes(),
            b":",
            blank.as_bytes(),
            &value,
            b"\r\n",
        ]
        .concat()
    })
}

fn chunked(data: &[Vec<u8>], extension: &str, trailers: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    for piece in data {
        body.extend_from_slice(format!("{:x}{extension}\r\n", piece.len()).as_bytes());
        body.extend_from_slice(piece);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n");
    body.extend(trailers.iter().flatten());
    body.extend_from_slice(b"\r\n");
    body
}

/// The field that frames, and the body.
fn framed() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let data = proptest::collection::vec(any::<u8>(), 0..40);
    let pieces = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..4);
    let extension = prop_oneof![Just(""), Just(";a"), Just(";a=\"b c\"")];
    prop_oneof![
        Just((Vec::new(), Vec::new())),
        data.prop_map(|data| (
            format!("Content-Length: {}\r\n", data.len()).into_bytes(),
            data
        )),
        (pieces, extension, proptest::collection::vec(field(), 0..3)).prop_map(
            |(pieces, extension, trailers)| {
                (
                    b"transfer-encoding: Chunked\r\n".to_vec(),
                    chunked(&pieces, extension, &trailers),
                )
            }
        ),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let fields = || proptest::collection::vec(field(), 0..5);
    (token(), target(), fields(), framed(), fields(), 0..=2_usize).prop_map(
        |(method, target, before, (framing, body), after, empty_lines)| {
            let method = if method == "CONNECT" {
                "GET".to_owned()
            } else {
                method
            };
            let head = [
                b"\r\n".repeat(empty_lines),
                format!("{method} {target} HTTP/1.1\r\n").into_bytes(),
                before.concat(),
                b"Host: example:80\r\n".to_vec(),
                framing,
                after.concat(),
                b"\r\n".to_vec(),
            ];
            Request {
                head: head.concat(),
                body,
            }
        },
    )
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    proptest::collection::vec(request(), 1..5)
}

fn stream(requests: &[Request]) -> Vec<u8> {
    requests
        .iter()
        .flat_map(|request| [&request.head[..], &request.body])
        .flatten()
        .copied()
        .collect()
}

/// Bytes that parsers disagree about.
fn sharp_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => proptest::sample::select(b"\r\n\0 \t:;,+-0159aAfFxX\x0b\x7f\x80/*\"=".to_vec()),
        1 => any::<u8>(),
    ]
}

/// Changes one place of a stream.
#[derive(Debug, Clone)]
enum Edit {
    Put(u8),
    Insert(u8),
    Remove,
    Twice(usize),
}

fn edited(bytes: &[u8], edits: &[(proptest::sample::Index, Edit)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (index, edit) in edits {
        if bytes.is_empty() {
            return bytes;
        }
        let at = index.index(bytes.len());
        match edit {
            Edit::Put(byte) => bytes[at] = *byte,
            Edit::Insert(byte) => bytes.insert(at, *byte),
            Edit::Remove => {
                bytes.remove(at);
            }
            Edit::Twice(count) => {
                let again = bytes[at..bytes.len().min(at + count)].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

fn edits() -> impl Strategy<Value = Vec<(proptest::sample::Index, Edit)>> {
    let edit = prop_oneof![
        sharp_byte().prop_map(Edit::Put),
        sharp_byte().prop_map(Edit::Insert),
        Just(Edit::Remove),
        (1..40_usize).prop_map(Edit::Twice),
    ];
    proptest::collection::vec((any::<proptest::sample::Index>(), edit), 0..4)
}

/// Streams of right requests with up to three wrong places.
fn nearly_right() -> impl Strategy<Value = Vec<u8>> {
    (requests(), edits()).prop_map(|(requests, edits)| edited(&stream(&requests), &edits))
}

/// Cuts `bytes` at the given places.
fn pieces<'a>(bytes: &'a [u8], cuts: &[proptest::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

fn cuts() -> impl Strategy<Value = Vec<proptest::sample::Index>> {
    proptest::collection::vec(any::<proptest::sample::Index>(), 0..12)
}

/// Limits so small that generated requests reach them.
fn limits() -> impl Strategy<Value = Limits> {
    let small = Limits {
        max_head_bytes: 150,
        max_uri_bytes: 20,
        max_headers: 5,
        max_body_bytes: 24,
        max_chunk_ext_bytes: 8,
        ..Limits::default()
    };
    prop_oneof![Just(Limits::default()), Just(small)]
}

proptest! {
    #[m0_spec::row(W1, W2, W6, W12, W32)]
    #[test]
    fn any_cut_gives_the_same_bytes_and_verdict(
        bytes in nearly_right(), limits in limits(), cuts in cuts()
    ) {
        let whole = drive::feed(limits, [&bytes[..]]);
        prop_assert!(bytes.starts_with(&whole.released));
        prop_assert_eq!(&drive::feed(limits, pieces(&bytes, &cuts)), &whole);
        prop_assert_eq!(&drive::feed(limits, bytes.chunks(1)), &whole);
    }

    #[m0_spec::row(W17)]
    #[test]
    fn no_bytes_make_it_panic(
        bytes in proptest::collection::vec(prop_oneof![sharp_byte(), any::<u8>()], 0..300), cuts in cuts()
    ) {
        let whole = drive::feed(Limits::default(), [&bytes[..]]);
        prop_assert_eq!(drive::feed(Limits::default(), pieces(&bytes, &cuts)), whole);
    }

    #[m0_spec::row(W23, W24)]
    #[test]
    fn right_requests_pass_untouched(requests in requests(), cuts in cuts()) {
        let bytes = stream(&requests);
        let outcome = drive::feed(Limits::default(), pieces(&bytes, &cuts));
        prop_assert_eq!(outcome.refusal, None);
        prop_assert_eq!(outcome.released, bytes);
        prop_assert_eq!(outcome.requests, requests.len() as u64);
        prop_assert_eq!(outcome.phase, Phase::Complete);
    }

    #[m0_spec::row(W21, W22, W23)]
    #[test]
    fn each_request_ends_exactly_where_it_says(requests in requests()) {
        let mut scanner = m0_wire::Scanner::new(Limits::default());
        for (index, request) in requests.iter().enumerate() {
            for (place, byte) in request.head.iter().enumerate() {
                prop_assert_eq!(scanner.requests_seen(), index as u64, "before byte {} of the head", place);
                scanner.feed(&[*byte]);
            }
            prop_assert_eq!(scanner.requests_seen(), index as u64 + 1);
            for (place, byte) in request.body.iter().enumerate() {
                prop_assert_eq!(scanner.phase(), Phase::Body, "before byte {} of the body", place);
                scanner.feed(&[*byte]);
            }
            prop_assert_eq!(scanner.phase(), Phase::Complete);
            scanner.consume(scanner.ready().len());
            scanner.answered();
            prop_assert_eq!(scanner.phase(), Phase::Idle);
            prop_assert_eq!(scanner.heap_bytes(), 0);
        }
    }

    #[m0_spec::row(W33)]
    #[test]
    fn the_engines_parser_reads_a_passed_head_the_same(bytes in nearly_right()) {
        let outcome = drive::feed(Limits::default(), [&bytes[..]]);
        let mut rest = &outcome.released[..];
        for number in 1..=outcome.requests {
            let mut fields = [httparse::EMPTY_HEADER; 100];
            let mut parsed = httparse::Request::new(&mut fields);
            let Ok(httparse::Status::Complete(head_bytes)) = parsed.parse(rest) else {
                return Err(TestCaseError::fail(format!("request {number} is none: {}", rest.escape_ascii())));
            };
            // The scanner, asked for this head alone, must agree where it ends.
            let alone = drive::feed(Limits::default(), [&rest[..head_bytes]]);
            prop_assert_eq!((alone.requests, alone.released.len()), (1, head_bytes));
            if let Some(before) = head_bytes.checked_sub(1) {
                prop_assert_eq!(drive::feed(Limits::default(), [&rest[..before]]).requests, 0);
            }
            rest = &rest[head_bytes + body_bytes(&parsed, &rest[head_bytes..], outcome.refusal.is_some())..];
        }
    }
}

/// How many bytes of `rest` belong to the body, read the simplest way: whole, with lines and indices.
/// A body that was refused or is not complete takes all the rest.
fn body_bytes(head: &httparse::Request<'_, '_>, rest: &[u8], refused: bool) -> usize {
    let value = |name: &str| {
        let field = head
            .headers
            .iter()
            .find(|field| field.name.eq_ignore_ascii_case(name))?;
        Some(
            std::str::from_utf8(field.value)
                .expect("framing values are ASCII")
                .trim(),
        )
    };
    if let Some(length) = value("content-length") {
        let length: usize = length.parse().expect("a passed length is a number");
        return length.min(rest.len());
    }
    if value("transfer-encoding").is_none() {
        return 0;
    }
    let mut at = 0;
    loop {
        let Some(line_end) = find(&rest[at..], b"\r\n") else {
            return rest.len();
        };
        let line = std::str::from_utf8(&rest[at..at + line_end]).unwrap_or("0");
        let size = line.split(';').next().unwrap_or_default();
        let Ok(size) = usize::from_str_radix(size, 16) else {
            assert!(refused, "a size that is none passed: {line:?}");
            return rest.len();
        };
        at += line_end + 2;
        if size == 0 {
            break;
        }
        at += size + 2;
        if at > rest.len() {
            return rest.len();
        }
    }
    if rest[at..].starts_with(b"\r\n") {
        return at + 2;
    }
    find(&rest[at..], b"\r\n\r\n").map_or(rest.len(), |end| at + end + 4)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[m0_spec::row(W32)]
#[test]
fn a_refusal_is_final() {
    let mut scanner = m0_wire::Scanner::new(Limits::default());
    let first = scanner.feed(b"GET / HTTP/1.1\nHost: a\n\n");
    let refusal = scanner.refusal().expect("a bare LF is refused");
    assert_eq!((refusal.status, refusal.place), (400, Place::Head));
    for bytes in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"", b"\r\n"] {
        assert_eq!(scanner.feed(bytes), first);
        assert_eq!(scanner.ready(), b"");
    }
    assert_eq!(scanner.requests_seen(), 0);
}
