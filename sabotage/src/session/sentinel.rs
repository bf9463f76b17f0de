//! The clean tree again, every so many rules and at the end: what is green now was green in between.
//!
//! Owns what is withdrawn. Invariant: a verdict that stands was made between two green runs of its gate's
//! clean checks; what came after the last green one is INFRA, and rules of a gate that is red are not begun.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::Session;
use super::baseline::{Clean, built};
use super::cache::Cache;
use super::together::Checks;
use crate::run::gate::{Place, Ready};
use crate::run::outcome::Outcome;
use crate::schema::rule::Rule;
use crate::verdict::{Record, Verdict};

/// What has been judged since the clean tree was last seen green.
pub(super) struct Watch<'s, 'c> {
    session: &'s Session,
    clean: &'c BTreeMap<String, Clean<'s>>,
    /// Rules and the gate that decided each, in order.
    since: Vec<(String, String)>,
    /// Gates that are red now, and why.
    red: BTreeMap<String, String>,
    /// Where confirmed verdicts go, and the key of each rule.
    cache: Option<(&'c Cache, &'c BTreeMap<String, String>)>,
}

impl<'s, 'c> Watch<'s, 'c> {
    /// Nothing judged yet.
    pub(super) fn new(
        session: &'s Session,
        clean: &'c BTreeMap<String, Clean<'s>>,
        cache: Option<(&'c Cache, &'c BTreeMap<String, String>)>,
    ) -> Self {
        Self {
            session,
            clean,
            since: Vec::new(),
            red: BTreeMap::new(),
            cache,
        }
    }

    /// Remembers that a rule was judged.
    pub(super) fn judged(&mut self, record: &Record) {
        if let Some(gate) = &record.gate {
            self.since.push((record.rule.clone(), gate.clone()));
        }
    }

    /// Whether so many rules were judged that the clean tree must be looked at.
    pub(super) fn due(&self) -> bool {
        let every = self.session.options.sentinel;
        every > 0 && self.since.len() >= every
    }

    /// The record of a rule that is not begun, because a gate of its own is red.
    pub(super) fn refuses(&self, rule: &Rule) -> Option<Record> {
        let mut checks = rule.expect.checks.iter().chain(&rule.must_pass);
        let (gate, why) = checks.find_map(|check| self.red.get_key_value(&check.gate.value))?;
        let why = format!("not begun: gate {gate} is red on the clean tree since ({why})");
        Some(Record::new(rule, Verdict::Pending).because(why))
    }

    /// Looks at the clean tree as it is in the slot: built, and its checks run.
    pub(super) fn look(
        &mut self,
        place: &Place<'_>,
        records: &mut BTreeMap<String, Record>,
    ) -> Result<()> {
        self.each(
            (records, &Checks::new()),
            |session, name| {
                let Some((name, gate)) = session.declared.gates.gates.get_key_value(name) else {
                    return Ok(Err("is gone".into()));
                };
                built(place, name, gate)
            },
            place,
        )
    }

    /// Looks at gates that are built already, with no rule chosen; checks that were never green there decided nothing and
    /// are left out.
    pub(super) fn look_at(
        &mut self,
        place: &Place<'_>,
        (gates, red): (&BTreeMap<&str, Ready<'s>>, &Checks),
        records: &mut BTreeMap<String, Record>,
    ) -> Result<()> {
        self.each(
            (records, red),
            |_, name| Ok(gates.get(name).cloned().ok_or_else(|| "is gone".into())),
            place,
        )
    }

    fn each(
        &mut self,
        (records, out): (&mut BTreeMap<String, Record>, &Checks),
        ready: impl Fn(&'s Session, &str) -> Result<Result<Ready<'s>, String>>,
        place: &Place<'_>,
    ) -> Result<()> {
        let names: BTreeSet<String> = self.since.iter().map(|(_, gate)| gate.clone()).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.session.log.say("clean tree once more");
        for name in names {
            let Some(before) = self.clean.get(&name) else {
                continue;
            };
            let why = match ready(self.session, &name)? {
                Err(why) => Some(why),
                Ok(ready) => {
                    let out =
                        |check: &&String| out.get(&name).is_some_and(|out| out.contains(*check));
                    let checks = before.passed.iter().filter(|check| !out(check));
                    let checks: Vec<String> = checks.cloned().collect();
                    let run = ready.run(place, Some(&checks), &BTreeMap::new(), None)?;
                    checks.iter().find_map(|check| match run.outcome(check) {
                        Outcome::Passed => None,
                        other => Some(format!("`{check}`: {other:?}")),
                    })
                }
            };
            self.session.log.fact(
                "sentinel",
                serde_json::json!({ "gate": name, "green": why.is_none() }),
            );
            let (mine, rest): (Vec<_>, Vec<_>) =
                self.since.drain(..).partition(|(_, gate)| *gate == name);
            self.since = rest;
            match why {
                None => self.confirm(&mine, records)?,
                Some(why) => self.withdraw(&name, why, &mine, records)?,
            }
        }
        Ok(())
    }

    fn confirm(
        &self,
        rules: &[(String, String)],
        records: &BTreeMap<String, Record>,
    ) -> Result<()> {
        let Some((cache, keys)) = self.cache else {
            return Ok(());
        };
        for (rule, _) in rules {
            if let (Some(record), Some(key)) = (records.get(rule), keys.get(rule)) {
                cache.put(key, record)?;
            }
        }
        Ok(())
    }

    fn withdraw(
        &mut self,
        gate: &str,
        why: String,
        rules: &[(String, String)],
        records: &mut BTreeMap<String, Record>,
    ) -> Result<()> {
        self.session.log.note(&format!("the clean tree is not green any more (gate {gate}: {why}); the verdicts of its rules since it was are withdrawn"));
        for (rule, _) in rules {
            if let Some(record) = records.get_mut(rule) {
                record.verdict = Verdict::Infra;
                record.why = format!("withdrawn: the clean tree was red afterwards ({why})");
                self.session
                    .log
                    .fact("withdrawn", serde_json::to_value(&*record)?);
            }
        }
        self.red.insert(gate.to_owned(), why);
        Ok(())
    }
}
