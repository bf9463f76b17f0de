//! Rows, tests, results and sabotages joined: one edge for each row that a test names, with its grade.
//!
//! Owns which result belongs to which test, and the grades. Refuses to judge: that a grade is too low is for
//! `judge`. Pure. Invariant: a grade is never higher than what the counted results say, and a result
//! that fits more than one test raises none of them.

mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

pub use names::is_check;
use names::{Index, by, last_part};

use crate::finding::At;
use crate::lock::Lock;
use crate::results::{Event, Outcome, Results, Sabotaged, Verdict};
use crate::rows::Rows;
use crate::rows::read::{Grade, Need, Row};
use crate::sabotage::Rules;
use crate::source::{Named, Test};

/// A test and what came of it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The test.
    pub test: Test,
    /// Whether the source names it; else a run did.
    pub in_source: bool,
    /// It left a line when it started.
    pub started: bool,
    /// Its results.
    pub outcomes: Vec<Outcome>,
}

impl Shown {
    /// The worst verdict, where a skip counts for nothing beside a run.
    pub fn verdict(&self) -> Option<Verdict> {
        self.outcomes.iter().map(|outcome| outcome.verdict).max()
    }

    /// Whether it ran at all.
    pub fn ran(&self) -> bool {
        self.started
            || self
                .verdict()
                .is_some_and(|verdict| verdict > Verdict::Skipped)
    }

    /// What its results alone make of it.
    fn grade(&self) -> Grade {
        match self.verdict() {
            Some(Verdict::Passed) => Grade::Passed,
            _ if self.ran() => Grade::Ran,
            _ => Grade::Declared,
        }
    }
}

/// A row that a test names.
#[derive(Debug, Clone)]
pub struct Edge {
    /// The row's id, which may be of no row.
    pub row: String,
    /// Index in [`Graph::shown`].
    pub test: usize,
    /// Where the test names it.
    pub at: At,
    /// How far the evidence has come.
    pub grade: Grade,
    /// Rules that this very test caught, with what it said.
    pub proven_by: Vec<(String, String)>,
    /// Rules of the row that it should have caught and did not.
    pub hollow_by: Vec<(String, String)>,
    /// What changed since it was proven or accepted.
    pub stale: Option<String>,
}

/// How far a row has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The best of its edges; hollow when an edge is refuted and none is proven.
    pub best: Grade,
    /// The best of each kind that it needs.
    pub needs: Vec<(Need, Grade)>,
}

impl Standing {
    /// The weakest kind that it needs.
    pub fn weakest(&self) -> Option<(Need, Grade)> {
        self.needs.iter().copied().min_by_key(|(_, grade)| *grade)
    }

    /// What the row has reached: proven only when every kind passed, else no more than its weakest kind.
    pub fn reached(&self) -> Grade {
        let weakest = self.weakest().map_or(self.best, |(_, grade)| grade);
        match (self.best, weakest) {
            (Grade::Hollow, _) => Grade::Hollow,
            (Grade::Proven, Grade::Passed | Grade::Proven) => Grade::Proven,
            (_, weakest) => weakest,
        }
    }
}

/// Everything joined.
#[derive(Debug, Default)]
pub struct Graph {
    /// All tests, of the source and of runs.
    pub shown: Vec<Shown>,
    /// All edges, by row and test.
    pub edges: Vec<Edge>,
    /// Edges of each row.
    pub by_row: BTreeMap<String, Vec<usize>>,
    /// Results that fit more than one test, with the tests.
    pub ambiguous: Vec<(Outcome, Vec<usize>)>,
    /// Results that were joined to a test.
    pub joined: usize,
    /// Tests by the last part of their names, from the first question on.
    by_last_part: OnceLock<HashMap<String, Vec<usize>>>,
}

