//! Commands around a repository: init, doctor, clean.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::run::jail::namespaces;
use crate::schema::read::{GATES, RULES};
use crate::slot::home;
use crate::verdict::Exit;

/// What `init` knows to write, by what it finds.
pub(crate) fn gate_for(root: &Path) -> &'static str {
    if root.join("Cargo.toml").is_file() {
        "  tests:\n    cargo_test: --workspace\n    timeout: 120s\n"
    } else if root.join("pyproject.toml").is_file() || root.join("setup.py").is_file() {
        "  tests:\n    run: python3 -m pytest -q --junit-xml={out}/junit.xml\n    only: python3 -m pytest -q --junit-xml={out}/junit.xml -k {check}\n    results: junit\n    results_file: '{out}/junit.xml'\n    exit: {pass: [0], fail: [1], empty: [5]}\n    timeout: 120s\n"
    } else {
        "  tests:\n    # One command that is green on the clean tree. `results` may be libtest, junit, nextest, tap,\n    # json-lines, regex or exit.\n    run: make test\n    results: exit\n    exit: {pass: [0], fail: [1, 2]}\n    timeout: 120s\n"
    }
}

pub(super) fn init(root: &Path) -> Result<Exit> {
    let gates = root.join(GATES);
    if gates.exists() {
        bail!("{} is there already", gates.display());
    }
    fs::create_dir_all(root.join(RULES))?;
    fs::write(
        &gates,
        format!(
            "# What must notice: gates by name (sabotage schema gates | docs in sabotage's README).\ngates:\n{}",
            gate_for(root)
        ),
    )?;
    let rules = root.join(RULES).join("first.yaml");
    fs::write(
        &rules,
        "# Rules: each breaks one promise on purpose, and names the check that should notice.\n# Make one from a change in your tree: sabotage new some-name --from-diff >> sabotage/rules/first.yaml\n",
    )?;
    anstream::println!(
        "made {GATES} and {RULES}/first.yaml\nnext: break something in the source by hand, then\n  sabotage new it-is-broken --from-diff >> {RULES}/first.yaml\n  git checkout the source again, name the check in the rule, and\n  sabotage run"
    );
    Ok(Exit::Declared)
}

pub(super) fn doctor(root: &Path) -> Result<Exit> {
    let mut whole = true;
    let mut say = |fine: bool, text: String| {
        whole &= fine;
        anstream::println!("{} {text}", if fine { "ok  " } else { "weak" });
    };
    match namespaces() {
        Ok(()) => say(
            true,
            "gates run in namespaces of their own: fixed ports coexist, nothing is left behind"
                .into(),
        ),
        Err(why) => say(
            false,
            format!(
                "no namespaces here ({why}): a gate's left-overs are swept by an environment mark"
            ),
        ),
    }
    let home = home(root)?;
    say(
        true,
        format!("copies and builds are kept in {}", home.display()),
    );
    match crate::tree::Tree::read(root) {
        Ok(tree) => say(
            true,
            format!("{} files belong to the tree", tree.entries.len()),
        ),
        Err(error) => say(false, format!("{error:#}")),
    }
    match crate::schema::read::declared(root) {
        Ok((declared, findings)) if findings.is_empty() => {
            say(
                true,
                format!(
                    "{} gates, {} rules",
                    declared.gates.gates.len(),
                    declared.rules.len()
                ),
            );
        }
        Ok((_, findings)) => findings
            .iter()
            .for_each(|finding| say(false, finding.to_string())),
        Err(error) => say(false, format!("{error:#}")),
    }
    Ok(if whole {
        Exit::Declared
    } else {
        Exit::Inconclusive
    })
}

pub(super) fn clean(root: &Path) -> Result<Exit> {
    let home = home(root)?;
    // A run in hand would lose its copy: its lock says no.
    for name in ["own", "prove", "shell", "doctor"] {
        drop(crate::slot::Slot::open(&home, name)?);
    }
    fs::remove_dir_all(&home).with_context(|| format!("cannot remove {}", home.display()))?;
    anstream::println!("removed {}", home.display());
    Ok(Exit::Declared)
}
