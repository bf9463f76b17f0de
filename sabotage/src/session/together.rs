//! One build for all rules that lie inside function bodies, then one gate run a rule.
//!
//! Owns the woven copy and the division of rules. Only CAUGHT is taken from here: whatever else a woven
//! rule comes to is asked again with a build of its own, so that both ways cannot differ but in time.
//! Invariant: no verdict from a woven build by a check that is not green there with no rule chosen, and none where
//! the check failed and the patch never ran.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;

use super::baseline::{Bad, Clean, again};
use super::judge::Armed;
use super::own::{declared_gap, expectation};
use super::sentinel::Watch;
use super::weaving::built;
use super::{Applied, Judged, Session};
use crate::run::gate::{Place, Ready};
use crate::run::outcome::Outcome;
use crate::schema::rule::Rule;
use crate::source::edit::is_rust;
use crate::source::weave::{Bodies, CHOSEN, WITNESS};
use crate::verdict::{Record, Verdict};

/// The most gates at once that are chosen without being asked for.
const MOST: usize = 64;

/// What one build for all left to do.
#[derive(Default)]
pub(super) struct Together<'a> {
    /// Rules that need a build of their own.
    pub(super) rest: Vec<Applied<'a>>,
    /// Of those that were not caught: whether their patch ran.
    pub(super) reached: BTreeMap<String, bool>,
}

/// Rules whose edits one build can hold, and the others.
pub(super) fn divide<'a>(
    session: &Session,
    todo: Vec<Applied<'a>>,
) -> (Vec<Applied<'a>>, Vec<Applied<'a>>) {
    if session.options.per_rule {
        return (Vec::new(), todo);
    }
    let mut bodies: BTreeMap<PathBuf, Option<Bodies>> = BTreeMap::new();
    let fits = |applied: &Applied<'_>| {
        let activate = applied.rule.activate.as_ref();
        !applied.files.is_empty()
            && activate.is_none_or(|activate| activate.features.is_empty())
            && applied.files.iter().all(|(path, changed)| {
                let known = bodies.entry(path.clone()).or_insert_with(|| {
                    is_rust(path).then(|| Bodies::of(&changed.before)).flatten()
                });
                known
                    .as_ref()
                    .is_some_and(|bodies| bodies.hold(&changed.splices))
            })
    };
    let (woven, mut rest): (Vec<_>, Vec<_>) = todo.into_iter().partition(fits);
    // A build that serves one rule serves it no better than its own.
    if woven.len() < 2 {
        rest.splice(0..0, woven);
        return (Vec::new(), rest);
    }
    (woven, rest)
}

/// The gates that decide about these rules.
pub(super) fn gates(woven: &[Applied<'_>]) -> BTreeSet<String> {
    let names = woven.iter().flat_map(|applied| gates_of(applied.rule));
    names.map(str::to_owned).collect()
}

/// Runs what can be run together; what is caught is told. An error names gates that are flaky on the clean tree: they
/// were run there once less than those of no such rule, and not with all rules built in instead.
pub(super) fn run<'a, 's>(
    session: &'s Session,
    place: &Place<'_>,
    clean: &BTreeMap<String, Clean<'s>>,
    woven: Vec<Applied<'a>>,
    watch: &mut Watch<'s, '_>,
    told: &mut Judged,
) -> Result<Result<Together<'a>, Vec<Bad>>> {
    let start = Instant::now();
    // What was not seen green in the woven build is seen once more as it is.
    let mut unseen: Checks = gates(&woven)
        .into_iter()
        .filter_map(|name| Some((name.clone(), clean.get(&name)?.passed.clone())))
        .collect();
    let (mut woven, rest): (Vec<_>, Vec<_>) = woven
        .into_iter()
        .partition(|applied| expectation(clean, applied.rule).is_ok());
    let mut together = Together {
        rest,
        ..Together::default()
    };
    if woven.len() > 1 {
        session
            .log
            .say(&format!("one build for {} rules", woven.len()));
        let before = told.records.len();
        let mut bodies: BTreeMap<PathBuf, Option<Bodies>> = BTreeMap::new();
        let mut originals: BTreeMap<PathBuf, String> = BTreeMap::new();
        for (path, changed) in woven.iter().flat_map(|applied| &applied.files) {
            let text = originals
                .entry(path.clone())
                .or_insert_with(|| changed.before.clone());
            bodies
                .entry(path.clone())
                .or_insert_with(|| Bodies::of(text));
        }
        let all = All {
            session,
            place,
            clean,
            woven: &woven,
        };
        let result = all.inside(&bodies, watch, told, &mut together.reached);
        let back = originals
            .iter()
            .map(|(path, text)| (path.as_path(), text.as_str()));
        place.slot.write("one build for all", back)?;
        place.slot.clean();
        if let Some(red) = result? {
            unseen = red;
        }
        let count = told.records.len() - before;
        if count > 0 {
            let seconds = start.elapsed().as_secs_f64() / count as f64;
            told.per_rule.insert("together".into(), seconds);
        }
    }
    woven.retain(|applied| !told.records.contains_key(&applied.rule.id.value));
    together.rest.extend(woven);
    let bad = again(session, place, clean, &unseen)?;
    Ok(if bad.is_empty() {
        Ok(together)
    } else {
        Err(bad)
    })
}

