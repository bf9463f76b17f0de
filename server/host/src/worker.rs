//! What the tasks of one worker's loop share.
//!
//! Owns the set of connections and the figures that decide whether there is room for more. Refuses to
//! know what flows on a connection. Invariant: lives on one thread; everything that another process or
//! thread may see is on the page.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};

use m0_page::{Page, PageSnapshot, Share, Verdict, WorkerCounter};
use m0_unix::sockets::Peer;
use m0_wire::proxy::Reader;
use m0_wire::ws::{self, Rhythm};
use m0_wire::{Deadlines, Limits};
use serde_json::json;
use slab::Slab;
use socket2::Socket;
use tokio::sync::Notify;

use crate::app::HostContext;
use crate::conn::{Conn, Interruption, Response};
use crate::fanout::Fanout;
use crate::log;
use crate::settings::{Level, Settings};
use crate::tls::Tls;

/// One worker's loop, as its tasks see it.
pub(crate) struct Worker {
    context: HostContext,
    share: Share<'static>,
    page: Page<'static>,
    listeners: Vec<Socket>,
    /// The listener that is asked next for a connection.
    turn: Cell<usize>,
    fanout: Fanout,
    deadlines: Deadlines,
    limits: Limits,
    conns: RefCell<Slab<Weak<Conn>>>,
    early: Cell<usize>,
    gone: Notify,
    cutting: Cell<bool>,
    starved: Cell<bool>,
    refusing: Cell<usize>,
    sockets: Cell<usize>,
    rhythm: Rhythm,
    tls: Option<Rc<Tls>>,
}

/// Most connections that are being refused with an answer at a time.
const MOST_REFUSING: usize = 256;

/// Why a stream is not held where there is no place.
pub(crate) const NO_ROOM: &str = "this worker holds as many streams as it may; come back\n";

/// The place of a connection that is being refused.
pub(crate) struct Refusing(Rc<Worker>);

impl Drop for Refusing {
    fn drop(&mut self) {
        self.0.refusing.set(self.0.refusing.get() - 1);
    }
}

/// The place of a WebSocket that is held.
pub(crate) struct SocketHeld(Rc<Worker>);

impl Drop for SocketHeld {
    fn drop(&mut self) {
        self.0.sockets.set(self.0.sockets.get() - 1);
        self.0.share.stream_closed();
    }
}

impl Worker {
    pub(crate) fn new(context: HostContext, listeners: Vec<Socket>) -> Self {
        let page = context.page();
        let share = page.share(context.slot());
        let settings = context.settings();
        let ms = |duration: std::time::Duration| duration.as_millis() as u64;
        let deadlines = Deadlines {
            first_byte: ms(settings.first_byte_timeout),
            head: ms(settings.head_timeout),
            body: ms(settings.body_timeout),
            idle: ms(settings.idle_timeout),
            write: ms(settings.write_timeout),
        };
        let limits = Limits {
            max_head_bytes: settings.max_head_bytes,
            max_uri_bytes: settings.max_uri_bytes,
            max_headers: settings.max_headers,
            max_body_bytes: settings.max_body_bytes,
            max_requests: settings.max_requests_per_connection,
            ..Limits::default()
        };
        let rhythm = Rhythm {
            ping: ms(settings.ws_ping),
            pong: ms(settings.ws_pong_timeout),
            close: ms(settings.ws_close_timeout),
        };
        let fanout = Fanout::new(context.log(), share, settings);
        Worker {
            share,
            page,
            listeners,
            turn: Cell::new(0),
            fanout,
            deadlines,
            limits,
            conns: RefCell::new(Slab::new()),
            early: Cell::new(0),
            gone: Notify::new(),
            cutting: Cell::new(false),
            starved: Cell::new(false),
            refusing: Cell::new(0),
            sockets: Cell::new(0),
            rhythm,
            tls: None,
            context,
        }
    }

    /// The same where connections over TCP speak TLS.
    pub(crate) fn with_tls(self, tls: Option<Tls>) -> Self {
        let tls = tls.map(Rc::new);
        Worker { tls, ..self }
    }

    pub(crate) fn tls(&self) -> Option<&Rc<Tls>> {
        self.tls.as_ref()
    }

    /// The TLS that this peer has to speak: whoever comes over TCP, through a proxy too.
    pub(crate) fn tls_for(&self, peer: Peer) -> Option<&Tls> {
        let tls = self.tls.as_deref();
        tls.filter(|_| matches!(peer, Peer::Tcp(_)))
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.context.settings()
    }

    pub(crate) fn context(&self) -> &HostContext {
        &self.context
    }

    pub(crate) fn slot(&self) -> usize {
        self.context.slot()
    }

