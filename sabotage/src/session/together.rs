//! One build for all rules that lie inside function bodies, then one gate run a rule.
//!
//! Owns the woven copy and the division of rules. Only CAUGHT is taken from here: whatever else a woven
//! rule comes to is asked again with a build of its own, so that both ways cannot differ but in time.
//! Invariant: no verdict from a woven build that is not green with no rule chosen, and none where the check
//! failed and the patch never ran.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;

use super::baseline::Clean;
use super::judge::Armed;
use super::own::{declared_gap, expectation};
use super::{Applied, Session};
use crate::run::gate::{NotBuilt, Place, Ready, build};
use crate::run::outcome::Outcome;
use crate::source::edit::is_rust;
use crate::source::weave::{Bodies, CHOSEN, Part, WITNESS, weave};
use crate::verdict::{Record, Verdict};

/// How often rules that do not compile are taken out before all of them are built alone.
const ATTEMPTS: usize = 4;

/// What one build for all came to: verdicts, and the rules that need a build of their own.
pub(super) struct Together<'a> {
    pub(super) caught: Vec<Record>,
    pub(super) rest: Vec<Applied<'a>>,
    /// What is known of rules that were not caught: whether their patch ran.
    pub(super) reached: BTreeMap<String, bool>,
    pub(super) seconds: Option<f64>,
}

/// Runs what can be run together.
pub(super) fn run<'a>(
    session: &Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'_>>,
    todo: Vec<Applied<'a>>,
) -> Result<Together<'a>> {
    let start = Instant::now();
    let mut bodies: BTreeMap<PathBuf, Option<Bodies>> = BTreeMap::new();
    let (mut woven, mut rest) = (Vec::new(), Vec::new());
    for applied in todo {
        let fits = !applied.files.is_empty()
            && applied.files.iter().all(|(path, changed)| {
                let known = bodies.entry(path.clone()).or_insert_with(|| {
                    is_rust(path).then(|| Bodies::of(&changed.before)).flatten()
                });
                known
                    .as_ref()
                    .is_some_and(|bodies| bodies.hold(&changed.splices))
            });
        if fits && expectation(clean, applied.rule).is_ok() {
            woven.push(applied);
        } else {
            rest.push(applied);
        }
    }
    let mut together = Together {
        caught: Vec::new(),
        rest,
        reached: BTreeMap::new(),
        seconds: None,
    };
    // A build that serves one rule serves it no better than its own.
    if session.options.per_rule || woven.len() < 2 {
        together.rest.extend(woven);
        return Ok(together);
    }
    session
        .log
        .say(&format!("one build for {} rules", woven.len()));
    let originals: BTreeMap<PathBuf, String> = woven
        .iter()
        .flat_map(|applied| {
            applied
                .files
                .iter()
                .map(|(path, changed)| (path.clone(), changed.before.clone()))
        })
        .collect();
    let result = inside(session, place, clean, &bodies, &mut woven, &mut together);
    let back = originals
        .iter()
        .map(|(path, text)| (path.as_path(), text.as_str()));
    place.slot.write("one build for all", back)?;
    place.slot.clean();
    result?;
    let caught: BTreeSet<&str> = together
        .caught
        .iter()
        .map(|record| record.rule.as_str())
        .collect();
    let count = caught.len();
    let left = woven
        .into_iter()
        .filter(|applied| !caught.contains(applied.rule.id.value.as_str()))
        .collect::<Vec<_>>();
    together.rest.extend(left);
    if count > 0 {
        together.seconds = Some(start.elapsed().as_secs_f64() / count as f64);
    }
    Ok(together)
}

