//! The stage `loom`: models that try every interleaving.
//!
//! Owns: finding the packages that have models (`tests/loom.rs`), and the build of their own that
//! they need: `--cfg loom` changes the atomics of every crate, so it has a target directory of its
//! own, and the profile `loom` optimises, since a model runs its body ten thousand times.
//! Invariant: a package with models that was asked for is built with `--cfg loom`, never without.

use anyhow::Result;

use super::Run;
use super::kinds::Kind;
use super::libtest;
use super::results::Results;

/// Builds and runs the models.
pub(crate) fn run(run: &Run<'_>, results: &mut Results) -> Result<()> {
    let selected = &run.options.package;
    let packages: Vec<&str> = run
        .repository
        .packages
        .iter()
        .filter(|package| package.dir().join("tests/loom.rs").is_file())
        .map(|package| package.name.as_str())
        .filter(|name| selected.is_empty() || selected.iter().any(|wanted| wanted == name))
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    let mut build = run.repository.cargo();
    build
        .args(["test", "--no-run", "--profile=loom", "--test=loom"])
        .env("RUSTFLAGS", flags())
        .env("CARGO_TARGET_DIR", run.repository.target.join("loom"));
    for package in packages {
        build.args(["--package", package]);
    }
    let Some(binaries) = libtest::build_all(run, build)? else {
        results.fault("loom", "the models do not build", Kind::Loom);
        return Ok(());
    };
    for binary in &binaries {
        libtest::run_one(run, binary, Some(Kind::Loom), results)?;
    }
    Ok(())
}

/// The flags of the surroundings, and ours.
fn flags() -> String {
    let inherited = std::env::var("RUSTFLAGS").unwrap_or_default();
    format!("{inherited} --cfg loom").trim_start().to_owned()
}
