//! The life of a connection after its 101: frames in, frames out, and an end that both sides know of.
//!
//! Owns the order of one turn (the application, what waits for the peer, what the peer sent) and the
//! closing handshake. Refuses to know how frames are read and written and when time is up: `m0_wire::ws`
//! says. Invariants: the socket is read only while the application awaits a message, or once we have said
//! close; one turn takes a bounded number of messages; after our close frame no other frame goes out; FIN comes after both close frames, or after a fault.

use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use m0_unix::clock::monotonic_ms;
use m0_wire::Expired;
use m0_wire::ws::{Decoder, Due, Event, Fault, Opcode, Vitals, code, frame};

use super::channel::{Channel, Message, WebSocket};
use super::{Begin, Talk};
use crate::conn::{Conn, Interruption};
use crate::worker::Worker;

/// Room beyond the window for pongs. A peer that pings and does not read is not read either once it is full.
const CONTROL_BYTES: usize = 4096;

/// Most messages and control frames of one peer that are taken before the loop's other tasks get their turn.
pub(super) const TURN_EVENTS: usize = 32;

/// How a WebSocket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Both sides have said close.
    Closed,
    /// A fault was told; the peer may still be sending.
    Failed,
    /// The peer left without a word.
    Gone,
    /// The host gave up.
    Cut,
}

/// How far the closing handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Our close frame is queued; the peer's has not come.
    Closing,
    /// Nothing more is awaited of the peer.
    Over,
}

/// Where the ping stands whose pong is awaited.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// Bytes of the connection up to its end.
    end: u64,
    /// Bytes that the peer had taken when it was last looked at.
    taken: u64,
}

/// One upgraded connection.
struct Session<'a> {
    conn: &'a Conn,
    worker: &'a Worker,
    channel: Rc<Channel>,
    talk: Option<Talk>,
    decoder: Decoder,
    /// Bytes that came behind the last message, at most one read of them.
    rest: Bytes,
    vitals: Vitals,
    asked: Asked,
    phase: Phase,
    /// What the peer sent cannot be understood any more.
    failed: bool,
    /// Whether the log has said why the peer is given up.
    told: bool,
}