    pub(crate) fn share(&self) -> Share<'static> {
        self.share
    }

    pub(crate) fn listeners(&self) -> &[Socket] {
        &self.listeners
    }

    /// The listener whose turn it is.
    pub(crate) fn turn(&self) -> &Cell<usize> {
        &self.turn
    }

    pub(crate) fn fanout(&self) -> &Fanout {
        &self.fanout
    }

    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn rhythm(&self) -> &Rhythm {
        &self.rhythm
    }

    pub(crate) fn ws_limits(&self) -> ws::Limits {
        let settings = self.settings();
        ws::Limits {
            message_bytes: settings.ws_max_message_bytes,
            frame_bytes: settings.ws_max_frame_bytes,
            fragments: settings.ws_max_fragments,
        }
    }

    /// Whether connections are shared with siblings.
    pub(crate) fn shares(&self) -> bool {
        self.settings().accept_share && self.settings().workers > 1
    }

    /// The figures of the whole host.
    pub(crate) fn figures(&self) -> PageSnapshot {
        self.page.snapshot()
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.page.verdict(self.slot())
    }

    pub(crate) fn draining(&self) -> bool {
        self.context.draining()
    }

    /// Whether the drain's bound has passed.
    pub(crate) fn cutting(&self) -> bool {
        self.cutting.get()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.conns.borrow().len() >= self.settings().max_connections
    }

    /// Why a new stream cannot be held now.
    pub(crate) fn refuses_streams(&self) -> Option<&'static str> {
        if self.draining() {
            Some("this worker is draining; come back\n")
        } else if self.fanout.has_room(self.sockets()) {
            None
        } else {
            self.count_refused();
            Some(NO_ROOM)
        }
    }

    /// What reads the header of this peer's connection; none from a peer that may not send one.
    pub(crate) fn header_reader(&self, peer: Peer) -> Option<Reader> {
        let from = &self.settings().proxy_from;
        let allowed = match peer {
            Peer::Tcp(address) => from.hold(address.ip()),
            Peer::Unix => from.hold_unix(),
        };
        allowed.then(|| Reader::new(self.settings().proxy_required))
    }

    pub(crate) fn count_header_refused(&self) {
        self.share.counter(WorkerCounter::ProxyRefused).add(1);
    }

    pub(crate) fn count_tls_failed(&self) {
        self.share.counter(WorkerCounter::TlsFailed).add(1);
    }

    pub(crate) fn count_refused(&self) {
        self.share.counter(WorkerCounter::Refused).add(1);
    }

    /// A place for one connection that is being refused; none when there are too many of those.
    pub(crate) fn begin_refusal(self: &Rc<Self>) -> Option<Refusing> {
        if self.refusing.get() >= MOST_REFUSING {
            return None;
        }
        self.refusing.set(self.refusing.get() + 1);
        Some(Refusing(Rc::clone(self)))
    }

    /// WebSockets of applications that are held: streams like those of the fan-out.
    pub(crate) fn sockets(&self) -> usize {
        self.sockets.get()
    }

    /// The place of one more WebSocket.
    pub(crate) fn hold_socket(self: &Rc<Self>) -> SocketHeld {
        self.sockets.set(self.sockets.get() + 1);
        self.share.stream_opened();
        SocketHeld(Rc::clone(self))
    }

    pub(crate) fn count_cut_stream(&self) {
        self.share.counter(WorkerCounter::StreamsCut).add(1);
    }

    /// Remembers a connection until the key is given back.
    pub(crate) fn enter(&self, conn: &Rc<Conn>) -> usize {
        if !conn.is_late() {
            self.early.set(self.early.get() + 1);
        }
        self.conns.borrow_mut().insert(Rc::downgrade(conn))
    }

    /// The connection of this key is closed.
    pub(crate) fn leave(&self, key: usize, late: bool) {
        if !late {
            self.early.set(self.early.get() - 1);
        }
        self.conns.borrow_mut().remove(key);
        if self.draining() {
            self.gone.notify_one();
        }
    }

    /// Connections that are open and came before the drain.
    pub(crate) fn open_early(&self) -> usize {
        self.early.get()
    }

    /// Waits until no connection is open that came before the drain.
    pub(crate) async fn early_gone(&self) {
        while self.open_early() > 0 {
            self.gone.notified().await;
        }
    }

    /// Waits until no request is being answered.
    pub(crate) async fn nobody_answered(&self) {
        loop {
            let mut answering = false;
            self.each_conn(|conn| answering |= conn.response() != Response::None);
            if !answering {
                return;
            }
            self.gone.notified().await;
        }
    }

    /// Looks at every connection.
    pub(crate) fn each_conn(&self, mut look: impl FnMut(&Conn)) {
        // Waking a driver never runs it, so nothing enters or leaves meanwhile.
        for (_, conn) in &*self.conns.borrow() {
            if let Some(conn) = conn.upgrade() {
                look(&conn);
            }
        }
    }

    /// Cuts whatever is left at the drain's bound; how many connections that was.
    pub(crate) fn cut_all(&self) -> usize {
        self.cutting.set(true);
        let mut cut = 0;
        self.each_conn(|conn| {
            cut += 1;
            conn.interrupt(Interruption::Cut);
        });
        cut
    }

    /// Descriptors or memory ran out, or are there again: told once for each change.
    pub(crate) fn note_starved(&self, error: Option<&io::Error>) {
        if self.starved.replace(error.is_some()) == error.is_some() {
            return;
        }
        match error {
            Some(error) => log::event(
                Level::Warn,
                "accept-starved",
                json!({ "message": error.to_string(), "errno": error.raw_os_error() }),
            ),
            None => log::event(Level::Info, "accept-resumed", json!({})),
        }
    }
}
