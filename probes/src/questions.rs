//! The probes: each a question, the rows that it is evidence for, and how it is answered.
//!
//! Knows the files below by name and nothing of what they do.
//! Invariant: names are unique, and a goal stands in the file that measures it.

mod accept_spread;
mod access_log;
mod crowd;
mod drain;
mod fanout;
mod instructions;
mod loris;
mod memory;
mod report_search;
mod respawn;
mod rps;
mod trace_runners;
mod trace_scale;

use anyhow::Result;
use m0_spec::Row;

use crate::report::Report;
use crate::session::Session;

/// One probe.
#[derive(Debug)]
pub struct Question {
    /// Unique.
    pub name: &'static str,
    /// The question, for people.
    pub asks: &'static str,
    /// The promises that the answer is evidence for; none where a figure stands for itself.
    pub rows: &'static [Row],
    /// Rounds unless the command line says otherwise.
    pub rounds: usize,
    /// Measures. What it cannot measure is an error.
    pub run: fn(&Session, &mut Report) -> Result<()>,
}

/// Every probe.
pub static QUESTIONS: [Question; 13] = [
    respawn::QUESTION,
    accept_spread::QUESTION,
    drain::QUESTION,
    memory::QUESTION,
    rps::QUESTION,
    access_log::QUESTION,
    fanout::QUESTION,
    crowd::QUESTION,
    loris::QUESTION,
    instructions::QUESTION,
    trace_scale::QUESTION,
    report_search::QUESTION,
    trace_runners::QUESTION,
];

/// The probe of a name.
pub fn named(name: &str) -> Option<&'static Question> {
    QUESTIONS.iter().find(|question| question.name == name)
}

#[cfg(test)]
mod tests {
    use super::{QUESTIONS, named};
    use std::collections::BTreeSet;

    #[m0_spec::row(E51, E87, E115, S18, S20, T18, T26, T27, W48)]
    #[test]
    fn each_promise_that_wants_a_probe_has_one() {
        let names: BTreeSet<&str> = QUESTIONS.iter().map(|question| question.name).collect();
        assert_eq!(names.len(), QUESTIONS.len(), "a name stands twice");
        let cases = [
            ("respawn", "S20"),
            ("accept_spread", "E51"),
            ("drain", "E87"),
            ("memory", "S18"),
            ("crowd", "S18"),
            ("access_log", "E115"),
            ("loris", "W48"),
            ("trace_scale", "T18"),
            ("report_search", "T26"),
            ("trace_runners", "T27"),
        ];
        for (name, row) in cases {
            let question = named(name).expect("a probe");
            assert!(
                question.rows.iter().any(|known| known.id == row),
                "{name} lacks {row}"
            );
        }
        assert!(
            QUESTIONS.iter().all(|question| question.rounds > 0),
            "a probe of no round"
        );
        assert!(named("drains").is_none());
    }
}
