//! A worker's watch thread: its ears while the loop works.
//!
//! Owns the wait for signals, for the supervisor's end, for connections and for a sibling's nudge, and
//! the two bounds that hold even when the loop is stuck: a connection waits at most 1 ms for a worker
//! that cannot take it, and the process ends at the drain's bound. Refuses to accept: only the loop
//! does, so nothing is in flight inside a worker that is stuck, stopped or dead.
//! Invariant: while this thread waits for its loop, it waits on no listener, so the kernel's
//! exclusive wake-up goes to a sibling.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use m0_page::{Share, Verdict};
use m0_unix::clock::monotonic_ms;
use m0_unix::fds::{ByteRead, read_byte};
use m0_unix::poll::{Interest, Poller, wait_readable};
use m0_unix::process;
use m0_unix::signals::{self, Signal, SignalFd};
use serde_json::json;
use socket2::Socket;

use crate::link::{DRAIN, End, FORCE, LOOK, Link, Looked, ORPHAN};
use crate::listen::SocketFile;
use crate::log;
use crate::publisher::Bus;
use crate::refusal::{EXIT_CLEAN, EXIT_UNCLEAN};
use crate::settings::Level;

/// How long a connection may wait for a sibling that holds less, or for a loop that is busy.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long a loop may stay away before its siblings stop leaving connections to it.
const BUSY_AFTER: Duration = Duration::from_millis(20);
/// Most pauses in a row, however uneven the workers are.
const MOST_DEFERRALS: u64 = 16;
/// How long a worker without descriptors looks away.
const STARVED_PAUSE: Duration = Duration::from_millis(50);
/// Time that a worker has when its supervisor is gone.
const ORPHAN_MS: u64 = 300;
/// Time after the drain's bound at which this thread ends a process whose loop does not come back: long
/// enough for a loop that is merely late on a loaded machine. The supervisor's own kill comes later.
const STUCK_MARGIN_MS: u64 = 300;

const SIGNAL: u64 = 0;
const LIFE: u64 = 1;
const NUDGE: u64 = 2;
const ANSWER: u64 = 3;
/// The first of the listeners; the others follow.
const LISTENER: u64 = 4;

/// What a watch thread is made from.
pub(crate) struct Watched {
    pub(crate) slot: usize,
    /// Whether connections are shared with siblings.
    pub(crate) shares: bool,
    pub(crate) drain: Duration,
    pub(crate) bus: Arc<Bus>,
    pub(crate) link: Arc<Link>,
    pub(crate) signals: SignalFd,
    /// Ends when the supervisor is gone; none where this process is its own.
    pub(crate) life: Option<OwnedFd>,
    pub(crate) listeners: Vec<Socket>,
    /// The socket files that this process removes at its end; none where the supervisor does.
    pub(crate) socket_files: Vec<SocketFile>,
}

/// Starts the thread.
pub(crate) fn start(watched: Watched) -> io::Result<()> {
    let mut watch = Watch::new(watched)?;
    std::thread::Builder::new()
        .name("m0-watch".to_owned())
        .spawn(move || watch.run())?;
    Ok(())
}

struct Watch {
    watched: Watched,
    share: Share<'static>,
    /// Everything, and everything but the listeners.
    all: Poller,
    control: Poller,
    listening: bool,
    draining: bool,
    /// When this thread ends the process, in monotonic milliseconds.
    end_at_ms: Option<u64>,
    ready: Vec<u64>,
}

/// What a wait brought.
#[derive(Default)]
struct Heard {
    nudged: bool,
    answered: bool,
    connection: bool,
}

impl Watch {
    fn new(watched: Watched) -> io::Result<Self> {
        let all = Poller::new()?;
        let control = Poller::new()?;
        for poller in [&all, &control] {
            poller.add(&watched.signals, SIGNAL, Interest::Level)?;
            if let Some(life) = &watched.life {
                poller.add(life, LIFE, Interest::Level)?;
            }
            poller.add(
                &watched.bus.accept_bells[watched.slot],
                NUDGE,
                Interest::Level,
            )?;
            poller.add(watched.link.bell(), ANSWER, Interest::Level)?;
        }
        let share = watched.bus.page.share(watched.slot);
        Ok(Watch {
            watched,
            share,
            all,
            control,
            listening: false,
            draining: false,
            end_at_ms: None,
            ready: Vec::new(),
        })
    }

    fn run(&mut self) {
        loop {
            let heard = self.wait(true, None);
            if self.watched.link.serves() && !self.listening && !self.draining {
                self.listen();
            }
            if (heard.connection || heard.nudged) && self.listening {
                self.share.woke();
                self.look();
            }
        }
    }

