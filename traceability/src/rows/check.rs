//! Judges the rows among each other and against the ledger.
//!
//! Owns: ids well formed, of their file's area, used once, never lost; claims of one sentence;
//! what each state must carry. Pure: areas and ledger in, findings out.
//! Invariant: every finding has file, line and column.

use std::collections::BTreeMap;
use std::path::Path;

use serde_saphyr::Spanned;

use super::read::{Area, LEDGER, Recorded, Row, State};
use crate::code::{Code, Fault};
use crate::finding::{At, Finding, hint};

/// All faults, in the order of the files; `spec` is the directory of the rows.
pub fn check(spec: &Path, areas: &[Area], ledger: &[Recorded]) -> Vec<Fault> {
    let mut check = Check {
        areas,
        spec,
        findings: Vec::new(),
        places: BTreeMap::new(),
    };
    if areas.iter().all(|area| area.rows.is_empty()) {
        check.push(
            Code::NoRows,
            At::file(spec),
            "there is no row at all".into(),
        );
    }
    for area in areas {
        check.area(area);
    }
    for area in areas {
        for row in &area.rows {
            check.successors(area, row);
        }
    }
    check.lost(ledger);
    check.findings
}

struct Check<'a> {
    areas: &'a [Area],
    spec: &'a Path,
    findings: Vec<Fault>,
    /// First place of each id, printed.
    places: BTreeMap<&'a str, String>,
}

impl<'a> Check<'a> {
    fn push(&mut self, code: Code, at: At, message: String) {
        self.findings
            .push(Fault::new(code, Finding { at, message }));
    }

    fn report<T>(&mut self, code: Code, area: &Area, node: &Spanned<T>, message: String) {
        let at = At::location(&area.file, &node.referenced);
        self.push(code, at, message);
    }

    fn area(&mut self, area: &'a Area) {
        let letters = area.letters.value.as_str();
        if letters.is_empty() || !letters.bytes().all(|byte| byte.is_ascii_uppercase()) {
            self.report(
                Code::RowIncomplete,
                area,
                &area.letters,
                format!("area `{letters}` is not made of capital letters"),
            );
        }
        if area.file.file_stem().is_none_or(|stem| stem != letters) {
            self.report(
                Code::RowIncomplete,
                area,
                &area.letters,
                format!("area {letters} stands in {letters}.yaml"),
            );
        }
        if area.title.value.trim().is_empty() {
            self.report(
                Code::RowIncomplete,
                area,
                &area.title,
                "the title is empty".into(),
            );
        }
        for row in &area.rows {
            self.id(area, row);
            if let Some(fault) = fault_of_sentence(&row.claim.value) {
                self.report(
                    Code::ClaimNoSentence,
                    area,
                    &row.claim,
                    format!("the claim of {} {fault}", row.id.value),
                );
            }
            if row.why.value.trim().is_empty() {
                self.report(
                    Code::RowIncomplete,
                    area,
                    &row.why,
                    format!("{} says no why", row.id.value),
                );
            }
            if row.needs.value.is_empty() {
                self.report(
                    Code::RowIncomplete,
                    area,
                    &row.needs,
                    format!("{} wants no kind of evidence", row.id.value),
                );
            }
            self.state(area, row);
        }
    }

    fn id(&mut self, area: &'a Area, row: &'a Row) {
        let id = row.id.value.as_str();
        let letters = area.letters.value.as_str();
        let number = id.strip_prefix(letters);
        let well_formed = number.is_some_and(|number| {
            !number.starts_with('0') && number.parse::<u32>().is_ok() && !number.starts_with('+')
        });
        if !well_formed {
            let message = format!(
                "`{id}` is no id of area {letters}: {letters} and a number from 1 are wanted"
            );
            self.report(Code::IdMalformed, area, &row.id, message);
            return;
        }
        let place = format!("{}:{}", area.file.display(), row.id.referenced.line());
        if let Some(first) = self.places.get(id) {
            let message = format!(
                "{id} is used twice: first at {first}; the next free id is {}",
                free(area)
            );
            self.report(Code::IdDuplicate, area, &row.id, message);
        } else {
            self.places.insert(id, place);
        }
    }

