//! Every parser of this crate as the target of a fuzzer: bytes in, one verdict out, at every cut and within bounds.
//!
//! Owns the targets, what holds for each whatever the bytes are, and how bytes are made. The seeds are the files of
//! `corpus/`: each is named for what it is, and stands under its target and what becomes of it. Refuses to know why:
//! the tables beside this file do.

mod targets;

use std::path::Path;
use std::sync::LazyLock;

use m0_spec::row;
use proptest::prelude::*;
use proptest::sample::Index;
use targets::{Outcome, TARGETS, Target};

struct Seed {
    target: &'static Target,
    name: String,
    refused: bool,
    bytes: Vec<u8>,
}

static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let mut seeds = Vec::new();
    for target in &TARGETS {
        for (side, refused) in [("taken", false), ("refused", true)] {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
            let dir = dir.join(target.name).join(side);
            let files = std::fs::read_dir(&dir);
            let files = files.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
            for file in files {
                let path = file.expect("an entry").path();
                let name = path.file_name().expect("a file").to_string_lossy();
                seeds.push(Seed {
                    target,
                    name: format!("{}/{side}/{name}", target.name),
                    refused,
                    bytes: std::fs::read(&path).expect("a seed"),
                });
            }
        }
    }
    seeds.sort_by(|one, other| one.name.cmp(&other.name));
    seeds
});

/// Longest seed. The work of all cuts grows with the square of it.
const LONGEST_BYTES: usize = 5_000;

#[row(W49)]
#[test]
fn the_corpus_is_whole_and_its_seeds_are_small() {
    for target in &TARGETS {
        let of_it = SEEDS.iter().filter(|seed| seed.target.name == target.name);
        let (refused, taken): (Vec<_>, Vec<_>) = of_it.partition(|seed| seed.refused);
        let found = (taken.len(), refused.len());
        let (least_taken, least_refused) = target.least;
        assert!(
            found.0 >= least_taken && found.1 >= least_refused,
            "{}: {found:?} seeds of at least {:?}",
            target.name,
            target.least
        );
    }
    for seed in SEEDS.iter() {
        let name = seed.name.rsplit('/').next().expect("a name");
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
        assert!(name.bytes().all(plain), "{}", seed.name);
        assert!(seed.bytes.len() <= LONGEST_BYTES, "{}", seed.name);
    }
}

#[row(W49)]
#[test]
fn each_seed_is_judged_as_it_says_at_every_cut() {
    for Seed {
        target,
        name,
        refused,
        bytes,
    } in SEEDS.iter()
    {
        let whole = (target.run)(&[bytes]);
        assert_eq!(whole.refused, *refused, "{name}: {}", whole.told);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!((target.run)(&single), whole, "{name} byte by byte");
        for cut in 1..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!((target.run)(&[first, second]), whole, "{name} cut at {cut}");
        }
    }
}

/// A byte about which parsers disagree, or any.
fn sharp() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => proptest::sample::select(b"\r\n\0 \t:;,+-./%0159aAfFxX\x0b\x7f\x7e\x80\x81\x88\xa0\xff*\"=".to_vec()),
        1 => any::<u8>(),
    ]
}

/// One change of some bytes.
#[derive(Debug, Clone)]
enum Edit {
    Put(u8),
    Insert(u8),
    Remove(usize),
    Twice(usize),
    /// The end of another seed in the place of the rest.
    Splice(Index, Index),
}

fn edit() -> impl Strategy<Value = (Index, Edit)> {
    let edit = prop_oneof![
        3 => sharp().prop_map(Edit::Put),
        2 => sharp().prop_map(Edit::Insert),
        1 => (1..20_usize).prop_map(Edit::Remove),
        1 => (1..40_usize).prop_map(Edit::Twice),
        1 => any::<(Index, Index)>().prop_map(|(seed, at)| Edit::Splice(seed, at)),
    ];
    (any::<Index>(), edit)
}

fn edited(bytes: &[u8], edits: Vec<(Index, Edit)>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, edit) in edits {
        let at = at.index(bytes.len() + 1);
        let until = |count: usize| bytes.len().min(at + count);
        match edit {
            Edit::Put(byte) if at < bytes.len() => bytes[at] = byte,
            Edit::Put(byte) | Edit::Insert(byte) => bytes.insert(at, byte),
            Edit::Remove(count) => drop(bytes.drain(at..until(count))),
            Edit::Twice(count) => {
                let again = bytes[at..until(count)].to_vec();
                bytes.splice(at..at, again);
            }
            Edit::Splice(seed, from) => {
                let other = &SEEDS[seed.index(SEEDS.len())].bytes;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
        }
    }
    bytes
}

/// The pieces of `bytes` between cuts.
fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    places.push(bytes.len());
    let mut begin = 0;
    places
        .into_iter()
        .map(|end| &bytes[std::mem::replace(&mut begin, end)..end])
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// The outcome of the bytes, which no cut changes.
fn one_verdict(target: &Target, bytes: &[u8], cuts: &[Index]) -> Result<Outcome, TestCaseError> {
    let whole = (target.run)(&[bytes]);
    prop_assert_eq!(
        &(target.run)(&pieces(bytes, cuts)),
        &whole,
        "{}",
        target.name
    );
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    prop_assert_eq!(&(target.run)(&single), &whole, "{}", target.name);
    Ok(whole)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[row(W49)]
    #[test]
    fn whatever_is_made_of_a_seed_has_one_verdict(
        seed in any::<Index>(),
        edits in prop::collection::vec(edit(), 1..5),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let seed = &SEEDS[seed.index(SEEDS.len())];
        one_verdict(seed.target, &edited(&seed.bytes, edits), &cuts)?;
    }

    #[row(W49)]
    #[test]
    fn any_bytes_have_one_verdict(
        bytes in prop::collection::vec(prop_oneof![2 => sharp(), 1 => any::<u8>()], 0..200),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        for target in &TARGETS {
            one_verdict(target, &bytes, &cuts)?;
        }
    }
}