/// The rules that share one build.
struct All<'x, 'a, 's> {
    session: &'s Session,
    place: &'x Place<'x>,
    clean: &'x BTreeMap<String, Clean<'s>>,
    woven: &'x [Applied<'a>],
}

/// Checks by gate.
pub(super) type Checks = BTreeMap<String, BTreeSet<String>>;

/// What came of some of them: caught, and whether the patches of the others ran.
type Done = (Vec<Record>, BTreeMap<String, bool>);

impl<'s> All<'_, '_, 's> {
    /// Weaves, builds, runs every check with no rule chosen, and judges each rule whose checks are green then; returns the
    /// others of them, none when there is no such build.
    fn inside(
        &self,
        bodies: &BTreeMap<PathBuf, Option<Bodies>>,
        watch: &mut Watch<'s, '_>,
        told: &mut Judged,
        reached: &mut BTreeMap<String, bool>,
    ) -> Result<Option<Checks>> {
        let Self {
            session,
            place,
            clean,
            woven,
        } = *self;
        let names: BTreeSet<&str> = woven
            .iter()
            .flat_map(|applied| gates_of(applied.rule))
            .collect();
        let mut out: BTreeSet<u32> = BTreeSet::new();
        let Some(gates) = built(session, place, bodies, woven, &names, &mut out)? else {
            return Ok(None);
        };
        let red = self.red(&gates)?;
        let rests = |applied: &Applied<'_>| {
            let checks = applied.rule.expect.checks.iter();
            let names = checks.chain(&applied.rule.must_pass).filter_map(|check| {
                let gate = &check.gate.value;
                Some((red.get(gate)?, clean[gate].check(check).ok()?))
            });
            names.into_iter().any(|(red, name)| red.contains(&name))
        };
        out.extend(
            (1..)
                .zip(woven)
                .filter(|(_, applied)| rests(applied))
                .map(|(number, _)| number),
        );
        let compiled = (0..woven.len()).filter(|index| !out.contains(&(*index as u32 + 1)));
        let exclusive =
            |index: &usize| gates_of(woven[*index].rule).any(|name| gates[name].gate.exclusive);
        let (alone, beside): (Vec<usize>, Vec<usize>) = compiled.partition(exclusive);
        let every = match session.options.sentinel {
            0 => usize::MAX,
            every => every,
        };
        for (indexes, most) in [(beside, MOST), (alone, 1)] {
            for chunk in indexes.chunks(every) {
                let chunk: Vec<usize> = chunk
                    .iter()
                    .copied()
                    .filter(|index| watch.refuses(woven[*index].rule).is_none())
                    .collect();
                let shared = chunk
                    .iter()
                    .flat_map(|index| gates_of(woven[*index].rule))
                    .collect();
                let jobs = jobs(session, clean, &shared).min(most);
                let (start, busy) = (Instant::now(), place.busy());
                let ((caught, others), ended) = self.side_by_side(&gates, &chunk, jobs);
                let (wall, busy) = (start.elapsed(), place.busy().saturating_sub(busy));
                told.pace.add(caught.len() + others.len(), jobs, busy, wall);
                session.log.fact(
                    "together",
                    serde_json::json!({
                        "rules": chunk.len(), "jobs": jobs,
                        "gate_seconds": busy.as_secs_f64(), "seconds": wall.as_secs_f64(),
                    }),
                );
                reached.extend(others);
                for record in caught {
                    watch.judged(&record);
                    told.records.insert(record.rule.clone(), record);
                }
                ended?;
                if watch.due() {
                    watch.look_at(place, (&gates, &red), &mut told.records)?;
                }
            }
        }
        // Here, where it needs no build: what is judged alone after this is looked at on its own.
        watch.look_at(place, (&gates, &red), &mut told.records)?;
        Ok(Some(red))
    }

    /// The checks that are not green in the woven build with no rule chosen: told by name.
    fn red(&self, gates: &BTreeMap<&str, Ready<'s>>) -> Result<Checks> {
        const SHOWN: usize = 5;
        let mut all = Checks::new();
        for (name, ready) in gates {
            let checks: Vec<String> = self.clean[*name].passed.iter().cloned().collect();
            let run = ready.run(self.place, Some(&checks), &BTreeMap::new(), None)?;
            let (_, red): (Vec<_>, Vec<_>) = checks
                .into_iter()
                .partition(|check| run.outcome(check) == Outcome::Passed);
            let Some(first) = red.first() else {
                continue;
            };
            let shown = red[..red.len().min(SHOWN)].join("`, `");
            let more = match red.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            self.session.log.note(&format!(
                "with all rules built in and none chosen, `{shown}`{more} of gate {name} is not green ({:?}); what rests on it is built alone",
                run.outcome(first)
            ));
            all.insert((*name).to_owned(), red.into_iter().collect());
        }
        Ok(all)
    }

    /// Judges some of the rules by so many jobs; what was judged before an error is returned beside it.
    fn side_by_side(
        &self,
        gates: &BTreeMap<&str, Ready<'s>>,
        indexes: &[usize],
        jobs: usize,
    ) -> (Done, Result<()>) {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Done::default());
        let work = || -> Result<()> {
            while let Some(index) = indexes.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.one(gates, *index, &done)?;
            }
            Ok(())
        };
        let mut ended = Ok(());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs.min(indexes.len()))
                .map(|_| scope.spawn(work))
                .collect();
            for thread in threads {
                match thread.join() {
                    Ok(result) => ended = std::mem::replace(&mut ended, Ok(())).and(result),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        (
            done.into_inner().unwrap_or_else(PoisonError::into_inner),
            ended,
        )
    }

    /// Judges one rule by choosing it.
    fn one(
        &self,
        gates: &BTreeMap<&str, Ready<'s>>,
        index: usize,
        done: &Mutex<Done>,
    ) -> Result<()> {
        let rule = self.woven[index].rule;
        let number = index + 1;
        if self.session.spent() {
            return Ok(());
        }
        self.session.log.say(&rule.id.value);
        let witness = self.place.work.join(format!("witness-{number}"));
        let mut env = rule.activate.clone().unwrap_or_default().env;
        env.insert(CHOSEN.into(), number.to_string());
        env.insert(WITNESS.into(), witness.display().to_string());
        let began = Instant::now();
        let repeats = rule.repeats.unwrap_or(self.session.options.repeat);
        let record = Armed {
            place: self.place,
            gates,
            clean: self.clean,
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
            self.session.log.verdict(&record);
            done.0.push(record);
        } else {
            done.1.insert(rule.id.value.clone(), reached);
        }
        Ok(())
    }
}

/// The gates that decide about a rule.
fn gates_of(rule: &Rule) -> impl Iterator<Item = &str> {
    let checks = rule.expect.checks.iter().chain(&rule.must_pass);
    checks.map(|check| check.gate.value.as_str())
}

/// Gates at once: as asked, or what leaves the processors room by the clean runs' own waiting.
fn jobs(session: &Session, clean: &BTreeMap<String, Clean<'_>>, names: &BTreeSet<&str>) -> usize {
    if session.options.jobs > 0 {
        return session.options.jobs;
    }
    let gates = || names.iter().filter_map(|name| clean.get(*name));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    let wall: f64 = gates().map(|clean| clean.times.0.as_secs_f64()).sum();
    let cpu: f64 = gates().map(|clean| clean.times.1.as_secs_f64()).sum();
    ((0.7 * cores * wall / cpu.max(0.001)) as usize).clamp(1, MOST)
}