/// Weaves, builds, checks that no rule chosen is green, and judges each rule.
fn inside(
    session: &Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'_>>,
    bodies: &BTreeMap<PathBuf, Option<Bodies>>,
    woven: &mut Vec<Applied<'_>>,
    together: &mut Together<'_>,
) -> Result<()> {
    let names: BTreeSet<&str> = woven
        .iter()
        .flat_map(|applied| {
            applied
                .rule
                .expect
                .checks
                .iter()
                .chain(&applied.rule.must_pass)
        })
        .map(|check| check.gate.value.as_str())
        .collect();
    let mut out: BTreeSet<u32> = BTreeSet::new();
    let Some(gates) = built(session, place, bodies, woven, &names, &mut out)? else {
        return Ok(());
    };
    for (name, ready) in &gates {
        let checks: Vec<String> = clean[*name].passed.iter().cloned().collect();
        let run = ready.run(place, Some(&checks), &BTreeMap::new(), None)?;
        if let Some(check) = checks
            .iter()
            .find(|check| run.outcome(check) != Outcome::Passed)
        {
            session.log.note(&format!("with all rules built in and none chosen, `{check}` of gate {name} is not green; each rule is built alone"));
            return Ok(());
        }
    }
    let jobs = jobs(session, clean, &names);
    session.log.fact(
        "together",
        serde_json::json!({ "rules": woven.len() - out.len(), "jobs": jobs }),
    );
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::new(), BTreeMap::new()));
    let one = |index: usize| -> Result<()> {
        let rule = woven[index].rule;
        let number = index as u32 + 1;
        if out.contains(&number) || session.spent() {
            return Ok(());
        }
        session.log.say(&rule.id.value);
        let witness = place.work.join(format!("witness-{number}"));
        let mut env = rule.activate.clone().unwrap_or_default().env;
        env.insert(CHOSEN.into(), number.to_string());
        env.insert(WITNESS.into(), witness.display().to_string());
        let began = Instant::now();
        let repeats = rule.repeats.unwrap_or(session.options.repeat);
        let record = Armed {
            place,
            gates: &gates,
            clean,
            env,
        }
        .judge(rule, repeats)?;
        let reached = witness.exists();
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        if record.verdict == Verdict::Caught && reached {
            let record = Record {
                seconds: began.elapsed().as_secs_f64(),
                built: "together".into(),
                ..record
            };
            // Told at once: a run that is killed later keeps it.
            let record = declared_gap(rule, record);
            session.log.verdict(&record);
            done.0.push(record);
        } else {
            done.1.insert(rule.id.value.clone(), reached);
        }
        Ok(())
    };
    let failed = std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= woven.len() {
                    return Ok(());
                }
                one(index)?;
            }
        };
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().find_map(|thread| match thread.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some(anyhow::anyhow!("a thread that judged rules panicked")),
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let (caught, reached) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    together.caught = caught;
    together.reached = reached;
    Ok(())
}

/// The woven copy, built; rules that do not compile are left out. None when that does not help.
fn built<'a>(
    session: &'a Session,
    place: &Place<'_>,
    bodies: &BTreeMap<PathBuf, Option<Bodies>>,
    woven: &[Applied<'_>],
    names: &BTreeSet<&str>,
    out: &mut BTreeSet<u32>,
) -> Result<Option<BTreeMap<&'a str, Ready<'a>>>> {
    for _ in 0..ATTEMPTS {
        let mut parts: BTreeMap<&Path, (&str, Vec<Part>)> = BTreeMap::new();
        for (index, applied) in woven.iter().enumerate() {
            let number = index as u32 + 1;
            for (path, changed) in &applied.files {
                let (_, parts) = parts.entry(path).or_insert((&changed.before, Vec::new()));
                if !out.contains(&number) {
                    parts.push(Part {
                        number,
                        splices: changed.splices.clone(),
                    });
                }
            }
        }
        let mut texts = BTreeMap::new();
        for (path, (before, parts)) in parts {
            if let Some(Some(bodies)) = bodies.get(path) {
                texts.insert(path, weave(before, bodies, &parts));
            }
        }
        place.slot.write(
            "one build for all",
            texts
                .iter()
                .map(|(path, woven)| (*path, woven.text.as_str())),
        )?;
        let mut gates = BTreeMap::new();
        let mut refused = None;
        for name in names {
            let Some((name, gate)) = session.declared.gates.gates.get_key_value(*name) else {
                continue;
            };
            match build(place, name, gate)? {
                Ok(ready) => {
                    gates.insert(name.as_str(), ready);
                }
                Err(why) => {
                    refused = Some(why);
                    break;
                }
            }
        }
        let errors = match refused {
            None => return Ok(Some(gates)),
            Some(NotBuilt::Infra(why)) => {
                session.log.note(&format!(
                    "no build for all rules: {why}; each rule is built alone"
                ));
                return Ok(None);
            }
            Some(NotBuilt::Refused(errors, _)) => errors,
        };
        let before = out.len();
        for error in &errors {
            let (Some(woven), Some((start, end))) =
                (texts.get(error.finding.at.file.as_path()), error.bytes)
            else {
                continue;
            };
            let hit = woven
                .arms
                .iter()
                .filter(|(arm, _)| start < arm.end && end > arm.start);
            out.extend(hit.map(|(_, number)| *number));
        }
        if out.len() == before {
            let first = errors
                .first()
                .map_or_else(String::new, |error| error.finding.to_string());
            session.log.note(&format!(
                "no build for all rules ({first}); each rule is built alone"
            ));
            return Ok(None);
        }
    }
    Ok(None)
}

/// Gates at once: as asked, or what leaves the processors room by the clean runs' own waiting.
fn jobs(session: &Session, clean: &BTreeMap<String, Clean<'_>>, names: &BTreeSet<&str>) -> usize {
    let gates = || names.iter().filter_map(|name| clean.get(*name));
    if gates().any(|clean| clean.ready.gate.exclusive) {
        return 1;
    }
    if session.options.jobs > 0 {
        return session.options.jobs;
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    let wall: f64 = gates().map(|clean| clean.times.0.as_secs_f64()).sum();
    let cpu: f64 = gates().map(|clean| clean.times.1.as_secs_f64()).sum();
    ((0.7 * cores * wall / cpu.max(0.001)) as usize).clamp(1, 16)
}