    fn state(&mut self, area: &Area, row: &Row) {
        let id = &row.id.value;
        let wanted: &[(&str, bool)] = match row.state {
            State::Active => &[],
            State::Planned => &[("reason", row.reason.is_some())],
            State::KnownIssue => &[
                ("reason", row.reason.is_some()),
                ("issue", row.issue.is_some()),
                ("owner", row.owner.is_some()),
                ("expires", row.expires.is_some()),
            ],
            State::OutOfScope => &[
                ("reason", row.reason.is_some()),
                ("expires", row.expires.is_some()),
            ],
            State::Retired => &[
                ("reason", row.reason.is_some()),
                ("by", row.by.is_some()),
                ("date", row.date.is_some()),
            ],
        };
        for (key, _) in wanted.iter().filter(|(_, there)| !there) {
            let message = format!("{id} is {} and says no `{key}`", row.state.word());
            self.report(Code::RowIncomplete, area, &row.id, message);
        }
        if row.state != State::Retired && (row.by.is_some() || row.date.is_some()) {
            self.report(
                Code::RowIncomplete,
                area,
                &row.id,
                format!("{id} names successors or a date and is not retired"),
            );
        }
        for day in [&row.date, &row.expires].into_iter().flatten() {
            if !is_day(&day.value) {
                self.report(
                    Code::RowIncomplete,
                    area,
                    day,
                    format!("`{}` is no day, such as 2027-06-30", day.value),
                );
            }
        }
    }

    fn successors(&mut self, area: &Area, row: &Row) {
        for successor in row.by.iter().flatten() {
            let got = successor.value.as_str();
            if got == row.id.value {
                self.report(
                    Code::SuccessorUnknown,
                    area,
                    successor,
                    format!("{got} cannot succeed itself"),
                );
            } else if !self.places.contains_key(got) {
                let hint = hint(got, self.places.keys().copied());
                self.report(
                    Code::SuccessorUnknown,
                    area,
                    successor,
                    format!("successor {got} does not exist{hint}"),
                );
            }
        }
    }

    fn lost(&mut self, ledger: &[Recorded]) {
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        for (id, line) in ledger {
            let at = At::line(&self.spec.join(LEDGER), *line);
            if let Some(first) = lines.insert(id, *line) {
                let message = format!("{id} stands in the ledger twice, first on line {first}");
                self.push(Code::IdDuplicate, at.clone(), message);
            }
            if !self.places.contains_key(id.as_str()) {
                let letters = id.trim_end_matches(|c: char| c.is_ascii_digit());
                let home = self.areas.iter().find(|area| area.letters.value == letters);
                let home = home.map_or_else(
                    || self.spec.display().to_string(),
                    |area| area.file.display().to_string(),
                );
                let message = format!(
                    "{id} is lost: it was used once; bring it back to {home}, as `state: retired` if need be"
                );
                self.push(Code::IdLost, at, message);
            }
        }
    }
}

/// The number after the highest of the area.
pub fn free(area: &Area) -> String {
    let letters = area.letters.value.as_str();
    let highest = area
        .rows
        .iter()
        .filter_map(|row| row.id.value.strip_prefix(letters)?.parse::<u32>().ok())
        .max()
        .unwrap_or(0);
    format!("{letters}{}", highest + 1)
}

/// Why a text is not one sentence, if it is not.
fn fault_of_sentence(claim: &str) -> Option<&'static str> {
    if claim.trim() != claim || claim.contains('\n') {
        return Some("is not one line");
    }
    let Some(body) = claim.strip_suffix('.') else {
        return Some("does not end in a full stop");
    };
    if body.split_whitespace().count() < 3 {
        return Some("is no sentence");
    }
    // A full stop, white space and a capital letter: a second sentence has begun.
    let begins = |(at, _): (usize, &str)| {
        body[at + 1..]
            .strip_prefix(' ')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase()))
    };
    if body.match_indices(['.', '!', '?']).any(begins) {
        return Some("is more than one sentence");
    }
    None
}

/// Whether a text is a day of the calendar, roughly: 2027-06-30.
pub fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |part: &str, len: usize| {
        (part.len() == len)
            .then(|| part.parse::<u16>().ok())
            .flatten()
    };
    match parts[..] {
        [year, month, day] => {
            number(year, 4).is_some_and(|year| year >= 2026)
                && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
                && number(day, 2).is_some_and(|day| (1..=31).contains(&day))
        }
        _ => false,
    }
}
