//! HTTP/2 as far as this crate knows it: the preface, what is open, and which heads pass.

use std::collections::BTreeSet;

use m0_spec::row;
use m0_wire::http2::{Asked, Ledger, PREFACE, Preface, Step, judge};
use m0_wire::{Limits, Phase, Scanner, Verdict};
use proptest::prelude::*;

/// What first bytes come to: nothing yet, a preface of so many of them, or another protocol.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Unfinished,
    Preface(usize),
    Other,
}

fn preface<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Found {
    let mut preface = Preface::default();
    let mut before = Vec::new();
    for piece in pieces {
        match preface.feed(piece) {
            Step::More => {
                before.extend_from_slice(piece);
                assert_eq!(preface.held(), before);
            }
            Step::Whole { used } => return Found::Preface(before.len() + used),
            Step::Other => {
                assert_eq!(preface.held(), before, "all that came before is given back");
                return Found::Other;
            }
        }
    }
    Found::Unfinished
}

#[row(E86)]
#[test]
fn the_preface_is_known_over_every_cut_and_nothing_else_is() {
    let behind = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0"].concat();
    let others: [&[u8]; 4] = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r ",
        b"PROPFIND / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\n",
        b"\r\nPRI * HTTP/2.0",
    ];
    for cut in 1..behind.len() {
        let (first, second) = behind.split_at(cut);
        assert_eq!(
            preface([first, second]),
            Found::Preface(PREFACE.len()),
            "{cut}"
        );
        for other in others {
            let (first, second) = other.split_at(cut.min(other.len()));
            assert_eq!(preface([first, second]), Found::Other, "{cut}");
        }
    }
    assert_eq!(preface([&PREFACE[..23]]), Found::Unfinished);
    assert_eq!(preface(behind.chunks(1)), Found::Preface(PREFACE.len()));
}

#[row(E150)]
#[test]
fn a_preface_that_nobody_awaits_is_refused_by_the_name_of_its_variable() {
    for bytes in [&PREFACE[..], b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"] {
        let mut scanner = Scanner::new(Limits::default());
        let fed = scanner.feed(bytes);
        let Verdict::Refuse(refusal) = fed.verdict else {
            panic!("it passed");
        };
        assert_eq!((fed.pass, refusal.status), (0, 505));
        assert!(refusal.reason.contains("M0_HTTP2=1"), "{}", refusal.reason);
    }
}

#[row(E151)]
#[test]
fn a_head_is_held_to_the_limits_of_http_1_1() {
    let limits = Limits {
        max_uri_bytes: 10,
        max_headers: 3,
        max_body_bytes: 100,
        ..Limits::default()
    };
    let right = Asked {
        method: "POST",
        target_bytes: 10,
        authority: Some("a.example:80"),
        hosts: &[],
        fields: 3,
        body_bytes: 100,
    };
    let status = |asked: Asked<'_>| judge(&asked, &limits).map_err(|fault| fault.status);
    assert_eq!(status(right), Ok(()));
    let host: [&[u8]; 1] = [b"A.example:80"];
    let other: [&[u8]; 1] = [b"b.example"];
    let joined: [&[u8]; 1] = [b"a, b"];
    let two: [&[u8]; 2] = [b"a.example:80", b"a.example:80"];
    let none = Asked {
        authority: None,
        ..right
    };
    let with = |hosts| Asked { hosts, ..right };
    assert_eq!(
        status(with(&host)),
        Ok(()),
        "the case of a name means nothing"
    );
    assert_eq!(
        status(Asked {
            hosts: &host,
            ..none
        }),
        Ok(())
    );
    let cases = [
        (
            Asked {
                target_bytes: 11,
                ..right
            },
            414,
        ),
        (
            Asked {
                method: "CONNECT",
                ..right
            },
            501,
        ),
        (
            Asked {
                method: &"M".repeat(33),
                ..right
            },
            501,
        ),
        (Asked { fields: 4, ..right }, 431),
        (
            Asked {
                body_bytes: 101,
                ..right
            },
            413,
        ),
        (none, 400),
        (
            Asked {
                hosts: &joined,
                ..none
            },
            400,
        ),
        (with(&other), 400),
        (with(&two), 400),
        (
            Asked {
                authority: Some("user@a.example"),
                ..right
            },
            400,
        ),
    ];
    for (asked, wanted) in cases {
        assert_eq!(status(asked), Err(wanted), "{asked:?}");
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
    let length = u32::try_from(payload)
        .expect("a frame is short")
        .to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [head, vec![0; payload]].concat()
}

#[row(E156)]
#[test]
fn a_head_that_is_not_whole_is_what_the_connection_waits_for() {
    let mut ledger = Ledger::default();
    assert_eq!(
        ledger.phase(),
        Phase::Head,
        "the settings belong to the preface"
    );
    assert!(ledger.is_quiet(), "nothing was asked");
    ledger.received(&frame(4, 0, 0, 6));
    assert_eq!((ledger.phase(), ledger.open()), (Phase::Idle, 0));
    let head = frame(1, 1, 1, 20);
    ledger.received(&head[..9]);
    assert_eq!(ledger.phase(), Phase::Head, "a frame of it has begun");
    assert!(!ledger.is_quiet());
    ledger.received(&head[9..]);
    assert_eq!(
        (ledger.phase(), ledger.open()),
        (Phase::Head, 1),
        "it goes on"
    );
    ledger.received(&frame(9, 0, 1, 4));
    assert_eq!(ledger.phase(), Phase::Head);
    ledger.received(&frame(9, 4, 1, 4));
    assert_eq!(ledger.phase(), Phase::Complete);
    ledger.received(&frame(3, 0, 1, 4));
    assert_eq!(ledger.phase(), Phase::Idle, "the peer has given it up");
    assert_eq!(ledger.begun(), 1);
}

/// What either side does; a stream by its place among those that were begun.
#[derive(Debug, Clone)]
enum Move {
    Begin { split: bool },
    PeerResets(usize),
    Trailers(usize),
    Head(usize),
    Data { of: usize, bytes: usize, last: bool },
    HostResets(usize),
    Ping { ours: bool },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        any::<bool>().prop_map(|split| Move::Begin { split }),
        (0..8_usize).prop_map(Move::PeerResets),
        (0..8_usize).prop_map(Move::Trailers),
        (0..8_usize).prop_map(Move::Head),
        (0..8_usize, 0..40_usize, any::<bool>()).prop_map(|(of, bytes, last)| Move::Data {
            of,
            bytes,
            last
        }),
        (0..8_usize).prop_map(Move::HostResets),
        any::<bool>().prop_map(|ours| Move::Ping { ours }),
    ];
    proptest::collection::vec(one, 0..40)
}

