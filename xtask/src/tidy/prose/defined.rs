//! What exists: commands, flags, variables, exit codes and crates, read from where they are defined.
//!
//! Owns one small extractor for each form of definition. Refuses to run a program to ask it. Invariant: each result
//! has the place of its definition.

use std::path::Path;

use super::super::tree::{File, Tree};
use crate::finding::At;

/// A name and where it is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Defined {
    pub(super) name: String,
    pub(super) at: At,
}

impl Defined {
    fn of(name: impl Into<String>, file: &File, line: usize) -> Self {
        Self {
            name: name.into(),
            at: At::line(&file.path, line + 1),
        }
    }
}

fn file<'a>(tree: &'a Tree, path: &str) -> Option<&'a File> {
    tree.files.iter().find(|file| file.is(path))
}

/// The source files of a crate, without its tests.
fn sources<'a>(tree: &'a Tree, dir: &'a str) -> impl Iterator<Item = &'a File> {
    let ours = move |file: &&File| {
        let test = file
            .path
            .file_stem()
            .is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
        file.is_rust() && file.is_under(dir) && !test
    };
    tree.files.iter().filter(ours)
}

/// Numbered lines before the unit tests.
fn lines(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let code = file
        .text
        .split("\n#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    code.lines().enumerate()
}

/// The variants of the first enum with `Subcommand`, as clap spells them.
pub(super) fn commands(tree: &Tree, path: &str) -> Vec<Defined> {
    let Some(file) = file(tree, path) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut inside = false;
    let mut derived = false;
    for (number, line) in lines(file) {
        match line {
            _ if line.starts_with("#[derive(") && line.contains("Subcommand") => derived = true,
            _ if derived && line.contains("enum ") => (inside, derived) = (true, false),
            "}" if inside => break,
            _ if inside => {
                let name = line
                    .strip_prefix("    ")
                    .filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
                let name = name.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
                found.extend(name.map(|name| Defined::of(kebab(name), file, number)));
            }
            _ => {}
        }
    }
    found
}

/// `SmokeHost` as clap spells it.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// The long flags of a crate's `#[arg(long ..)]`, but for hidden ones.
pub(super) fn flags(tree: &Tree, dir: &str) -> Vec<Defined> {
    let mut found = Vec::new();
    for file in sources(tree, dir) {
        let mut attribute: Option<(usize, String)> = None;
        for (number, line) in lines(file) {
            let line = line.trim();
            if let Some((at, text)) = &mut attribute {
                if is_field(line) && text.ends_with(")]") {
                    let field = line
                        .trim_start_matches("pub(crate) ")
                        .split(':')
                        .next()
                        .unwrap_or_default();
                    let name = long(text, &field.replace('_', "-"));
                    found.extend(name.map(|name| Defined::of(format!("--{name}"), file, *at)));
                    attribute = None;
                } else if !text.ends_with(")]") {
                    text.push_str(line);
                }
            } else if line.starts_with("#[arg(") {
                attribute = Some((number, line.to_owned()));
            }
        }
    }
    found.dedup_by(|a, b| a.name == b.name);
    found
}

fn is_field(line: &str) -> bool {
    let name = line.trim_start_matches("pub(crate) ");
    name.split_once(": ").is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    })
}

/// The flag of an attribute, `field` where it has no name of its own; none when it is no flag or hidden.
fn long(attribute: &str, field: &str) -> Option<String> {
    let words = attribute
        .trim_start_matches("#[arg(")
        .trim_end_matches(")]");
    if words.contains("hide = true") {
        return None;
    }
    words
        .split(',')
        .map(str::trim)
        .find_map(|word| match word.split_once(" = ") {
            None if word == "long" => Some(field.to_owned()),
            Some(("long", name)) => Some(name.trim_matches('"').to_owned()),
            _ => None,
        })
}

/// The flags of a file that builds its command line by calls: `.long("doctor")`.
pub(super) fn long_calls(tree: &Tree, path: &str) -> Vec<Defined> {
    let Some(file) = file(tree, path) else {
        return Vec::new();
    };
    let flag = |(number, line): (usize, &str)| {
        let name = line.split_once(".long(\"")?.1.split('"').next()?;
        Some(Defined::of(format!("--{name}"), file, number))
    };
    lines(file).filter_map(flag).collect()
}

/// The names in a table of variables: strings that are one whole name.
pub(super) fn variables(tree: &Tree, path: &str) -> Vec<Defined> {
    file(tree, path).map(strings).unwrap_or_default()
}

/// The variables of a directory of sources, each once.
pub(super) fn own_variables(tree: &Tree, dir: &str) -> Vec<Defined> {
    let mut found: Vec<Defined> = Vec::new();
    for defined in sources(tree, dir)
        .flat_map(strings)
        .filter(|defined| defined.name.starts_with("M0_HOSTCHECK_"))
    {
        if found.iter().all(|other| other.name != defined.name) {
            found.push(defined);
        }
    }
    found
}

fn strings(file: &File) -> Vec<Defined> {
    let whole = |text: &str| {
        let rest = text.strip_prefix("M0_").unwrap_or_default();
        !rest.is_empty()
            && rest
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    let named = |(number, line): (usize, &str)| -> Vec<Defined> {
        let texts = line
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(|text| whole(text));
        texts.map(|text| Defined::of(text, file, number)).collect()
    };
    lines(file).flat_map(named).collect()
}

/// The values of `EXIT_` constants.
pub(super) fn exit_constants(tree: &Tree, path: &str) -> Vec<Defined> {
    let Some(file) = file(tree, path) else {
        return Vec::new();
    };
    let value = |(number, line): (usize, &str)| {
        let (_, rest) = line.split_once("const EXIT_")?;
        let value = rest.split_once("= ")?.1.trim_end_matches(';');
        value.parse::<u8>().ok()?;
        Some(Defined::of(value, file, number))
    };
    lines(file).filter_map(value).collect()
}

/// The numbers that the arms of a function yield.
pub(super) fn exit_arms(tree: &Tree, path: &str, function: &str) -> Vec<Defined> {
    let Some(file) = file(tree, path) else {
        return Vec::new();
    };
    let after = lines(file).skip_while(|(_, line)| !line.contains(function));
    let body = after.take_while(|(_, line)| *line != "    }");
    let arm = |(number, line): (usize, &str)| {
        let value = line.split_once("=> ")?.1.trim_end_matches(',');
        value.parse::<u8>().ok()?;
        Some(Defined::of(value, file, number))
    };
    body.filter_map(arm).collect()
}

/// The directories of the workspace's members, as the front page's map writes them.
pub(super) fn members(tree: &Tree) -> Vec<Defined> {
    let member = |manifest: &Path| Defined {
        name: manifest
            .parent()
            .map(|dir| dir.display().to_string())
            .unwrap_or_default(),
        at: At::file(manifest),
    };
    tree.packages
        .iter()
        .map(|package| member(&package.manifest_path))
        .collect()
}
