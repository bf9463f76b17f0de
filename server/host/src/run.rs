//! A worker from the fork to its exit: steps 7 to 13 of `serve`.
//!
//! Owns the order of those steps and the tasks of the loop. Refuses to know which process it runs in
//! beyond its slot. Invariant: readiness is announced after the handlers stand; whatever happens, the
//! drain's bound and the producer's run from the same moment.

mod drain;

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use m0_unix::clock::monotonic_ms;
use m0_unix::fds::{Doorbell, write_byte};
use m0_unix::process;
use m0_unix::signals::{Signal, SignalFd};
use m0_unix::sockets::Peer;
use m0_wire::Scanner;
use serde_json::json;
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::LocalOptions;
use tokio::time::{MissedTickBehavior, interval};

use crate::accept;
use crate::access;
use crate::app::{HostContext, Producer};
use crate::body::RequestBody;
use crate::conn::Conn;
use crate::driver;
use crate::engine::Handle;
use crate::handler::Handler;
use crate::link::{DRAIN, FORCE, LOOK, Link, ORPHAN};
use crate::listen::Listeners;
use crate::log;
use crate::producer::ProducerThread;
use crate::publisher::Bus;
use crate::refusal::{EXIT_CLEAN, EXIT_CONFIG, EXIT_OS, Refusal};
use crate::settings::{Level, Settings};
use crate::supervisor::announce;
use crate::tls::{self, Identity, Tls};
use crate::watch::{self, Watched};
use crate::worker::Worker;
use drain::{Drained, join};

/// Signals that end a worker.
pub(crate) const SIGNALS: &[Signal] = &[Signal::SIGTERM, Signal::SIGINT];

/// Time between two sweeps over deadlines, heartbeats and logs.
const SWEEP: Duration = Duration::from_millis(50);

/// What a worker starts from.
pub(crate) struct Start {
    pub(crate) slot: usize,
    pub(crate) settings: Settings,
    pub(crate) bus: Arc<Bus>,
    pub(crate) listeners: Listeners,
    /// Where connections over TCP speak TLS: what its files held when they were last read.
    pub(crate) identity: Option<Identity>,
    pub(crate) app_page: &'static [std::sync::atomic::AtomicU64],
    /// Of a forked worker: where it reports that it serves, and what ends with its supervisor.
    pub(crate) ties: Option<(OwnedFd, OwnedFd)>,
}

/// How a worker ended.
pub(crate) struct Ended {
    pub(crate) code: u8,
    /// A producer is still inside a step: nothing may be torn down under it.
    pub(crate) abandoned: bool,
}

