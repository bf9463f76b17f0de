//! What the compiler says of a wrong attribute: a crate of its own is checked by cargo.
//!
//! The crate and its target directory stay under cargo's directory for tests, so only the first
//! run compiles the dependencies. Faults of one kind share a crate and are told apart by their
//! lines; a wrong id is found only after every attribute was expanded, so it has its own.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks a library of this text; what the compiler printed, and whether it compiled.
fn check(name: &str, source: &str) -> (bool, String) {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = home.join(name);
    let repository: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::create_dir_all(dir.join("src")).expect("a directory for the crate");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n[dependencies]\nm0-spec = {{ path = '{}' }}\n",
        repository.join("spec").display()
    );
    fs::write(dir.join("Cargo.toml"), manifest).expect("written");
    // The versions of the workspace, so that nothing is fetched.
    fs::copy(repository.join("Cargo.lock"), dir.join("Cargo.lock")).expect("the workspace has one");
    fs::write(dir.join("src/lib.rs"), source).expect("written");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet", "--color=never", "--jobs=2"])
        .current_dir(&dir)
        .env("CARGO_TARGET_DIR", home.join("compile"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs");
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// The message whose arrow points at this line of the fixture.
fn at(messages: &str, line: usize) -> &str {
    messages
        .split("\n\n")
        .find(|message| message.contains(&format!("--> src/lib.rs:{line}:")))
        .unwrap_or_else(|| panic!("nothing is said about line {line}:\n{messages}"))
}

#[m0_spec::row(H2)]
#[test]
fn a_row_that_does_not_exist_is_an_error_at_the_test() {
    let (compiled, messages) = check(
        "wrong-rows",
        "#![forbid(unsafe_code)]\n#[m0_spec::row(E22, E2222)]\npub fn a() {}\n",
    );
    assert!(!compiled, "{messages}");
    let typo = at(&messages, 2);
    assert!(typo.contains("cannot find value `E2222`"), "{typo}");
    assert!(
        typo.contains("src/lib.rs:2:21"),
        "the arrow points at the id: {typo}"
    );
}

#[m0_spec::row(H2)]
#[test]
fn an_attribute_without_rows_or_without_a_test_is_an_error() {
    let (compiled, messages) = check(
        "wrong-attributes",
        "#[m0_spec::row]\nfn a() {}\n\
         #[m0_spec::row(E22, E22)]\nfn b() {}\n\
         #[m0_spec::row(E22)]\nstruct C;\n",
    );
    assert!(!compiled, "{messages}");
    assert!(
        at(&messages, 1).contains("name the rows that this test shows"),
        "{messages}"
    );
    assert!(
        at(&messages, 3).contains("row E22 is named twice"),
        "{messages}"
    );
    assert!(at(&messages, 6).contains("expected `fn`"), "{messages}");
}

#[m0_spec::row(H3)]
#[test]
fn a_retired_row_is_a_warning_that_names_the_successor() {
    let (compiled, messages) = check(
        "retired-rows",
        "#![forbid(unsafe_code)]\n\
         #[m0_spec::row(crate = crate::other, E1)]\npub fn a() {}\n\
         pub mod other {\n    pub use m0_spec::runtime;\n    pub mod rows {\n\
         #[deprecated(note = \"retired; see E41\")]\npub const E1: m0_spec::Row = m0_spec::E41;\n}\n}\n",
    );
    assert!(compiled, "{messages}");
    let warning = at(&messages, 2);
    assert!(
        warning.contains("retired; see E41") && warning.contains("src/lib.rs:2:38"),
        "{warning}"
    );
}
