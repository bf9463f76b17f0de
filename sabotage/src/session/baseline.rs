//! The clean tree: each gate built, listed and run until it is known to be green.
//!
//! Owns what "green" means. Invariant: a check that is looked at later passed in every run here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;

use super::Session;
use crate::finding::nearest;
use crate::results::{Status, resolve};
use crate::run::gate::{NotBuilt, Place, Ready, build};
use crate::run::outcome::{Class, Outcome, Ran};
use crate::schema::gate::Gate;
use crate::schema::rule::{Check, Rule};

/// Why a gate can prove nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// The gate.
    pub gate: String,
    /// `red`, `flaky` or `empty`.
    pub word: &'static str,
    /// The reason.
    pub why: String,
}

/// A gate that is green on the clean tree.
#[derive(Debug)]
pub struct Clean<'a> {
    /// The gate, built.
    pub ready: Ready<'a>,
    /// Checks that passed in every run.
    pub passed: BTreeSet<String>,
    /// Names as rules give them, to whole names.
    pub names: BTreeMap<String, String>,
    /// Checks that passed when the whole gate ran, where a rule bounds its collateral.
    pub whole: BTreeSet<String>,
    /// Every check that the gate lists, where it can.
    pub listed: BTreeSet<String>,
    /// What clean runs printed.
    pub text: String,
    /// Waiting and processor time of one run.
    pub times: (Duration, Duration),
}

/// The gates by name, or those that are not green; and complaints about checks that are not there.
pub struct Baseline<'a> {
    /// Green gates.
    pub clean: BTreeMap<String, Clean<'a>>,
    /// The others.
    pub bad: Vec<Bad>,
}

impl Clean<'_> {
    /// The whole name of a check that rules may expect, or why there is none.
    pub fn check(&self, check: &Check) -> Result<String, String> {
        let wanted = &check.check.value;
        if let Some(name) = self.names.get(wanted)
            && self.passed.contains(name)
        {
            return Ok(name.clone());
        }
        Err(
            match resolve(self.passed.iter().map(String::as_str), wanted) {
                Ok(name) => return Ok(name.to_owned()),
                Err(several) if several.len() > 1 => {
                    format!(
                        "`{wanted}` is the end of several checks: {}",
                        several.join(", ")
                    )
                }
                Err(_) => {
                    let last = |name: &str| name.rsplit("::").next().unwrap_or_default().to_owned();
                    let ends: BTreeSet<String> = self
                        .passed
                        .iter()
                        .chain(&self.listed)
                        .flat_map(|name| [name.clone(), last(name)])
                        .collect();
                    let near = nearest(
                        wanted,
                        ends.iter()
                            .map(String::as_str)
                            .filter(|name| name != wanted),
                    );
                    let hint = match near {
                        Some(near) => format!(", did you mean `{near}`?"),
                        // Somebody who does not know the names yet.
                        None => some_of(&self.listed),
                    };
                    format!(
                        "gate `{}` has no check `{wanted}` that runs clean{hint}",
                        check.gate.value
                    )
                }
            },
        )
    }
}

/// Builds and runs every gate that the rules name; one of `woven` once less, for it runs once more with all rules built in and
/// none chosen.
pub(super) fn measure<'a>(
    session: &'a Session,
    place: &Place<'_>,
    rules: &[&Rule],
    woven: &BTreeSet<String>,
) -> Result<Baseline<'a>> {
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for check in rules
        .iter()
        .flat_map(|rule| rule.expect.checks.iter().chain(&rule.must_pass))
    {
        wanted
            .entry(&check.gate.value)
            .or_default()
            .insert(&check.check.value);
    }
    let mut baseline = Baseline {
        clean: BTreeMap::new(),
        bad: Vec::new(),
    };
    for (name, checks) in wanted {
        let Some((name, gate)) = session.declared.gates.gates.get_key_value(name) else {
            continue;
        };
        session.log.say(&format!("clean tree: gate {name}"));
        let bad = |word, why| Bad {
            gate: name.clone(),
            word,
            why,
        };
        let ready = match built(place, name, gate)? {
            Ok(ready) => ready,
            Err(why) => {
                baseline.bad.push(bad("red", why));
                continue;
            }
        };
        let bounded = rules.iter().any(|rule| {
            let mut expected = rule.expect.checks.iter();
            rule.max_collateral.is_some() && expected.any(|check| check.gate.value == *name)
        });
        let fewer = u32::from(woven.contains(name));
        let times = session.options.baseline.saturating_sub(fewer);
        match one(session, place, ready, &checks, (times, bounded))? {
            Ok(clean) => {
                baseline.clean.insert(name.clone(), clean);
            }
            Err((word, why)) => baseline.bad.push(bad(word, why)),
        }
    }
    Ok(baseline)
}

