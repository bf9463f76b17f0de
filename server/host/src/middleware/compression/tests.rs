//! Answers on their way through the coder, and what they unpack to.

use std::convert::Infallible;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use http_body_util::Full;
use m0_spec::row;

use super::*;

fn answer<B>(body: B, fields: &[(HeaderName, &str)]) -> Response<B> {
    let mut answer = Response::new(body);
    for (name, value) in fields {
        let value = HeaderValue::from_str(value).expect("a value");
        answer.headers_mut().append(name, value);
    }
    answer
}

fn text(bytes: usize) -> Full<Bytes> {
    let words = "all work and no play makes a dull text. ".bytes().cycle();
    Full::new(words.take(bytes).collect())
}

/// The answer's fields, and its bytes if they were coded.
fn code(coding: Option<Coding>, answer: Response<Full<Bytes>>) -> (HeaderMap, Option<Bytes>) {
    match Compression::new().code(coding, false, answer) {
        Coded::As(answer) => (answer.into_parts().0.headers, None),
        Coded::Other(answer) => {
            let (head, body) = answer.into_parts();
            (head.headers, Some(drain(body).0))
        }
    }
}

/// A body that does not say how long it is.
struct Stream(Bytes);

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let all = std::mem::take(&mut self.0);
        Poll::Ready((!all.is_empty()).then(|| Ok(Frame::data(all))))
    }
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// All bytes of a body that waits for nobody, and how often it let others go first.
fn drain(mut body: BoxBody) -> (Bytes, usize) {
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let (mut all, mut pauses) = (Vec::new(), 0);
    loop {
        match body.as_mut().poll_frame(&mut cx) {
            Poll::Ready(None) => return (all.into(), pauses),
            Poll::Ready(Some(frame)) => {
                all.extend_from_slice(&frame.expect("no error").into_data().expect("data"));
            }
            Poll::Pending => {
                pauses += 1;
                assert!(
                    woken.0.swap(0, Ordering::Relaxed) > 0,
                    "a pause without an end"
                );
            }
        }
    }
}

fn unpacked(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        Coding::Gzip => {
            _ = flate2::read::GzDecoder::new(bytes)
                .read_to_end(&mut out)
                .expect("gzip");
        }
        Coding::Brotli => {
            _ = brotli::Decompressor::new(bytes, 4_096)
                .read_to_end(&mut out)
                .expect("Brotli");
        }
    }
    out
}

const JSON: (HeaderName, &str) = (CONTENT_TYPE, "application/json");

#[row(E121, E122)]
#[test]
fn a_whole_answer_is_coded_and_unpacks_to_itself() {
    for coding in [Coding::Gzip, Coding::Brotli] {
        for bytes in [1_024, 100_000, 3_000_000] {
            let fields = [
                JSON,
                (CONTENT_LENGTH, &bytes.to_string()),
                (ACCEPT_RANGES, "bytes"),
                (ETAG, "\"a\""),
            ];
            let (headers, coded) = code(Some(coding), answer(text(bytes), &fields));
            let coded = coded.expect("coded");
            assert!(coded.len() < bytes, "{} bytes of {bytes}", coded.len());
            let plain = text(bytes).collect();
            let plain = tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("a loop")
                .block_on(plain);
            assert_eq!(
                unpacked(coding, &coded),
                plain.expect("no error").to_bytes()
            );
            assert_eq!(headers[CONTENT_ENCODING], coding.name());
            assert_eq!(headers[ETAG], "W/\"a\"");
            assert_eq!(headers[VARY], "accept-encoding");
            assert!(!headers.contains_key(CONTENT_LENGTH) && !headers.contains_key(ACCEPT_RANGES));
        }
    }
}

#[row(E121)]
#[test]
fn what_is_not_worth_it_or_not_to_be_changed_passes_as_it_is() {
    let big = || text(5_000);
    let mut partial = answer(big(), &[JSON]);
    *partial.status_mut() = StatusCode::PARTIAL_CONTENT;
    for (why, answer) in [
        ("small", answer(text(1_023), &[JSON])),
        (
            "coded already",
            answer(big(), &[JSON, (CONTENT_ENCODING, "zstd")]),
        ),
        (
            "a part",
            answer(big(), &[JSON, (CONTENT_RANGE, "bytes 0-4999/9000")]),
        ),
        ("partial", partial),
        (
            "not to be changed",
            answer(big(), &[JSON, (CACHE_CONTROL, "public, No-Transform")]),
        ),
        (
            "not to be changed, on a line of its own",
            answer(
                big(),
                &[
                    JSON,
                    (CACHE_CONTROL, "public"),
                    (CACHE_CONTROL, "no-transform"),
                ],
            ),
        ),
        (
            "not to be changed, behind what is no text",
            answer(
                big(),
                &[JSON, (CACHE_CONTROL, "x=\"\u{e9}\", no-transform")],
            ),
        ),
        (
            "with a digest",
            answer(
                big(),
                &[
                    JSON,
                    (HeaderName::from_static("repr-digest"), "sha-256=:AA==:"),
                ],
            ),
        ),
        ("a picture", answer(big(), &[(CONTENT_TYPE, "image/png")])),
        ("of no type", answer(big(), &[])),
        (
            "events",
            answer(big(), &[(CONTENT_TYPE, "text/event-stream; charset=utf-8")]),
        ),
    ] {
        let before = answer.headers().clone();
        let (headers, coded) = code(Some(Coding::Gzip), answer);
        assert!(coded.is_none(), "{why} was coded");
        assert_eq!(headers, before, "{why}");
    }
    for kind in [
        "text/html; charset=utf-8",
        "image/svg+xml",
        "application/problem+json",
        "Application/JavaScript",
    ] {
        assert!(
            code(Some(Coding::Gzip), answer(big(), &[(CONTENT_TYPE, kind)]))
                .1
                .is_some(),
            "{kind}"
        );
    }
}