    fn listen(&mut self) {
        for (token, listener) in (LISTENER..).zip(&self.watched.listeners) {
            if let Err(error) = self.all.add(listener, token, Interest::ExclusiveLevel) {
                self.give_up("watching the listeners", &error);
            }
        }
        self.listening = true;
    }

    /// Something may wait at a listener: let the right worker take it.
    fn look(&mut self) {
        let mut force = false;
        let mut taken = false;
        let mut deferred = false;
        let mut pauses = 0;
        while self.connection_waits() {
            force |= self.share.take_handed();
            if self.watched.shares
                && !force
                && let Verdict::Defer { to } = self.watched.bus.page.verdict(self.watched.slot)
            {
                self.defer(to);
                deferred = true;
                pauses += 1;
                force = pauses >= self.most_deferrals(to);
                continue;
            }
            let looked = self.ask_loop(force);
            taken |= looked.took;
            match looked.end {
                End::Empty => break,
                // After `Deferred` it is judged anew above: the sibling that holds less is rung there.
                End::More | End::Deferred => {
                    force = false;
                    pauses = 0;
                }
                // A sibling may have room; when none has, the next look refuses with an answer.
                End::Full => {
                    self.share.mark_starved(true);
                    self.nudge_other();
                    self.pause(PATIENCE);
                    self.share.mark_starved(false);
                    force = true;
                }
                End::Starved => {
                    self.share.mark_starved(true);
                    self.nudge_other();
                    self.pause(STARVED_PAUSE);
                    self.share.mark_starved(false);
                }
            }
        }
        if !taken && !deferred {
            self.share.fruitless();
        }
    }

    fn connection_waits(&self) -> bool {
        // A failing poll is answered like a waiting connection: the loop's accept finds the error.
        let waits = |listener| wait_readable(listener, Some(Duration::ZERO)).unwrap_or(true);
        self.watched.listeners.iter().any(waits)
    }

    /// How often in a row a connection is left to siblings, 1 ms each. Once is enough between workers that
    /// are nearly even; on a machine whose cores are all taken a sibling may need longer to be heard, and a
    /// burst that nobody else was awake for would stay where it landed.
    fn most_deferrals(&self, to: usize) -> u64 {
        let more = self
            .share
            .held()
            .saturating_sub(self.watched.bus.page.share(to).held());
        if more > 1 {
            (2 * more).min(MOST_DEFERRALS)
        } else {
            1
        }
    }

    /// Leaves the connection to a sibling that holds less, for a while.
    fn defer(&mut self, to: usize) {
        self.share.deferred();
        // A bell that cannot be rung has rung already.
        let _ = self.watched.bus.accept_bells[to].ring();
        self.pause(PATIENCE);
    }

    /// Rings the best other worker, whatever it holds.
    fn nudge_other(&self) {
        if let Some(to) = self.watched.bus.page.nudge_target(self.watched.slot) {
            // A bell that cannot be rung has rung already.
            let _ = self.watched.bus.accept_bells[to].ring();
        }
    }

    /// Gives the best other worker one connection, whatever it holds.
    fn give_one(&self) {
        if let Some(to) = self.watched.bus.page.nudge_target(self.watched.slot) {
            self.watched.bus.page.share(to).hand_one();
            // A bell that cannot be rung has rung already.
            let _ = self.watched.bus.accept_bells[to].ring();
        }
    }

