//! `cargo xtask probe`: builds the server, the peers, `trace` and the probes in release, and becomes the probes.
//!
//! Owns: the build and the hand-over. Refuses to know a probe or a flag of one: every argument is
//! passed on. Invariant: one build makes all that is compared, with the same profile and features, and
//! the probes find it beside themselves.

use std::process::Command;

use anyhow::Result;

use crate::binaries::{Binaries, become_it};
use crate::repository::Repository;

/// Builds, then replaces this process; returns only when that fails.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let what = "host_check, the examples and the probes";
    let built = Binaries::build(repository, what, &BUILD)?;
    let mut probes = Command::new(built.path("probes")?);
    probes.args(args);
    become_it(probes)
}

/// All that a probe drives. The examples are the smallest applications: a Router under the host, and one function.
const BUILD: [&str; 9] = [
    "--release",
    "--package=host_check",
    "--package=m0-host",
    "--package=probes",
    "--package=traceability",
    "--features=probes/peers,probes/browser",
    "--bins",
    "--example=router",
    "--example=service",
];

#[cfg(test)]
mod tests {
    use super::BUILD;
    use crate::repository::Repository;

    #[m0_spec::row(H37)]
    #[test]
    fn what_is_compared_is_built_at_once_from_packages_that_are_there() {
        let repository = Repository::own().expect("this is a workspace");
        let named = BUILD
            .iter()
            .filter_map(|arg| arg.strip_prefix("--package="));
        let packages: Vec<&str> = named.collect();
        assert_eq!(
            packages,
            ["host_check", "m0-host", "probes", "traceability"]
        );
        for package in packages {
            let known = repository
                .packages
                .iter()
                .find(|known| known.name == package);
            assert!(known.is_some(), "there is no package {package}");
        }
        assert!(
            BUILD.contains(&"--release"),
            "figures are of the optimised build"
        );
    }
}
