//! The loop's side of accepting.
//!
//! Owns the accept(2) of a worker and the size of a batch. Refuses to wait: the watch thread says when
//! to look. Invariant: a connection is taken only by a loop that runs, at most a batch of them before
//! the connections already held get their turn, and none while a live sibling holds less.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use m0_page::Verdict;
use m0_unix::sockets::{self, AcceptError, Peer};
use serde_json::json;
use socket2::Socket;

use crate::driver;
use crate::link::{End, Looked};
use crate::log;
use crate::settings::Level;
use crate::worker::Worker;

/// Connections taken before those already held get their turn.
const BATCH: usize = 16;

/// The most listeners of one host: as many as one word of bits can tell apart.
pub(crate) const LISTENERS_MOST: usize = 64;

/// Whose turn it is: one connection of each listener that has one, so that a flood at one of them does not keep
/// those who wait at another.
struct Turns<'a> {
    listeners: &'a [Socket],
    /// Outlives the look: the next one goes on where this one stopped.
    next: &'a Cell<usize>,
    /// A bit for each listener that had nothing when it was asked.
    empty: u64,
}

impl Turns<'_> {
    /// A connection of the listener whose turn it is; none when all of them are empty.
    fn accept(&mut self) -> io::Result<Option<(Socket, Peer)>> {
        for _ in 0..self.listeners.len() {
            let turn = self.next.get() % self.listeners.len();
            self.next.set(turn + 1);
            if self.empty >> turn & 1 == 1 {
                continue;
            }
            match sockets::accept(&self.listeners[turn]) {
                Ok(None) => self.empty |= 1 << turn,
                taken => return taken,
            }
        }
        Ok(None)
    }
}

/// Takes what waits, as far as it is this worker's to take. `force`: at least one, whatever others hold.
pub(crate) fn look(worker: &Rc<Worker>, force: bool, serve: &dyn Fn(Socket, Peer)) -> Looked {
    let mut taken = 0;
    let mut turns = Turns {
        listeners: worker.listeners(),
        next: worker.turn(),
        empty: 0,
    };
    let end = batch(worker, force, &mut turns, &mut taken, serve);
    Looked {
        end,
        took: taken > 0,
    }
}

fn batch(
    worker: &Rc<Worker>,
    force: bool,
    turns: &mut Turns<'_>,
    taken: &mut usize,
    serve: &dyn Fn(Socket, Peer),
) -> End {
    for _ in 0..BATCH {
        if worker.is_full() {
            if !force {
                return End::Full;
            }
            // Nobody else has room either: an answer at once beats a place in a queue that does not move.
            return refuse_batch(worker, turns, taken);
        }
        if worker.shares()
            && !(force && *taken == 0)
            && matches!(worker.verdict(), Verdict::Defer { .. })
        {
            return End::Deferred;
        }
        match turns.accept() {
            Ok(Some((socket, peer))) => {
                worker.note_starved(None);
                *taken += 1;
                prepare(worker, &socket, peer);
                serve(socket, peer);
            }
            Ok(None) => return End::Empty,
            Err(error) => match sockets::accept_error(&error) {
                // The connection died in the queue: the next one may be fine.
                AcceptError::Retry => {}
                AcceptError::Starved => {
                    worker.note_starved(Some(&error));
                    return End::Starved;
                }
                AcceptError::Fatal => {
                    log::event(
                        Level::Error,
                        "os-refused",
                        json!({ "what": "accepting", "message": error.to_string() }),
                    );
                    return End::Starved;
                }
            },
        }
    }
    End::More
}

/// Takes what waits and answers it with 503.
fn refuse_batch(worker: &Rc<Worker>, turns: &mut Turns<'_>, taken: &mut usize) -> End {
    for _ in 0..BATCH {
        match turns.accept() {
            Ok(Some((socket, peer))) => {
                *taken += 1;
                driver::refuse(worker, socket, peer);
            }
            Ok(None) => return End::Empty,
            Err(error) if sockets::accept_error(&error) == AcceptError::Retry => {}
            Err(error) => {
                worker.note_starved(Some(&error));
                return End::Starved;
            }
        }
    }
    End::More
}

/// Small writes go out at once, and a peer that vanished is noticed.
fn prepare(worker: &Worker, socket: &Socket, peer: Peer) {
    if let Peer::Tcp(_) = peer {
        // A connection that was reset in the meantime takes no options; its first read says so.
        let _ = sockets::set_nodelay(socket);
        // Twice the deadline of a reader, so that a cut of ours comes first and is logged.
        let _ = sockets::set_user_timeout(socket, worker.settings().write_timeout * 2);
    }
}
