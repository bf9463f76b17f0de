//! The verdict on a rule that is applied and built: its checks are run and compared with the clean ones.
//!
//! Owns the words CAUGHT, MISSED, INFRA, TIMEOUT and FLAKY. Refuses to build or to apply.
//! Invariant: CAUGHT only when the expected check passed clean, is reported failed now, and the gate's
//! exit code says failed.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use regex::Regex;

use super::baseline::Clean;
use crate::run::gate::{Place, Ready};
use crate::run::outcome::Outcome;
use crate::schema::read::duration;
use crate::schema::rule::{Check, Rule, Symptom};
use crate::verdict::{Record, Verdict};

/// One check, looked at once.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Caught(String),
    OtherMessage(String),
    Green,
    TimedOut,
    Infra(String),
}

/// How a rule's checks are run: the gates as built with the rule, and what arms it.
pub(super) struct Armed<'r, 'a> {
    /// Where.
    pub(super) place: &'r Place<'r>,
    /// Gates by name, built with the rule.
    pub(super) gates: &'r BTreeMap<&'r str, Ready<'a>>,
    /// Gates by name, as they are clean.
    pub(super) clean: &'r BTreeMap<String, Clean<'a>>,
    /// Variables that arm it.
    pub(super) env: BTreeMap<String, String>,
}

impl Armed<'_, '_> {
    /// The verdict, without the search for other checks that notice.
    pub(super) fn judge(&self, rule: &Rule, repeats: u32) -> Result<Record> {
        let mut rounds: Vec<Record> = Vec::new();
        for _ in 0..repeats.max(1) {
            let round = self.round(rule)?;
            if let Some(first) = rounds.first()
                && first.verdict != round.verdict
            {
                let why = format!(
                    "{} in one run and {} in another",
                    first.verdict.word(),
                    round.verdict.word()
                );
                return Ok(Record {
                    why,
                    ..Record::new(rule, Verdict::Flaky)
                });
            }
            rounds.push(round);
        }
        let record = rounds.pop().expect("at least one round was made");
        if record.verdict == Verdict::Caught {
            return self.controls(rule, record);
        }
        Ok(record)
    }

    /// Every expected check once.
    fn round(&self, rule: &Rule) -> Result<Record> {
        let mut all = Vec::new();
        for check in &rule.expect.checks {
            let (name, seen) = self.look(rule, check)?;
            let stop = !rule.expect.all && matches!(seen, Seen::Caught(_));
            all.push((check, name, seen));
            if stop {
                break;
            }
        }
        // What decides: the first of the most telling kind.
        let rank = |seen: &Seen| match (rule.expect.all, seen) {
            (false, Seen::Caught(_)) | (true, Seen::Green) => 0,
            (_, Seen::Infra(_)) => 1,
            (_, Seen::TimedOut) => 2,
            (_, Seen::OtherMessage(_)) => 3,
            (false, Seen::Green) | (true, Seen::Caught(_)) => 4,
        };
        let (check, name, seen) = all
            .into_iter()
            .min_by_key(|(_, _, seen)| rank(seen))
            .expect("a rule expects a check: it was linted");
        let mut record = match seen {
            Seen::Caught(message) => Record {
                message: Some(message),
                ..Record::new(rule, Verdict::Caught)
            },
            Seen::OtherMessage(message) => Record {
                message: Some(message),
                ..Record::new(rule, Verdict::CaughtElsewhere)
            }
            .because("the expected check fails, with another message than the expected one"),
            Seen::Green => Record::new(rule, Verdict::Missed),
            Seen::TimedOut => {
                Record::new(rule, Verdict::Timeout).because("the check passed its bound twice")
            }
            Seen::Infra(why) => Record::new(rule, Verdict::Infra).because(why),
        };
        record.gate = Some(check.gate.value.clone());
        record.check = Some(name);
        Ok(record)
    }

    /// One check; a result that proves nothing is looked at once more.
    fn look(&self, rule: &Rule, check: &Check) -> Result<(String, Seen)> {
        let clean = &self.clean[&check.gate.value];
        let name = clean.check(check).map_err(anyhow::Error::msg)?;
        let mut seen = self.once(rule, check, &name)?;
        if matches!(seen, Seen::Infra(_) | Seen::TimedOut) {
            seen = self.once(rule, check, &name)?;
        }
        Ok((name, seen))
    }

    fn once(&self, rule: &Rule, check: &Check, name: &str) -> Result<Seen> {
        let ready = &self.gates[check.gate.value.as_str()];
        let timeout: Option<Duration> =
            rule.timeout.as_ref().and_then(|text| duration(&text.value));
        let wanted = [name.to_owned()];
        let run = ready.run(self.place, Some(&wanted), &self.env, timeout)?;
        Ok(match run.outcome(name) {
            Outcome::Passed => Seen::Green,
            Outcome::Skipped => Seen::Infra("the check was skipped".into()),
            Outcome::Infra(why) => Seen::Infra(why),
            Outcome::Crashed(signal) if rule.symptom == Symptom::Crash => {
                Seen::Caught(format!("died by signal {signal}"))
            }
            Outcome::Crashed(signal) => Seen::Infra(format!(
                "the gate died by signal {signal}, which nobody asked for"
            )),
            Outcome::TimedOut if rule.symptom == Symptom::Hang => {
                Seen::Caught("did not end within its bound".into())
            }
            Outcome::TimedOut => Seen::TimedOut,
            Outcome::Failed(message) => match &check.message {
                None => Seen::Caught(message),
                Some(wanted) if Regex::new(&wanted.value)?.is_match(&message) => {
                    Seen::Caught(message)
                }
                Some(_) => Seen::OtherMessage(message),
            },
        })
    }

    /// The checks that must still pass.
    fn controls(&self, rule: &Rule, record: Record) -> Result<Record> {
        for check in &rule.must_pass {
            let (name, seen) = self.look(rule, check)?;
            if seen != Seen::Green {
                let why = format!(
                    "the control `{name}` of gate `{}` does not pass: the rule breaks more than its promise",
                    check.gate.value
                );
                return Ok(Record::new(rule, Verdict::BrokenExpectation).because(why));
            }
        }
        match rule.max_collateral {
            Some(most) => self.collateral(rule, record, most),
            None => Ok(record),
        }
    }

    /// The other checks of its gates: only so many may fail as the rule allows.
    fn collateral(&self, rule: &Rule, record: Record, most: usize) -> Result<Record> {
        let mut names: Vec<&str> = rule
            .expect
            .checks
            .iter()
            .map(|check| &*check.gate.value)
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut hit = Vec::new();
        for name in names {
            let clean = &self.clean[name];
            let asked: Vec<String> = rule
                .expect
                .checks
                .iter()
                .filter_map(|check| clean.check(check).ok())
                .collect();
            let run = self.gates[name].run(self.place, None, &self.env, None)?;
            let others = clean.whole.iter().filter(|check| !asked.contains(check));
            // A check that the run does not come to any more is hit as well.
            hit.extend(
                others
                    .filter(|check| run.outcome(check) != Outcome::Passed)
                    .cloned(),
            );
        }
        if hit.len() <= most {
            return Ok(record);
        }
        let shown = hit[..hit.len().min(5)].join("`, `");
        let why = format!(
            "{} other checks fail with it, more than max_collateral ({most}): `{shown}`",
            hit.len()
        );
        Ok(Record::new(rule, Verdict::BrokenExpectation).because(why))
    }
}
