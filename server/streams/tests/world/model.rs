//! The workers, the log and what may happen to them.

use crate::client::Client;
use m0_framelog::{FrameLog, Replay, plan, sync};
use m0_streams::{Delivered, Fate, Frame, Key, Registry};
use std::ops::AddAssign;

pub(crate) const EPOCH: u64 = 0x5eed;
const WORKERS: usize = 3;
const CLIENTS: usize = 5;
const RING_BYTES: usize = 3_000;
const HEARTBEAT_MS: u64 = 100;

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Publish { count: usize, length: usize },
    Deliver { worker: u8, frames: usize },
    Join { client: u8, worker: u8, last: Last },
    Read { client: u8, bytes: usize },
    Leave { client: u8 },
    Respawn { worker: u8 },
    Drain { worker: u8 },
    Heartbeat { worker: u8, pause_ms: u64 },
}

/// The last event id that a client sends.
#[derive(Debug, Clone)]
pub(crate) enum Last {
    /// The one it got last; none if it got none.
    Own,
    None,
    Seq(u64),
    Text(&'static str),
}

/// How often what the promises are about took place.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) frames: usize,
    pub(crate) replays: usize,
    pub(crate) resets: usize,
    pub(crate) gaps: usize,
    pub(crate) drains: usize,
    pub(crate) heartbeats: usize,
    pub(crate) laps: usize,
    pub(crate) batches: usize,
    pub(crate) blocked: usize,
    pub(crate) cut_inside_a_chunk: usize,
}

impl Counts {
    pub(crate) fn each_happened(&self) -> bool {
        [
            self.frames,
            self.replays,
            self.resets,
            self.gaps,
            self.drains,
            self.heartbeats,
            self.laps,
            self.batches,
            self.blocked,
            self.cut_inside_a_chunk,
        ]
        .iter()
        .all(|count| *count > 0)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.replays += other.replays;
        self.resets += other.resets;
        self.gaps += other.gaps;
        self.drains += other.drains;
        self.heartbeats += other.heartbeats;
        self.laps += other.laps;
        self.batches += other.batches;
        self.blocked += other.blocked;
        self.cut_inside_a_chunk += other.cut_inside_a_chunk;
    }
}

/// Which connection of which client a stream goes to.
#[derive(Debug, Clone, Copy)]
struct Holder {
    key: Key,
    client: usize,
    connection: usize,
}

struct Worker {
    registry: Registry<'static>,
    held: Vec<Holder>,
}

pub(crate) struct World {
    log: FrameLog<'static>,
    workers: Vec<Worker>,
    clients: Vec<Client>,
    budget: usize,
    ms: u64,
    counts: Counts,
}

impl World {
    pub(crate) fn new(budget: usize) -> Self {
        // A log lives as long as the process does in the product; a case here leaks a few kilobytes.
        let ids: &'static _ = Box::leak(Box::new(sync::AtomicU64::new(0)));
        let words = Vec::leak(sync::words(m0_framelog::words_needed(RING_BYTES)));
        let log = FrameLog::format(words, ids, EPOCH);
        let worker = || Worker {
            registry: Registry::new(log, CLIENTS, budget),
            held: Vec::new(),
        };
        Self {
            log,
            workers: (0..WORKERS).map(|_| worker()).collect(),
            clients: (0..CLIENTS)
                .map(|number| Client::new(number % 2 == 1))
                .collect(),
            budget,
            ms: 0,
            counts: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.clients.iter().fold(self.counts, |mut sum, client| {
            sum += client.counts;
            sum
        })
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Publish { count, length } => (0..count).for_each(|_| self.publish(length)),
            Step::Deliver { worker, frames } => {
                self.deliver(usize::from(worker) % WORKERS, frames);
            }
            Step::Join {
                client,
                worker,
                last,
            } => {
                let client = usize::from(client) % CLIENTS;
                if !self.clients[client].is_connected() {
                    self.join(client, usize::from(worker) % WORKERS, &last);
                }
            }
            Step::Read { client, bytes } => self.read(usize::from(client) % CLIENTS, bytes),
            Step::Leave { client } => self.clients[usize::from(client) % CLIENTS].leave(),
            Step::Respawn { worker } => self.respawn(usize::from(worker) % WORKERS),
            Step::Drain { worker } => {
                let worker = usize::from(worker) % WORKERS;
                self.act(worker, |registry, ms, changes, write| {
                    registry.drain(ms, |_| 5, changes, write);
                });
            }
            Step::Heartbeat { worker, pause_ms } => {
                self.ms += pause_ms;
                self.act(
                    usize::from(worker) % WORKERS,
                    |registry, ms, changes, write| {
                        registry.heartbeats(HEARTBEAT_MS, ms, changes, write);
                    },
                );
            }
        }
        self.check_bounds();
    }

