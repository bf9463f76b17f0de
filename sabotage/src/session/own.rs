//! A build for each rule that has none in common: apply, build, judge, put back.
//!
//! Owns the slot while rules are in it. Invariant: after each rule the copy holds the tree's bytes again,
//! written now, so that cargo notices.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::Result;

use super::baseline::{self, Clean};
use super::judge::Armed;
use super::together;
use super::{Applied, Session};
use crate::finding::At;
use crate::run::build::Diagnostic;
use crate::run::gate::{NotBuilt, Place, Ready, build};
use crate::run::outcome::Outcome;
use crate::schema::rule::Rule;
use crate::verdict::{Record, Verdict};

/// Runs the rules one after another, then the sentinel.
pub(super) fn run(
    session: &Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'_>>,
    todo: Vec<Applied<'_>>,
    records: &mut BTreeMap<String, Record>,
    per_rule: &mut BTreeMap<String, f64>,
) -> Result<()> {
    let mut ran = Vec::new();
    let mut missed = Vec::new();
    let together = together::run(session, place, clean, todo)?;
    for record in together.caught {
        ran.push(record.rule.clone());
        records.insert(record.rule.clone(), record);
    }
    if let Some(seconds) = together.seconds {
        per_rule.insert("together".into(), seconds);
    }
    let reached = together.reached;
    let start = Instant::now();
    let before = ran.len();
    for applied in together.rest {
        let rule = applied.rule;
        if session.spent() {
            session.tell(
                records,
                Record::new(rule, Verdict::Pending).because("the budget was used up"),
            );
            continue;
        }
        session.log.say(&rule.id.value);
        if let Err(record) = expectation(clean, rule) {
            session.tell(records, *record);
            continue;
        }
        let began = Instant::now();
        let record = apply(session, place, clean, &applied, |session, place, gates| {
            let env = rule.activate.clone().unwrap_or_default().env;
            let repeats = rule.repeats.unwrap_or(session.options.repeat);
            Armed {
                place,
                gates,
                clean,
                env,
            }
            .judge(rule, repeats)
        })?;
        let record = Record {
            seconds: began.elapsed().as_secs_f64(),
            built: "alone".into(),
            ..record
        };
        let record = match reached.get(&rule.id.value) {
            Some(true) if record.verdict == Verdict::Missed => {
                record.because("unnoticed: the patch ran, and every expected check is green")
            }
            Some(false) if record.verdict == Verdict::Missed => {
                record.because("unreached: no expected check runs the patch")
            }
            _ => record,
        };
        if record.verdict == Verdict::Missed && session.options.elsewhere {
            missed.push((applied, record));
            continue;
        }
        ran.push(rule.id.value.clone());
        session.tell(records, declared_gap(rule, record));
    }
    let alone = (start.elapsed(), ran.len() - before + missed.len());
    if !missed.is_empty() {
        for (applied, record) in elsewhere(session, place, clean, missed)? {
            ran.push(record.rule.clone());
            session.tell(records, declared_gap(applied.rule, record));
        }
    }
    if alone.1 > 0 {
        per_rule.insert("alone".into(), alone.0.as_secs_f64() / alone.1 as f64);
    }
    if !ran.is_empty() {
        sentinel(session, place, clean, &ran, records)?;
    }
    Ok(())
}

/// BROKEN: expectation, from what the clean runs showed.
pub(super) fn expectation(
    clean: &BTreeMap<String, Clean<'_>>,
    rule: &Rule,
) -> Result<(), Box<Record>> {
    let broken = |place: &serde_saphyr::Spanned<String>, why: String| {
        let at = At::location(&rule.file, &place.referenced);
        Err(Box::new(
            Record::new(rule, Verdict::BrokenExpectation).because(format!("{at}: {why}")),
        ))
    };
    for check in rule.expect.checks.iter().chain(&rule.must_pass) {
        let gate = &clean[&check.gate.value];
        if let Err(why) = gate.check(check) {
            return broken(&check.check, why);
        }
        if let Some(message) = &check.message
            && regex::Regex::new(&message.value).is_ok_and(|regex| regex.is_match(&gate.text))
        {
            return broken(
                message,
                "the message matches what the clean run prints".into(),
            );
        }
    }
    Ok(())
}

/// A declared gap that is missed is known; one that is caught is closed.
pub(super) fn declared_gap(rule: &Rule, record: Record) -> Record {
    let Some(gap) = &rule.known_gap else {
        return record;
    };
    match record.verdict {
        Verdict::Missed => Record {
            verdict: Verdict::KnownGap,
            why: gap.why.clone(),
            ..record
        },
        Verdict::Caught | Verdict::CaughtElsewhere => {
            let why = "it is caught now: take `known_gap` away".into();
            Record {
                verdict: Verdict::GapClosed,
                why,
                ..record
            }
        }
        _ => record,
    }
}

