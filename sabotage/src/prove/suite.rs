//! Which files are tests as a whole: by a directory, by a name, or because the repository says so.
//!
//! Owns the words of the first two and the use of `tests` in `sabotage/gates.yaml`. Refuses to know a repository:
//! a file of tests in a place of its own is named there. Looks into no file.

use std::path::Path;

use regex::Regex;

use crate::glob;
use crate::schema::read;

/// Directories of tests, in whatever language.
const DIRECTORIES: [&str; 3] = ["tests", "test", "spec"];

/// The files of a repository that are tests.
#[derive(Debug)]
pub(crate) struct Suite {
    named: Vec<Regex>,
}

impl Suite {
    /// As the repository at `root` names them.
    pub(crate) fn of(root: &Path) -> Self {
        let patterns = read::tests(root);
        let named = patterns.iter().map(|pattern| glob::regex(&pattern.value));
        Self {
            named: named.collect(),
        }
    }

    /// Whether the whole file is tests.
    pub(crate) fn holds(&self, file: &Path) -> bool {
        let path = file.to_string_lossy();
        let name = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        path.split('/').any(|part| DIRECTORIES.contains(&part))
            || name.starts_with("test_")
            || name.ends_with("_test")
            || name.ends_with("_tests")
            || name == "tests"
            || name == "t"
            || self.named.iter().any(|pattern| pattern.is_match(&path))
    }
}
