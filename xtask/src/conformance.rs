//! `cargo xtask conformance`: builds host_check and the conformance tier, and becomes the tier.
//!
//! Owns: the build, the hand-over, and where other people's clients are kept. Refuses to know a part or a flag
//! of the tier: every argument is passed on. Invariant: the server that is judged is the one that was just
//! built, by its path.

use std::process::Command;

use anyhow::Result;

use crate::binaries::{Binaries, become_it};
use crate::repository::Repository;

/// Builds, then replaces this process; returns only when that fails.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let words = ["--package=host_check", "--package=smokes", "--bins"];
    let built = Binaries::build(repository, "host_check and the conformance tier", &words)?;
    let mut tier = Command::new(built.path("conformance")?);
    tier.arg("--server-bin").arg(built.path("host_check")?);
    // Where other people's clients are kept.
    tier.arg("--tools")
        .arg(repository.results()?.join("conformance"));
    tier.args(args);
    become_it(tier)
}
