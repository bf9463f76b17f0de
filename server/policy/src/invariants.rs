//! What is true of every state that the supervisor can be in.
//!
//! Owns the list, in words and in code. Changes nothing and decides nothing. Invariant of the
//! list: every step from a state that satisfies it leads to one that does, for any lawful event.

#[cfg(test)]
mod tests;

use crate::drain::Stop;
use crate::slot::{Phase, Slot, Worker};
use crate::state::{Course, State, is_child_pid};

/// Asserts that the state is sound.
///
/// # Panics
///
/// With the sentence that does not hold and the whole state.
pub fn check(state: &State) {
    if let Err(broken) = holds(state) {
        panic!("supervisor invariant broken: {broken}\n{state}");
    }
}

/// The first sentence that is not true of this state.
pub(crate) fn holds(state: &State) -> Result<(), &'static str> {
    ensure(
        state.slots.len() == state.config.workers(),
        "there is one slot for each worker, from the first moment to the last",
    )?;
    for (number, slot) in state.slots.iter().enumerate() {
        if let Some(worker) = slot.worker() {
            worker_holds(state, worker)?;
            let later = &state.slots[number + 1..];
            ensure(
                later
                    .iter()
                    .filter_map(Slot::worker)
                    .all(|other| other.pid != worker.pid),
                "no two slots hold the same process",
            )?;
        }
        ensure(
            slot.row.since_ms <= state.now_ms,
            "a row of deaths began in the past",
        )?;
        ensure(
            slot.row.deaths == 0 || state.course != Course::New,
            "before the start nobody has died",
        )?;
        match state.course {
            Course::New | Course::Gone { .. } => ensure(
                slot.phase
                    == Phase::Vacant {
                        respawn_at_ms: None,
                    },
                "before the start and after the exit there is no worker and none is due",
            )?,
            Course::Running => running_holds(state, slot)?,
            Course::Stopping(stop) => stopping_holds(stop, slot)?,
        }
    }
    if let Course::Stopping(_) = state.course {
        ensure(
            !state.slots.iter().all(Slot::is_vacant),
            "a stop with nobody left is over: the host is gone",
        )?;
    }
    let any_stopped = state
        .slots
        .iter()
        .filter_map(Slot::worker)
        .any(|worker| worker.stopped);
    ensure(
        state.standing_in == (any_stopped && state.course == Course::Running),
        "the supervisor stands in while a worker is stopped, and not in a drain",
    )?;
    let all_serve = state
        .slots
        .iter()
        .all(|slot| matches!(slot.phase, Phase::Serving(_)));
    ensure(
        state.announced || !all_serve,
        "a host whose slots all serve has been announced",
    )?;
    ensure(
        state.deadline().is_none_or(|at_ms| at_ms > state.now_ms),
        "what was due has been done",
    )
}

fn worker_holds(state: &State, worker: &Worker) -> Result<(), &'static str> {
    ensure(
        is_child_pid(worker.pid),
        "a worker's pid names one process that is not init",
    )?;
    ensure(
        worker.forked_ms <= state.now_ms,
        "a worker was forked in the past",
    )?;
    ensure(
        worker
            .ready_ms
            .is_none_or(|at_ms| worker.forked_ms <= at_ms && at_ms <= state.now_ms),
        "a worker was ready after its fork and in the past",
    )
}

fn running_holds(state: &State, slot: &Slot) -> Result<(), &'static str> {
    ensure(
        slot.row.deaths < state.config.crash_limit(),
        "a host that runs has no slot in a crash loop",
    )?;
    match slot.phase {
        Phase::Vacant { respawn_at_ms } => {
            let latest_ms = state.now_ms.saturating_add(state.config.backoff_max_ms());
            ensure(
                respawn_at_ms.is_some_and(|at_ms| at_ms <= latest_ms),
                "a vacant slot of a running host is due within the largest backoff",
            )?;
            ensure(
                slot.row.deaths > 0,
                "a vacant slot of a running host has died",
            )
        }
        Phase::Forking => Ok(()),
        Phase::Starting(worker) => {
            ensure(
                worker.ready_ms.is_none(),
                "a worker that starts is not ready",
            )?;
            ensure(!worker.killed, "a worker that starts was not killed")
        }
        Phase::Serving(worker) => {
            ensure(worker.ready_ms.is_some(), "a worker that serves is ready")?;
            ensure(!worker.killed, "a worker that serves was not killed")
        }
        Phase::Draining(_) => Err("a worker drains only in a stop"),
    }
}

fn stopping_holds(stop: Stop, slot: &Slot) -> Result<(), &'static str> {
    match slot.phase {
        Phase::Vacant { respawn_at_ms } => ensure(
            respawn_at_ms.is_none(),
            "nobody is respawned after a recorded stop",
        ),
        Phase::Forking => Ok(()),
        Phase::Starting(_) | Phase::Serving(_) => Err("a stop has told every worker to end"),
        Phase::Draining(worker) => ensure(
            worker.killed == stop.killing,
            "the workers of a stop are killed together, when the killing begins",
        ),
    }
}

fn ensure(holds: bool, sentence: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(sentence) }
}