/// Talks over a connection whose 101 is out until it ends. Tells `tell` once why a peer is given up.
pub(crate) async fn run(
    conn: &Rc<Conn>,
    worker: &Worker,
    begin: Begin,
    tell: impl Fn(&'static str),
) -> End {
    let channel = Rc::new(Channel::new(worker.settings().ws_window_bytes));
    let socket = WebSocket {
        channel: Rc::clone(&channel),
    };
    let mut session = Session {
        conn,
        worker,
        channel,
        talk: None,
        decoder: Decoder::new(worker.ws_limits()),
        rest: conn.become_tunnel().into(),
        vitals: Vitals::new(monotonic_ms()),
        asked: Asked::default(),
        phase: Phase::Open,
        failed: false,
        told: false,
    };
    session.begin(begin, socket);
    let end = poll_fn(|cx| session.turn(cx, &tell)).await;
    conn.set_vitals(None);
    session.channel.close();
    end
}

impl Session<'_> {
    fn begin(&mut self, begin: Begin, socket: WebSocket) {
        match catch_unwind(AssertUnwindSafe(|| begin(socket))) {
            Ok(talk) => self.talk = Some(talk),
            Err(_) => self.panicked(),
        }
    }

    fn panicked(&mut self) {
        self.talk = None;
        self.conn.count_panic();
        self.say_close(Some(code::FAILED), "the application failed");
    }

    /// Goes on until nothing can be done at once.
    fn turn(&mut self, cx: &mut Context<'_>, tell: &impl Fn(&'static str)) -> Poll<End> {
        self.conn.register(cx);
        self.channel.register(cx);
        if let Some(why) = self.conn.take_interruption() {
            match why {
                Interruption::Expired(Expired { why, .. }) => self.too_slow(why, tell),
                _ => return Poll::Ready(self.cut("the drain's bound passed", tell)),
            }
        }
        if self.worker.draining() {
            self.say_close(Some(code::AWAY), "drain");
        }
        match self.vitals.due(self.worker.rhythm(), monotonic_ms()) {
            Some(Due::Ping) => {
                self.control(Opcode::Ping, b"");
                self.vitals.pinged(monotonic_ms());
                let waiting = self.channel.outbox.borrow().len_bytes() as u64;
                self.asked = Asked {
                    end: self.conn.sent_bytes() + waiting,
                    taken: self.conn.taken_bytes(),
                };
            }
            Some(Due::Cut(_)) if self.phase == Phase::Open && self.comes_nearer() => {
                self.vitals.pinged(monotonic_ms());
            }
            Some(Due::Cut(why)) => return Poll::Ready(self.cut(why, tell)),
            None => {}
        }
        let mut events = 0;
        let end = loop {
            self.talk(cx);
            match self.write(cx) {
                Poll::Ready(Err(())) => break Poll::Ready(End::Gone),
                Poll::Ready(Ok(())) if self.phase == Phase::Over => {
                    break Poll::Ready(if self.failed {
                        End::Failed
                    } else {
                        End::Closed
                    });
                }
                _ => {}
            }
            let listens = self.listens();
            let handed_over = self.channel.outbox.borrow().is_empty();
            self.vitals.listens(listens && handed_over, monotonic_ms());
            if !listens {
                break Poll::Pending;
            }
            if events == TURN_EVENTS {
                cx.waker().wake_by_ref();
                break Poll::Pending;
            }
            events += 1;
            match self.read(cx, tell) {
                Poll::Pending => break Poll::Pending,
                Poll::Ready(Err(())) => break Poll::Ready(End::Gone),
                Poll::Ready(Ok(())) => {}
            }
        };
        self.conn.set_vitals(Some(self.vitals));
        end
    }

    /// Whether the peer has taken bytes before the ping since it was last looked at: what the kernel still holds of them
    /// it cannot have answered.
    fn comes_nearer(&mut self) -> bool {
        let taken = self.conn.taken_bytes();
        let before = std::mem::replace(&mut self.asked.taken, taken);
        before < taken && before < self.asked.end
    }

    /// Gives the peer up without a word; the log is told unless it was before.
    fn cut(&mut self, why: &'static str, tell: &impl Fn(&'static str)) -> End {
        if !self.told {
            tell(why);
        }
        End::Cut
    }

    /// The peer takes nothing: it is told why, behind what the socket holds already, and has the time of a
    /// close to hear it.
    fn too_slow(&mut self, why: &'static str, tell: &impl Fn(&'static str)) {
        if self.phase == Phase::Open {
            tell(why);
            self.told = true;
            self.channel.outbox.borrow_mut().drop_unsent();
            self.say_close(Some(code::POLICY), why);
        }
    }

    /// Lets the application go on.
    fn talk(&mut self, cx: &mut Context<'_>) {
        if let Some(talk) = &mut self.talk {
            match catch_unwind(AssertUnwindSafe(|| talk.as_mut().poll(cx))) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(())) => self.talk = None,
                Err(_) => self.panicked(),
            }
        }
        if let Some((code, reason)) = self.channel.take_farewell() {
            self.say_close(Some(code), &reason);
        } else if self.talk.is_none() {
            self.say_close(Some(code::NORMAL), "");
        }
    }

    /// Queues our close frame; only the first one.
    fn say_close(&mut self, code: Option<u16>, reason: &str) {
        if self.phase == Phase::Open {
            self.phase = Phase::Closing;
            self.vitals.closing(monotonic_ms());
            self.push(frame::close(code, reason).into());
            self.channel.close();
        }
    }

    fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        if self.phase == Phase::Open {
            self.push(frame::encode(opcode, payload).into());
        }
    }

    fn push(&mut self, bytes: Bytes) {
        self.channel.outbox.borrow_mut().push_notice(bytes);
    }

    /// Writes what waits; ready when nothing does, or when the peer is gone.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let mut outbox = self.channel.outbox.borrow_mut();
        let mut wrote = false;
        let written = loop {
            let Some(front) = outbox.front() else {
                break self.conn.poll_flush(cx).map_err(drop);
            };
            match self.conn.poll_send(cx, front) {
                Poll::Ready(Ok(sent)) => {
                    outbox.advance(sent);
                    wrote = true;
                }
                Poll::Ready(Err(_)) => break Poll::Ready(Err(())),
                Poll::Pending => break Poll::Pending,
            }
        };
        drop(outbox);
        if wrote {
            self.channel.wake();
        }
        written
    }

    /// Whether the peer's bytes are wanted now.
    fn listens(&self) -> bool {
        let waiting = self.channel.outbox.borrow().len_bytes();
        match self.phase {
            Phase::Open => {
                self.channel.wants()
                    && waiting <= self.worker.settings().ws_window_bytes + CONTROL_BYTES
            }
            // What still comes is dropped, so it costs nothing.
            Phase::Closing => true,
            Phase::Over => false,
        }
    }

    /// Reads until something whole has come.
    fn read(&mut self, cx: &mut Context<'_>, tell: &impl Fn(&'static str)) -> Poll<Result<(), ()>> {
        loop {
            let event = if self.rest.is_empty() {
                let decoder = &mut self.decoder;
                let rest = &mut self.rest;
                let event = RefCell::new(None);
                let got = self.conn.poll_raw(cx, |bytes| {
                    let fed = decoder.feed(bytes);
                    *rest = Bytes::copy_from_slice(&bytes[fed.used..]);
                    event.replace(fed.event);
                });
                match got {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(())),
                    Poll::Ready(Ok(_)) => {}
                }
                self.vitals.heard(monotonic_ms());
                event.into_inner()
            } else {
                let fed = self.decoder.feed(&self.rest);
                self.rest.advance(fed.used);
                if self.rest.is_empty() {
                    self.rest = Bytes::new();
                }
                fed.event
            };
            if let Some(event) = event {
                self.take(event, tell);
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn take(&mut self, event: Event, tell: &impl Fn(&'static str)) {
        match event {
            Event::Text(text) => self.deliver(Message::Text(text)),
            Event::Binary(bytes) => self.deliver(Message::Binary(bytes)),
            Event::Ping(payload) => self.control(Opcode::Pong, &payload),
            Event::Pong(_) => {}
            Event::Close(code, _) => {
                // RFC 6455 section 5.5.1: the answer carries the code that came.
                self.say_close(code, "");
                self.phase = Phase::Over;
            }
            Event::Fault(Fault { code, why }) => {
                if !self.told {
                    tell(why);
                    self.told = true;
                }
                // A close frame of ours that still waits stands for this one.
                if self.phase == Phase::Open {
                    self.channel.outbox.borrow_mut().drop_unsent();
                    self.say_close(Some(code), why);
                }
                self.failed = true;
                self.phase = Phase::Over;
            }
        }
    }

    fn deliver(&mut self, message: Message) {
        if self.phase == Phase::Open {
            self.channel.deliver(message);
        }
    }
}