#[row(E121)]
#[test]
fn a_body_of_unknown_length_passes_as_it_is() {
    let stream = Stream(vec![b'x'; 9_000].into());
    let coded = Compression::new().code(Some(Coding::Gzip), false, answer(stream, &[JSON]));
    assert!(matches!(coded, Coded::As(_)));
}

#[row(E122)]
#[test]
fn whoever_takes_no_coding_is_told_that_others_get_another_form() {
    let (headers, coded) = code(
        None,
        answer(text(5_000), &[JSON, (ETAG, "\"a\""), (VARY, "Origin")]),
    );
    assert!(coded.is_none());
    assert_eq!(headers[ETAG], "\"a\"");
    let vary: Vec<_> = headers.get_all(VARY).iter().collect();
    assert_eq!(vary, ["Origin", "accept-encoding"]);
    for known in ["*", "Accept-Encoding", "origin, ACCEPT-ENCODING"] {
        let (headers, _) = code(
            Some(Coding::Gzip),
            answer(text(5_000), &[JSON, (VARY, known)]),
        );
        assert_eq!(headers.get_all(VARY).iter().collect::<Vec<_>>(), [known]);
    }
    // HEAD and 304 stand for an answer that might be coded.
    let head = answer(text(0), &[JSON, (CONTENT_LENGTH, "5000")]);
    let Coded::As(head) = Compression::new().code(None, true, head) else {
        panic!("an answer that nobody wants coded was");
    };
    assert_eq!(head.headers()[VARY], "accept-encoding");
    assert_eq!(head.headers()[CONTENT_LENGTH], "5000");
    let mut same = answer(text(0), &[(ETAG, "\"a\"")]);
    *same.status_mut() = StatusCode::NOT_MODIFIED;
    assert_eq!(code(Some(Coding::Gzip), same).0[VARY], "accept-encoding");
}

#[row(E121)]
#[test]
fn a_large_body_lets_others_go_first() {
    let Coded::Other(answer) =
        Compression::new().code(Some(Coding::Gzip), false, answer(text(1 << 20), &[JSON]))
    else {
        panic!("not coded");
    };
    let (_, pauses) = drain(answer.into_body());
    assert!(
        pauses >= (1 << 20) / (PIECES as usize * PIECE_BYTES) - 1,
        "{pauses} pauses"
    );
}

#[row(E128)]
#[test]
fn head_is_told_what_get_would_be() {
    let fields = [
        JSON,
        (CONTENT_LENGTH, "5000"),
        (ACCEPT_RANGES, "bytes"),
        (ETAG, "\"a\""),
        (CACHE_CONTROL, "public"),
    ];
    for coding in [Coding::Gzip, Coding::Brotli] {
        let (get, coded) = code(Some(coding), answer(text(5_000), &fields));
        assert!(coded.is_some());
        // An application may leave the body of HEAD to the host, or leave it out itself; or say no length of it.
        for (body, fields) in [(5_000, &fields[..]), (0, &fields), (5_000, &[JSON])] {
            let asked = Compression::new().code(Some(coding), true, answer(text(body), fields));
            let Coded::Other(head) = asked else {
                panic!("{body} bytes: the fields of another form");
            };
            let (head, left) = head.into_parts();
            assert_eq!(drain(left).0, "", "HEAD has no body");
            assert!(!head.headers.contains_key(CONTENT_LENGTH));
            assert_eq!(head.headers[CONTENT_ENCODING], coding.name());
            if fields.len() > 1 {
                assert_eq!(head.headers, get);
            }
        }
        // What GET would not have coded keeps its length.
        let small = answer(text(0), &[JSON, (CONTENT_LENGTH, "1023")]);
        let Coded::As(small) = Compression::new().code(Some(coding), true, small) else {
            panic!("coded");
        };
        assert_eq!(small.headers()[CONTENT_LENGTH], "1023");
    }
}

#[row(E122)]
#[test]
fn what_has_not_changed_has_the_tag_of_the_form_that_is_held() {
    let layers = crate::middleware::Middleware {
        compression: Some(Compression::new()),
        ..Default::default()
    };
    for (accepts, held, status, tag) in [
        ("gzip", "W/\"a\"", StatusCode::NOT_MODIFIED, "W/\"a\""),
        ("br", "\"b\", W/\"a\"", StatusCode::NOT_MODIFIED, "W/\"a\""),
        ("gzip", "\"a\"", StatusCode::NOT_MODIFIED, "\"a\""),
        ("gzip", "*", StatusCode::NOT_MODIFIED, "\"a\""),
        ("identity", "W/\"a\"", StatusCode::NOT_MODIFIED, "\"a\""),
        ("gzip", "W/\"a\"", StatusCode::PRECONDITION_FAILED, "\"a\""),
    ] {
        let asked = Request::get("/")
            .header(ACCEPT_ENCODING, accepts)
            .header(IF_NONE_MATCH, held);
        let asked = layers.remember(&asked.body(()).expect("a request"));
        let mut answer = answer(text(0), &[(ETAG, "\"a\"")]);
        *answer.status_mut() = status;
        let Coded::As(answer) = layers.code(Some(&asked), answer) else {
            panic!("an answer without a body was coded");
        };
        assert_eq!(answer.headers()[ETAG], tag, "{accepts} and {held}");
    }
}
