//! The phases of a connection, what its head tells the host, and what it holds.

mod drive;

use m0_wire::{Fed, Limits, Phase, Scanner, Verdict};

fn scanner() -> Scanner {
    Scanner::new(Limits::default())
}

fn passes(scanner: &mut Scanner, bytes: &[u8]) {
    assert_eq!(
        scanner.feed(bytes),
        Fed {
            pass: bytes.len(),
            verdict: Verdict::Pass
        }
    );
}

/// Feeds bytes that are held back, wholly.
fn is_held(scanner: &mut Scanner, bytes: &[u8]) {
    assert_eq!(
        scanner.feed(bytes),
        Fed {
            pass: 0,
            verdict: Verdict::Pass
        }
    );
    assert_eq!(scanner.ready(), b"");
}

#[m0_spec::row(W1, W12)]
#[test]
fn a_connection_goes_through_its_phases() {
    let mut scanner = scanner();
    assert_eq!(scanner.phase(), Phase::FirstByte);
    is_held(&mut scanner, b"POST / HTTP/1.1\r\n");
    assert_eq!(scanner.phase(), Phase::Head);
    assert_eq!(
        scanner.feed(b"Host: a\r\nContent-Length: 2\r\n\r\n").pass,
        0
    );
    assert_eq!(
        scanner.ready(),
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
    );
    scanner.consume(scanner.ready().len());
    assert_eq!(scanner.phase(), Phase::Body);
    passes(&mut scanner, b"a");
    assert_eq!(scanner.phase(), Phase::Body);
    passes(&mut scanner, b"b");
    assert_eq!(scanner.phase(), Phase::Complete);
    scanner.answered();
    assert_eq!(scanner.phase(), Phase::Idle);
    is_held(&mut scanner, b"G");
    assert_eq!(scanner.phase(), Phase::Head);
}

#[m0_spec::row(W12)]
#[test]
fn empty_lines_begin_no_head() {
    let mut scanner = scanner();
    for piece in [&b"\r"[..], b"\n", b"\r", b"\n"] {
        is_held(&mut scanner, piece);
        assert_eq!(scanner.phase(), Phase::FirstByte);
    }
    is_held(&mut scanner, b"G");
    assert_eq!(scanner.phase(), Phase::Head);
}

#[m0_spec::row(W12)]
#[test]
fn a_pipelined_head_waits_in_the_phase_of_the_answer_that_is_owed() {
    let mut scanner = scanner();
    let fed = scanner.feed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2");
    assert_eq!(fed.pass, 27);
    assert_eq!(
        (scanner.phase(), scanner.unanswered()),
        (Phase::Complete, 1)
    );
    scanner.answered();
    assert_eq!((scanner.phase(), scanner.unanswered()), (Phase::Head, 0));
}

#[m0_spec::row(W12)]
#[test]
fn an_answer_before_the_body_is_complete_leaves_the_phase_of_the_body() {
    let mut scanner = scanner();
    passes(
        &mut scanner,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na",
    );
    scanner.answered();
    assert_eq!(scanner.phase(), Phase::Body);
    passes(&mut scanner, b"b");
    assert_eq!(scanner.phase(), Phase::Idle);
}

