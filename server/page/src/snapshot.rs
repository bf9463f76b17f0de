//! All figures of the page as plain values.
//!
//! Owns the list of what is reported. Knows nothing of JSON or metrics formats.
//!
//! Invariant: none across words. Each value was true at some moment of the call.

use crate::layout::line;
use crate::{Page, ProducerCounter, Share, SupervisorCounter, WorkerCounter, WorkerState};

/// Everything on the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSnapshot {
    /// The last sequence number committed to the frame log.
    pub event_id: u64,
    /// The host run's number.
    pub epoch: u64,
    /// The supervisor's figures.
    pub supervisor: SupervisorSnapshot,
    /// The producer's figures.
    pub producer: ProducerSnapshot,
    /// One entry a slot, slot 0 first.
    pub shares: Vec<ShareSnapshot>,
}

/// The supervisor's figures; each is the counter of that name in [`SupervisorCounter`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names and meanings are those of SupervisorCounter"
)]
pub struct SupervisorSnapshot {
    pub respawns: u64,
    pub crashes: u64,
    pub fork_failures: u64,
    pub strangers: u64,
    pub stops: u64,
    pub lock_repairs: u64,
    pub stand_ins: u64,
    pub kills: u64,
}

/// The producer's figures; each is the counter of that name in [`ProducerCounter`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names and meanings are those of ProducerCounter"
)]
pub struct ProducerSnapshot {
    /// Process id and slot of the producer, when one is registered.
    pub owner: Option<(u32, usize)>,
    pub steps: u64,
    pub missed: u64,
    pub refused_publishes: u64,
    pub published: u64,
    pub failures: u64,
    pub abandoned: u64,
}

/// A worker's figures; those below `busy` are the counters of that name in [`WorkerCounter`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names and meanings are those of Share and WorkerCounter"
)]
pub struct ShareSnapshot {
    pub slot: usize,
    pub pid: u32,
    pub state: WorkerState,
    pub held: u64,
    pub accepted: u64,
    pub deferrals: u64,
    pub wakeups: u64,
    pub fruitless: u64,
    pub streams: u64,
    pub stopped: bool,
    pub starved: bool,
    pub busy: bool,
    pub requests: u64,
    pub frames_delivered: u64,
    pub streams_opened: u64,
    pub streams_cut: u64,
    pub log_dropped: u64,
    pub panics: u64,
    pub bytes_sent: u64,
    pub refused: u64,
    pub proxy_refused: u64,
    pub tls_failed: u64,
}

impl Page<'_> {
    /// Reads every figure once.
    pub fn snapshot(&self) -> PageSnapshot {
        let supervisor = |counter| self.supervisor(counter).get();
        let producer = |counter| self.producer().figure(counter);
        PageSnapshot {
            event_id: self.event_id(),
            epoch: self.epoch(),
            supervisor: SupervisorSnapshot {
                respawns: supervisor(SupervisorCounter::Respawns),
                crashes: supervisor(SupervisorCounter::Crashes),
                fork_failures: supervisor(SupervisorCounter::ForkFailures),
                strangers: supervisor(SupervisorCounter::Strangers),
                stops: supervisor(SupervisorCounter::Stops),
                lock_repairs: supervisor(SupervisorCounter::LockRepairs),
                stand_ins: supervisor(SupervisorCounter::StandIns),
                kills: supervisor(SupervisorCounter::Kills),
            },
            producer: ProducerSnapshot {
                owner: self.producer().owner(),
                steps: producer(ProducerCounter::Steps),
                missed: producer(ProducerCounter::Missed),
                refused_publishes: producer(ProducerCounter::RefusedPublishes),
                published: producer(ProducerCounter::Published),
                failures: producer(ProducerCounter::Failures),
                abandoned: producer(ProducerCounter::Abandoned),
            },
            shares: self.shares().map(|share| share.snapshot()).collect(),
        }
    }
}

impl Share<'_> {
    /// Reads every figure of this worker once.
    pub fn snapshot(&self) -> ShareSnapshot {
        let counter = |counter| self.counter(counter).get();
        ShareSnapshot {
            slot: self.slot(),
            pid: self.pid(),
            state: self.state(),
            held: self.held(),
            accepted: self.figure(line::ACCEPTED),
            deferrals: self.figure(line::DEFERRALS),
            wakeups: self.figure(line::WAKEUPS),
            fruitless: self.figure(line::FRUITLESS),
            streams: self.streams(),
            stopped: self.stopped(),
            starved: self.starved(),
            busy: self.busy(),
            requests: counter(WorkerCounter::Requests),
            frames_delivered: counter(WorkerCounter::FramesDelivered),
            streams_opened: counter(WorkerCounter::StreamsOpened),
            streams_cut: counter(WorkerCounter::StreamsCut),
            log_dropped: counter(WorkerCounter::LogDropped),
            panics: counter(WorkerCounter::Panics),
            bytes_sent: counter(WorkerCounter::BytesSent),
            refused: counter(WorkerCounter::Refused),
            proxy_refused: counter(WorkerCounter::ProxyRefused),
            tls_failed: counter(WorkerCounter::TlsFailed),
        }
    }
}
