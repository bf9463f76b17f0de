//! Which checks notice which rule: every gate as a whole, once for each rule that has a verdict.
//!
//! Owns the second pass of `--matrix`. Changes no verdict. Invariant: a check is named only where it passed on
//! the clean tree and is reported failed with the rule.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::{Applied, Session, baseline, lint};
use crate::run::gate::{Place, build_with};
use crate::run::outcome::Outcome;
use crate::schema::rule::Rule;
use crate::slot::Slot;
use crate::verdict::{Record, Verdict};

/// Fills in who notices each rule.
pub(super) fn run(
    session: &Session,
    slot: &Slot,
    rules: &[&Rule],
    records: &mut BTreeMap<String, Record>,
) -> Result<()> {
    let place = Place::new(slot, session.dir.join("matrix"), session.options.jailed);
    let passed = clean(session, &place)?;
    for rule in rules {
        let id = &rule.id.value;
        let Some(record) = records.get_mut(id).filter(|record| ran(record.verdict)) else {
            continue;
        };
        if session.spent() {
            session
                .log
                .note("the budget was used up before the matrix was whole");
            break;
        }
        session.log.say(&format!("{id}: all gates"));
        if let Ok(applied) = lint(&session.declared, rule, None, &slot.tree) {
            record.noticed = Some(noticed(session, &place, &passed, &applied)?);
        }
    }
    Ok(())
}

/// Whether the rule was applied and measured.
fn ran(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Caught
            | Verdict::CaughtElsewhere
            | Verdict::Missed
            | Verdict::KnownGap
            | Verdict::GapClosed
    )
}

/// The checks of each gate that pass on the clean tree; a gate that is not green as a whole is left out.
fn clean(session: &Session, place: &Place<'_>) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut passed = BTreeMap::new();
    for (name, gate) in &session.declared.gates.gates {
        session.log.say(&format!("clean tree: all of gate {name}"));
        match baseline::whole(place, name, gate)? {
            Ok(checks) => {
                passed.insert(name.clone(), checks);
            }
            Err((word, why)) => session.log.note(&format!(
                "gate {name} as a whole is {word}: {why}; the matrix goes without it"
            )),
        }
    }
    Ok(passed)
}

/// `gate: check` of everything that newly fails; the files are put back whatever happens.
fn noticed(
    session: &Session,
    place: &Place<'_>,
    passed: &BTreeMap<String, BTreeSet<String>>,
    applied: &Applied<'_>,
) -> Result<Vec<String>> {
    let files = applied.files.iter();
    let after = files.map(|(path, changed)| (path.as_path(), changed.after.as_str()));
    place.slot.write(&applied.rule.id.value, after)?;
    let found = failing(session, place, passed, applied.rule);
    let files = applied.files.iter();
    let before = files.map(|(path, changed)| (path.as_path(), changed.before.as_str()));
    place.slot.write(&applied.rule.id.value, before)?;
    place.slot.clean();
    found
}

fn failing(
    session: &Session,
    place: &Place<'_>,
    passed: &BTreeMap<String, BTreeSet<String>>,
    rule: &Rule,
) -> Result<Vec<String>> {
    let armed = rule.activate.clone().unwrap_or_default();
    let mut found = Vec::new();
    for (name, checks) in passed {
        let Ok(ready) = build_with(
            place,
            name,
            &session.declared.gates.gates[name],
            &armed.features(),
        )?
        else {
            continue;
        };
        let run = ready.run(place, None, &armed.env, None)?;
        let fails = |check: &&String| matches!(run.outcome(check), Outcome::Failed(_));
        found.extend(
            checks
                .iter()
                .filter(fails)
                .map(|check| format!("{name}: {check}")),
        );
    }
    Ok(found)
}
