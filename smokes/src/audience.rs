//! Streams held on every worker at once.
//!
//! Owns the opening of streams until they are spread, and what all of them must have seen. Knows nothing
//! of how the server spreads them.
//! Invariant: an audience has at least the wanted number of streams on every worker, or is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::events::{Beat, Id, Item, consecutive};
use crate::peer::{Closing, PATIENCE, Peer};
use crate::server::Server;
use crate::tape::{Tape, Taped};
use crate::until::{holds, until};

/// Most streams or connections that are opened in the hope of reaching every worker.
const MOST: usize = 400;

/// Held streams.
#[derive(Debug)]
pub struct Audience {
    tapes: Vec<Tape>,
}

impl Audience {
    /// Opens streams until every worker of `server` holds at least `each`, and at least `total` in all.
    pub fn gather(server: &Server<'_>, each: usize, total: usize) -> Result<Self> {
        let workers = server.workers() as usize;
        let mut tapes = Vec::new();
        let mut held: BTreeMap<u32, usize> = BTreeMap::new();
        while tapes.len() < total {
            let tape = Tape::open(server.addr(), None)?;
            *held.entry(tape.slot()).or_default() += 1;
            tapes.push(tape);
        }
        // A worker that is given no processor takes nothing for that while; the sharing makes up for it
        // as soon as it runs. So the rest is a wait with a bound in time.
        until(
            &format!("{each} streams on each of {workers} workers"),
            PATIENCE,
            || {
                if held.len() == workers && held.values().all(|&count| count >= each) {
                    return Ok(());
                }
                if tapes.len() < MOST {
                    let tape =
                        Tape::open(server.addr(), None).map_err(|error| format!("{error:#}"))?;
                    *held.entry(tape.slot()).or_default() += 1;
                    tapes.push(tape);
                }
                Err(format!("{held:?}"))
            },
        )?;
        Ok(Self { tapes })
    }

    /// Opens streams until `wanted` are held by one worker, and keeps only those.
    pub fn gather_on(server: &Server<'_>, slot: u32, wanted: usize) -> Result<Self> {
        let mut tapes = Vec::new();
        // Held as well, since what is open counts in the sharing. A worker that dies meanwhile is what
        // such a phase is about, so a stream that does not open is one of the others.
        let mut others = Vec::new();
        until(
            &format!("{wanted} streams on worker {slot}"),
            PATIENCE,
            || {
                if tapes.len() + others.len() < MOST {
                    match Tape::open(server.addr(), None) {
                        Ok(tape) if tape.slot() == slot => tapes.push(tape),
                        other => others.push(other),
                    }
                }
                holds(tapes.len() >= wanted, || {
                    format!("{} there, {} elsewhere", tapes.len(), others.len())
                })
            },
        )?;
        Ok(Self { tapes })
    }

    /// Every stream.
    pub fn tapes(&self) -> &[Tape] {
        &self.tapes
    }

    /// The streams held by one worker.
    pub fn on(&self, slot: u32) -> impl Iterator<Item = &Tape> {
        self.tapes.iter().filter(move |tape| tape.slot() == slot)
    }