/// Applies a rule, builds its gates, does `with` them, and puts the files back.
fn apply<'a>(
    session: &'a Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'_>>,
    applied: &Applied<'_>,
    with: impl FnOnce(&'a Session, &Place<'_>, &BTreeMap<&str, Ready<'a>>) -> Result<Record>,
) -> Result<Record> {
    let rule = applied.rule;
    let after = applied
        .files
        .iter()
        .map(|(path, changed)| (path.as_path(), changed.after.as_str()));
    place.slot.write(&rule.id.value, after)?;
    let result = built(session, place, clean, applied).and_then(|built| match built {
        Ok(gates) => with(session, place, &gates),
        Err(record) => Ok(record),
    });
    let before = applied
        .files
        .iter()
        .map(|(path, changed)| (path.as_path(), changed.before.as_str()));
    place.slot.write(&rule.id.value, before)?;
    place.slot.clean();
    result
}

/// The rule's gates, built with it; or what is wrong with it.
fn built<'a>(
    session: &'a Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'_>>,
    applied: &Applied<'_>,
) -> Result<Result<BTreeMap<&'a str, Ready<'a>>, Record>> {
    let rule = applied.rule;
    let names: BTreeSet<&str> = rule
        .expect
        .checks
        .iter()
        .chain(&rule.must_pass)
        .map(|check| check.gate.value.as_str())
        .collect();
    let mut gates = BTreeMap::new();
    let mut inert = !rule.edits.is_empty();
    for name in names {
        let Some((name, gate)) = session.declared.gates.gates.get_key_value(name) else {
            continue;
        };
        let ready = match build(place, name, gate)? {
            Ok(ready) => ready,
            Err(NotBuilt::Refused(errors, said)) => {
                return Ok(Err(Record::new(rule, Verdict::BrokenUncompilable)
                    .because(uncompilable(applied, &errors, &said))));
            }
            Err(NotBuilt::Infra(why)) => {
                return Ok(Err(Record::new(rule, Verdict::Infra).because(why)));
            }
        };
        let before = &clean[name.as_str()].ready.built.hashes;
        inert &= !before.is_empty() && *before == ready.built.hashes;
        gates.insert(name.as_str(), ready);
    }
    if inert {
        let why = "every executable of its gates has the hash that it has without the rule";
        return Ok(Err(Record::new(rule, Verdict::BrokenInert).because(why)));
    }
    Ok(Ok(gates))
}

/// The first error, and whether it lies inside the patch.
pub(super) fn uncompilable(applied: &Applied<'_>, errors: &[Diagnostic], said: &str) -> String {
    let Some(error) = errors.first() else {
        return format!("the build fails with the rule only: {said}");
    };
    let inside = error.bytes.is_some_and(|(start, end)| {
        let Some(changed) = applied.files.get(&error.finding.at.file) else {
            return false;
        };
        let mut shift = 0_isize;
        changed.splices.iter().any(|splice| {
            let from = splice.range.start.saturating_add_signed(shift);
            shift += splice.with.len() as isize - splice.range.len() as isize;
            start < from + splice.with.len().max(1) && end >= from
        })
    });
    let place = if inside {
        "inside the patch"
    } else {
        "outside the patch"
    };
    format!("{} ({place})", error.finding)
}

/// Rules that the expected check missed: does any other check of the gate notice?
fn elsewhere<'r>(
    session: &Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'_>>,
    missed: Vec<(Applied<'r>, Record)>,
) -> Result<Vec<(Applied<'r>, Record)>> {
    let mut whole: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let names: BTreeSet<String> = missed
        .iter()
        .filter_map(|(_, record)| record.gate.clone())
        .collect();
    for name in names {
        let Some((name, gate)) = session.declared.gates.gates.get_key_value(&name) else {
            continue;
        };
        session.log.say(&format!("clean tree: all of gate {name}"));
        let Ok(ready) = build(place, name, gate)? else {
            continue;
        };
        let run = ready.run(place, None, &BTreeMap::new(), None)?;
        match baseline::green(&ready, &[run], None) {
            Ok(passed) => {
                whole.insert(name.clone(), passed);
            }
            Err((word, why)) => session.log.note(&format!(
                "gate {name} as a whole is {word}: {why}; other checks are not looked at"
            )),
        }
    }
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
        let again = apply(session, place, clean, &applied, |_, place, gates| {
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

/// The clean tree once more: when it is not green now, nothing since the last green one counts.
fn sentinel(
    session: &Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'_>>,
    ran: &[String],
    records: &mut BTreeMap<String, Record>,
) -> Result<()> {
    session.log.say("clean tree once more");
    for (name, before) in clean {
        let Some((name, gate)) = session.declared.gates.gates.get_key_value(name) else {
            continue;
        };
        let why = match build(place, name, gate)? {
            Err(_) => Some("does not build".to_owned()),
            Ok(ready) => {
                let checks: Vec<String> = before.passed.iter().cloned().collect();
                let run = ready.run(place, Some(&checks), &BTreeMap::new(), None)?;
                checks.iter().find_map(|check| match run.outcome(check) {
                    Outcome::Passed => None,
                    other => Some(format!("`{check}`: {other:?}")),
                })
            }
        };
        let Some(why) = why else { continue };
        session.log.note(&format!("the clean tree is not green any more (gate {name}: {why}); the verdicts of its rules are withdrawn"));
        for record in records.values_mut() {
            if ran.contains(&record.rule) && record.gate.as_deref() == Some(name.as_str()) {
                record.verdict = Verdict::Infra;
                record.why = format!("withdrawn: the clean tree was red afterwards ({why})");
                session
                    .log
                    .fact("withdrawn", serde_json::to_value(&*record)?);
            }
        }
    }
    Ok(())
}