    /// Waits without the listeners, until the time is over or a sibling nudges.
    fn pause(&mut self, bound: Duration) {
        let end = Instant::now() + bound;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(false, Some(left)).nudged {
                return;
            }
        }
    }

    /// Has the loop accept, and waits for its answer without waiting on a listener. A loop that does
    /// not answer in time is busy: its siblings are told so.
    fn ask_loop(&mut self, force: bool) -> Looked {
        let orders = if force { LOOK | FORCE } else { LOOK };
        self.watched.link.order(orders);
        let asked = Instant::now();
        let mut given = 1;
        let mut busy = false;
        loop {
            // A sibling is given one connection a millisecond; only a loop that stays away longer is called
            // busy, for then its siblings stop leaving it anything and take a whole burst.
            let bound = (!busy)
                .then(|| (asked + given * PATIENCE).saturating_duration_since(Instant::now()));
            if self.wait(false, bound).answered {
                if busy {
                    self.share.mark_busy(false);
                }
                return self.watched.link.looked();
            }
            if busy || asked.elapsed() < given * PATIENCE {
                continue;
            }
            given += 1;
            if asked.elapsed() >= BUSY_AFTER {
                busy = true;
                self.share.mark_busy(true);
            }
            if self.connection_waits() {
                self.give_one();
            }
        }
    }

    /// Waits for anything; acts on signals and on the supervisor's end by itself.
    fn wait(&mut self, with_listener: bool, bound: Option<Duration>) -> Heard {
        let until_end = self
            .end_at_ms
            .map(|at| Duration::from_millis(at.saturating_sub(monotonic_ms())));
        let timeout = match (bound, until_end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let mut ready = std::mem::take(&mut self.ready);
        let poller = if with_listener {
            &self.all
        } else {
            &self.control
        };
        if let Err(error) = poller.wait(timeout, &mut ready) {
            self.give_up("waiting", &error);
        }
        let mut heard = Heard::default();
        for token in &ready {
            match *token {
                SIGNAL => self.read_signals(),
                LIFE => self.read_life(),
                NUDGE => {
                    // An error would show again at the next wait.
                    let _ = self.watched.bus.accept_bells[self.watched.slot].answer();
                    heard.nudged = true;
                }
                ANSWER => {
                    let _ = self.watched.link.bell().answer();
                    heard.answered = true;
                }
                _ => heard.connection = true,
            }
        }
        self.ready = ready;
        self.end_if_due();
        heard
    }

    fn read_signals(&mut self) {
        while let Ok(Some(received)) = self.watched.signals.read() {
            if !matches!(received.signal, Signal::SIGTERM | Signal::SIGINT) {
                continue;
            }
            if self.watched.life.is_none() {
                log::event(
                    Level::Info,
                    "stopping",
                    json!({ "signal": signals::name(received.signal), "again": self.draining }),
                );
                if self.draining {
                    log::event(
                        Level::Warn,
                        "stopped",
                        json!({ "code": EXIT_UNCLEAN, "message": "stopped at once by a second signal" }),
                    );
                    self.leave(EXIT_UNCLEAN);
                }
            }
            // In a forked worker a second signal means nothing: the supervisor alone hurries us.
            self.begin_drain(DRAIN, self.watched.drain.as_millis() as u64);
        }
    }

    fn read_life(&mut self) {
        let Some(life) = &self.watched.life else {
            return;
        };
        if matches!(read_byte(life), Ok(ByteRead::Nothing)) {
            return;
        }
        for poller in [&self.all, &self.control] {
            // Told once: a descriptor at its end is always ready.
            let _ = poller.remove(life);
        }
        log::event(Level::Warn, "supervisor-gone", json!({}));
        self.begin_drain(ORPHAN | DRAIN, ORPHAN_MS);
    }

    fn begin_drain(&mut self, orders: u32, bound_ms: u64) {
        if !self.watched.link.serves() {
            // Nothing was served yet, so there is nothing to drain; `make` is not waited for.
            self.leave(EXIT_CLEAN);
        }
        let end = monotonic_ms() + bound_ms + STUCK_MARGIN_MS;
        self.end_at_ms = Some(self.end_at_ms.map_or(end, |before| before.min(end)));
        self.draining = true;
        self.share.draining();
        // Two that drain at once must not each leave the listeners to the other: whoever reads second, in
        // the one order that this fence makes, sees the other's word.
        fence(Ordering::SeqCst);
        let sibling_serves = self
            .watched
            .bus
            .page
            .live()
            .any(|slot| slot != self.watched.slot);
        if self.listening && sibling_serves {
            self.listening = false;
            // The loop takes what is queued; whoever comes later is a sibling's.
            for listener in &self.watched.listeners {
                let _ = self.all.remove(listener);
            }
        }
        self.watched.link.order(orders);
    }

    /// The last resort: the loop is stuck inside the application.
    fn end_if_due(&self) {
        if self.end_at_ms.is_some_and(|at| monotonic_ms() >= at) {
            log::event(
                Level::Error,
                "cut",
                json!({ "why": "the loop did not come back within the drain's bound; a handler blocks it" }),
            );
            self.leave(EXIT_UNCLEAN);
        }
    }

    fn give_up(&self, what: &str, error: &io::Error) -> ! {
        log::event(
            Level::Error,
            "os-refused",
            json!({ "what": what, "message": error.to_string() }),
        );
        self.leave(crate::refusal::EXIT_OS)
    }

    /// Ends the process under a loop that may still run, so its words on the page are left to the
    /// supervisor's repair.
    fn leave(&self, code: u8) -> ! {
        for file in &self.watched.socket_files {
            file.remove();
        }
        log::flush();
        process::exit_now(i32::from(code))
    }
}
