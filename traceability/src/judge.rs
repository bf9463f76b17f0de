//! What falls short: every finding of `trace check`, each with its code and place.
//!
//! Owns the rules of judgement. Refuses to read or print. Pure but for the day, which is an argument.
//! Invariant: where results are missing or stale, what they could cure is not told a hundred times: the
//! missing results are the finding, and the run is inconclusive.

mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::code::{Code, Fault, Severity};
use crate::finding::{At, Finding, hint};
use crate::graph::{Edge, Shown};
use crate::results::Verdict;
use crate::rows::read::{Area, Grade, Row, State};
use crate::rows::{floor, place};
use crate::workspace::Workspace;

/// What is asked of a judgement.
#[derive(Debug, Clone)]
pub struct Ask {
    /// No row is asked for more than this.
    pub floor: Grade,
    /// Rows that must be proven, whatever else is asked: those that a change touches.
    pub touched: BTreeSet<String>,
    /// Today, `2026-11-29`: waivers end.
    pub today: String,
}

/// The judgement.
#[derive(Debug)]
pub struct Judged {
    /// Findings with their severity, worst first, then by place.
    pub found: Vec<(Severity, Fault)>,
    /// Active rows whose shortfall is left open, because results that could cure it are missing.
    pub open: usize,
}

impl Judged {
    /// 2 when something cannot be read, 1 when something is wrong, 3 when nothing can be said, else 0.
    pub fn exit(&self) -> u8 {
        match self.found.iter().map(|(severity, _)| *severity).max() {
            Some(Severity::Unreadable) => 2,
            Some(Severity::Error) => 1,
            Some(Severity::Inconclusive) => 3,
            _ => 0,
        }
    }
}

/// Judges a repository.
pub fn judge(workspace: &Workspace, ask: &Ask) -> Judged {
    let mut judge = Judge {
        workspace,
        rows: workspace.rows.by_id(),
        ask,
        faults: workspace.faults.clone(),
        open: 0,
        unproven: 0,
    };
    let unreadable = workspace
        .faults
        .iter()
        .any(|fault| fault.code.severity() == Severity::Unreadable);
    // What is built on half of the input would be noise.
    if !unreadable {
        judge.counts();
        judge.tests();
        for (area, row) in workspace.rows.all() {
            judge.row(area, row);
        }
        judge.proofs();
        judge.rules();
        judge.lock();
    }
    let mut found: Vec<(Severity, Fault)> = judge
        .faults
        .into_iter()
        .map(|fault| (workspace.config.severity(fault.code), fault))
        .filter(|(severity, _)| *severity > Severity::Off)
        .collect();
    found.sort_by(|(a, x), (b, y)| {
        b.cmp(a)
            .then_with(|| (&x.finding.at, x.code).cmp(&(&y.finding.at, y.code)))
            .then_with(|| x.finding.message.cmp(&y.finding.message))
    });
    found.dedup();
    Judged {
        found,
        open: judge.open,
    }
}

struct Judge<'a> {
    workspace: &'a Workspace,
    rows: BTreeMap<&'a str, (&'a Area, &'a Row)>,
    ask: &'a Ask,
    faults: Vec<Fault>,
    open: usize,
    /// Of these, rows that must be proven.
    unproven: usize,
}

impl<'a> Judge<'a> {
    fn say(&mut self, code: Code, at: At, message: String) {
        self.faults.push(Fault::new(code, Finding { at, message }));
    }

    fn counts(&mut self) {
        let workspace = self.workspace;
        let rows = workspace.rows.all();
        let rows = rows.filter(|(_, row)| row.state != State::Retired).count();
        let shown = &workspace.graph.shown;
        let tests = shown.iter().filter(|shown| !shown.test.rows.is_empty());
        let least = workspace.config.least;
        let file = Path::new(crate::config::FILE);
        if shown.is_empty() && workspace.source.by_macro.is_empty() {
            let message = "no test was found anywhere".into();
            self.say(Code::NoTests, At::file(file), message);
        }
        let mut counts = vec![
            ("rows", rows, least.rows),
            ("tests that name rows", tests.count(), least.tests),
            ("sabotages", workspace.rules.len(), least.sabotages),
        ];
        if workspace.results.lacking.is_empty() {
            counts.push(("results", workspace.graph.joined, least.results));
        }
        for (what, count, least) in counts {
            if count < least {
                let message = format!("{count} {what} are here and {least} are recorded");
                self.say(Code::FewerThanRecorded, At::file(file), message);
            }
        }
    }

