//! Which files are the roots of which binaries, by cargo's rules.
//!
//! Owns: packages, their targets and the names that nextest gives them. Reads manifests line by line,
//! since only `name` and `path` under `[package]`, `[lib]`, `[[bin]]` and `[[test]]` matter, and asks
//! no cargo: a scan of the source must not wait for one. Invariant: each root belongs to one package,
//! the innermost that holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A root file and the binary that its tests are in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// `package`, `package::test` or `package::bin/name`.
    pub suite: String,
    /// The crate's name in paths.
    pub krate: String,
    /// The file with the crate root.
    pub root: PathBuf,
}

/// The targets of all packages whose manifest is among the files.
pub fn targets(root: &Path, files: &[PathBuf]) -> Vec<Target> {
    // Whether its place alone implies it, and the target: what is spelt out comes first.
    let mut found: BTreeSet<(bool, Target)> = BTreeSet::new();
    let dirs: Vec<&Path> = files
        .iter()
        .filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"))
        .filter_map(|path| path.parent())
        .collect();
    let known: BTreeSet<&Path> = dirs.iter().copied().collect();
    let mut own: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for path in files {
        let innermost = path.ancestors().skip(1).find(|dir| known.contains(dir));
        if let Some(dir) = innermost {
            let inside = path.strip_prefix(dir).expect("it is an ancestor");
            own.entry(dir).or_default().push(inside);
        }
    }
    for dir in &dirs {
        let text = std::fs::read_to_string(root.join(dir).join("Cargo.toml")).unwrap_or_default();
        let manifest = Manifest::parse(&text);
        let Some(package) = manifest.package else {
            continue;
        };
        for (kind, name, path) in manifest.explicit {
            found.insert((false, target(dir, &package, &kind, name.as_deref(), &path)));
        }
        for path in own.remove(dir).unwrap_or_default() {
            if let Some((kind, name)) = implied(path, &package) {
                found.insert((true, target(dir, &package, kind, Some(&name), path)));
            }
        }
    }
    // A root that a manifest names is not also the one that its place implies.
    let mut roots = BTreeSet::new();
    found
        .into_iter()
        .filter(|(_, target)| roots.insert(target.root.clone()))
        .map(|(_, target)| target)
        .collect()
}

/// The target of a kind, under the name that nextest gives its binary.
fn target(dir: &Path, package: &str, kind: &str, name: Option<&str>, path: &Path) -> Target {
    let name = name.unwrap_or(package);
    let suite = match kind {
        "lib" => package.to_owned(),
        "test" => format!("{package}::{name}"),
        kind => format!("{package}::{kind}/{name}"),
    };
    Target {
        suite,
        krate: name.replace('-', "_"),
        root: dir.join(path),
    }
}

/// Kind and name of the target that a file is by its place.
fn implied(path: &Path, package: &str) -> Option<(&'static str, String)> {
    let parts: Vec<String> = path
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let stem = |file: &str| file.strip_suffix(".rs").map(str::to_owned);
    match parts[..] {
        ["src", "lib.rs"] => Some(("lib", package.to_owned())),
        ["src", "main.rs"] => Some(("bin", package.to_owned())),
        ["src", "bin", file] => Some(("bin", stem(file)?)),
        ["src", "bin", name, "main.rs"] => Some(("bin", name.to_owned())),
        ["tests", file] => Some(("test", stem(file)?)),
        ["tests", name, "main.rs"] => Some(("test", name.to_owned())),
        ["examples", file] => Some(("example", stem(file)?)),
        ["benches", file] => Some(("bench", stem(file)?)),
        _ => None,
    }
}

#[derive(Default)]
struct Manifest {
    package: Option<String>,
    /// Kind, name and path of each target that the manifest spells out.
    explicit: Vec<(String, Option<String>, PathBuf)>,
}

impl Manifest {
    fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let (mut section, mut name, mut path) = (String::new(), None, None);
        let end = |section: &str,
                   name: &mut Option<String>,
                   path: &mut Option<String>,
                   manifest: &mut Self| {
            let (name, path) = (name.take(), path.take());
            match section {
                "package" => manifest.package = name,
                "lib" | "bin" | "test" => {
                    let path = path.or_else(|| (section == "lib").then(|| "src/lib.rs".into()));
                    if let Some(path) = path {
                        manifest
                            .explicit
                            .push((section.to_owned(), name, path.into()));
                    }
                }
                _ => {}
            }
        };
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                end(&section, &mut name, &mut path, &mut manifest);
                line.trim_matches(['[', ']']).clone_into(&mut section);
            } else if let Some((key, value)) = line.split_once('=') {
                let value = value.trim().trim_matches('"').to_owned();
                match key.trim() {
                    "name" => name = Some(value),
                    "path" => path = Some(value),
                    _ => {}
                }
            }
        }
        end(&section, &mut name, &mut path, &mut manifest);
        manifest
    }
}

#[cfg(test)]
mod tests {
    use super::targets;
    use std::path::PathBuf;

    #[m0_spec::row(T2)]
    #[test]
    fn each_root_is_the_binary_that_nextest_names() {
        let root = tempfile::tempdir().expect("a directory for the test");
        let files: Vec<PathBuf> = [
            "Cargo.toml",
            "src/lib.rs",
            "src/main.rs",
            "src/deep.rs",
            "tests/a.rs",
            "tests/b/main.rs",
            "tests/b/more.rs",
            "inner/Cargo.toml",
            "inner/src/lib.rs",
        ]
        .map(PathBuf::from)
        .into();
        std::fs::create_dir_all(root.path().join("inner")).expect("made");
        let outer = "[package]\nname = \"my-tool\"\n[[bin]]\nname = \"tool\"\npath = \"src/main.rs\"\n[dependencies]\nname = \"x\"\n";
        std::fs::write(root.path().join("Cargo.toml"), outer).expect("written");
        std::fs::write(
            root.path().join("inner/Cargo.toml"),
            "[package]\nname = \"inner\"\n",
        )
        .expect("written");
        let mut got: Vec<(String, String)> = targets(root.path(), &files)
            .into_iter()
            .map(|target| (target.suite, target.krate))
            .collect();
        got.sort();
        let wanted = [
            ("inner", "inner"),
            ("my-tool", "my_tool"),
            ("my-tool::a", "a"),
            ("my-tool::b", "b"),
            ("my-tool::bin/tool", "tool"),
        ]
        .map(|(suite, krate)| (suite.to_owned(), krate.to_owned()));
        assert_eq!(got, wanted);
    }
}
