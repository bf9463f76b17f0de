//! Proves a change without a rule: its tests stay, its other hunks are taken back one at a time.
//!
//! Owns the division of a change into tests and the rest, and the words *held*, *held elsewhere* and
//! *not held*. Works in a slot of its own, on what git has recorded, never on the working tree.
//! Invariant: a hunk is held only when a check that passes with it goes red without it.

pub(crate) mod change;
mod imports;
pub(crate) mod suite;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::glob;
use crate::run::gate::{NotBuilt, Place, Ready, build};
use crate::run::outcome::Outcome;
use crate::schema::Declared;
use crate::schema::gate::{Gate, Gates};
use crate::schema::read;
use crate::session::baseline::whole;
use crate::slot::{Slot, home};
use crate::source::edit::spliced;
use crate::tree::git;
use crate::verdict::Exit;
use change::{Change, Hunk};

/// What is proven.
#[derive(Debug, Clone)]
pub enum What {
    /// One commit against its parent.
    Commit(String),
    /// Everything since a revision.
    Since(String),
}

/// What the tests say of one part of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    /// A check of the change's own goes red without it.
    Held(String),
    /// Another check does.
    HeldElsewhere(String),
    /// Nothing notices.
    NotHeld,
    /// The rest does not compile without it.
    Uncompilable(String),
    /// Nothing can be said.
    Unknown(String),
}

impl Said {
    fn text(&self) -> String {
        match self {
            Self::Held(check) => format!("held by {check}"),
            Self::HeldElsewhere(check) => format!("held elsewhere, by {check}"),
            Self::NotHeld => "NOT HELD by any test".into(),
            Self::Uncompilable(why) => format!("the rest does not compile without it ({why})"),
            Self::Unknown(why) => format!("inconclusive: {why}"),
        }
    }
}

/// Proves it, and tells.
pub fn run(root: &Path, what: &What, asked: &[String]) -> Result<Exit> {
    let (base, tip) = match what {
        What::Commit(commit) => (format!("{commit}^"), commit.clone()),
        What::Since(base) => (
            git(root, &["merge-base", base, "HEAD"])?.trim().to_owned(),
            "HEAD".into(),
        ),
    };
    let change = Change::read(root, &base, &tip)?;
    if change.hunks.is_empty() {
        anstream::println!("{tip} changes nothing but tests and documents");
        return Ok(Exit::Nothing);
    }
    let declared = declared(root)?;
    let gates = gates(&declared, &change, asked)?;
    let home = home(root)?;
    let slot = Slot::open(&home, "prove")?;
    let extracted = home.join("prove-tree");
    let tree = change::extract(root, &tip, &extracted)?;
    slot.sync(&tree)?;
    let work = home
        .join("runs")
        .join(format!("prove-{}", std::process::id()));
    let place = Place::new(&slot, work, true);
    let clean = match clean(&place, &gates)? {
        Ok(clean) => clean,
        Err(why) => {
            anstream::println!(
                "GATE red: {why}\nnothing can be proven by tests that are not green with the change"
            );
            return Ok(Exit::Gate);
        }
    };
    let mut all = Vec::new();
    for hunk in &change.hunks {
        let said = without(&place, &gates, &clean, &change, &[hunk])?;
        anstream::println!(
            "{}:{}-{}: {}",
            hunk.file.display(),
            hunk.line,
            hunk.line + hunk.new.lines().count().max(1) - 1,
            said.text()
        );
        all.push(said);
    }
    let whole: Vec<&Hunk> = change.hunks.iter().collect();
    let whole = if whole.len() > 1 {
        let said = without(&place, &gates, &clean, &change, &whole)?;
        anstream::println!("the whole change: {}", said.text());
        said
    } else {
        all[0].clone()
    };
    let count = |wanted: fn(&Said) -> bool| all.iter().filter(|said| wanted(said)).count();
    let loose = count(|said| *said == Said::NotHeld);
    anstream::println!(
        "{} hunks: {} held, {} held elsewhere, {loose} not held, {} not separable",
        all.len(),
        count(|said| matches!(said, Said::Held(_))),
        count(|said| matches!(said, Said::HeldElsewhere(_))),
        count(|said| matches!(said, Said::Uncompilable(_) | Said::Unknown(_))),
    );
    Ok(match whole {
        _ if loose > 0 => Exit::Tests,
        Said::NotHeld => Exit::Tests,
        Said::Held(_) | Said::HeldElsewhere(_) | Said::Uncompilable(_) => Exit::Declared,
        Said::Unknown(_) => Exit::Inconclusive,
    })
}

/// The repository's gates, or the one that `init` would write.
fn declared(root: &Path) -> Result<Declared> {
    if !root.join(read::GATES).is_file() {
        let text = format!("gates:\n{}", crate::cli::gate_for(root));
        let gates: Gates = read::parse(Path::new(read::GATES), &text)
            .map_err(|finding| anyhow::anyhow!("{finding}"))?;
        return Ok(Declared {
            root: root.into(),
            gates,
            rules: Vec::new(),
        });
    }
    let (declared, findings) = read::declared(root)?;
    match findings.first() {
        None => Ok(declared),
        Some(finding) => bail!("{finding}"),
    }
}