    fn tests(&mut self) {
        let workspace = self.workspace;
        let rows = workspace.rows.by_id();
        let silent = self.silent();
        for shown in &workspace.graph.shown {
            let test = &shown.test;
            if test.rows.is_empty() {
                let message = format!("the test {} names no row", test.name);
                self.say(Code::TestWithoutRow, test.at.clone(), message);
            }
            for named in &test.rows {
                let Some((_, row)) = rows.get(named.id.as_str()) else {
                    let hint = hint(&named.id, rows.keys().copied());
                    let message = format!("there is no row {}{hint}", named.id);
                    self.say(Code::RowUnknown, named.at.clone(), message);
                    continue;
                };
                let (code, what) = match row.state {
                    State::Planned => (Code::RowPlanned, "is planned: make it active".to_owned()),
                    State::OutOfScope => (Code::RowOutOfScope, "is out of scope".to_owned()),
                    State::Retired => {
                        let by = row.by.iter().flatten();
                        let by: Vec<&str> = by.map(|id| id.value.as_str()).collect();
                        let next = if by.is_empty() {
                            String::new()
                        } else {
                            format!(": name {}", by.join(", "))
                        };
                        (Code::RowRetired, format!("is retired{next}"))
                    }
                    State::Active | State::KnownIssue => continue,
                };
                let message = format!("{} {what}", named.id);
                self.say(code, named.at.clone(), message);
            }
            if !test.rows.is_empty() && !silent.contains(test.suite.as_str()) {
                self.result(shown);
            }
        }
        let by_macro = &workspace.source.by_macro;
        for named in by_macro {
            if !rows.contains_key(named.id.as_str()) {
                let hint = hint(&named.id, rows.keys().copied());
                let message = format!("there is no row {}{hint}", named.id);
                self.say(Code::RowUnknown, named.at.clone(), message);
            }
        }
        for (outcome, tests) in &workspace.graph.ambiguous {
            let shown = &workspace.graph.shown;
            let names: Vec<String> = tests.iter().map(|at| shown[*at].test.id()).collect();
            let file = &workspace.results.files[outcome.file].path;
            let message = format!(
                "the result of `{}` fits {}: it counts for none",
                outcome.test,
                names.join(" and ")
            );
            self.say(Code::ResultAmbiguous, At::file(file), message);
        }
    }

