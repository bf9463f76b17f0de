//! What the pages say exists, and what exists stands in the page that owns it.
//!
//! Owns the table of facts: what is looked for, where it is defined, which page owns it. Refuses to judge style, and to
//! run anything: definitions are read from the source. Invariant: an extractor that finds nothing is a finding, so
//! that a definition that moved does not empty its check in silence.

mod defined;
mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use super::tree::{File, Tree};
use crate::finding::{At, Finding, hint};
use defined::{
    Defined, commands, exit_arms, exit_constants, flags, long_calls, members, own_variables,
    variables,
};
use page::{Mention, Page};

/// The page of a fact, what it is called, and where all of its kind are defined.
struct Fact {
    page: &'static str,
    what: &'static str,
    extract: fn(&Tree) -> Vec<Defined>,
    /// How the page writes it.
    named: fn(&str) -> Vec<String>,
}

const XTASK: &str = "xtask/README.md";
const SABOTAGE: &str = "sabotage/README.md";
const TRACE: &str = "traceability/README.md";
const SERVER: &str = "server/README.md";
const README: &str = "README.md";

/// Paths that a page speaks of and that stand in a user's own repository, or come to be by a command.
const EXAMPLES: [&str; 3] = ["spec/A.yaml", "spec/trace.lock", ".git/trace/source.json"];
/// What xtask itself takes out of the words that it passes on.
const TAKEN: [&str; 1] = ["--quick"];

/// Who owns what: one page a fact.
const FACTS: [Fact; 15] = [
    fact(
        XTASK,
        "command of cargo xtask",
        |tree| commands(tree, "xtask/src/main.rs"),
        word,
    ),
    fact(
        XTASK,
        "flag of cargo xtask",
        |tree| flags(tree, "xtask/src/"),
        word,
    ),
    fact(
        XTASK,
        "flag of the smokes",
        |tree| flags(tree, "smokes/src/"),
        word,
    ),
    fact(
        XTASK,
        "flag of the probes",
        |tree| flags(tree, "probes/src/"),
        word,
    ),
    fact(
        SABOTAGE,
        "command of sabotage",
        |tree| commands(tree, "sabotage/src/cli.rs"),
        word,
    ),
    fact(
        SABOTAGE,
        "flag of sabotage",
        |tree| flags(tree, "sabotage/src/"),
        word,
    ),
    fact(
        SABOTAGE,
        "exit code of sabotage",
        |tree| exit_arms(tree, "sabotage/src/verdict.rs", "fn code"),
        code,
    ),
    fact(
        TRACE,
        "command of trace",
        |tree| commands(tree, "traceability/src/cli.rs"),
        word,
    ),
    fact(
        TRACE,
        "flag of trace",
        |tree| flags(tree, "traceability/src/"),
        word,
    ),
    fact(
        TRACE,
        "exit code of trace",
        |tree| exit_arms(tree, "traceability/src/judge.rs", "fn exit"),
        code,
    ),
    fact(
        SERVER,
        "variable of the host",
        |tree| variables(tree, "server/host/src/variables.rs"),
        word,
    ),
    fact(
        SERVER,
        "flag of the host",
        |tree| long_calls(tree, "server/host/src/config.rs"),
        word,
    ),
    fact(
        SERVER,
        "variable of host_check",
        |tree| own_variables(tree, "server/apps/host_check/src/"),
        word,
    ),
    fact(
        SERVER,
        "exit code of the host",
        |tree| exit_constants(tree, "server/policy/src/lib.rs"),
        code,
    ),
    fact(README, "member of the workspace", members, word),
];

const fn fact(
    page: &'static str,
    what: &'static str,
    extract: fn(&Tree) -> Vec<Defined>,
    named: fn(&str) -> Vec<String>,
) -> Fact {
    Fact {
        page,
        what,
        extract,
        named,
    }
}