impl Graph {
    /// Joins what was read.
    pub fn join(
        rows: &Rows,
        tests: Vec<Test>,
        rules: &Rules,
        results: &Results,
        lock: &Lock,
    ) -> Self {
        let mut graph = Self::default();
        graph.shown.extend(tests.into_iter().map(|test| Shown {
            test,
            in_source: true,
            started: false,
            outcomes: Vec::new(),
        }));
        let mut index = Index::of(&graph.shown);
        for event in &results.events {
            graph.event(event, &mut index);
        }
        for outcome in &results.outcomes {
            graph.outcome(outcome, results, &mut index);
        }
        graph.settle_kinds();
        graph.edges = edges(&graph.shown);
        for (at, edge) in graph.edges.iter().enumerate() {
            // They are in the order of their rows.
            match graph.by_row.last_entry() {
                Some(mut last) if *last.key() == edge.row => last.get_mut().push(at),
                _ => {
                    graph.by_row.insert(edge.row.clone(), vec![at]);
                }
            }
        }
        for sabotaged in &results.sabotages {
            graph.sabotaged(sabotaged);
        }
        let by_id = rows.by_id();
        for at in 0..graph.edges.len() {
            let Some((_, row)) = by_id.get(graph.edges[at].row.as_str()) else {
                continue;
            };
            if !lock.has_row(&graph.edges[at].row) {
                continue;
            }
            let line = lock.line_of(&graph, at, row, rules);
            let edge = &mut graph.edges[at];
            // What was proven on this very tree is proven, whatever it was before.
            if edge.grade != Grade::Proven
                && let Some(what) = lock.changed(&line)
            {
                edge.grade = edge.grade.min(Grade::Ran);
                edge.stale = Some(what);
            }
        }
        graph
    }

    fn event(&mut self, event: &Event, index: &mut Index) {
        let key = (&*event.package, &*event.target, &*event.test);
        let found = index.in_crate(&self.shown, key).to_vec();
        if !found.is_empty() {
            for at in found {
                let shown = &mut self.shown[at];
                shown.started |= event.ran;
                // What the macro expanded to is more than what the source shows.
                for row in &event.rows {
                    if shown.test.rows.iter().all(|named| named.id != *row) {
                        let at = place(event).unwrap_or_else(|| shown.test.at.clone());
                        shown.test.rows.push(Named {
                            id: row.clone(),
                            at,
                        });
                    }
                }
            }
            return;
        }
        let own = event.package.replace('-', "_") == event.target;
        let suite = if own {
            event.package.clone()
        } else {
            format!("{}::{}", event.package, event.target)
        };
        let kind = event.kind.unwrap_or(Need::Test);
        let at = place(event).unwrap_or_else(|| At::file(std::path::Path::new(&event.package)));
        let test = made_at_run(&suite, &event.test, &event.rows, kind, &at, &event.target);
        self.add(test, event.ran, index);
    }

    fn add(&mut self, test: Test, started: bool, index: &mut Index) -> usize {
        let at = self.shown.len();
        index.add(at, &test);
        self.shown.push(Shown {
            test,
            in_source: false,
            started,
            outcomes: Vec::new(),
        });
        at
    }

    fn outcome(&mut self, outcome: &Outcome, results: &Results, index: &mut Index) {
        let mut found = index.exact(&outcome.suite, &outcome.test).to_vec();
        if found.is_empty() {
            found = self.foreign(outcome, index);
            if found.len() > 1 {
                self.ambiguous.push((outcome.clone(), found));
                return;
            }
        }
        if found.is_empty() && !outcome.rows.is_empty() {
            let file = &results.files[outcome.file].path;
            let kind = outcome.kind.unwrap_or(Need::Test);
            let at = match &outcome.place {
                Some((source, line)) => At::line(source, *line),
                None => At::line(file, outcome.line.max(1)),
            };
            let test = made_at_run(&outcome.suite, &outcome.test, &outcome.rows, kind, &at, "");
            found.push(self.add(test, false, index));
        }
        self.joined += usize::from(!found.is_empty());
        for at in found {
            self.shown[at].outcomes.push(outcome.clone());
        }
    }

    /// The tests that a result of a runner without our names may mean: of the same name (parameters in
    /// brackets aside), and of these the ones whose suite ends alike, if there are any.
    fn foreign(&self, outcome: &Outcome, index: &mut Index) -> Vec<usize> {
        let candidates: Vec<usize> = index
            .like(&self.shown, &outcome.test)
            .iter()
            .copied()
            // A Rust test is named by its suite, or not at all.
            .filter(|at| self.shown[*at].test.krate.is_empty() || outcome.suite.is_empty())
            .collect();
        let alike = |at: &usize| {
            let (own, told) = (self.shown[*at].test.suite.as_str(), outcome.suite.as_str());
            let ends = |long: &str, short: &str| {
                long == short
                    || long
                        .strip_suffix(short)
                        .is_some_and(|rest| rest.ends_with(['.', '/']))
            };
            !told.is_empty() && (ends(own, told) || ends(told, own))
        };
        let same: Vec<usize> = candidates.iter().copied().filter(alike).collect();
        if same.is_empty() { candidates } else { same }
    }

    /// A runner's word on the kind holds where the source says no more than "test".
    fn settle_kinds(&mut self) {
        for shown in &mut self.shown {
            let kinds: BTreeSet<Option<Need>> =
                shown.outcomes.iter().map(|outcome| outcome.kind).collect();
            if shown.test.kind == Need::Test
                && let (1, Some(Some(kind))) = (kinds.len(), kinds.first())
            {
                shown.test.kind = *kind;
            }
        }
    }

