//! A build for each rule that shares none: apply, build, judge, put back.
//!
//! Owns the slot while rules are in it. Invariant: after each rule the copy holds the tree's bytes again,
//! written now, so that cargo notices.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::Result;

use super::baseline::{Bad, Clean};
use super::judge::Armed;
use super::sentinel::Watch;
use super::{Applied, Judged, Session, elsewhere, together};
use crate::finding::At;
use crate::run::build::Diagnostic;
use crate::run::gate::{NotBuilt, Place, Ready, build_with};
use crate::schema::rule::Rule;
use crate::verdict::{Record, Verdict};

/// Runs the rules that share a build, then the others one after another, then looks at the clean tree once more. Returns
/// gates of which it showed only now that they are not green.
pub(super) fn run<'s>(
    session: &'s Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'s>>,
    (woven, rest): (Vec<Applied<'_>>, Vec<Applied<'_>>),
    watch: &mut Watch<'s, '_>,
    told: &mut Judged,
) -> Result<Vec<Bad>> {
    let mut together = match together::run(session, place, clean, woven, watch, told)? {
        Ok(together) => together,
        Err(bad) => return Ok(bad),
    };
    together.rest.splice(0..0, rest);
    let start = Instant::now();
    let mut missed = Vec::new();
    let mut count = 0;
    for applied in together.rest {
        let rule = applied.rule;
        let unbegun = if session.spent() {
            Some(Record::new(rule, Verdict::Pending).because("the budget was used up"))
        } else {
            let broken = expectation(clean, rule).err().map(|record| *record);
            watch.refuses(rule).or(broken)
        };
        if let Some(record) = unbegun {
            session.tell(&mut told.records, record);
            continue;
        }
        session.log.say(&rule.id.value);
        let began = Instant::now();
        let record = alone(session, place, clean, &applied)?;
        let record = Record {
            seconds: began.elapsed().as_secs_f64(),
            built: "alone".into(),
            ..record
        };
        count += 1;
        let record = match together.reached.get(&rule.id.value) {
            Some(true) if record.verdict == Verdict::Missed => {
                record.because("unnoticed: the patch ran, and every expected check is green")
            }
            Some(false) if record.verdict == Verdict::Missed => {
                record.because("unreached: no expected check runs the patch")
            }
            _ => record,
        };
        watch.judged(&record);
        if record.verdict == Verdict::Missed && session.options.elsewhere {
            // Not told yet, and there to be withdrawn.
            told.records.insert(record.rule.clone(), record);
            missed.push(applied);
        } else {
            session.tell(&mut told.records, declared_gap(rule, record));
        }
        if watch.due() {
            watch.look(place, &mut told.records)?;
        }
    }
    if count > 0 {
        let seconds = start.elapsed().as_secs_f64() / f64::from(count);
        told.per_rule.insert("alone".into(), seconds);
    }
    let (missed, withdrawn): (Vec<_>, Vec<_>) = missed
        .into_iter()
        .map(|applied| {
            let record = told.records[&applied.rule.id.value].clone();
            (applied, record)
        })
        .partition(|(_, record)| record.verdict == Verdict::Missed);
    for (_, record) in withdrawn {
        session.tell(&mut told.records, record);
    }
    if !missed.is_empty() {
        for (applied, record) in elsewhere::look(session, place, clean, missed)? {
            watch.judged(&record);
            session.tell(&mut told.records, declared_gap(applied.rule, record));
        }
    }
    watch.look(place, &mut told.records)?;
    Ok(Vec::new())
}

/// One rule with a build of its own.
fn alone<'s>(
    session: &'s Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'s>>,
    applied: &Applied<'_>,
) -> Result<Record> {
    let rule = applied.rule;
    let activate = rule.activate.clone().unwrap_or_default();
    apply(session, place, clean, applied, |place, gates| {
        let armed = |env| Armed {
            place,
            gates,
            clean,
            env,
        };
        // Features that break the check by themselves show nothing about what the variables arm.
        if !activate.features.is_empty() && !activate.env.is_empty() {
            let control = armed(BTreeMap::new()).judge(rule, 1)?;
            if control.verdict != Verdict::Missed {
                let why = format!(
                    "with the features and without the variables it is {} already",
                    control.verdict.word()
                );
                return Ok(Record::new(rule, Verdict::BrokenExpectation).because(why));
            }
        }
        let repeats = rule.repeats.unwrap_or(session.options.repeat);
        armed(activate.env).judge(rule, repeats)
    })
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
pub(super) fn apply<'s>(
    session: &'s Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'s>>,
    applied: &Applied<'_>,
    with: impl FnOnce(&Place<'_>, &BTreeMap<&str, Ready<'s>>) -> Result<Record>,
) -> Result<Record> {
    let rule = applied.rule;
    let after = applied
        .files
        .iter()
        .map(|(path, changed)| (path.as_path(), changed.after.as_str()));
    place.slot.write(&rule.id.value, after)?;
    let result = built(session, place, clean, applied).and_then(|built| match built {
        Ok(gates) => with(place, &gates),
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
    let activate = rule.activate.clone().unwrap_or_default();
    // What variables alone arm needs no other executable.
    let mut inert =
        !applied.files.is_empty() || !activate.features.is_empty() && activate.env.is_empty();
    for name in names {
        let Some((name, gate)) = session.declared.gates.gates.get_key_value(name) else {
            continue;
        };
        let ready = match build_with(place, name, gate, &activate.features())? {
            Ok(ready) => ready,
            Err(NotBuilt::Refused(errors, said)) => {
                return Ok(Err(Record::new(rule, Verdict::BrokenUncompilable)
                    .because(uncompilable(applied, &errors, &said))));
            }
            Err(NotBuilt::Infra(why)) if !activate.features.is_empty() => {
                let why = format!("the gate does not build with the features: {why}");
                return Ok(Err(
                    Record::new(rule, Verdict::BrokenExpectation).because(why)
                ));
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