/// The gates that are asked: by name, or those whose inputs the change touches.
fn gates<'a>(
    declared: &'a Declared,
    change: &Change,
    asked: &[String],
) -> Result<Vec<(&'a str, &'a Gate)>> {
    let all = &declared.gates.gates;
    for name in asked {
        if !all.contains_key(name) {
            bail!(
                "no gate `{name}`{}",
                crate::finding::hint(name, all.keys().map(String::as_str))
            );
        }
    }
    let touched = |gate: &Gate| {
        gate.inputs.is_empty()
            || change.files.iter().any(|file| {
                gate.inputs
                    .iter()
                    .any(|input| glob::matches(input, &file.to_string_lossy()))
            })
    };
    let chosen: Vec<_> = all
        .iter()
        .filter(|(name, gate)| {
            if asked.is_empty() {
                touched(gate)
            } else {
                asked.contains(name)
            }
        })
        .map(|(name, gate)| (name.as_str(), gate))
        .collect();
    if chosen.is_empty() {
        bail!("no gate's inputs hold what the change touches; name one with --gate");
    }
    Ok(chosen)
}

type Clean = BTreeMap<String, BTreeSet<String>>;

/// The checks of each gate that pass with the change.
fn clean(place: &Place<'_>, gates: &[(&str, &Gate)]) -> Result<Result<Clean, String>> {
    let mut clean = Clean::new();
    for (name, gate) in gates {
        match whole(place, name, gate)? {
            Ok(passed) => {
                clean.insert((*name).to_owned(), passed);
            }
            Err((word, why)) => return Ok(Err(format!("{name} is {word}: {why}"))),
        }
    }
    Ok(Ok(clean))
}

/// What the tests say when hunks are taken back.
fn without(
    place: &Place<'_>,
    gates: &[(&str, &Gate)],
    clean: &Clean,
    change: &Change,
    hunks: &[&Hunk],
) -> Result<Said> {
    let mut files: BTreeMap<&Path, (String, String)> = BTreeMap::new();
    for hunk in hunks {
        let path = hunk.file.as_path();
        if !files.contains_key(path) {
            let before = std::fs::read_to_string(place.slot.tree.join(path))
                .with_context(|| format!("{}", path.display()))?;
            let mine: Vec<_> = hunks
                .iter()
                .filter(|other| other.file == hunk.file)
                .map(|hunk| hunk.back(&before))
                .collect();
            let after = spliced(&before, &mine);
            files.insert(path, (before, after));
        }
    }
    let inert = files.iter().all(|(path, (before, after))| {
        crate::source::edit::is_rust(path) && !crate::source::tokens::differ(before, after)
    });
    if inert {
        return Ok(Said::Unknown("it changes no token".into()));
    }
    place.slot.write(
        "prove",
        files
            .iter()
            .map(|(path, (_, after))| (*path, after.as_str())),
    )?;
    let said = ask(place, gates, clean, change);
    place.slot.write(
        "prove",
        files
            .iter()
            .map(|(path, (before, _))| (*path, before.as_str())),
    )?;
    place.slot.clean();
    let imports = |(path, (before, after)): (&&Path, &(String, String))| {
        crate::source::edit::is_rust(path) && imports::alone(before, after)
    };
    Ok(match said? {
        Said::NotHeld if files.iter().all(imports) => {
            Said::Unknown("it is an import that nothing uses without the rest".into())
        }
        said => said,
    })
}

/// Asks every gate; the best answer stands.
fn ask(place: &Place<'_>, gates: &[(&str, &Gate)], clean: &Clean, change: &Change) -> Result<Said> {
    let mut elsewhere = None;
    let mut unknown = None;
    for (name, gate) in gates {
        let ready: Ready<'_> = match build(place, name, gate)? {
            Ok(ready) => ready,
            Err(NotBuilt::Refused(errors, said)) => {
                return Ok(Said::Uncompilable(
                    errors
                        .first()
                        .map_or(said, |error| error.finding.to_string()),
                ));
            }
            Err(NotBuilt::Infra(why)) => return Ok(Said::Unknown(why)),
        };
        let run = ready.run(place, None, &BTreeMap::new(), None)?;
        for check in &clean[*name] {
            match run.outcome(check) {
                Outcome::Failed(_) if change.owns(check) => {
                    return Ok(Said::Held(format!("{name}: {check}")));
                }
                Outcome::Failed(_) => {
                    elsewhere.get_or_insert_with(|| format!("{name}: {check}"));
                }
                Outcome::Passed => {}
                other => {
                    unknown.get_or_insert_with(|| format!("{name}: {check}: {other:?}"));
                }
            }
        }
    }
    Ok(match (elsewhere, unknown) {
        (Some(check), _) => Said::HeldElsewhere(check),
        (None, Some(why)) => Said::Unknown(why),
        (None, None) => Said::NotHeld,
    })
}