    /// The faults stop: every worker delivers, every client reads, and all must be up to date.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut busy = false;
            for worker in 0..WORKERS {
                while self.deliver(worker, 1) != Delivered::Empty {
                    busy = true;
                }
            }
            for client in 0..CLIENTS {
                busy |= self.clients[client].has_unread();
                self.read(client, usize::MAX);
            }
            if !busy {
                break;
            }
        }
        let tail = self.log.tail();
        for client in &mut self.clients {
            client.is_up_to_date(tail);
            client.leave();
        }
    }

    fn publish(&mut self, length: usize) {
        let write = |id: m0_framelog::FrameId, text: &mut Vec<u8>| {
            Frame::new(Some(id), text)
                .event("beat")
                .data(&data(id.seq, length))
                .finish();
        };
        self.log
            .append(1, write)
            .expect("the log takes frames of this size");
    }

    fn deliver(&mut self, worker: usize, most: usize) -> Delivered {
        let mut delivered = Delivered::Empty;
        self.act(worker, |registry, ms, changes, write| {
            delivered = registry.deliver(most, ms, changes, write);
        });
        match delivered {
            Delivered::Lapped { .. } => self.counts.laps += 1,
            Delivered::Frames { count: 2.., .. } => self.counts.batches += 1,
            Delivered::Frames { .. } | Delivered::Empty => {}
        }
        delivered
    }

    fn join(&mut self, client: usize, worker: usize, last: &Last) {
        let own = self.clients[client].last_event_id();
        let (text, honest) = match last {
            Last::Own => (own, true),
            Last::None => (None, false),
            Last::Seq(seq) => (Some(self.log.id(*seq).to_string()), false),
            Last::Text(text) => (Some((*text).to_owned()), false),
        };
        let plan = plan(text.as_deref(), self.log);
        if let Replay::From(_) = plan {
            self.counts.replays += 1;
        }
        let http10 = self.clients[client].http10();
        let worker_state = &mut self.workers[worker];
        let Ok(key) = worker_state.registry.insert(plan, http10, self.ms) else {
            return;
        };
        let connection = self.clients[client].joins(plan, honest);
        let holder = Holder {
            key,
            client,
            connection,
        };
        worker_state.held.push(holder);
        self.pump(worker, holder);
    }

    fn read(&mut self, client: usize, bytes: usize) {
        self.clients[client].read(bytes);
        for worker in 0..WORKERS {
            let on = |holder: &&Holder| {
                holder.client == client && self.clients[client].is_on(holder.connection)
            };
            if let Some(holder) = self.workers[worker].held.iter().find(on).copied() {
                self.pump(worker, holder);
            }
        }
    }

    /// The process is replaced: its sockets close at whatever byte they were.
    fn respawn(&mut self, worker: usize) {
        for holder in std::mem::take(&mut self.workers[worker].held) {
            if self.clients[holder.client].is_on(holder.connection) {
                self.clients[holder.client].is_cut();
            }
        }
        self.workers[worker].registry = Registry::new(self.log, CLIENTS, self.budget);
    }

    fn pump(&mut self, worker: usize, holder: Holder) {
        let socket = self.clients[holder.client].socket(holder.connection);
        let registry = &mut self.workers[worker].registry;
        let fate = registry.pump(holder.key, self.ms, |bytes| socket.write(bytes));
        self.settle_one(worker, holder.key, fate);
    }

    fn act(
        &mut self,
        worker: usize,
        act: impl FnOnce(
            &mut Registry<'static>,
            u64,
            &mut Vec<(Key, Fate)>,
            &mut dyn FnMut(Key, &[u8]) -> m0_streams::Wrote,
        ),
    ) {
        let state = &mut self.workers[worker];
        let (held, clients) = (&state.held, &mut self.clients);
        let mut changes = Vec::new();
        act(
            &mut state.registry,
            self.ms,
            &mut changes,
            &mut |key, bytes| {
                let holder = held
                    .iter()
                    .find(|holder| holder.key == key)
                    .expect("a stream has a holder");
                clients[holder.client]
                    .socket(holder.connection)
                    .write(bytes)
            },
        );
        for (key, fate) in changes {
            self.settle_one(worker, key, fate);
        }
    }

    /// What the host does with a stream that changed.
    fn settle_one(&mut self, worker: usize, key: Key, fate: Fate) {
        let state = &mut self.workers[worker];
        let Some(place) = state.held.iter().position(|holder| holder.key == key) else {
            return;
        };
        match fate {
            Fate::Clear => {}
            Fate::Blocked => self.counts.blocked += 1,
            Fate::Finished | Fate::Gone => {
                let holder = state.held.remove(place);
                assert!(state.registry.remove(key).is_some());
                let client = &mut self.clients[holder.client];
                if fate == Fate::Finished && client.is_on(holder.connection) {
                    client.is_ended();
                }
            }
        }
    }

    fn check_bounds(&self) {
        // The longest frame of `publish` with its framing, and the longest last word.
        let largest = 150 + 60;
        let notice = 120;
        for state in &self.workers {
            for holder in &state.held {
                let stream = state.registry.get(holder.key).expect("held");
                let bound = self.budget.max(largest) + if stream.is_ending() { notice } else { 0 };
                let waiting = stream.outbox().len_bytes();
                assert!(waiting <= bound, "{waiting} bytes wait, {bound} may");
            }
        }
    }
}

/// What frame `seq` says, so that its bytes can be told from another's.
pub(crate) fn data(seq: u64, length: usize) -> String {
    let letter = char::from(b'a' + (seq % 26) as u8);
    format!("{seq}:{}", String::from(letter).repeat(length))
}

pub(crate) fn is_data_of(seq: u64, text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(_, letters)| text == data(seq, letters.len()))
}
