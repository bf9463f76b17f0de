//! Drives a scanner as the host does, over any cut of the bytes into reads.
//!
//! Owns the one way in which all tests of this crate feed a scanner. Refuses to know what is right.

#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod refused;

use m0_wire::{Limits, Phase, Refusal, Scanner, Verdict};

/// What became of a stream of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What the engine saw.
    pub(crate) released: Vec<u8>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) requests: u64,
    pub(crate) phase: Phase,
    pub(crate) keep_alive: bool,
}

/// Feeds `pieces`, taking what is ready after each.
pub(crate) fn feed<'a>(limits: Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut scanner = Scanner::new(limits);
    let mut released = Vec::new();
    for piece in pieces {
        let fed = scanner.feed(piece);
        released.extend_from_slice(&piece[..fed.pass]);
        // As an engine with a small buffer would take it.
        while !scanner.ready().is_empty() {
            let take = scanner.ready().len().min(7);
            released.extend_from_slice(&scanner.ready()[..take]);
            scanner.consume(take);
        }
        assert_eq!(
            fed.verdict,
            scanner.refusal().map_or(Verdict::Pass, Verdict::Refuse)
        );
    }
    Outcome {
        released,
        refusal: scanner.refusal(),
        requests: scanner.requests_seen(),
        phase: scanner.phase(),
        keep_alive: scanner.keep_alive(),
    }
}

/// The outcome of `bytes`, after a check that no cut changes it: whole, one byte at a time, and cut
/// once at each place.
pub(crate) fn outcome(limits: Limits, bytes: &[u8]) -> Outcome {
    let whole = feed(limits, [bytes]);
    assert_eq!(
        feed(limits, bytes.chunks(1)),
        whole,
        "one byte at a time: {}",
        bytes.escape_ascii()
    );
    for cut in 1..bytes.len() {
        let (one, two) = bytes.split_at(cut);
        assert_eq!(
            feed(limits, [one, two]),
            whole,
            "cut at {cut}: {}",
            bytes.escape_ascii()
        );
    }
    whole
}
