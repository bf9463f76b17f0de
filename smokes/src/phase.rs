//! A phase: one promise driven over real processes, and the registry of all of them.
//!
//! Knows the suites by name and nothing of what they do.
//! Invariant: names are unique, and each phase names at least one row.

use std::panic::Location;
use std::time::Duration;

use anyhow::Result;
use m0_spec::Row;

use crate::run::{Run, Witness};

/// One phase.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    /// Unique, in words with dashes.
    pub name: &'static str,
    /// The promises that it shows.
    pub rows: &'static [Row],
    /// It is killed when it takes longer. At least twice what it takes on a quiet machine.
    pub bound: Duration,
    /// Whether others may run beside it. False where it loads the machine or measures short times.
    pub parallel_safe: bool,
    /// What it does. It returns what it witnessed, or the first expectation that did not hold.
    pub run: fn(&Run) -> Result<Witness>,
    /// Where it is registered, from the repository's root.
    pub place: &'static Location<'static>,
}

/// A phase that may run beside others.
#[track_caller]
pub const fn beside(
    name: &'static str,
    seconds: u64,
    rows: &'static [Row],
    run: fn(&Run) -> Result<Witness>,
) -> Phase {
    Phase {
        name,
        rows,
        bound: Duration::from_secs(seconds),
        parallel_safe: true,
        run,
        place: Location::caller(),
    }
}

/// A phase that needs the machine to itself.
#[track_caller]
pub const fn alone(
    name: &'static str,
    seconds: u64,
    rows: &'static [Row],
    run: fn(&Run) -> Result<Witness>,
) -> Phase {
    Phase {
        parallel_safe: false,
        ..beside(name, seconds, rows, run)
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for any text and `?` for one byte.
pub fn matches(pattern: &str, name: &str) -> bool {
    fn bytes(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|at| bytes(rest, &name[at..])),
            Some((wanted, rest)) => name
                .split_first()
                .is_some_and(|(got, tail)| (*wanted == b'?' || wanted == got) && bytes(rest, tail)),
        }
    }
    bytes(pattern.as_bytes(), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[m0_spec::row(H45)]
    #[test]
    fn globs_match_whole_names() {
        let cases = [
            ("drain", "drain", true),
            ("drain", "drains", false),
            ("drain*", "drains", true),
            ("*one*", "beat-at-one-worker", true),
            ("*worker", "beat-at-one-worker", true),
            ("*er", "erer", true),
            ("b*t", "beat-at-one", false),
            ("beat-?t-*", "beat-at-one", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, name, wanted) in cases {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[m0_spec::row(H45)]
    #[test]
    fn every_phase_has_a_name_of_its_own_and_a_row() {
        for phases in [crate::suites::all(), crate::planted::all()] {
            let names: BTreeSet<_> = phases.iter().map(|phase| phase.name).collect();
            assert_eq!(names.len(), phases.len(), "a name twice");
            for phase in &phases {
                assert!(!phase.rows.is_empty(), "{} shows nothing", phase.name);
                assert!(phase.bound >= Duration::from_secs(1), "{}", phase.name);
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                assert!(phase.name.chars().all(plain), "{}", phase.name);
            }
        }
    }
}
