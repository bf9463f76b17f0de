//! What the supervisor remembers between two events.
//!
//! Owns the slots, the course of the whole host (new, running, stopping, gone), what may be asked
//! of them, and their text. How an event changes them is in `decide`. Invariant:
//! `invariants::check`.

use std::fmt;

use crate::config::Config;
use crate::drain::Stop;
use crate::event::{Event, Unlawful};
use crate::slot::{Phase, Slot};

/// Everything that the supervisor remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub(crate) config: Config,
    pub(crate) slots: Vec<Slot>,
    pub(crate) course: Course,
    pub(crate) now_ms: u64,
    pub(crate) announced: bool,
    pub(crate) standing_in: bool,
}

/// Where the host is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Nothing was forked yet.
    New,
    /// Every slot is to be filled.
    Running,
    /// A stop was recorded: no slot is filled again.
    Stopping(Stop),
    /// The exit was ordered; every event is ignored.
    Gone {
        /// The exit code.
        code: i32,
    },
}

impl State {
    /// A supervisor that has not started, at this moment (ms, monotonic).
    pub fn new(config: Config, now_ms: u64) -> Self {
        Self {
            config,
            slots: vec![Slot::new(); config.workers()],
            course: Course::New,
            now_ms,
            announced: false,
            standing_in: false,
        }
    }

    /// The bounds it keeps.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The slots, in order of their numbers.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Where the host is in its life.
    pub fn course(&self) -> Course {
        self.course
    }

    /// The latest time that any event has told, ms.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Whether a stop is recorded (an operator's, a crash loop's or a refusal's), or the host gone.
    pub fn stopping(&self) -> bool {
        matches!(self.course, Course::Stopping(_) | Course::Gone { .. })
    }

    /// The live workers: slot and pid.
    pub fn live(&self) -> impl Iterator<Item = (usize, u32)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, place)| place.worker().map(|worker| (slot, worker.pid)))
    }

    /// The next moment (ms) at which an [`Event::Tick`] is wanted; always later than
    /// [`State::now_ms`]. `None`: wait for something else.
    pub fn deadline(&self) -> Option<u64> {
        match self.course {
            Course::Running => self.slots.iter().filter_map(Slot::respawn_at_ms).min(),
            Course::Stopping(stop) if !stop.killing => Some(stop.kill_at_ms),
            Course::New | Course::Stopping(_) | Course::Gone { .. } => None,
        }
    }

    /// Whether this event can happen now, by the protocol of [`step`](crate::step): the outcome of
    /// a fork comes once for each fork asked for, with a pid that fork(2) can return and that no
    /// live worker has. Everything else may come at any time, from anyone.
    pub fn lawful(&self, event: Event) -> Result<(), Unlawful> {
        let (slot, pid) = match event {
            _ if matches!(self.course, Course::Gone { .. }) => return Ok(()),
            Event::Forked { slot, pid, .. } => (slot, Some(pid)),
            Event::ForkFailed { slot, .. } => (slot, None),
            _ => return Ok(()),
        };
        let place = self.slots.get(slot).ok_or(Unlawful::NoSuchSlot { slot })?;
        if place.phase != Phase::Forking {
            return Err(Unlawful::NoForkInFlight { slot });
        }
        match pid {
            Some(pid) if !is_child_pid(pid) => Err(Unlawful::BadPid { pid }),
            Some(pid) if self.find(pid).is_some() => Err(Unlawful::PidInUse { pid }),
            _ => Ok(()),
        }
    }

    /// The slot of a live worker with this pid.
    pub(crate) fn find(&self, pid: u32) -> Option<usize> {
        self.slots
            .iter()
            .position(|slot| slot.worker().is_some_and(|worker| worker.pid == pid))
    }
}

/// Whether fork(2) can return it to a parent and kill(2) takes it as one process: not 0 (the own
/// group), not 1 (init, or the supervisor itself), not negative as a `pid_t` (a group, or all).
pub(crate) fn is_child_pid(pid: u32) -> bool {
    pid >= 2 && i32::try_from(pid).is_ok()
}

impl fmt::Display for State {
    /// One line for the host, one for each slot: the journal's text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state course=")?;
        match self.course {
            Course::New => f.write_str("new")?,
            Course::Running => f.write_str("running")?,
            Course::Stopping(Stop {
                kill_at_ms,
                requested,
                killing,
                verdict,
            }) => {
                let (requested, killing) = (u8::from(requested), u8::from(killing));
                write!(
                    f,
                    "stopping kill_at={kill_at_ms} requested={requested} killing={killing} "
                )?;
                write!(f, "verdict={verdict}")?;
            }
            Course::Gone { code } => write!(f, "gone code={code}")?,
        }
        let (announced, standing_in) = (u8::from(self.announced), u8::from(self.standing_in));
        writeln!(
            f,
            " now={} announced={announced} standing_in={standing_in}",
            self.now_ms
        )?;
        for (number, slot) in self.slots.iter().enumerate() {
            writeln!(f, "slot number={number} phase={slot}")?;
        }
        Ok(())
    }
}
