//! The access log: one JSON line a request, on standard output.
//!
//! Owns the format of an entry and the buffer of a worker's loop. Refuses to know who reads. Invariant:
//! an entry is written once, when it is dropped: its answer is done with, whole or cut, or there was
//! none. It never waits for a reader: lines beyond the buffer are dropped and counted on the page.

use std::cell::RefCell;

use http::{Method, StatusCode};
use m0_page::{Share, WorkerCounter};
use m0_unix::clock::monotonic_ns;
use m0_unix::output::Output;
use m0_unix::sockets::Peer;
use serde_json::json;

use crate::log::{self, Sink};

/// Bytes that are gathered before a write; the sweep writes what is left every tick.
const GATHER_BYTES: usize = 16 * 1024;

thread_local! {
    static LOG: RefCell<Option<AccessLog>> = const { RefCell::new(None) };
}

struct AccessLog {
    sink: Sink,
    share: Share<'static>,
    told_dropped: u64,
}

/// Opens the access log of this worker's loop.
pub(crate) fn open(share: Share<'static>) -> std::io::Result<()> {
    let sink = Sink::new(Some(Output::stdout()?));
    LOG.set(Some(AccessLog {
        sink,
        share,
        told_dropped: 0,
    }));
    Ok(())
}

/// Writes what was gathered, as far as the reader lets it.
pub(crate) fn flush() {
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.sink.flush();
            let dropped = log.sink.dropped();
            log.share
                .counter(WorkerCounter::LogDropped)
                .add(dropped - log.told_dropped);
            log.told_dropped = dropped;
        }
    });
}

/// Status of a request whose peer left, or was cut, before there was an answer; nginx's word for it.
const NO_ANSWER: u16 = 499;

/// One request on its way to becoming a line.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) method: Method,
    pub(crate) path: String,
    status: u16,
    bytes: u64,
    began_ns: u64,
    peer: Peer,
    slot: usize,
}

impl Entry {
    pub(crate) fn new(method: Method, path: String, peer: Peer, slot: usize) -> Self {
        Entry {
            method,
            path,
            status: NO_ANSWER,
            bytes: 0,
            began_ns: monotonic_ns(),
            peer,
            slot,
        }
    }

    /// There is an answer.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    /// So many bytes more of the answer's body went out.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut line = json!({
            "time": log::now(),
            "method": self.method.as_str(),
            "path": self.path,
            "status": self.status,
            "bytes": self.bytes,
            "us": (monotonic_ns() - self.began_ns) / 1_000,
            "peer": self.peer.to_string(),
            "slot": self.slot,
        })
        .to_string();
        line.push('\n');
        LOG.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.sink.push(line.as_bytes());
                if log.sink.pending_bytes() >= GATHER_BYTES {
                    log.sink.flush();
                }
            }
        });
    }
}
