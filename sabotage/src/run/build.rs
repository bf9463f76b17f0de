//! Builds: cargo's messages as artifacts, hashes and diagnostics.
//!
//! Owns the reading of `--message-format=json`. Refuses to decide what a failed build means.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::finding::{At, Finding};
use crate::tree::hash_of;

/// A test executable that can be launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestBinary {
    /// Name of the target: the file's name under `tests/`, or the crate's.
    pub target: String,
    /// The executable.
    pub path: PathBuf,
    /// Directory of the package: the working directory of its tests.
    pub dir: PathBuf,
    /// Identity of the package, as cargo prints it.
    pub package: String,
}

/// What one build made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Built {
    /// Test executables in the order of cargo's messages.
    pub tests: Vec<TestBinary>,
    /// Executables that are no tests: name and path.
    pub bins: Vec<(String, PathBuf)>,
    /// Hash of every executable.
    pub hashes: BTreeMap<PathBuf, String>,
}

/// A diagnostic of the compiler that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its primary place and its text.
    pub finding: Finding,
    /// Bytes of the primary place.
    pub bytes: Option<(usize, usize)>,
    /// The whole text as the compiler would print it.
    pub rendered: String,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are cargo's")]
struct Message {
    reason: String,
    #[serde(default)]
    package_id: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    message: Option<Compiler>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Compiler {
    level: String,
    message: String,
    #[serde(default)]
    rendered: Option<String>,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: PathBuf,
    byte_start: usize,
    byte_end: usize,
    line_start: usize,
    column_start: usize,
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: Span,
}

/// Reads artifacts; hashes executables unless `hash` is off.
pub fn artifacts(messages: &str, hash: bool) -> Built {
    let mut built = Built::default();
    for message in parsed(messages).filter(|message| message.reason == "compiler-artifact") {
        let Some(executable) = message.executable else {
            continue;
        };
        if hash && let Ok(bytes) = std::fs::read(&executable) {
            built.hashes.insert(executable.clone(), hash_of(&bytes));
        }
        let dir = message.manifest_path.as_deref().and_then(Path::parent);
        let (Some(target), Some(profile), Some(dir)) = (message.target, message.profile, dir)
        else {
            continue;
        };
        if profile.test {
            built.tests.push(TestBinary {
                target: target.name,
                path: executable,
                dir: dir.into(),
                package: message.package_id,
            });
        } else {
            built.bins.push((target.name, executable));
        }
    }
    built
}

/// Reads the errors of the compiler, in order; `root` is what their places are relative to.
pub fn errors(messages: &str, root: &Path) -> Vec<Diagnostic> {
    let compiled = parsed(messages).filter(|message| message.reason == "compiler-message");
    let mut errors: Vec<Diagnostic> = Vec::new();
    for message in compiled.filter_map(|message| message.message) {
        if !message.level.starts_with("error") {
            continue;
        }
        let span = message
            .spans
            .iter()
            .find(|span| span.is_primary)
            .map(outermost);
        let at = match span {
            Some(span) => At {
                file: span
                    .file_name
                    .strip_prefix(root)
                    .unwrap_or(&span.file_name)
                    .into(),
                line: span.line_start,
                column: span.column_start,
            },
            None if message.message.starts_with("aborting due to") => continue,
            None => At::file(Path::new("Cargo.toml")),
        };
        let rendered = message.rendered.unwrap_or_default();
        let diagnostic = Diagnostic {
            finding: Finding {
                at,
                message: message.message,
            },
            bytes: span.map(|span| (span.byte_start, span.byte_end)),
            rendered,
        };
        // A crate that is built as library and as test complains twice.
        if !errors.contains(&diagnostic) {
            errors.push(diagnostic);
        }
    }
    errors
}

/// The place in a file of the tree: a macro's own place is of no help to the reader.
fn outermost(span: &Span) -> &Span {
    match &span.expansion {
        Some(expansion) => outermost(&expansion.span),
        None => span,
    }
}

fn parsed(messages: &str) -> impl Iterator<Item = Message> {
    messages
        .lines()
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str(line).ok())
}