type Verdict<'a> = Result<Clean<'a>, (&'static str, String)>;

/// Runs one gate as often as the baseline asks for.
fn one<'a>(
    session: &Session,
    place: &Place<'_>,
    ready: Ready<'a>,
    checks: &BTreeSet<&str>,
    (times, bounded): (u32, bool),
) -> Result<Verdict<'a>> {
    let listed = ready.list(place)?;
    let mut names = BTreeMap::new();
    for check in checks {
        match &listed {
            Some(listed) => {
                if let Ok(name) = resolve(listed.iter().map(String::as_str), check) {
                    names.insert((*check).to_owned(), name.to_owned());
                }
            }
            None => {
                names.insert((*check).to_owned(), (*check).to_owned());
            }
        }
    }
    if let Some(listed) = &listed
        && listed.len() < ready.gate.min_checks
    {
        let why = format!(
            "{} checks are listed, fewer than min_checks ({})",
            listed.len(),
            ready.gate.min_checks
        );
        return Ok(Err(("empty", why)));
    }
    let by_check = ready.gate.cargo_test.is_some() || ready.gate.only.is_some();
    let wanted: Option<Vec<String>> = by_check.then(|| names.values().cloned().collect());
    let mut runs: Vec<Ran> = Vec::new();
    for _ in 0..times.max(1) {
        if wanted.as_ref().is_some_and(Vec::is_empty) {
            break;
        }
        runs.push(ready.run(place, wanted.as_deref(), &BTreeMap::new(), None)?);
    }
    for leak in runs
        .iter()
        .flat_map(|run| &run.all)
        .flat_map(|one| &one.ended.leaks)
    {
        session.log.note(&format!(
            "gate {} leaves a process behind: {leak}",
            ready.name
        ));
    }
    if let Some(warning) = runs
        .iter()
        .flat_map(|run| &run.all)
        .find_map(|one| one.ended.warning.clone())
    {
        session.log.note(&warning);
    }
    let whole = if bounded {
        let run = ready.run(place, None, &BTreeMap::new(), None)?;
        match green(&ready, &[run], None) {
            Ok(passed) => passed,
            Err(why) => return Ok(Err(why)),
        }
    } else {
        BTreeSet::new()
    };
    match green(&ready, &runs, wanted.as_deref()) {
        Err(why) => Ok(Err(why)),
        Ok(passed) => Ok(Ok(Clean {
            names,
            listed: listed.unwrap_or_default(),
            passed,
            whole,
            text: runs.iter().map(Ran::text).collect(),
            times: runs.last().map(Ran::times).unwrap_or_default(),
            ready,
        })),
    }
}

/// The clean runs anew, of checks that were not seen green as often as they should: the gates of those that are not so
/// each time.
pub(super) fn again(
    session: &Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'_>>,
    checks: &BTreeMap<String, BTreeSet<String>>,
) -> Result<Vec<Bad>> {
    let mut bad = Vec::new();
    for (name, checks) in checks {
        let (name, before) = clean.get_key_value(name).expect("a gate that was clean");
        session.log.say(&format!("clean tree again: gate {name}"));
        let checks: Vec<String> = checks.iter().cloned().collect();
        let mut say = |why| {
            bad.push(Bad {
                gate: name.clone(),
                word: "flaky",
                why,
            });
        };
        let ready = match built(place, name, before.ready.gate)? {
            Ok(ready) => ready,
            Err(why) => {
                say(why);
                continue;
            }
        };
        for _ in 0..session.options.baseline {
            let run = ready.run(place, Some(&checks), &BTreeMap::new(), None)?;
            let other = |check: &&String| run.outcome(check) != Outcome::Passed;
            if let Some(check) = checks.iter().find(other) {
                say(format!(
                    "`{check}` passed in one clean run and not in another"
                ));
                break;
            }
        }
    }
    Ok(bad)
}

