//! The names of tests: as runners give them, and as the checks of gates do.
//!
//! Owns which names mean the same test. Refuses to know results. Invariant: a name that means two tests is found with
//! both, and the caller decides what that is worth.

use std::collections::HashMap;

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

/// Tests by the names that runners give them.
pub(super) struct Index {
    pub(super) exact: HashMap<(String, String), Vec<usize>>,
    pub(super) crates: HashMap<(String, String, String), Vec<usize>>,
    pub(super) loose: HashMap<String, Vec<usize>>,
}

impl Index {
    pub(super) fn of(shown: &[Shown]) -> Self {
        let mut index = Self {
            exact: HashMap::new(),
            crates: HashMap::new(),
            loose: HashMap::new(),
        };
        for (at, shown) in shown.iter().enumerate() {
            index.add(at, &shown.test);
        }
        index
    }

    pub(super) fn add(&mut self, at: usize, test: &Test) {
        let package = test.suite.split("::").next().unwrap_or_default().to_owned();
        let key = (test.suite.clone(), test.name.clone());
        self.exact.entry(key).or_default().push(at);
        let key = (package, test.krate.clone(), test.name.clone());
        self.crates.entry(key).or_default().push(at);
        self.loose.entry(loose(&test.name)).or_default().push(at);
    }
}

/// A name without parameters, words joined alike: `test a-b[1]` is `test_a_b`.
pub(super) fn loose(name: &str) -> String {
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    name.trim().replace([' ', '-'], "_")
}
