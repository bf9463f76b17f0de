//! What an application writes.
//!
//! Owns the two traits of an application and the context handed to them. Refuses to know how many
//! processes there are beyond telling it. Invariant: nothing here gives an application a descriptor
//! of the bus, a frame id to choose, or a way to ask whether it was forked.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use http::{HeaderMap, Request, Response};

use crate::body::RequestBody;
use crate::frames::Frames;
use crate::held::EventStream;
use crate::publisher::{Bus, Publisher};
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::websocket::WebSocketUpgrade;

/// An HTTP application: something that makes a [`tower::Service`] in each worker.
///
/// The service is named rather than implemented, so an `axum::Router` is an application as it stands:
///
/// ```no_run
/// use m0_host::{AppConfig, AppHandler, HostContext, NoProducer, Refusal};
///
/// struct Hello;
/// impl AppHandler for Hello {
///     type Service = axum::Router;
///     type Body = axum::body::Body;
///     fn make(_: &HostContext) -> Result<axum::Router, Refusal> {
///         Ok(axum::Router::new().route("/", axum::routing::get(|| async { "hello\n" })))
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     m0_host::serve::<Hello, NoProducer>(AppConfig::from_env())
/// }
/// ```
pub trait AppHandler {
    /// The service that answers requests; cloned for each request.
    type Service: tower::Service<
            Request<RequestBody>,
            Response = Response<Self::Body>,
            Error = std::convert::Infallible,
        > + Clone
        + 'static;
    /// The body of its responses.
    type Body: http_body::Body<Data = Bytes, Error: Display> + 'static;

    /// Makes the service, once in each worker, after the fork and before the worker serves.
    ///
    /// # Errors
    /// A [`Refusal`] ends the host with exit 78: no respawn, no sibling left serving.
    fn make(context: &HostContext) -> Result<Self::Service, Refusal>;

    /// Words (of 8 bytes, zeroed) of the application's own page, shared by all workers; 0 for none.
    fn page_slots(workers: usize) -> usize {
        let _ = workers;
        0
    }

    /// The most workers this application can serve from; more are refused with 78 before binding.
    fn max_workers() -> usize {
        usize::MAX
    }

    /// Names of the application's own variables that begin with `M0_`; any other is refused as unknown.
    fn variables() -> &'static [&'static str] {
        &[]
    }
}

/// The one periodic publisher of an application, running on a thread of worker 0.
///
/// ```
/// use std::time::Duration;
/// use m0_host::{HostContext, Producer, Publisher, Refusal};
///
/// struct Clock { ticks: u64 }
/// impl Producer for Clock {
///     type Error = std::convert::Infallible;
///     fn make(_: &HostContext) -> Result<Self, Refusal> { Ok(Clock { ticks: 0 }) }
///     fn step(&mut self, out: &mut Publisher) -> Result<Duration, Self::Error> {
///         self.ticks += 1;
///         let text = self.ticks.to_string();
///         // A refused publish is counted by the host; this producer has nothing to add.
///         let _ = out.publish(|frame| { frame.event("tick").data(&text); });
///         Ok(Duration::from_millis(250))
///     }
/// }
/// ```
pub trait Producer: Send + Sized + 'static {
    /// Why a step failed, as the log will name it.
    type Error: Display;

    /// Makes the producer, before its thread exists.
    ///
    /// # Errors
    /// A [`Refusal`] ends the host with exit 78; no thread was started.
    fn make(context: &HostContext) -> Result<Self, Refusal>;

    /// Whether a producer is wanted at all under these settings.
    fn wanted(settings: &Settings) -> bool {
        let _ = settings;
        true
    }

    /// Does one step and says how long after this step's *scheduled* start the next one is due.
    ///
    /// # Errors
    /// An error ends the producer and is named in the log; the server keeps serving.
    fn step(&mut self, out: &mut Publisher) -> Result<Duration, Self::Error>;
}

/// The producer of an application that has none.
#[derive(Debug)]
pub enum NoProducer {}

impl Producer for NoProducer {
    type Error = std::convert::Infallible;

    fn make(_: &HostContext) -> Result<Self, Refusal> {
        Err(Refusal::new("NoProducer is never made"))
    }

    fn wanted(_: &Settings) -> bool {
        false
    }

    fn step(&mut self, _: &mut Publisher) -> Result<Duration, Self::Error> {
        match *self {}
    }
}

/// What the host tells an application about the worker it runs in. Cheap to clone.
#[derive(Clone)]
pub struct HostContext {
    inner: Arc<Inner>,
}

struct Inner {
    slot: usize,
    settings: Settings,
    bus: Arc<Bus>,
    app_page: &'static [AtomicU64],
    draining: AtomicBool,
    frame_bell: Notify,
}

impl HostContext {
    pub(crate) fn new(
        slot: usize,
        settings: Settings,
        bus: Arc<Bus>,
        app_page: &'static [AtomicU64],
    ) -> Self {
        HostContext {
            inner: Arc::new(Inner {
                slot,
                settings,
                bus,
                app_page,
                draining: AtomicBool::new(false),
                frame_bell: Notify::new(),
            }),
        }
    }

    /// This worker's slot, from 0; a respawned worker has its predecessor's.
    pub fn slot(&self) -> usize {
        self.inner.slot
    }

    /// How many workers the host runs.
    pub fn workers(&self) -> usize {
        self.inner.settings.workers
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// A publisher to every stream on every worker, for handlers.
    pub fn publisher(&self) -> Publisher {
        Publisher::new(Arc::clone(&self.inner.bus))
    }

    /// The application's own shared words, as many as [`AppHandler::page_slots`] asked for.
    pub fn app_page(&self) -> &'static [AtomicU64] {
        self.inner.app_page
    }

    /// The words of the host's page as they stand, one writer at a time having been seen.
    pub fn page(&self) -> m0_page::Page<'static> {
        self.inner.bus.page
    }

    pub(crate) fn log(&self) -> m0_framelog::FrameLog<'static> {
        self.inner.bus.log
    }

    /// A held stream of every frame published from now on, or from the request's `Last-Event-ID` on.
    pub fn events(&self, request: &HeaderMap) -> EventStream {
        EventStream::from_request(request)
    }

    /// Every frame published from now on, or after a last event id, for a session to read at its own pace. Make
    /// it before the request is answered: then nothing that the peer causes afterwards is missed.
    pub fn frames(&self, last_event_id: Option<&str>) -> Frames {
        Frames::new(self.clone(), last_event_id)
    }

    /// Rings when frames were published.
    pub(crate) fn frame_bell(&self) -> &Notify {
        &self.inner.frame_bell
    }

    /// Judges a request for a WebSocket: by its head, and by where a browser says that its page came from
    /// (`M0_WS_ORIGINS`).
    pub fn websocket<B>(&self, request: &Request<B>) -> WebSocketUpgrade {
        WebSocketUpgrade::judge(request, &self.inner.settings.ws_origins)
    }

    /// Whether this worker is in its drain: `/readyz` says no, new streams get 503.
    pub fn draining(&self) -> bool {
        self.inner.draining.load(Ordering::Acquire)
    }

    pub(crate) fn begin_drain(&self) {
        self.inner.draining.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for HostContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostContext")
            .field("slot", &self.inner.slot)
            .field("workers", &self.inner.settings.workers)
            .finish_non_exhaustive()
    }
}