/// A gate built as the copy is now, or why it cannot be run.
pub(crate) fn built<'a>(
    place: &Place<'_>,
    name: &'a str,
    gate: &'a Gate,
) -> Result<Result<Ready<'a>, String>> {
    Ok(build(place, name, gate)?.map_err(|error| match error {
        NotBuilt::Refused(errors, said) => {
            let first = errors.first();
            let first = first.map_or(said, |error| error.finding.to_string());
            format!("it does not build: {first}")
        }
        NotBuilt::Infra(why) => why,
    }))
}

/// All of a gate, built and run once as the copy is now: the checks that pass, or why it is not green.
pub(crate) fn whole(
    place: &Place<'_>,
    name: &str,
    gate: &Gate,
) -> Result<Result<BTreeSet<String>, (&'static str, String)>> {
    let ready = match built(place, name, gate)? {
        Ok(ready) => ready,
        Err(why) => return Ok(Err(("red", why))),
    };
    let run = ready.run(place, None, &BTreeMap::new(), None)?;
    Ok(green(&ready, &[run], None))
}

/// The checks that passed in every run, or why the gate is not green.
fn green(
    ready: &Ready<'_>,
    runs: &[Ran],
    wanted: Option<&[String]>,
) -> Result<BTreeSet<String>, (&'static str, String)> {
    let mut seen: Option<BTreeMap<String, Outcome>> = None;
    for run in runs {
        for one in &run.all {
            if one.class == Class::Empty {
                return Err((
                    "empty",
                    "the gate's exit code says that no check ran".into(),
                ));
            }
            if !matches!(one.class, Class::Pass | Class::Fail) {
                let said = crate::run::outcome::last_lines(&one.ended.stderr());
                return Err((
                    "red",
                    format!("the clean run ended by {:?} {said}", one.class),
                ));
            }
            if let Some((name, Status::Failed(message))) = one
                .checks
                .iter()
                .find(|(_, status)| matches!(status, Status::Failed(_)))
                && runs.len() == 1
            {
                return Err((
                    "red",
                    format!("`{name}` fails on the clean tree: {}", first_line(message)),
                ));
            }
        }
        let all = run.checks();
        if wanted.is_none() && all.len() < ready.gate.min_checks {
            let why = format!(
                "{} checks ran, fewer than min_checks ({})",
                all.len(),
                ready.gate.min_checks
            );
            return Err(("empty", why));
        }
        let outcomes: BTreeMap<String, Outcome> = all
            .keys()
            .map(|name| (name.clone(), run.outcome(name)))
            .collect();
        if let Some(before) = &seen {
            let word = |outcome: Option<&Outcome>| match outcome {
                Some(Outcome::Passed) => "passed",
                Some(Outcome::Failed(_)) => "failed",
                Some(Outcome::Skipped) => "skipped",
                _ => "told nothing",
            };
            for name in before.keys().chain(outcomes.keys()) {
                let (a, b) = (word(before.get(name)), word(outcomes.get(name)));
                if a != b {
                    return Err((
                        "flaky",
                        format!("`{name}` {a} in one clean run and {b} in another"),
                    ));
                }
            }
        }
        seen = Some(outcomes);
    }
    let seen = seen.unwrap_or_default();
    let failed = seen.iter().find_map(|(name, outcome)| match outcome {
        Outcome::Failed(message) => Some((name, message)),
        _ => None,
    });
    if let Some((name, message)) = failed {
        return Err((
            "red",
            format!("`{name}` fails on the clean tree: {}", first_line(message)),
        ));
    }
    let red = runs
        .iter()
        .flat_map(|run| &run.all)
        .find(|one| one.class == Class::Fail);
    if let Some(red) = red {
        let said = crate::run::outcome::last_lines(&format!(
            "{}\n{}",
            red.ended.stdout(),
            red.ended.stderr()
        ));
        return Err(("red", format!("the gate fails on the clean tree: {said}")));
    }
    Ok(seen
        .into_iter()
        .filter(|(_, outcome)| *outcome == Outcome::Passed)
        .map(|(name, _)| name)
        .collect())
}

/// A few of the checks that a gate lists, and how many more there are.
fn some_of(listed: &BTreeSet<String>) -> String {
    const SHOWN: usize = 5;
    if listed.is_empty() {
        return String::new();
    }
    let shown: Vec<&str> = listed.iter().take(SHOWN).map(String::as_str).collect();
    let more = match listed.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; it lists `{}`{more}", shown.join("`, `"))
}

fn first_line(text: &str) -> &str {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
}
