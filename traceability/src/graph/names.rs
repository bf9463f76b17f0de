//! The names of tests: as runners give them, and as the checks of gates do.
//!
//! Owns which names mean the same test. Refuses to know results. Invariant: a name that means two tests is found with
//! both, and the caller decides what that is worth.

use std::collections::HashMap;
use std::hash::Hash;

use super::Shown;
use crate::source::Test;

/// Whether the name of a gate's check means a test. Gates name a test by its name, alone or without its
/// modules, or with its suite before it, joined as their runner joins them.
pub fn is_check(check: &str, test: &Test) -> bool {
    let name = test.name.as_str();
    let ends = name
        .strip_suffix(check)
        .is_some_and(|rest| rest.ends_with("::") && !check.is_empty());
    // Of the suite an end is enough: `replay::adds` means the test `adds` of `m0-framelog::replay`.
    let with_suite = || {
        let before = check.strip_suffix(name)?;
        let joint = JOINTS.iter().find(|joint| before.ends_with(**joint))?;
        let told = before.strip_suffix(joint).filter(|told| !told.is_empty())?;
        // libtest names the tests of a target by its crate, whatever its package is called: `a_b::t` of `a-b`.
        if told == test.krate {
            return Some(());
        }
        let rest = test.suite.strip_suffix(told)?;
        (rest.is_empty() || rest.ends_with("::")).then_some(())
    };
    check == name || ends || with_suite().is_some()
}

/// What may stand between suite and name.
const JOINTS: [&str; 4] = ["$", " ", "::", "."];

/// What follows the last joint: where it differs, a check does not mean a test.
pub(super) fn last_part(name: &str) -> &str {
    name.rsplit(['$', ' ', ':', '.']).next().unwrap_or(name)
}

/// Tests by the names that runners give them; each way is indexed when it is asked for the first time.
pub(super) struct Index {
    exact: HashMap<(String, String), Vec<usize>>,
    crates: Option<HashMap<(String, String, String), Vec<usize>>>,
    loose: Option<HashMap<String, Vec<usize>>>,
}

impl Index {
    pub(super) fn of(shown: &[Shown]) -> Self {
        let mut index = Self {
            exact: HashMap::with_capacity(shown.len()),
            crates: None,
            loose: None,
        };
        for (at, shown) in shown.iter().enumerate() {
            index.add(at, &shown.test);
        }
        index
    }

    pub(super) fn add(&mut self, at: usize, test: &Test) {
        let key = (test.suite.clone(), test.name.clone());
        self.exact.entry(key).or_default().push(at);
        if let Some(crates) = &mut self.crates {
            crates.entry(in_crate(test)).or_default().push(at);
        }
        if let Some(names) = &mut self.loose {
            names.entry(loose(&test.name)).or_default().push(at);
        }
    }

    /// The tests of a suite and name.
    pub(super) fn exact(&self, suite: &str, name: &str) -> &[usize] {
        let found = self.exact.get(&(suite.to_owned(), name.to_owned()));
        found.map_or(&[], Vec::as_slice)
    }

    /// The tests of a package, crate and path; `shown` are all that were added.
    pub(super) fn in_crate(
        &mut self,
        shown: &[Shown],
        (package, krate, path): (&str, &str, &str),
    ) -> &[usize] {
        let crates = self.crates.get_or_insert_with(|| by(shown, in_crate));
        let found = crates.get(&(package.into(), krate.into(), path.into()));
        found.map_or(&[], Vec::as_slice)
    }

    /// The tests of a name that is like this one; `shown` are all that were added.
    pub(super) fn like(&mut self, shown: &[Shown], name: &str) -> &[usize] {
        let names = self
            .loose
            .get_or_insert_with(|| by(shown, |test| loose(&test.name)));
        names.get(&loose(name)).map_or(&[], Vec::as_slice)
    }
}

/// Tests by a key.
pub(super) fn by<K: Eq + Hash>(
    shown: &[Shown],
    key: impl Fn(&Test) -> K,
) -> HashMap<K, Vec<usize>> {
    let mut found: HashMap<K, Vec<usize>> = HashMap::with_capacity(shown.len());
    for (at, shown) in shown.iter().enumerate() {
        found.entry(key(&shown.test)).or_default().push(at);
    }
    found
}

fn in_crate(test: &Test) -> (String, String, String) {
    let package = test.suite.split("::").next().unwrap_or_default();
    (package.to_owned(), test.krate.clone(), test.name.clone())
}

/// A name without parameters, words joined alike: `test a-b[1]` is `test_a_b`.
fn loose(name: &str) -> String {
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    name.trim().replace([' ', '-'], "_")
}
