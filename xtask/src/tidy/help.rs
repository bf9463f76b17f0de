//! Every flag and command says what it is for.
//!
//! Owns telling an argument or a subcommand that clap shows without a text. Refuses to judge the text. Invariant: what
//! stands directly above the attributes of a shown argument, or of a variant of a `Subcommand`, is a doc comment.

use super::tree::{File, Tree};
use crate::finding::{At, Finding};

/// Arguments and commands without a text.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.is_rust() && !file.path.ends_with("tests.rs"))
        .flat_map(in_file)
        .collect()
}

fn in_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told = false;
    let mut commands = false;
    let mut derived = false;
    // The attribute that is being read, over several lines.
    let mut attribute = String::new();
    let mut argument = false;
    for (number, line) in file.text.lines().enumerate() {
        let bare = line.trim();
        let silent = |what: &str| Finding {
            at: At::line(&file.path, number + 1),
            message: format!("{what} has no text for --help: write a `///` above it"),
        };
        if !attribute.is_empty() || bare.starts_with("#[") {
            attribute.push_str(bare);
            if !attribute.ends_with(']') {
                continue;
            }
            argument |= attribute.starts_with("#[arg(") && !attribute.contains("hide = true");
            derived |= attribute.starts_with("#[derive(") && attribute.contains("Subcommand");
            attribute.clear();
            continue;
        }
        if bare.starts_with("///") {
            told = true;
            continue;
        }
        if argument && !told {
            let name = bare.trim_start_matches("pub(crate) ").split(':').next();
            findings.push(silent(&format!(
                "the argument {}",
                name.unwrap_or_default()
            )));
        }
        let variant = line
            .strip_prefix("    ")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        if commands && variant && !told {
            let name = bare.split(|c: char| !c.is_alphanumeric()).next();
            findings.push(silent(&format!("the command {}", name.unwrap_or_default())));
        }
        commands = (commands && line != "}") || (derived && bare.contains("enum "));
        (told, argument, derived) = (false, false, derived && !bare.contains("enum "));
    }
    findings
}