/// A word of code: the whole of it, bounded on both sides.
fn word(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

/// An exit code in a table, or in a sentence.
fn code(number: &str) -> Vec<String> {
    let forms = ["| {} |", "exit {}", "Exit {}", "exit code {}", "; {}: "];
    forms.map(|form| form.replace("{}", number)).to_vec()
}

/// Every check of the pages.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    // A tree without the front page is a piece of one, planted by a test of another check.
    let Some(readme) = tree.files.iter().find(|file| file.is(README)) else {
        return Vec::new();
    };
    let pages: Vec<Page> = tree
        .files
        .iter()
        .filter(|file| is_page(file))
        .map(Page::read)
        .collect();
    let mut findings = Vec::new();
    let mut known: BTreeSet<String> = ["--help", "--version"].map(str::to_owned).into();
    known.extend(TAKEN.map(str::to_owned));
    for fact in &FACTS {
        let defined = (fact.extract)(tree);
        let page = pages.iter().find(|page| page.path == Path::new(fact.page));
        let Some(page) = page else {
            findings.push(at_top(
                fact.page,
                format!("is missing; it owns each {}", fact.what),
            ));
            continue;
        };
        if defined.is_empty() {
            findings.push(at_top(
                fact.page,
                format!("no {} was found in the source", fact.what),
            ));
        }
        for Defined { name, at } in defined {
            if !(fact.named)(&name).iter().any(|form| page.has(form)) {
                let message = format!("the {} {name} is not named in {}", fact.what, fact.page);
                findings.push(Finding { at, message });
            }
            known.insert(name);
        }
    }
    let host: Vec<String> = known.iter().filter_map(|name| flag_of(name)).collect();
    known.extend(host);
    for page in &pages {
        findings.extend(
            page.mentions()
                .into_iter()
                .filter_map(|mention| wrong(tree, page, &known, mention)),
        );
    }
    findings.extend(the_two(tree, readme));
    findings
}

/// The pages that speak of this repository; generated ones are checked where they are made.
fn is_page(file: &File) -> bool {
    file.path
        .file_name()
        .is_some_and(|name| name == "README.md" || name == "ARCHITECTURE.md")
}

fn at_top(page: &str, message: String) -> Finding {
    Finding {
        at: At::file(Path::new(page)),
        message,
    }
}

/// The host's flag of a variable.
fn flag_of(variable: &str) -> Option<String> {
    let name = variable.strip_prefix("M0_")?;
    Some(format!("--{}", name.to_ascii_lowercase().replace('_', "-")))
}

/// A finding when what a page mentions does not exist.
fn wrong(tree: &Tree, page: &Page, known: &BTreeSet<String>, mention: Mention) -> Option<Finding> {
    let (text, at, what) = match mention {
        Mention::Word(text, at) if text.starts_with("M0_") => (text, at, "variable"),
        Mention::Word(text, at) => (text, at, "flag"),
        Mention::Command(program, text, at) => {
            let file = match program {
                "sabotage" => "sabotage/src/cli.rs",
                "trace" => "traceability/src/cli.rs",
                _ => "xtask/src/main.rs",
            };
            let names: Vec<String> = commands(tree, file)
                .into_iter()
                .map(|defined| defined.name)
                .collect();
            if names.contains(&text) || names.is_empty() {
                return None;
            }
            let near = hint(&text, names.iter().map(String::as_str));
            return Some(Finding {
                at,
                message: format!("there is no command {text} of {program}{near}"),
            });
        }
        Mention::Path(text, at) => {
            let path = text.trim_end_matches('/');
            let beside = page.path.parent().unwrap_or(Path::new(""));
            let below = [Path::new(""), beside, &beside.join("src")].map(|dir| dir.join(path));
            if below.iter().any(|path| tree.has(path)) || EXAMPLES.contains(&path) {
                return None;
            }
            return Some(Finding {
                at,
                message: format!("there is no file {text}"),
            });
        }
    };
    if known.contains(&text) {
        return None;
    }
    let near = hint(&text, known.iter().map(String::as_str));
    Some(Finding {
        at,
        message: format!("there is no {what} {text}{near}"),
    })
}

/// The front page's commands are gates, and continuous integration runs them.
fn the_two(tree: &Tree, readme: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let fence = readme
        .text
        .split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let named: Vec<&str> = fence
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("cargo xtask ")?.split_whitespace().next())
        .collect();
    if named.len() != 2 {
        findings.push(at_top(
            README,
            format!(
                "names {} commands in its first block, two do it all",
                named.len()
            ),
        ));
    }
    for name in named {
        let command = ["xtask".to_owned(), name.to_owned()];
        if !crate::gates::gates()
            .iter()
            .any(|gate| gate.command == command)
        {
            findings.push(at_top(
                README,
                format!("`cargo xtask {name}` is no gate of `cargo xtask ci`"),
            ));
        }
        let workflow = tree
            .files
            .iter()
            .find(|file| file.is(".github/workflows/ci.yml"));
        let command = format!("cargo xtask {name}");
        if workflow.is_none_or(|file| !file.text.contains(&command)) {
            let path = ".github/workflows/ci.yml";
            findings.push(at_top(
                path,
                format!("does not run `cargo xtask {name}`, which {README} names"),
            ));
        }
    }
    let run = tree.files.iter().find(|file| file.is(".ci/run"));
    if run.is_none_or(|file| !file.text.lines().any(|line| line == "exec cargo xtask ci")) {
        findings.push(at_top(
            ".ci/run",
            "does not end in `exec cargo xtask ci`".to_owned(),
        ));
    }
    findings
}
