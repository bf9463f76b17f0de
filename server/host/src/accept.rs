//! The loop's side of accepting.
//!
//! Owns the accept(2) of a worker and the size of a batch. Refuses to wait: the watch thread says when
//! to look. Invariant: a connection is taken only by a loop that runs, at most a batch of them before
//! the connections already held get their turn, and none while a live sibling holds less.

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

/// Takes what waits, as far as it is this worker's to take. `force`: at least one, whatever others hold.
pub(crate) fn look(worker: &Rc<Worker>, force: bool, serve: &dyn Fn(Socket, Peer)) -> Looked {
    let mut taken = 0;
    let end = batch(worker, force, &mut taken, serve);
    Looked {
        end,
        took: taken > 0,
    }
}

fn batch(worker: &Rc<Worker>, force: bool, taken: &mut usize, serve: &dyn Fn(Socket, Peer)) -> End {
    for _ in 0..BATCH {
        if worker.is_full() {
            if !force {
                return End::Full;
            }
            // Nobody else has room either: an answer at once beats a place in a queue that does not move.
            return refuse_batch(worker, taken);
        }
        if worker.shares()
            && !(force && *taken == 0)
            && matches!(worker.verdict(), Verdict::Defer { .. })
        {
            return End::Deferred;
        }
        match sockets::accept(worker.listener()) {
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
fn refuse_batch(worker: &Rc<Worker>, taken: &mut usize) -> End {
    for _ in 0..BATCH {
        match sockets::accept(worker.listener()) {
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