    /// Suites of several tests of which not one ran: that is one finding for each, at its first test.
    fn silent(&mut self) -> BTreeSet<&'a str> {
        let workspace: &'a Workspace = self.workspace;
        let results = &workspace.results;
        let mut suites: BTreeMap<&str, Vec<&Shown>> = BTreeMap::new();
        let naming = workspace.graph.shown.iter();
        for shown in naming.filter(|shown| !shown.test.rows.is_empty()) {
            suites.entry(&shown.test.suite).or_default().push(shown);
        }
        let mut silent = BTreeSet::new();
        for (suite, tests) in suites {
            let quiet = |shown: &&Shown| {
                shown.outcomes.is_empty() && !shown.ran() && !results.lacks(shown.test.kind)
            };
            let any = !results.outcomes.is_empty();
            if any && !suite.is_empty() && tests.len() > 1 && tests.iter().all(quiet) {
                let message = format!(
                    "none of the {} tests of {suite} ran: no result and no event names one",
                    tests.len()
                );
                self.say(Code::NeverRan, tests[0].test.at.clone(), message);
                silent.insert(suite);
            }
        }
        silent
    }

    /// What came of one test.
    fn result(&mut self, shown: &Shown) {
        let test = &shown.test;
        match shown.verdict() {
            Some(Verdict::Failed) => {
                // The strict expected failure of a known issue is as it should be.
                let known = |id: &str| {
                    let found = self.rows.get(id);
                    found.is_some_and(|(_, row)| row.state == State::KnownIssue)
                };
                if test.rows.iter().all(|named| known(&named.id)) {
                    return;
                }
                let message = shown
                    .outcomes
                    .iter()
                    .find_map(|outcome| outcome.message.as_ref());
                let first = message.and_then(|text| text.lines().next());
                let why = first.map_or_else(String::new, |line| format!(": {line}"));
                let message = format!("{} failed{why}", test.name);
                self.say(Code::TestFailed, test.at.clone(), message);
            }
            Some(Verdict::Flaky) => {
                let message = format!("{} passed only when it was run again", test.name);
                self.say(Code::TestFlaky, test.at.clone(), message);
            }
            Some(Verdict::Passed) => {}
            Some(Verdict::Skipped) | None if shown.ran() => {}
            verdict => {
                let results = &self.workspace.results;
                if results.lacks(test.kind) || results.outcomes.is_empty() {
                    return;
                }
                let why = match verdict {
                    _ if test.ignored => "it is ignored in the source".to_owned(),
                    Some(_) => "its runner skipped it".to_owned(),
                    None if !test.cfg.is_empty() => {
                        format!("it is compiled only under {}", test.cfg.join(" and "))
                    }
                    None => "no result and no event names it".to_owned(),
                };
                let message = format!("{} never ran: {why}", test.name);
                self.say(Code::NeverRan, test.at.clone(), message);
            }
        }
    }

    fn row(&mut self, area: &Area, row: &Row) {
        let id = &row.id.value;
        let at = place(area, row);
        let waived = matches!(row.state, State::KnownIssue | State::OutOfScope);
        if let Some(day) = row.expires.as_ref().filter(|_| waived)
            && day.value < self.ask.today
        {
            let at = At::location(&area.file, &day.referenced);
            let message = format!("the waiver of {id} ended on {}", day.value);
            self.say(Code::WaiverExpired, at, message);
        }
        let edges: Vec<&Edge> = self.workspace.graph.edges_of(id).collect();
        if row.state == State::KnownIssue
            && let Some(edge) = edges.iter().find(|edge| edge.grade >= Grade::Passed)
        {
            let test = &self.workspace.graph.shown[edge.test].test;
            let message = format!("{id} is a known issue and {} passes", test.name);
            self.say(Code::KnownIssuePasses, at.clone(), message);
        }
        for edge in &edges {
            let test = &self.workspace.graph.shown[edge.test].test;
            if let Some(what) = &edge.stale {
                let message = format!(
                    "{id} by {}: {what}; prove it, or look and `trace accept {id} --why ..`",
                    test.name
                );
                self.say(Code::EdgeStale, edge.at.clone(), message);
            }
            for (rule, verdict) in &edge.hollow_by {
                let message = format!(
                    "{} claims {id}, and the sabotage {rule} was {verdict}",
                    test.name
                );
                self.say(Code::Hollow, edge.at.clone(), message);
            }
        }
        if row.state == State::Active {
            self.active(area, row, at, &edges);
        }
    }

    /// Results may be optional, but a proof that is asked for cannot do without them.
    fn proofs(&mut self) {
        let told = |fault: &Fault| matches!(fault.code, Code::ResultsMissing | Code::ResultsStale);
        if self.unproven == 0 || self.faults.iter().any(told) {
            return;
        }
        let config = &self.workspace.config;
        let lacking = &self.workspace.results.lacking;
        let absent = config.results.iter();
        let absent = absent.filter(|source| source.optional && lacking.contains(&source.kind));
        let words = absent.map(|source| match &source.made_by {
            Some(command) => format!("{} (`{command}` makes it)", source.files),
            None => source.files.clone(),
        });
        let words: Vec<String> = words.collect();
        let message = format!(
            "{} rows must be proven and cannot be without {}",
            self.unproven,
            words.join(" and ")
        );
        let at = At::file(Path::new(crate::config::FILE));
        self.say(Code::ResultsMissing, at, message);
    }

    fn active(&mut self, area: &Area, row: &Row, at: At, edges: &[&Edge]) {
        let id = &row.id.value;
        let results = &self.workspace.results;
        let wanted = if self.ask.touched.contains(id) {
            Grade::Proven
        } else {
            floor(area, row).min(self.ask.floor)
        };
        let rules = &self.workspace.rules;
        let broken = |id: &String| rules.breaking(id).next().is_some();
        if wanted == Grade::Proven && !broken(id) {
            let message = format!("no sabotage breaks {id}: {}", row.claim.value);
            self.say(Code::RowWithoutSabotage, at.clone(), message);
        }
        let standing = self.workspace.graph.standing(row);
        let lacking: Vec<_> = standing
            .needs
            .iter()
            .filter(|(_, grade)| *grade == Grade::None)
            .map(|(need, _)| *need)
            .collect();
        // Phases are known from what they leave behind: without it nothing can be said of them.
        let (open, gone): (Vec<_>, Vec<_>) =
            lacking.into_iter().partition(|need| results.lacks(*need));
        if !gone.is_empty() {
            let words: Vec<&str> = gone.iter().map(|need| need.word()).collect();
            let (code, message) = if edges.is_empty() && open.is_empty() {
                let text = format!("nothing shows {id}: {}", row.claim.value);
                (Code::RowWithoutEvidence, text)
            } else {
                let shown = &self.workspace.graph.shown;
                let has: BTreeSet<&str> = edges
                    .iter()
                    .map(|edge| shown[edge.test].test.kind.word())
                    .collect();
                let has = match has.len() {
                    0 => String::new(),
                    _ => format!(", {} does", Vec::from_iter(has).join(" and ")),
                };
                let wanted = words.join(" and ");
                let text = format!("{id} needs {wanted} and none names it{has}");
                (Code::RowWithoutKind, text)
            };
            self.say(code, at, message);
            return;
        }
        let short = |grade: Grade| grade < wanted.min(Grade::Passed);
        let weak: Vec<_> = standing
            .needs
            .iter()
            .filter(|(need, grade)| short(*grade) && !results.lacks(*need))
            .collect();
        let unproven = wanted == Grade::Proven && standing.best < Grade::Proven;
        if standing.best == Grade::Hollow {
            // Told at the test that claims it.
        } else if !weak.is_empty() {
            let words: Vec<String> = weak
                .iter()
                .map(|(need, grade)| format!("{} {}", need.word(), grade.word()))
                .collect();
            let message = format!(
                "{id} must be {} and is not: {}",
                wanted.word(),
                words.join(", ")
            );
            self.say(Code::BelowFloor, at, message);
        } else if standing.needs.iter().any(|(_, grade)| short(*grade))
            || (unproven && results.lacks_sabotage())
        {
            self.open += 1;
            let whole = self.ask.floor == Grade::Proven || (unproven && results.lacks_sabotage());
            self.unproven += usize::from(wanted == Grade::Proven && whole);
        } else if unproven && broken(id) {
            let message = format!("{id} must be proven: no test of it has caught a sabotage");
            self.say(Code::BelowFloor, at, message);
        }
    }
}
