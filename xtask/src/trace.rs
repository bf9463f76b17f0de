//! `cargo xtask trace`: judges rows and tests with the last results of `test` and `smoke-host`.
//!
//! Owns the default: `check` at the floor `passed`, since sabotages are a run of their own. Refuses to judge:
//! the traceability library does, and says which results are missing. Invariant: its exit code is this one's.

use anyhow::Result;
use clap::Parser as _;
use traceability::cli::{Cli, run as trace};

use crate::repository::Repository;

/// Runs `trace` on this repository; does not return unless the promises are kept.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let code = trace(Cli::parse_from(words(repository, args)))?;
    if code != 0 {
        std::process::exit(i32::from(code));
    }
    Ok(())
}

/// The command line: without a command it is `check --floor passed`, and flags alone are of that.
fn words(repository: &Repository, args: &[String]) -> Vec<String> {
    let mut words = vec![
        "cargo xtask trace".to_owned(),
        "--root".to_owned(),
        repository.root.display().to_string(),
    ];
    let flags_alone = args.first().is_none_or(|word| word.starts_with('-'));
    let help = args
        .first()
        .is_some_and(|word| word == "--help" || word == "-h");
    if flags_alone && !help {
        words.push("check".into());
        if !args.iter().any(|word| word.starts_with("--floor")) {
            words.extend(["--floor".into(), "passed".into()]);
        }
    }
    words.extend(args.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::repository::Repository;

    #[m0_spec::row(T13)]
    #[test]
    fn flags_alone_are_of_a_check_at_the_floor_passed() {
        let repository = Repository::own().expect("this is a workspace");
        let told = |text: &str| -> Vec<String> {
            let args: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            words(&repository, &args)[3..].to_vec()
        };
        assert_eq!(told(""), ["check", "--floor", "passed"]);
        assert_eq!(told("--brief"), ["check", "--floor", "passed", "--brief"]);
        assert_eq!(told("--floor proven"), ["check", "--floor", "proven"]);
        assert_eq!(told("explain E1"), ["explain", "E1"]);
        assert_eq!(told("--help"), ["--help"]);
    }
}
