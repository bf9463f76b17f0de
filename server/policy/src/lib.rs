//! Every decision of the supervisor, as one pure function: [`step`].
//!
//! Owns: what the supervisor does when a worker dies, stops, refuses or is ready, when an
//! operator asks it to stop, and when time passes. Refuses to know: clocks, system calls, pages,
//! doorbells and logs. Time arrives inside the event, what is to be done leaves as an [`Action`].
//!
//! Invariant: [`invariants::check`] holds after every step, in release builds too.
//!
//! ```
//! use m0_policy::{Action, Config, Event, State, step};
//!
//! let config = Config::new(2).expect("two workers are in range");
//! let mut state = State::new(config, 0);
//! let actions = step(&mut state, Event::Start { now_ms: 0 });
//! assert_eq!(actions, [Action::Fork { slot: 0 }, Action::Fork { slot: 1 }]);
//!
//! step(&mut state, Event::Forked { slot: 0, pid: 100, now_ms: 1 });
//! step(&mut state, Event::Forked { slot: 1, pid: 101, now_ms: 2 });
//! step(&mut state, Event::Ready { pid: 100, now_ms: 20 });
//! let actions = step(&mut state, Event::Ready { pid: 101, now_ms: 21 });
//! assert_eq!(actions, [Action::Announce]);
//! ```

mod action;
mod config;
mod decide;
mod drain;
mod event;
pub mod invariants;
mod journal;
mod replay;
mod respawn;
mod slot;
mod state;

pub use action::{Action, DeathReason, WorkerSignal};
pub use config::{Config, ConfigError, MAX_WORKERS};
pub use drain::{Stop, Verdict};
pub use event::{Ending, Event, Unlawful};
pub use journal::{JOURNAL_ENTRIES, Journal};
pub use replay::{ParseError, replay};
pub use respawn::Row;
pub use slot::{Phase, Slot, Worker};
pub use state::{Course, State};

/// Exit code: every worker ended its drain with 0.
pub const EXIT_CLEAN: i32 = 0;
/// Exit code: stopped, but a worker crashed in the drain or had to be killed.
pub const EXIT_UNCLEAN: i32 = 1;
/// Exit code (EX_SOFTWARE of sysexits.h): one slot died too often without a healthy run.
pub const EXIT_CRASH_LOOP: i32 = 70;
/// Exit code (EX_OSERR of sysexits.h): the system refused to fork and nothing lives.
pub const EXIT_OS_REFUSED: i32 = 71;
/// Exit code (EX_CONFIG of sysexits.h): a worker of ours refused its configuration. A worker says
/// so with the same code.
pub const EXIT_REFUSED: i32 = 78;

/// Takes one event, says what is to be done about it.
///
/// The caller performs the actions in their order, and answers each [`Action::Fork`] with exactly
/// one [`Event::Forked`] or [`Event::ForkFailed`] before it feeds any wait status of that child.
/// It feeds each wait status as soon as it has reaped it, before it reaps the next one and before it
/// performs an action of any other event: to this state a process lives until its end is fed, and
/// a pid that is free already may be a stranger's when it is signalled, or the next child's.
/// After [`Action::Exit`] every event is ignored.
///
/// What is due by the event's time (a respawn, the kill at the bound) happens on any event, not
/// only on [`Event::Tick`]; time never runs backwards, an event with an earlier time than the last
/// one counts as being at the last one's.
///
/// # Panics
///
/// When the caller breaks the protocol (see [`State::lawful`]) or an invariant does not hold: both
/// are defects of ours, not of the world.
pub fn step(state: &mut State, event: Event) -> Vec<Action> {
    if let Err(unlawful) = state.lawful(event) {
        panic!("supervisor event {event}: {unlawful}");
    }
    let actions = state.take(event);
    invariants::check(state);
    actions
}
