//! Whether a connection goes on after an answer, how it closes, and the answers of the host's own.

use m0_wire::keepalive::{After, Facts, Linger, after_answer};
use m0_wire::respond::{CONTINUE, error_answer, phrase};
use m0_wire::{Limits, Scanner};

fn goes_on() -> Facts {
    Facts {
        head_keeps_alive: true,
        answer_closes: false,
        requests: 3,
        max_requests: 4,
        draining: false,
        refused: false,
        body_complete: true,
    }
}

#[m0_spec::row(W16)]
#[test]
fn each_reason_to_close_is_enough() {
    let close = |linger, why| After::Close { linger, why };
    let cases = [
        (goes_on(), After::Continue),
        (
            Facts {
                max_requests: 0,
                requests: u64::MAX,
                ..goes_on()
            },
            After::Continue,
        ),
        (
            Facts {
                head_keeps_alive: false,
                ..goes_on()
            },
            close(false, "the request asked for it"),
        ),
        (
            Facts {
                answer_closes: true,
                ..goes_on()
            },
            close(true, "the answer asked for it"),
        ),
        (
            Facts {
                requests: 4,
                ..goes_on()
            },
            close(true, "requests of this connection used up"),
        ),
        (
            Facts {
                draining: true,
                ..goes_on()
            },
            close(true, "drain"),
        ),
        (
            Facts {
                refused: true,
                ..goes_on()
            },
            close(true, "refused"),
        ),
        (
            Facts {
                body_complete: false,
                ..goes_on()
            },
            close(true, "answered before the body was complete"),
        ),
        (
            Facts {
                body_complete: false,
                head_keeps_alive: false,
                ..goes_on()
            },
            close(true, "answered before the body was complete"),
        ),
    ];
    for (facts, after) in cases {
        assert_eq!(after_answer(&facts), after, "{facts:?}");
    }
}

#[m0_spec::row(W19)]
#[test]
fn a_lingering_close_ends_at_its_bound_in_time_or_bytes() {
    let linger = Linger::begin(1_000, 500, 100);
    assert!(!linger.is_over(1_499));
    assert!(linger.is_over(1_500));

    let mut linger = Linger::begin(1_000, 500, 100);
    linger.dropped(60);
    linger.dropped(39);
    assert!(!linger.is_over(1_001));
    linger.dropped(1_000);
    assert!(linger.is_over(1_001));
    assert!(!Linger::begin(u64::MAX, 500, 1).is_over(u64::MAX - 1));
}

#[m0_spec::row(W34, W15)]
#[test]
fn every_error_answer_delimits_itself_and_closes() {
    for status in [400, 408, 413, 414, 417, 431, 500, 501, 503, 505] {
        let bytes = error_answer(status, "what was wrong", &[("retry-after", "1")]);
        let text = String::from_utf8(bytes).expect("answers are ASCII");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head ends");
        let lines: Vec<_> = head.split("\r\n").collect();
        assert_eq!(lines[0], format!("HTTP/1.1 {status} {}", phrase(status)));
        assert_ne!(phrase(status), "Error", "{status} has a phrase");
        assert!(lines.contains(&"connection: close"));
        assert!(lines.contains(&"retry-after: 1"));
        assert!(lines.contains(&format!("content-length: {}", body.len()).as_str()));
        assert_eq!(
            body,
            format!("{status} {}: what was wrong\n", phrase(status))
        );
    }
    assert_eq!(CONTINUE, b"HTTP/1.1 100 Continue\r\n\r\n");
}

#[m0_spec::row(W34)]
#[test]
#[should_panic(expected = "a line break in a field of an answer")]
fn a_field_with_a_line_break_is_a_bug_of_ours() {
    error_answer(503, "full", &[("retry-after", "1\r\nset-cookie: a")]);
}

#[m0_spec::row(W34)]
#[test]
#[should_panic(expected = "a line break in a reason")]
fn a_reason_with_a_line_break_is_a_bug_of_ours() {
    error_answer(400, "a\nb", &[]);
}

#[m0_spec::row(W43)]
#[test]
fn a_body_that_waits_for_100_continue_may_not_come() {
    let asks = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let cases = [
        (asks.to_owned(), true),
        (format!("{asks}x"), true),
        (format!("{asks}xy"), false),
        (asks.replace("Length: 2", "Length: 0"), false),
        (asks.replace("HTTP/1.1", "HTTP/1.0"), false),
        (asks.replace("Expect: 100-continue\r\n", ""), false),
        // The answer in hand is another one's.
        (format!("GET / HTTP/1.1\r\nHost: a\r\n\r\n{asks}"), false),
    ];
    for (bytes, wanted) in cases {
        let mut scanner = Scanner::new(Limits::default());
        scanner.feed(bytes.as_bytes());
        assert_eq!(scanner.body_may_not_come(), wanted, "{bytes:?}");
        if scanner.unanswered() == 2 {
            scanner.answered();
            assert!(scanner.body_may_not_come(), "{bytes:?} once its turn comes");
        }
    }
}