    fn sabotaged(&mut self, sabotaged: &Sabotaged) {
        for row in &sabotaged.rows {
            for at in self.by_row.get(row).into_iter().flatten() {
                let edge = &mut self.edges[*at];
                if !is_check(&sabotaged.check, &self.shown[edge.test].test) {
                    continue;
                }
                let told = (sabotaged.rule.clone(), sabotaged.message.clone());
                match sabotaged.verdict.as_str() {
                    "caught" if edge.grade >= Grade::Passed => {
                        edge.proven_by.push(told);
                        if edge.grade == Grade::Passed {
                            edge.grade = Grade::Proven;
                        }
                    }
                    "missed" | "caught-elsewhere" => {
                        edge.hollow_by.push((told.0, sabotaged.verdict.clone()));
                        edge.grade = Grade::Hollow;
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether some test is what the name of a gate's check means.
    pub fn knows(&self, check: &str) -> bool {
        let part = |test: &Test| last_part(&test.name).to_owned();
        let by_last_part = self.by_last_part.get_or_init(|| by(&self.shown, part));
        let found = by_last_part.get(last_part(check));
        let mut found = found.into_iter().flatten();
        found.any(|at| is_check(check, &self.shown[*at].test))
    }

    /// The edges of a row.
    pub fn edges_of(&self, row: &str) -> impl Iterator<Item = &Edge> {
        let found = self.by_row.get(row).into_iter().flatten();
        found.map(|at| &self.edges[*at])
    }

    /// How far a row has come.
    pub fn standing(&self, row: &Row) -> Standing {
        let id = &row.id.value;
        let grades: Vec<(Need, Grade)> = self
            .edges_of(id)
            .map(|edge| (self.shown[edge.test].test.kind, edge.grade))
            .collect();
        let all = || grades.iter().map(|(_, grade)| *grade);
        let best = all().max().unwrap_or(Grade::None);
        let refuted = all().any(|grade| grade == Grade::Hollow);
        let of_kind = |need: Need| {
            let same = grades.iter().filter(|(kind, _)| *kind == need);
            same.map(|(_, grade)| *grade).max().unwrap_or(Grade::None)
        };
        Standing {
            best: if refuted && best < Grade::Proven {
                Grade::Hollow
            } else {
                best
            },
            needs: row
                .needs
                .value
                .iter()
                .map(|need| (*need, of_kind(*need)))
                .collect(),
        }
    }
}

/// An edge for each row that a test names, by row, test and place.
fn edges(shown: &[Shown]) -> Vec<Edge> {
    let name = |at: &usize| (&shown[*at].test.suite, &shown[*at].test.name);
    let mut order: Vec<usize> = (0..shown.len()).collect();
    order.sort_by(|a, b| name(a).cmp(&name(b)));
    // Tests of the same name share a rank, which is compared faster than the names.
    let ranks = order.chunk_by(|a, b| name(a) == name(b)).enumerate();
    let tests = ranks.flat_map(|(rank, tests)| tests.iter().map(move |at| (rank, *at)));
    let mut named: Vec<(&Named, usize, usize)> = tests
        .flat_map(|(rank, at)| {
            let rows = shown[at].test.rows.iter();
            rows.map(move |named| (named, rank, at))
        })
        .collect();
    named.sort_by(|(a, x, _), (b, y, _)| (&a.id, x, &a.at).cmp(&(&b.id, y, &b.at)));
    let edge = |(named, _, test): (&Named, usize, usize)| Edge {
        row: named.id.clone(),
        test,
        at: named.at.clone(),
        grade: shown[test].grade(),
        proven_by: Vec::new(),
        hollow_by: Vec::new(),
        stale: None,
    };
    named.into_iter().map(edge).collect()
}

fn place(event: &Event) -> Option<At> {
    event
        .place
        .as_ref()
        .map(|(file, line)| At::line(file, *line))
}

fn made_at_run(suite: &str, name: &str, rows: &[String], kind: Need, at: &At, krate: &str) -> Test {
    let named = |id: &String| Named {
        id: id.clone(),
        at: at.clone(),
    };
    Test {
        suite: suite.into(),
        name: name.into(),
        rows: rows.iter().map(named).collect(),
        kind,
        at: at.clone(),
        last: at.line,
        cfg: Vec::new(),
        ignored: false,
        hash: "-".into(),
        krate: krate.into(),
    }
}
