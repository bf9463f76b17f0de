//! What comes behind a request that asks for another protocol, before it is answered.

use m0_wire::{Limits, Phase, Scanner, Verdict};

const ASKS: &[u8] =
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const NEXT: &[u8] = b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
/// What no head may hold: a zero, a bare CR, a bare LF.
const FRAMES: &[u8] = b"\x81\x84\0\r\n\0\0\r\n\0";

/// A scanner that was shown the request and `behind` it, in this many bytes a read.
fn asked(behind: &[u8], read: usize) -> Scanner {
    let mut scanner = Scanner::new(Limits::default());
    let mut passed = 0;
    for piece in [ASKS, behind].concat().chunks(read) {
        let fed = scanner.feed(piece);
        assert_eq!(fed.verdict, Verdict::Pass, "judged before the answer");
        passed += fed.pass + scanner.ready().len();
        let ready = scanner.ready().len();
        scanner.consume(ready);
    }
    assert_eq!(passed, ASKS.len(), "something behind the head was released");
    assert!(scanner.is_undecided());
    assert_eq!(scanner.phase(), Phase::Complete);
    scanner
}

#[m0_spec::row(K1)]
#[test]
fn frames_that_come_before_the_answer_are_the_tunnels_first() {
    for read in [1, 7, 1000] {
        let mut scanner = asked(FRAMES, read);
        scanner.become_tunnel();
        assert_eq!(scanner.ready(), FRAMES, "{read} bytes a read");
        scanner.consume(FRAMES.len());
        assert_eq!(scanner.heap_bytes(), 0);
    }
}

#[m0_spec::row(K1)]
#[test]
fn a_request_behind_a_refused_upgrade_is_served_after_the_answer() {
    for read in [1, 7, 1000] {
        let mut scanner = asked(NEXT, read);
        scanner.answered();
        assert_eq!(scanner.ready(), NEXT, "{read} bytes a read");
        assert_eq!((scanner.requests_seen(), scanner.unanswered()), (2, 1));
        assert_eq!(scanner.refusal(), None);
    }
}

#[m0_spec::row(K1)]
#[test]
fn bytes_that_are_no_request_behind_a_refused_upgrade_are_refused() {
    for read in [1, 7, 1000] {
        let mut scanner = asked(FRAMES, read);
        scanner.answered();
        assert!(scanner.ready().is_empty());
        let refusal = scanner.refusal().expect("a head of zeros");
        assert_eq!((refusal.status, refusal.after_requests), (400, 1));
    }
}

#[m0_spec::row(K1)]
#[test]
fn an_answer_that_came_first_leaves_nothing_undecided() {
    let mut scanner = Scanner::new(Limits::default());
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\n";
    scanner.feed(head);
    scanner.answered();
    scanner.feed(b"ab");
    assert_eq!(scanner.feed(NEXT).pass, NEXT.len());
}
