//! The targets: each drives one parser as the host does, and holds it to its bounds.
//!
//! Owns how a parser is driven and what it may hold. Refuses to know what is right. Invariant: what a target tells is
//! all that the host would learn.

use m0_wire::proxy::{MOST_BYTES, Networks, Reader, Step};
use m0_wire::ws::handshake::{Head, Origins, judge};
use m0_wire::ws::{self, Decoder, Event};
use m0_wire::{Limits, Scanner};

/// What became of a stream of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) refused: bool,
    /// All that was told.
    pub(crate) told: String,
}

/// One parser.
#[derive(Debug)]
pub(crate) struct Target {
    /// The directory of its seeds.
    pub(crate) name: &'static str,
    /// How many of them are taken and refused, at least.
    pub(crate) least: (usize, usize),
    /// What it says to bytes that come in these pieces.
    pub(crate) run: fn(&[&[u8]]) -> Outcome,
}

pub(crate) const TARGETS: [Target; 6] = [
    Target {
        name: "connection",
        least: (21, 31),
        run: connection,
    },
    Target {
        name: "proxy",
        least: (16, 22),
        run: proxy,
    },
    Target {
        name: "frames",
        least: (16, 22),
        run: frames,
    },
    Target {
        name: "handshake",
        least: (6, 17),
        run: handshake,
    },
    Target {
        name: "networks",
        least: (6, 11),
        run: networks,
    },
    Target {
        name: "origins",
        least: (6, 8),
        run: origins,
    },
];

/// Request line, head, chunks, trailers: all that comes before a body's meaning. Whoever asks for another protocol is
/// answered no, so that what is behind is judged too.
fn connection(pieces: &[&[u8]]) -> Outcome {
    let limits = Limits::default();
    let mut scanner = Scanner::new(limits);
    let mut released = Vec::new();
    for piece in pieces {
        let fed = scanner.feed(piece);
        released.extend_from_slice(&piece[..fed.pass]);
        // One head and what one read brought, in memory that grows by doubling.
        let most = 2 * (limits.max_head_bytes + piece.len()) + 64;
        assert!(scanner.heap_bytes() <= most, "{}", scanner.heap_bytes());
        take(&mut scanner, &mut released);
        while scanner.is_undecided() {
            (0..scanner.unanswered()).for_each(|_| scanner.answered());
            take(&mut scanner, &mut released);
        }
        if scanner.refusal().is_some() {
            assert_eq!(scanner.heap_bytes(), 0, "held behind a refusal");
        }
    }
    let all = pieces.concat();
    assert!(all.starts_with(&released), "released is no prefix");
    let refusal = scanner.refusal();
    let told = (refusal, scanner.requests_seen(), scanner.phase());
    let told = (told, scanner.keep_alive(), scanner.is_http10());
    Outcome {
        refused: refusal.is_some(),
        told: format!("{told:?} {} bytes", released.len()),
    }
}

fn take(scanner: &mut Scanner, released: &mut Vec<u8>) {
    released.extend_from_slice(scanner.ready());
    scanner.consume(scanner.ready().len());
}

/// The header of a proxy, where one is required and where it is not.
fn proxy(pieces: &[&[u8]]) -> Outcome {
    let [required, optional] = [true, false].map(|required| {
        let mut reader = Reader::new(required);
        let mut before = 0;
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            match reader.feed(piece) {
                Step::More => before += piece.len(),
                Step::Header { used, told } => return Ok(format!("{} {told:?}", before + used)),
                Step::None => {
                    assert!(pieces.concat().starts_with(reader.held()));
                    return Ok("none".to_owned());
                }
                Step::Malformed(why) => return Err(why),
            }
            assert!(reader.held().len() == before && before < MOST_BYTES);
        }
        Ok("more".to_owned())
    });
    Outcome {
        refused: required.is_err(),
        told: format!("{required:?} {optional:?}"),
    }
}

/// The frames of a WebSocket, in limits that seeds reach.
fn frames(pieces: &[&[u8]]) -> Outcome {
    let limits = ws::Limits {
        message_bytes: 400,
        frame_bytes: 350,
        fragments: 40,
    };
    let most = 2 * (limits.message_bytes + ws::frame::CONTROL_BYTES) + 64;
    let mut decoder = Decoder::new(limits);
    let mut events = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let fed = decoder.feed(rest);
            rest = &rest[fed.used..];
            assert!(decoder.heap_bytes() <= most, "{}", decoder.heap_bytes());
            match fed.event {
                Some(event) => events.push(event),
                None => break,
            }
        }
        assert!(rest.is_empty(), "bytes were left without an event");
    }
    let ends = |event: &Event| matches!(event, Event::Fault(_) | Event::Close(..));
    let last = events.iter().position(ends);
    assert!(last.is_none_or(|at| at + 1 == events.len()), "{events:?}");
    let refused = matches!(events.last(), Some(Event::Fault(_)));
    assert!(!refused || decoder.heap_bytes() == 0, "held behind a fault");
    Outcome {
        refused,
        told: format!("{events:?}"),
    }
}

/// A request for a WebSocket. It comes to its parser whole, as the engine's head.
fn handshake(pieces: &[&[u8]]) -> Outcome {
    let all = pieces.concat();
    let mut lines = all.split(|byte| *byte == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let fields: Vec<(String, &[u8])> = lines
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = String::from_utf8_lossy(&line[..colon]).into_owned();
            Some((name, line[colon + 1..].trim_ascii()))
        })
        .collect();
    let fields: Vec<(&str, &[u8])> = fields.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let head = Head {
        method: first.split(' ').next().unwrap_or_default(),
        http11: first.trim_end().ends_with("HTTP/1.1"),
        fields: &fields,
    };
    let judged = judge(&head, &Origins::default());
    if let Ok(accept) = &judged {
        assert_eq!(accept.len(), 28, "no SHA-1 in base64: {accept}");
    }
    Outcome {
        refused: judged.is_err(),
        told: format!("{judged:?}"),
    }
}

/// What an operator writes comes whole, and may be no text.
fn listed<T: std::fmt::Debug>(
    pieces: &[&[u8]],
    parse: fn(&str) -> Option<T>,
) -> (Outcome, Option<T>) {
    let all = pieces.concat();
    let list = std::str::from_utf8(&all).ok().and_then(parse);
    let outcome = Outcome {
        refused: list.is_none(),
        told: format!("{list:?}"),
    };
    (outcome, list)
}

fn networks(pieces: &[&[u8]]) -> Outcome {
    let (outcome, list) = listed(pieces, Networks::parse);
    if let Some(list) = list {
        // Whatever was taken can be asked about anybody.
        for address in [
            "0.0.0.0",
            "255.255.255.255",
            "::",
            "::ffff:1.2.3.4",
            "ff::1",
        ] {
            let held = list.hold(address.parse().expect("an address"));
            assert!(!(held && list.is_empty()), "nobody holds {address}");
        }
    }
    outcome
}

fn origins(pieces: &[&[u8]]) -> Outcome {
    listed(pieces, Origins::parse).0
}
