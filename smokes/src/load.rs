//! Clients that come at a fixed rate, each on a connection of its own.
//!
//! Owns the pace and the record of each visit. Decides nothing: a phase says which visits had to go well.
//! Invariant: visits start on schedule whatever became of the earlier ones, so a hang shows as itself and
//! not as fewer visits.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::audience::visit;

/// One visit: connect, one request, its answer.
#[derive(Debug, Clone)]
pub struct Visit {
    /// When its connect began.
    pub at: Instant,
    /// From there to the whole answer, or to the failure.
    pub took: Duration,
    /// The slot that answered, or why there was no answer.
    pub answer: Result<u32, String>,
}

/// A running load. Dropping it ends it.
#[derive(Debug)]
pub struct Load {
    visits: Arc<Mutex<Vec<Visit>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts `rate` visits a second, at most 1000. A visit that takes longer than `patience` is given up
    /// and recorded as a failure.
    pub fn start(to: SocketAddr, rate: u32, patience: Duration) -> Self {
        let interval = Duration::from_secs(1) / rate.clamp(1, 1000);
        let visits = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let next = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        // Enough that all but a few may hang at once and the pace is kept.
        let threads = (0..32)
            .map(|_| {
                let (visits, stop, next) =
                    (Arc::clone(&visits), Arc::clone(&stop), Arc::clone(&next));
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let due = start + interval * u32::try_from(index).unwrap_or(u32::MAX);
                        // The pace is the load: this waits for a time because it is one.
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        let at = Instant::now();
                        let answer = visit(to, patience).map_err(|error| format!("{error:#}"));
                        let one = Visit {
                            at,
                            took: at.elapsed(),
                            answer,
                        };
                        visits
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(one);
                    }
                })
            })
            .collect();
        Self {
            visits,
            stop,
            threads,
        }
    }

    /// Every visit that is over.
    pub fn visits(&self) -> Vec<Visit> {
        self.visits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Ends the load and answers every visit, in order of their start.
    pub fn finish(mut self) -> Vec<Visit> {
        self.end();
        let mut visits = self.visits();
        visits.sort_by_key(|visit| visit.at);
        visits
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A visit never panics: its errors are its record.
            let _ = thread.join();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[m0_spec::row(H46)]
    #[test]
    fn visits_go_on_at_their_pace_while_earlier_ones_hang() {
        // A listener that never accepts: every visit hangs until its patience ends.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        let load = Load::start(addr, 200, Duration::from_millis(100));
        let visits = crate::until("forty visits", Duration::from_secs(5), || {
            let visits = load.visits();
            if visits.len() >= 40 {
                Ok(visits)
            } else {
                Err(format!("{} visits", visits.len()))
            }
        })
        .expect("they are over soon");
        assert!(visits.iter().all(|visit| visit.answer.is_err()));
        let all = load.finish();
        let span = all[all.len() - 1].at - all[0].at;
        let pace = span.as_secs_f64() / (all.len() - 1) as f64;
        assert!((0.004..0.02).contains(&pace), "one visit each {pace} s");
    }
}
