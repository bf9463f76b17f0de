//! The last events and actions of a supervisor, kept so that they can be played again.
//!
//! Owns a bounded ring and its text. Does not know where the text goes. Invariant: the state at
//! the ring's beginning, stepped through the ring's events, is the state at its end, also after
//! old entries were dropped.

use std::collections::VecDeque;
use std::fmt::Write as _;

use crate::action::Action;
use crate::event::Event;
use crate::state::State;
use crate::step;

/// Entries that a journal keeps, unless it is told otherwise.
pub const JOURNAL_ENTRIES: usize = 1024;

/// First line of a journal's text.
pub(crate) const TITLE: &str = "m0 supervisor journal 1";

/// The last events, [`JOURNAL_ENTRIES`] at most, and what was done about them.
///
/// ```
/// use m0_policy::{Config, Event, Journal, State, replay, step};
///
/// let mut state = State::new(Config::new(1).expect("one worker is in range"), 0);
/// let mut journal = Journal::new(&state);
/// let event = Event::Start { now_ms: 7 };
/// let actions = step(&mut state, event);
/// journal.record(event, &actions);
/// assert_eq!(replay(&journal.text()), Ok(state));
/// ```
#[derive(Clone, Debug)]
pub struct Journal {
    /// The state before the first entry.
    base: State,
    most: usize,
    dropped: u64,
    entries: VecDeque<(Event, Vec<Action>)>,
}

impl Journal {
    /// An empty journal of a supervisor in this state, with the default bound.
    pub fn new(state: &State) -> Self {
        Self::bounded(state, JOURNAL_ENTRIES)
    }

    /// An empty journal that keeps at most this many entries, and at least one.
    pub fn bounded(state: &State, entries: usize) -> Self {
        Self {
            base: state.clone(),
            most: entries.max(1),
            dropped: 0,
            entries: VecDeque::new(),
        }
    }

    /// Entries that it keeps now.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was recorded yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Notes an event that was stepped and the actions that came of it. Call it before the actions
    /// are performed, so that a journal written by one of them is complete.
    pub fn record(&mut self, event: Event, actions: &[Action]) {
        if self.entries.len() == self.most
            && let Some((oldest, _)) = self.entries.pop_front()
        {
            step(&mut self.base, oldest);
            self.dropped += 1;
        }
        self.entries.push_back((event, actions.to_vec()));
    }

    /// The text: a title, the bounds, the state before the first entry, then each event with its
    /// actions. [`replay`](crate::replay) reads it.
    pub fn text(&self) -> String {
        let mut text = format!("{TITLE}\nconfig {}\n", self.base.config);
        let write = |text: &mut String, event: &Event, actions: &[Action]| {
            writeln!(text, "event {event}")?;
            actions
                .iter()
                .try_for_each(|action| writeln!(text, "action {action}"))
        };
        write!(text, "dropped entries={}\n{}", self.dropped, self.base)
            .expect("a string takes whatever is written to it");
        for (event, actions) in &self.entries {
            write(&mut text, event, actions).expect("a string takes whatever is written to it");
        }
        text
    }
}