    /// How many workers hold a stream.
    pub fn workers(&self) -> usize {
        self.tapes
            .iter()
            .map(Tape::slot)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// Awaits `count` beats on each stream, and answers all of the first stream.
    pub fn await_beats(&self, count: usize, bound: Duration) -> Result<Vec<Beat>> {
        for tape in &self.tapes {
            tape.await_beats(count, bound)?;
        }
        self.tapes.first().context("an audience")?.beats()
    }

    /// Checks that no stream skipped, repeated or reordered an id.
    pub fn check_order(&self) -> Result<()> {
        for (index, tape) in self.tapes.iter().enumerate() {
            consecutive(&tape.ids()?)
                .with_context(|| format!("stream {index} on worker {}", tape.slot()))?;
        }
        Ok(())
    }

    /// The pids of the producers of all beats seen.
    pub fn producers(&self) -> Result<BTreeSet<i32>> {
        let mut pids = BTreeSet::new();
        for tape in &self.tapes {
            pids.extend(tape.beats()?.iter().map(|beat| beat.pid));
        }
        Ok(pids)
    }

    /// Awaits the end of every stream, which must be in order: a `drain` event with `retry`, then the last
    /// chunk. Answers the retries.
    pub fn await_farewell(&self, bound: Duration) -> Result<Vec<u64>> {
        self.tapes
            .iter()
            .map(|tape| farewell(tape, bound))
            .collect()
    }
}

/// The retry of the last event of a stream that ends in order.
pub fn farewell(tape: &Tape, bound: Duration) -> Result<u64> {
    let end = tape.await_end(bound)?;
    ensure!(
        end.item == Item::End,
        "a stream on worker {} was cut ({:?}) and not ended with its last chunk",
        tape.slot(),
        end.item
    );
    let items = tape.items();
    let last = items.iter().rev().find_map(|taped| match taped {
        Taped {
            item: Item::Event(event),
            ..
        } => Some(event),
        _ => None,
    });
    let last = last.context("a stream ended without any event")?;
    ensure!(
        last.name == "drain",
        "the last event of a drained stream is {last:?}"
    );
    last.retry.with_context(|| format!("no retry in {last:?}"))
}

/// Every id seen by anyone, and the check that nobody missed one between its first and its last.
pub fn check_against_all(each: &[Vec<Id>]) -> Result<usize> {
    let all: BTreeSet<&Id> = each.iter().flatten().collect();
    let epochs: BTreeSet<&str> = all.iter().map(|id| id.epoch.as_str()).collect();
    ensure!(
        epochs.len() <= 1,
        "ids of {} epochs: {epochs:?}",
        epochs.len()
    );
    for (index, ids) in each.iter().enumerate() {
        for pair in ids.windows(2) {
            ensure!(
                pair[0] < pair[1],
                "client {index}: {} came after {}: a repeat or a reorder",
                pair[1],
                pair[0]
            );
        }
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
            continue;
        };
        let mine: BTreeSet<&Id> = ids.iter().collect();
        let missed: Vec<String> = all
            .range::<&Id, _>(first..=last)
            .filter(|id| !mine.contains(**id))
            .take(5)
            .map(ToString::to_string)
            .collect();
        ensure!(
            missed.is_empty(),
            "client {index}: a gap, it never saw {}",
            missed.join(", ")
        );
    }
    Ok(all.len())
}

/// One kept-alive connection to each worker of the server, by slot. Each has had one answer.
pub fn one_connection_each(server: &Server<'_>) -> Result<BTreeMap<u32, Peer>> {
    let mut held = BTreeMap::new();
    // The surplus is held as well until every worker has one: what is open counts in the sharing.
    let mut surplus = Vec::new();
    until("a connection to each worker", PATIENCE, || {
        if held.len() == server.workers() as usize {
            return Ok(());
        }
        if surplus.len() < MOST {
            let (slot, peer) = greet(server.addr()).map_err(|error| format!("{error:#}"))?;
            surplus.extend(held.insert(slot, peer));
        }
        Err(format!("{:?} reached", held.keys()))
    })?;
    Ok(held)
}

/// Connects and asks for `/`; the slot that answered and the open connection.
fn greet(to: SocketAddr) -> Result<(u32, Peer)> {
    let mut peer = Peer::connect(to)?;
    let slot = peer.get("/")?.expect(200)?.slot()?;
    Ok((slot, peer))
}

/// Connects and asks for `/` within `bound`; the slot that answered.
pub fn visit(to: SocketAddr, bound: Duration) -> Result<u32> {
    let mut peer = Peer::connect_within(to, bound)?;
    peer.patience = bound;
    peer.get("/")?.expect(200)?.slot()
}

/// Checks that each connection was ended in order and brought nothing more.
pub fn all_closed(peers: &mut [Peer], bound: Duration) -> Result<()> {
    for peer in peers {
        let how = peer.closed(bound)?;
        ensure!(how == Closing::Fin, "an idle connection was reset");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(texts: &[&str]) -> Vec<Id> {
        texts
            .iter()
            .map(|text| Id::parse(text).expect("well-formed"))
            .collect()
    }

    #[m0_spec::row(H42)]
    #[test]
    fn clients_are_checked_against_what_all_of_them_saw() {
        let check = |each: &[Vec<Id>]| check_against_all(each).map_err(|error| error.to_string());
        // Nobody saw 3: it may have died with its producer. Each has its own first and last.
        assert_eq!(
            check(&[
                ids(&["a-1", "a-2", "a-4"]),
                ids(&["a-2", "a-4", "a-5"]),
                vec![]
            ]),
            Ok(4)
        );
        for (each, wanted) in [
            (
                [ids(&["a-1", "a-3"]), ids(&["a-2"])],
                "client 0: a gap, it never saw a-2",
            ),
            ([ids(&["a-1", "a-1"]), vec![]], "a repeat or a reorder"),
            ([ids(&["a-2", "a-1"]), vec![]], "a repeat or a reorder"),
            ([ids(&["a-1"]), ids(&["b-2"])], "ids of 2 epochs"),
        ] {
            let failure = check(&each).expect_err(wanted);
            assert!(failure.contains(wanted), "{failure}");
        }
    }
}