proptest! {
    #[row(E154)]
    #[test]
    fn what_is_in_flight_is_known_by_the_frames_however_they_are_cut(moves in moves(), cut in 1..60_usize) {
        let mut ledger = Ledger::default();
        ledger.received(&frame(4, 0, 0, 0));
        let (mut begun, mut open): (Vec<u32>, BTreeSet<u32>) = Default::default();
        for each in moves {
            let of = |place: usize| begun.get(place).copied();
            let (bytes, ours) = match each {
                Move::Begin { split } => {
                    let stream = begun.last().map_or(1, |last| last + 2);
                    begun.push(stream);
                    open.insert(stream);
                    let bytes = if split {
                        [frame(1, 1, stream, 7), frame(9, 4, stream, 9)].concat()
                    } else {
                        frame(1, 4, stream, 7)
                    };
                    (bytes, false)
                }
                Move::PeerResets(place) => {
                    let Some(stream) = of(place) else { continue };
                    open.remove(&stream);
                    (frame(3, 0, stream, 4), false)
                }
                Move::Trailers(place) => {
                    let Some(stream) = of(place) else { continue };
                    (frame(1, 5, stream, 3), false)
                }
                Move::Head(place) => {
                    let Some(stream) = of(place) else { continue };
                    (frame(1, 4, stream, 11), true)
                }
                Move::Data { of: place, bytes, last } => {
                    let Some(stream) = of(place) else { continue };
                    let bytes = frame(0, u8::from(last), stream, bytes);
                    // All but the last byte of a last frame is not the end of it.
                    let (most, rest) = bytes.split_at(bytes.len() - 1);
                    most.chunks(cut).for_each(|piece| ledger.sent(piece));
                    prop_assert_eq!(ledger.open(), open.len());
                    if last {
                        open.remove(&stream);
                    }
                    (rest.to_vec(), true)
                }
                Move::HostResets(place) => {
                    let Some(stream) = of(place) else { continue };
                    open.remove(&stream);
                    (frame(3, 0, stream, 4), true)
                }
                Move::Ping { ours } => (frame(6, 0, 0, 8), ours),
            };
            for piece in bytes.chunks(cut) {
                if ours {
                    ledger.sent(piece);
                } else {
                    ledger.received(piece);
                }
            }
            prop_assert_eq!(ledger.open(), open.len());
            prop_assert_eq!(ledger.begun(), begun.len() as u64);
            let phase = if open.is_empty() { Phase::Idle } else { Phase::Complete };
            prop_assert_eq!(ledger.phase(), phase);
        }
    }
}
