//! The producer's thread: its schedule, its stop and its bounded join.
//!
//! Owns the thread and what becomes of it. Refuses to know what a step does. Invariant: the producer
//! is made before its thread exists, so a failing `make` is a refusal; a stop is seen within one
//! slice of the sleep; nobody waits for the thread longer than the bound.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use m0_page::ProducerCounter;
use m0_unix::clock::monotonic_ns;
use serde_json::json;

use crate::app::{HostContext, Producer};
use crate::cadence::Cadence;
use crate::log;
use crate::publisher::Publisher;
use crate::refusal::Refusal;
use crate::settings::Level;

/// Longest single sleep between two looks at the stop.
const SLICE: Duration = Duration::from_millis(50);

/// What the thread is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Steps are being done.
    Running,
    /// The thread ended because it was asked to.
    Stopped,
    /// A step failed or panicked, and the thread ended for it.
    Failed,
}

/// What the join found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// The thread has ended.
    Ended(Status),
    /// A step is still running; the thread is left behind.
    Abandoned,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    stop: bool,
    status: Status,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Plain words: a panic cannot leave them half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running producer.
#[derive(Debug)]
pub struct ProducerThread {
    shared: Arc<Shared>,
    name: &'static str,
}

impl ProducerThread {
    /// Makes the producer here and starts its thread.
    ///
    /// # Errors
    /// The producer's own [`Refusal`], or one that names why no thread could be started.
    pub fn start<P: Producer>(context: &HostContext) -> Result<Self, Refusal> {
        let producer = P::make(context)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                stop: false,
                status: Status::Running,
            }),
            changed: Condvar::new(),
        });
        let name = std::any::type_name::<P>();
        let out = context.publisher();
        if !out.claim_producer(context.slot()) {
            return Err(Refusal::new(format!(
                "the producer {name} would be the second of this host"
            )));
        }
        let body = Body {
            producer,
            out,
            shared: Arc::clone(&shared),
            name,
        };
        std::thread::Builder::new()
            .name("m0-producer".to_owned())
            .spawn(move || body.run())
            .map_err(|error| Refusal::new(format!("the producer {name} got no thread: {error}")))?;
        Ok(ProducerThread { shared, name })
    }

    /// Asks the producer to stop; returns at once.
    pub fn stop(&self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }

    /// Waits until the thread has ended, for at most `bound`.
    pub fn join_within(&self, bound: Duration) -> Joined {
        let guard = self.shared.lock();
        let (guard, _) = self
            .shared
            .changed
            .wait_timeout_while(guard, bound, |state| state.status == Status::Running)
            .unwrap_or_else(PoisonError::into_inner);
        match guard.status {
            Status::Running => Joined::Abandoned,
            ended => Joined::Ended(ended),
        }
    }

    /// What the thread is about right now.
    pub fn status(&self) -> Status {
        self.shared.lock().status
    }

    /// The producer's type, as the log names it.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

struct Body<P> {
    producer: P,
    out: Publisher,
    shared: Arc<Shared>,
    name: &'static str,
}

impl<P: Producer> Body<P> {
    fn run(mut self) {
        let ended = self.steps();
        self.out.release_producer();
        // The last act: whoever joins sees the word only after everything else is done.
        self.shared.lock().status = ended;
        self.shared.changed.notify_all();
    }

    fn steps(&mut self) -> Status {
        let mut cadence = Cadence::starting(monotonic_ns());
        loop {
            if self.shared.lock().stop {
                return Status::Stopped;
            }
            let out = &mut self.out;
            let producer = &mut self.producer;
            let message = match catch_unwind(AssertUnwindSafe(|| producer.step(out))) {
                Ok(Ok(period)) => {
                    let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
                    let following = cadence.follow(period_ns, monotonic_ns());
                    self.out.count(ProducerCounter::Steps, 1);
                    self.out.count(ProducerCounter::Missed, following.missed);
                    self.sleep_until(following.start_ns);
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the step panicked".to_owned(),
            };
            self.out.count(ProducerCounter::Failures, 1);
            log::event(
                Level::Error,
                "producer-failed",
                json!({ "producer": self.name, "message": message }),
            );
            return Status::Failed;
        }
    }

    /// Sleeps in slices, so that a stop is seen whatever the period.
    fn sleep_until(&self, start_ns: u64) {
        let mut guard = self.shared.lock();
        while !guard.stop {
            let now = monotonic_ns();
            if now >= start_ns {
                return;
            }
            let slice = SLICE.min(Duration::from_nanos(start_ns - now));
            guard = self
                .shared
                .changed
                .wait_timeout(guard, slice)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}
