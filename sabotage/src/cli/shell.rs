//! `sabotage shell RULE`: a shell in a copy with the rule applied.
//!
//! Owns that copy while the shell is open. Invariant: it is put back when the shell ends, however.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::complain;
use crate::run::interrupt;
use crate::schema::{check, read};
use crate::session::{lint, select};
use crate::slot::{Slot, home};
use crate::tree::Tree;
use crate::verdict::Exit;

pub(super) fn shell(root: &Path, id: &str, command: &[String]) -> Result<Exit> {
    let (declared, findings) = read::declared(root)?;
    if !findings.is_empty() {
        return Ok(complain(&findings));
    }
    let rules = select::named(&declared, &[id.to_owned()])?;
    let [rule] = rules[..] else {
        bail!("`{id}` means {} rules; name one", rules.len());
    };
    let slot = Slot::open(&home(root)?, "shell")?;
    slot.sync(&Tree::read(root)?)?;
    let rows = check::rows(&declared)?;
    let applied = match lint(&declared, rule, rows.as_ref(), &slot.tree) {
        Ok(applied) => applied,
        Err(record) => {
            anstream::println!("{}", crate::report::terminal::record(&record));
            return Ok(record.verdict.exit());
        }
    };
    let after = applied.files.iter();
    slot.write(
        id,
        after.map(|(path, changed)| (path.as_path(), changed.after.as_str())),
    )?;
    anstream::eprintln!(
        "{}: {}\na copy with the rule applied: {}",
        id,
        rule.promise,
        slot.tree.display()
    );
    for path in applied.files.keys() {
        anstream::eprintln!("changed {}", path.display());
    }
    for check in &rule.expect.checks {
        let gate = declared.gates.gates.get(&check.gate.value);
        let test = gate.and_then(|gate| gate.cargo_test.as_ref());
        let how = test.map(|args| format!("cargo test {}", args.value));
        let how = how.or_else(|| Some(gate?.run.as_ref()?.value.clone()));
        anstream::eprintln!(
            "should go red: {}, by: {}",
            check.check.value,
            how.unwrap_or_default()
        );
    }
    let asked = std::env::var("SHELL").unwrap_or_else(|_| "sh".into());
    let mut words = command.iter();
    let mut started = Command::new(words.next().unwrap_or(&asked));
    started
        .args(words)
        .current_dir(&slot.tree)
        .env("CARGO_TARGET_DIR", &slot.target)
        .envs(rule.activate.clone().unwrap_or_default().env);
    let result = started
        .spawn()
        .context("cannot start the shell")
        .and_then(|mut child| {
            // Ctrl-C is meant for what runs in the shell; it was started before, and hears it.
            interrupt::watch()?;
            child.wait().context("cannot wait for the shell")
        });
    let before = applied.files.iter();
    slot.write(
        id,
        before.map(|(path, changed)| (path.as_path(), changed.before.as_str())),
    )?;
    slot.clean();
    result?;
    Ok(Exit::Declared)
}
