//! What kind of evidence a test is: unit, property, process, loom, death, CLI or an example.
//!
//! Owns: telling kinds apart by what the source says. A property is a function inside `proptest!`
//! (or in a file named for properties), a CLI test stands in a file that starts the binary its package
//! is named for, a process test in one that starts a helper of its package, a death test in a file
//! named `death`; models and examples come from stages of their own.
//! Invariant: each test has exactly one kind, whichever runner ran it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;

use crate::repository::Repository;
use crate::tidy::source::Tokens;
use crate::tidy::tree::{File, Tree};

/// A kind of test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Unit,
    Property,
    Process,
    Loom,
    Death,
    Cli,
    Doc,
}

impl Kind {
    /// All of them, in the order in which they are shown.
    pub(crate) const ALL: [Self; 7] = [
        Self::Unit,
        Self::Property,
        Self::Process,
        Self::Loom,
        Self::Death,
        Self::Cli,
        Self::Doc,
    ];

    /// The word for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Property => "property",
            Self::Process => "process",
            Self::Loom => "loom",
            Self::Death => "death",
            Self::Cli => "CLI",
            Self::Doc => "doc",
        }
    }
}

/// What the source of a workspace says of its tests.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    /// Package and name of each function inside `proptest!`.
    properties: BTreeSet<(String, String)>,
    /// Test targets that start a binary of their package, `smokes::planted`, and which kind that is.
    drives: BTreeMap<String, Kind>,
}

impl Kinds {
    /// Reads the workspace.
    pub(crate) fn read(repository: &Repository) -> Result<Self> {
        Ok(Self::of_tree(&Tree::read(repository)?))
    }

    fn of_tree(tree: &Tree) -> Self {
        let mut kinds = Self::default();
        for package in &tree.packages {
            let dir = package.dir();
            for file in tree.files.iter().filter(|file| file.is_rust()) {
                // The innermost package is the one that holds the file.
                let Ok(path) = file.path.strip_prefix(dir) else {
                    continue;
                };
                let inner = |other: &&crate::repository::Package| {
                    file.path.starts_with(other.dir()) && other.dir().starts_with(dir)
                };
                if tree.packages.iter().filter(inner).count() > 1 {
                    continue;
                }
                let names = in_proptest(file).into_iter();
                kinds
                    .properties
                    .extend(names.map(|name| (package.name.clone(), name)));
                if let Some(target) = path
                    .strip_prefix("tests")
                    .ok()
                    .and_then(|path| path.iter().next())
                    && let Some(kind) = drives(&package.name, &file.text)
                {
                    let target = target.to_string_lossy();
                    let target = target.strip_suffix(".rs").unwrap_or(&target);
                    let entry = kinds.drives.entry(format!("{}::{target}", package.name));
                    // Of the files of one target the front door decides.
                    let known = entry.or_insert(kind);
                    *known = kind.max(*known);
                }
            }
        }
        kinds
    }

    /// The kind of a test, by its binary and path.
    pub(crate) fn of(&self, binary: &str, test: &str) -> Kind {
        let mut segments = binary.split("::");
        let package = segments.next().unwrap_or_default().to_owned();
        let (modules, name) = test.rsplit_once("::").unwrap_or(("", test));
        let mut segments = segments.chain(modules.split("::"));
        let by_name = segments.find_map(|segment| match segment {
            "death" => Some(Kind::Death),
            "cli" => Some(Kind::Cli),
            "properties" => Some(Kind::Property),
            _ => None,
        });
        if let Some(kind) = by_name {
            kind
        } else if self.properties.contains(&(package, name.to_owned())) {
            Kind::Property
        } else {
            self.drives.get(binary).copied().unwrap_or(Kind::Unit)
        }
    }
}

/// Whether a test file starts its package's front door, a helper, or nothing.
fn drives(package: &str, text: &str) -> Option<Kind> {
    let own = format!("CARGO_BIN_EXE_{package}\"");
    if text.contains(&own) {
        Some(Kind::Cli)
    } else {
        text.contains("CARGO_BIN_EXE_").then_some(Kind::Process)
    }
}

/// The functions inside `proptest! { .. }`.
fn in_proptest(file: &File) -> Vec<String> {
    if !file.text.contains("proptest!") {
        return Vec::new();
    }
    let tokens = Tokens::of(file).flat;
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut names = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if (text(at), text(at + 1)) != ("proptest", "!") {
            at += 1;
            continue;
        }
        at += 2;
        let mut depth = 0_u32;
        loop {
            match text(at) {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                "fn" if depth == 1 => names.push(text(at + 1).to_owned()),
                _ => {}
            }
            at += 1;
            if depth == 0 || at >= tokens.len() {
                break;
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{Kind, Kinds};
    use crate::repository::Package;
    use crate::tidy::tree::{File, Tree};

    #[m0_spec::row(H14)]
    #[test]
    fn the_source_tells_the_kind() {
        let file = |path: &str, text: &str| File {
            path: path.into(),
            text: text.into(),
        };
        let package = |name: &str, dir: &str| Package {
            name: name.into(),
            manifest_path: format!("{dir}/Cargo.toml").into(),
            dependencies: Vec::new(),
        };
        let kinds = Kinds::of_tree(&Tree {
            files: vec![
                file(
                    "a/tests/mixed.rs",
                    "proptest! {\n #![config(x())]\n #[test] fn any(x in 0..9) { fn inner() {} }\n}\n#[test] fn one() {}",
                ),
                file(
                    "a/tests/front/main.rs",
                    "const B: &str = env!(\"CARGO_BIN_EXE_a\");",
                ),
                file(
                    "a/tests/system/fork.rs",
                    "const B: &str = env!(\"CARGO_BIN_EXE_a-helper\");",
                ),
                file(
                    "a/inner/src/lib.rs",
                    "proptest! { #[test] fn deep(x in 0..9) {} }",
                ),
            ],
            packages: vec![package("a", "a"), package("inner", "a/inner")],
            others: Vec::new(),
        });
        for (binary, test, kind) in [
            ("a::mixed", "any", Kind::Property),
            ("a::mixed", "tests::any", Kind::Property),
            ("a::mixed", "one", Kind::Unit),
            ("a::mixed", "inner", Kind::Unit),
            ("a::front", "x::y", Kind::Cli),
            ("a::system", "fork::y", Kind::Process),
            ("a::cli", "y", Kind::Cli),
            ("a::death", "y", Kind::Death),
            ("a", "tests::properties::y", Kind::Property),
            ("a", "death", Kind::Unit),
            ("a", "deep", Kind::Unit),
            ("inner", "deep", Kind::Property),
        ] {
            assert_eq!(kinds.of(binary, test), kind, "{binary} {test}");
        }
    }
}