#[m0_spec::row(W24)]
#[test]
fn a_whole_head_passes_without_a_copy() {
    let mut scanner = scanner();
    passes(&mut scanner, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    passes(
        &mut scanner,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n",
    );
    passes(&mut scanner, &[b'x'; 100]);
    assert_eq!(scanner.heap_bytes(), 0);
}

#[m0_spec::row(W35)]
#[test]
fn nothing_is_held_once_a_head_in_pieces_was_taken() {
    let mut scanner = scanner();
    is_held(&mut scanner, b"GET / HTTP/1.1\r\nHo");
    assert!(scanner.heap_bytes() > 0);
    assert_eq!(scanner.feed(b"st: a\r\n\r\n").pass, 0);
    scanner.consume(19);
    assert_eq!(scanner.ready(), b"t: a\r\n\r\n");
    scanner.consume(8);
    assert_eq!(scanner.heap_bytes(), 0);
}

#[m0_spec::row(W32)]
#[test]
fn what_is_ready_comes_before_what_is_fed_next() {
    let mut scanner = scanner();
    is_held(&mut scanner, b"GET /1 HTTP/1.1\r\n");
    scanner.feed(b"Host: a\r\n\r\n");
    let fed = scanner.feed(b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(fed.pass, 0);
    assert_eq!(
        scanner.ready(),
        b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
    );
}

#[m0_spec::row(W38)]
#[test]
fn nothing_passes_after_the_last_request() {
    for head in [
        &b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"[..],
        b"GET / HTTP/1.0\r\n\r\n",
    ] {
        let mut scanner = scanner();
        passes(&mut scanner, head);
        for more in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"\0", b"x"] {
            is_held(&mut scanner, more);
        }
        assert_eq!(
            (
                scanner.phase(),
                scanner.requests_seen(),
                scanner.heap_bytes()
            ),
            (Phase::Complete, 1, 0)
        );

        let mut both = Scanner::new(Limits::default());
        let bytes = [head, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        assert_eq!(
            both.feed(&bytes),
            Fed {
                pass: head.len(),
                verdict: Verdict::Pass
            }
        );
    }
}

#[m0_spec::row(W39)]
#[test]
fn a_tunnel_passes_everything() {
    let mut scanner = scanner();
    passes(
        &mut scanner,
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert!(scanner.wants_upgrade());
    is_held(&mut scanner, b"\x81");
    scanner.become_tunnel();
    assert_eq!(scanner.ready(), b"\x81");
    scanner.consume(1);
    passes(&mut scanner, b"\0\n\r anything");
}

#[m0_spec::row(W20)]
#[test]
fn the_head_tells_what_the_host_must_know() {
    type Told = (bool, bool, bool, bool);
    let cases: &[(&[u8], Told)] = &[
        (
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            (false, false, true, false),
        ),
        (b"GET / HTTP/1.0\r\n\r\n", (true, false, false, false)),
        (
            b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
            (false, true, true, false),
        ),
        // RFC 9110 section 10.1.1: a server ignores the expectation of an HTTP/1.0 request.
        (
            b"PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
            (true, false, false, false),
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            (false, false, true, true),
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n",
            (false, false, true, false),
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n",
            (false, false, true, false),
        ),
    ];
    for (bytes, told) in cases {
        let mut scanner = scanner();
        passes(&mut scanner, bytes);
        let said = (
            scanner.is_http10(),
            scanner.expects_continue(),
            scanner.keep_alive(),
            scanner.wants_upgrade(),
        );
        assert_eq!(&said, told, "{}", bytes.escape_ascii());
    }
}

/// Where a connection may stand when a stranger's bytes come.
const CONTEXTS: [&[u8]; 5] = [
    b"",
    b"GET / HTTP/1.1\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
];

#[m0_spec::row(W38, E103)]
#[test]
fn nothing_passes_behind_as_many_requests_as_the_limit() {
    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let limits = Limits {
        max_requests: 2,
        ..Limits::default()
    };
    let bytes = GET.repeat(3);
    for size in 1..=bytes.len() {
        let mut scanner = Scanner::new(limits);
        let mut released = 0;
        for piece in bytes.chunks(size) {
            released += scanner.feed(piece).pass;
            released += scanner.ready().len();
            scanner.consume(scanner.ready().len());
        }
        let seen = (released, scanner.requests_seen(), scanner.refusal());
        assert_eq!(seen, (2 * GET.len(), 2, None), "pieces of {size} bytes");
        scanner.answered();
        scanner.answered();
        assert_eq!((scanner.phase(), scanner.heap_bytes()), (Phase::Idle, 0));
    }
    // A request to upgrade that is the last one and is answered no.
    let upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let mut scanner = Scanner::new(limits);
    passes(&mut scanner, GET);
    scanner.answered();
    passes(&mut scanner, upgrade);
    assert_eq!(scanner.feed(GET).pass, 0);
    scanner.answered();
    assert_eq!((scanner.ready(), scanner.requests_seen()), (&b""[..], 2));
}

#[m0_spec::row(W17)]
#[test]
fn every_short_sequence_of_sharp_bytes_has_a_verdict() {
    const SHARP: [u8; 8] = *b"\r\n :;0G\xff";
    const LENGTH: u32 = 4;
    for before in CONTEXTS {
        let (mut refused, mut passed) = (0, 0);
        for number in 0..SHARP.len().pow(LENGTH) {
            let sequence: Vec<u8> = (0..LENGTH)
                .map(|place| SHARP[number / SHARP.len().pow(place) % SHARP.len()])
                .collect();
            let bytes = [before, &sequence].concat();
            let whole = drive::feed(Limits::default(), [&bytes[..]]);
            let split = drive::feed(Limits::default(), bytes.chunks(1));
            assert_eq!(split, whole, "{}", bytes.escape_ascii());
            if whole.refusal.is_some() {
                refused += 1;
            } else {
                passed += 1;
            }
        }
        assert!(
            refused > 0 && passed > 0,
            "{refused} refused, {passed} passed after {}",
            before.escape_ascii()
        );
    }
}

#[m0_spec::row(W16, W24, K1)]
#[test]
fn a_field_that_decides_is_known_by_its_whole_name() {
    let mut other = scanner();
    // Names as long as Connection, Upgrade and Transfer-Encoding.
    passes(
        &mut other,
        b"POST / HTTP/1.1\r\nHost: a\r\nUser-Agent: close\r\nIf-Modified-Since: chunked\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!((other.keep_alive(), other.phase()), (true, Phase::Complete));
    let mut asks = scanner();
    passes(
        &mut asks,
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nReferer: x\r\n\r\n",
    );
    assert!(!asks.wants_upgrade() && !asks.is_undecided());
}

#[m0_spec::row(W10, W25)]
#[test]
fn a_refusal_says_what_was_wrong_with_the_line() {
    for (line, reason) in [
        (&b" folded: b"[..], "folded field line"),
        (b"\tfolded", "folded field line"),
        (b"Name : b", "blank in or after a field name"),
        (b"Name: \0b", "NUL in the head"),
        (b"Name: \x01b", "control character in the head"),
        (b"Name: \x7fb\0", "control character in the head"),
    ] {
        let head = [b"GET / HTTP/1.1\r\nHost: a\r\n", line, b"\r\n\r\n"].concat();
        let refusal = drive::outcome(Limits::default(), &head).refusal;
        let refusal = refusal.unwrap_or_else(|| panic!("{reason}: passed"));
        assert_eq!(refusal.reason, reason, "{}", line.escape_ascii());
    }
}
