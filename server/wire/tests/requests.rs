//! The table of raw requests (`smokes/table/`) at the scanner alone: every case over every cut into reads, and
//! every case changed in a few bytes.
//!
//! Owns what a case of the table says about the scanner: whether it refuses, with which status and behind how
//! many requests. Refuses to know sockets; the smokes play the same cases to a whole host.

mod drive;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use m0_wire::{Limits, Place};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    env: BTreeMap<String, String>,
    served: Vec<Raw>,
    refused: Vec<Raw>,
}

/// What of a case is the scanner's. How a connection ends is the host's.
#[derive(Deserialize)]
struct Raw {
    name: String,
    section: String,
    send: Bytes,
    after_continue: Option<Bytes>,
    answers: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Pieces(Vec<Piece>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Repeated { times: usize, of: String },
}

#[derive(Debug, Clone)]
struct Case {
    name: String,
    limits: Limits,
    bytes: Vec<u8>,
    /// The status of the refusal, where the case is refused.
    refused: Option<u16>,
    /// Final answers, the refusal's among them.
    answers: u64,
}

static TABLE: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../smokes/table");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(dir).expect("the table") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a file of the table");
        let group: Group = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let limits = limits(&group.env);
        for (refused, raw) in [(false, group.served), (true, group.refused)] {
            cases.extend(raw.into_iter().map(|raw| case(raw, limits, refused)));
        }
    }
    cases
});

fn limits(env: &BTreeMap<String, String>) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in env {
        let value: usize = value.parse().expect("a number");
        match name.as_str() {
            "M0_MAX_BODY_BYTES" => limits.max_body_bytes = value as u64,
            "M0_MAX_URI_BYTES" => limits.max_uri_bytes = value,
            "M0_MAX_HEAD_BYTES" => limits.max_head_bytes = value,
            "M0_MAX_HEADERS" => limits.max_headers = value,
            other => panic!("{other} is no limit of the scanner"),
        }
    }
    limits
}

fn case(raw: Raw, limits: Limits, refused: bool) -> Case {
    let answers = raw.answers.unwrap_or_else(|| {
        let usual = if refused { "400 length" } else { "200 length" };
        vec![usual.to_owned()]
    });
    let status = |answer: &String| answer[..3].parse::<u16>().expect("a status");
    let statuses: Vec<u16> = answers
        .iter()
        .map(status)
        .filter(|&one| one >= 200)
        .collect();
    let mut bytes = latin1(raw.send);
    bytes.extend(raw.after_continue.map(latin1).unwrap_or_default());
    Case {
        name: format!("{} ({})", raw.name, raw.section),
        limits,
        bytes,
        refused: refused.then(|| *statuses.last().expect("a refusal is answered")),
        answers: statuses.len() as u64,
    }
}

fn latin1(bytes: Bytes) -> Vec<u8> {
    let bytes_of = |text: &str| -> Vec<u8> {
        let byte = |each| u8::try_from(each).expect("a character is a byte");
        text.chars().map(byte).collect()
    };
    match bytes {
        Bytes::Text(text) => bytes_of(&text),
        Bytes::Pieces(pieces) => pieces
            .into_iter()
            .flat_map(|piece| match piece {
                Piece::Text(text) => bytes_of(&text),
                Piece::Repeated { times, of } => bytes_of(&of).repeat(times),
            })
            .collect(),
    }
}

fn judge(case: &Case, outcome: &drive::Outcome) {
    let Case { name, bytes, .. } = case;
    assert!(bytes.starts_with(&outcome.released), "{name}: no prefix");
    let Some(refusal) = outcome.refusal else {
        assert_eq!(case.refused, None, "{name}: passed");
        assert_eq!(outcome.requests, case.answers, "{name}: requests");
        return;
    };
    // Of a refused body the request itself is among those that were released.
    let before = refusal.after_requests - u64::from(refusal.place == Place::Body);
    assert_eq!(
        (Some(refusal.status), before + 1),
        (case.refused, case.answers),
        "{name}: {}",
        refusal.reason
    );
}

/// Longest case that is cut at every place: the work grows with the square of it.
const LONGEST_CUT_EVERYWHERE: usize = 3_000;

#[m0_spec::row(W24, W32)]
#[test]
fn every_request_of_the_table_is_judged_as_it_says_at_every_cut() {
    assert!(TABLE.len() >= 300, "{} cases", TABLE.len());
    for case in TABLE.iter() {
        let outcome = if case.bytes.len() <= LONGEST_CUT_EVERYWHERE {
            drive::outcome(case.limits, &case.bytes)
        } else {
            drive::feed(case.limits, [&case.bytes[..]])
        };
        judge(case, &outcome);
    }
}

fn any_case() -> impl Strategy<Value = &'static Case> {
    (0..TABLE.len()).prop_map(|at| &TABLE[at])
}

/// The pieces of `bytes` between cuts.
fn cut<'a>(bytes: &'a [u8], cuts: &[proptest::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let ends = places.iter().copied().chain([bytes.len()]);
    let mut begin = 0;
    ends.map(|end| &bytes[std::mem::replace(&mut begin, end)..end])
        .collect()
}

/// A byte about which parsers disagree, or any.
fn sharp() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => proptest::sample::select(b"\r\n\0 \t:;,+-0159aAfFxX\x0b\x7f\x80\xa0/*\"=".to_vec()),
        1 => any::<u8>(),
    ]
}

proptest! {
    #[m0_spec::row(W32)]
    #[test]
    fn any_cuts_of_a_request_of_the_table_change_nothing(
        case in any_case(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        judge(case, &drive::feed(case.limits, cut(&case.bytes, &cuts)));
    }

    /// The table as the seeds of a fuzzer: what is nearly one of its requests never panics, and no cut
    /// changes what becomes of it.
    #[m0_spec::row(W17, W32)]
    #[test]
    fn what_is_nearly_a_request_of_the_table_is_judged_once_and_for_all(
        case in any_case(),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), sharp(), 0..3_u8), 1..4),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let mut bytes = case.bytes.clone();
        for (index, byte, how) in edits {
            let at = index.index(bytes.len() + 1);
            match how {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        let whole = drive::feed(case.limits, [&bytes[..]]);
        prop_assert!(bytes.starts_with(&whole.released));
        prop_assert_eq!(drive::feed(case.limits, cut(&bytes, &cuts)), whole);
    }
}