/// Why a worker did not serve.
enum Failed {
    Refused(Refusal),
    Os(&'static str, io::Error),
}

/// Makes the application's service in a worker.
pub(crate) type Make<'a, S> = &'a dyn Fn(&HostContext) -> Result<S, Refusal>;

/// Runs one worker to its end.
pub(crate) fn worker<S, B, P>(start: Start, make: Make<'_, S>) -> Ended
where
    S: tower::Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Display> + 'static,
    P: Producer,
{
    let share = start.bus.page.share(start.slot);
    log::set_slot(start.slot);
    share.begin(std::process::id());
    let ended = serve::<S, B, P>(start, make).unwrap_or_else(|failed| Ended {
        code: tell_failed(failed),
        abandoned: false,
    });
    share.leave();
    access::flush();
    log::flush();
    ended
}

fn tell_failed(failed: Failed) -> u8 {
    match failed {
        Failed::Refused(refusal) => {
            log::event(Level::Error, "refused", refusal.fields());
            EXIT_CONFIG
        }
        Failed::Os(what, error) => {
            log::event(
                Level::Error,
                "os-refused",
                json!({ "what": what, "message": error.to_string() }),
            );
            EXIT_OS
        }
    }
}

fn serve<S, B, P>(start: Start, make: Make<'_, S>) -> Result<Ended, Failed>
where
    S: tower::Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Display> + 'static,
    P: Producer,
{
    let os = |what| move |error| Failed::Os(what, error);
    let Start {
        slot,
        settings,
        bus,
        listeners,
        identity,
        app_page,
        ties,
    } = start;
    let (report, life) = ties.unzip();

    // Step 8: arm the signals, after the fork. They stay blocked for every thread: only the descriptor
    // hears them.
    let signals = SignalFd::new(SIGNALS).map_err(os("arming signals"))?;
    let link = Arc::new(Link::new().map_err(os("making a doorbell"))?);
    // A forked worker leaves the socket files to its supervisor.
    let socket_files = if life.is_none() {
        listeners.files()
    } else {
        Vec::new()
    };
    watch::start(Watched {
        slot,
        socket_files,
        shares: settings.accept_share && settings.workers > 1,
        drain: settings.drain,
        bus: Arc::clone(&bus),
        link: Arc::clone(&link),
        signals,
        life,
        listeners: listeners.try_clone().map_err(os("sharing the listeners"))?,
    })
    .map_err(os("starting the watch thread"))?;

    // Step 9: the application, in this process.
    let context = HostContext::new(slot, settings, Arc::clone(&bus), app_page);
    let service = make(&context).map_err(Failed::Refused)?;

    // Step 10: the producer, on slot 0 alone.
    let producer = (slot == 0 && P::wanted(context.settings()))
        .then(|| ProducerThread::start::<P>(&context))
        .transpose()
        .map_err(Failed::Refused)?;

    // Step 11: serve.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build_local(LocalOptions::default())
        .map_err(os("making the loop"))?;
    if context.settings().access_log {
        access::open(bus.page.share(slot)).map_err(os("opening the access log"))?;
    }
    let own_listeners = listeners.try_clone().map_err(os("sharing the listeners"))?;
    let worker = Worker::new(context, own_listeners).with_tls(identity.map(Tls::new));
    let worker = Rc::new(worker);
    let serving = Serving {
        worker: Rc::clone(&worker),
        service,
        link,
        bell: bus.frame_bells[slot]
            .try_clone()
            .map_err(os("sharing the bus"))?,
    };
    let ready = || {
        worker.share().serving();
        log::event(Level::Info, "worker-ready", json!({}));
        match &report {
            // A supervisor that is gone will be noticed by its pipe.
            Some(report) => drop(write_byte(report, slot as u8)),
            None => announce(&listeners, worker.settings()),
        }
    };
    let ended = runtime
        .block_on(serving.run(producer.as_ref(), ready))
        .map_err(os("serving"))?;
    // A thread that still waits for a disk is left behind: dropping the runtime would wait for it without a bound.
    runtime.shutdown_background();
    // Step 12, its second half: what the join found.
    let abandoned = producer
        .as_ref()
        .is_some_and(|producer| join(producer, ended.left()));
    log::event(
        Level::Info,
        "drained",
        json!({
            "requests_cut": ended.cut, "streams_told": ended.told, "ms": monotonic_ms() - ended.began_ms,
        }),
    );
    if report.is_none() {
        log::event(Level::Info, "stopped", json!({ "code": EXIT_CLEAN }));
    }
    Ok(Ended {
        code: EXIT_CLEAN,
        abandoned,
    })
}

/// The tasks of a loop.
struct Serving<S> {
    worker: Rc<Worker>,
    service: S,
    link: Arc<Link>,
    bell: Doorbell,
}

impl<S> Serving<S>
where
    Handler<S>: Handle,
    S: Clone + 'static,
{
    async fn run(
        self,
        producer: Option<&ProducerThread>,
        ready: impl FnOnce(),
    ) -> io::Result<Drained> {
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that might change their descriptor; a Doorbell never does"
        )]
        let bell = AsyncFd::with_interest(self.bell, Interest::READABLE)?;
        tokio::task::spawn_local(deliver(Rc::clone(&self.worker), bell));
        tokio::task::spawn_local(sweep(Rc::clone(&self.worker)));
        if let Some(tls) = self.worker.tls() {
            tokio::task::spawn_local(tls::keep(Rc::clone(tls)));
        }
        self.link.serve();
        ready();
        let take =
            |socket: Socket, peer: Peer| take(&self.worker, self.service.clone(), socket, peer);
        let orphaned = loop {
            let orders = self.link.orders().await;
            if orders & (LOOK | FORCE) != 0 {
                self.link
                    .answer(accept::look(&self.worker, orders & FORCE != 0, &take));
            }
            if orders & DRAIN != 0 {
                break orders & ORPHAN != 0;
            }
        };
        Ok(drain::drain(&self.worker, &self.link, producer, orphaned, &take).await)
    }
}

/// One accepted socket becomes a task.
fn take<S>(worker: &Rc<Worker>, service: S, socket: Socket, peer: Peer)
where
    Handler<S>: Handle,
    S: Clone + 'static,
{
    let scanner = Scanner::new(worker.limits());
    let conn = match Conn::new(socket, peer, scanner, worker.share(), worker.draining()) {
        Ok(conn) => Rc::new(conn),
        Err(error) => {
            // The loop's own epoll has no room: the connection is closed, and that is said.
            log::event(
                Level::Warn,
                "cut",
                json!({ "why": "the loop could not watch the connection", "message": error.to_string() }),
            );
            return;
        }
    };
    if let Some(reader) = worker.header_reader(peer) {
        conn.expect_header(reader);
    }
    if worker.settings().http2 {
        conn.expect_preface();
    }
    if worker.settings().access_log {
        conn.keep_time();
    }
    let key = worker.enter(&conn);
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let handler = Handler::new(service, Rc::clone(&worker));
        driver::drive(Rc::clone(&conn), handler, Rc::clone(&worker)).await;
        let late = conn.is_late();
        drop(conn);
        worker.leave(key, late);
    });
}

/// Delivers frames whenever the bus rings.
async fn deliver(worker: Rc<Worker>, bell: AsyncFd<Doorbell>) {
    loop {
        let Ok(mut guard) = bell.readable().await else {
            return;
        };
        // Answered before the log is read: a frame that comes now rings again.
        if guard.get_inner().answer().is_err() {
            return;
        }
        guard.clear_ready();
        worker.context().frame_bell().notify_waiters();
        while worker.fanout().deliver() {
            tokio::task::yield_now().await;
        }
    }
}

/// Keeps deadlines and heartbeats, and writes what the log has gathered.
async fn sweep(worker: Rc<Worker>) {
    let mut tick = interval(SWEEP);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        driver::sweep(&worker);
        worker.fanout().heartbeats();
        access::flush();
        log::flush();
    }
}

/// Ends a forked worker: its one way out (step 13).
pub(crate) fn leave(code: u8) -> ! {
    process::exit_now(i32::from(code))
}
