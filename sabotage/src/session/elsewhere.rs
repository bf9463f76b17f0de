//! Rules that the expected check missed: does any other check of its gate notice?
//!
//! Owns CAUGHT-ELSEWHERE by another check. Looks only where the whole gate is green on the clean tree.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::baseline::{self, Clean};
use super::own::apply;
use super::{Applied, Session};
use crate::run::gate::Place;
use crate::run::outcome::Outcome;
use crate::verdict::{Record, Verdict};

/// The rules again, each with what the whole gate says.
pub(super) fn look<'r, 's>(
    session: &'s Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'s>>,
    missed: Vec<(Applied<'r>, Record)>,
) -> Result<Vec<(Applied<'r>, Record)>> {
    let whole = whole(session, place, &missed)?;
    let mut done = Vec::new();
    for (applied, record) in missed {
        let gate = record.gate.clone().unwrap_or_default();
        let Some(passed) = whole.get(&gate) else {
            done.push((applied, record));
            continue;
        };
        session
            .log
            .say(&format!("{}: all of gate {gate}", applied.rule.id.value));
        let env = applied.rule.activate.clone().unwrap_or_default().env;
        let again = apply(session, place, clean, &applied, |place, gates| {
            let run = gates[gate.as_str()].run(place, None, &env, None)?;
            let noticed = passed.iter().find_map(|check| match run.outcome(check) {
                Outcome::Failed(message) => Some((check.clone(), message)),
                _ => None,
            });
            Ok(match noticed {
                Some((check, message)) => {
                    let why = format!(
                        "`{}` stays green, and `{check}` notices",
                        record.check.as_deref().unwrap_or_default()
                    );
                    Record {
                        verdict: Verdict::CaughtElsewhere,
                        check: Some(check),
                        message: Some(message),
                        why,
                        ..record
                    }
                }
                None => record,
            })
        })?;
        done.push((applied, again));
    }
    Ok(done)
}

/// For each gate that missed a rule, the checks that pass when all of it runs clean.
fn whole(
    session: &Session,
    place: &Place<'_>,
    missed: &[(Applied<'_>, Record)],
) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut whole = BTreeMap::new();
    let names: BTreeSet<&String> = missed
        .iter()
        .filter_map(|(_, record)| record.gate.as_ref())
        .collect();
    for name in names {
        let Some((name, gate)) = session.declared.gates.gates.get_key_value(name) else {
            continue;
        };
        session.log.say(&format!("clean tree: all of gate {name}"));
        match baseline::whole(place, name, gate)? {
            Ok(passed) => {
                whole.insert(name.clone(), passed);
            }
            Err((word, why)) => session.log.note(&format!(
                "gate {name} as a whole is {word}: {why}; other checks are not looked at"
            )),
        }
    }
    Ok(whole)
}
