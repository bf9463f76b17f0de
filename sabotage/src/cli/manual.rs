//! What a newcomer reads: an example for each command, in `--help` and in the man pages.
//!
//! Owns the examples. Invariant: every command has one (a test asks).

use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;

/// Commands and what one would type.
const EXAMPLES: &[(&str, &str)] = &[
    ("init", "sabotage init"),
    (
        "new",
        "sabotage new sums-are-wrong --from-diff >> sabotage/rules/first.yaml",
    ),
    (
        "from-fix",
        "sabotage from-fix HEAD >> sabotage/rules/fixes.yaml",
    ),
    (
        "shell",
        "sabotage shell sums-are-wrong\n  sabotage shell sums-are-wrong -- cargo test",
    ),
    ("lint", "sabotage lint"),
    ("list", "sabotage list tag:slow\n  sabotage list --json"),
    (
        "run",
        "sabotage run\n  sabotage run 'publish-*' row:E22\n  sabotage run --since main --github\n  sabotage run 'sums-*' --matrix\n  sabotage run --shard 2/3 --json shard-2/results.json",
    ),
    ("show", "sabotage show sums-are-wrong"),
    (
        "apply",
        "git clone . ../copy && sabotage apply sums-are-wrong --dir ../copy",
    ),
    (
        "accept",
        "sabotage accept sums-are-wrong && git add sabotage/known.lock",
    ),
    ("doctor", "sabotage doctor\n  sabotage doctor --prove-gates"),
    ("prove", "sabotage prove HEAD\n  sabotage prove --base main"),
    (
        "report",
        "sabotage report --html sabotage.html\n  sabotage report --from results.json --sarif sabotage.sarif",
    ),
    (
        "merge",
        "sabotage merge shard-1 shard-2 shard-3 --html sabotage.html",
    ),
    (
        "evidence",
        "sabotage evidence > evidence.json\n  sabotage evidence verify evidence.json",
    ),
    (
        "schema",
        "sabotage schema rules > .vscode/sabotage-rules.json",
    ),
    (
        "man",
        "sabotage man | man -l -\n  sabotage man --dir ~/.local/share/man/man1",
    ),
    (
        "completions",
        "sabotage completions bash > ~/.local/share/bash-completion/completions/sabotage",
    ),
    ("clean", "sabotage clean"),
];

/// The command line with its examples.
pub(super) fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (name, text)| {
        if command.find_subcommand(name).is_none() {
            return command;
        }
        command.mut_subcommand(name, |sub| {
            let heading = if text.contains('\n') {
                "Examples"
            } else {
                "Example"
            };
            sub.after_help(format!("{heading}:\n  {text}"))
        })
    })
}

/// Prints the man page, or writes one for the program and one for each command.
pub(super) fn man(command: Command, dir: Option<&Path>) -> Result<()> {
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        anstream::print!("{}", String::from_utf8_lossy(&page));
        return Ok(());
    };
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(command, dir)
        .with_context(|| format!("cannot write man pages to {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::{EXAMPLES, with_examples};
    use clap::CommandFactory as _;

    #[m0_spec::row(B36)]
    #[test]
    fn every_command_has_one_sentence_and_an_example() {
        let command = with_examples(crate::cli::Cli::command());
        for sub in command.get_subcommands() {
            let name = sub.get_name();
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() > 15, "{name}: {about}");
            let example = sub
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                example.contains(&format!("sabotage {name}")),
                "{name}: {example}"
            );
        }
        for (name, _) in EXAMPLES {
            assert!(command.find_subcommand(name).is_some(), "no command {name}");
        }
    }
}
