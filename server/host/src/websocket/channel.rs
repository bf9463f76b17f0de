//! What an application and the host have in common of one WebSocket.
//!
//! Owns the one message that waits for the application, the frames that wait for the peer, and who waits
//! for either. Refuses to know the socket. Invariants: at most one message waits, and none is asked of the
//! socket unless the application awaits one; frames that wait stay within the window, or are one message
//! where a single one is larger; a call that is given up has taken or sent nothing.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use m0_streams::Outbox;
use m0_wire::ws::{Opcode, frame};

/// A message of a WebSocket, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

impl Message {
    fn frame(&self) -> Bytes {
        match self {
            Message::Text(text) => frame::encode(Opcode::Text, text.as_bytes()),
            Message::Binary(bytes) => frame::encode(Opcode::Binary, bytes),
        }
        .into()
    }
}

/// The WebSocket is closed, or closing: nothing can be sent any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the WebSocket is closed")
    }
}

impl std::error::Error for Closed {}

/// The meeting place of a session and its driver.
pub(super) struct Channel {
    window: usize,
    inbox: RefCell<Option<Message>>,
    /// Calls of the application that await a message.
    wanted: Cell<usize>,
    pub(super) outbox: RefCell<Outbox>,
    /// The application's last word.
    farewell: RefCell<Option<(u16, String)>>,
    closed: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
    driver: RefCell<Option<Waker>>,
}

impl Channel {
    pub(super) fn new(window: usize) -> Self {
        Channel {
            window,
            inbox: RefCell::new(None),
            wanted: Cell::new(0),
            outbox: RefCell::new(Outbox::new()),
            farewell: RefCell::new(None),
            closed: Cell::new(false),
            waiting: RefCell::new(Vec::new()),
            driver: RefCell::new(None),
        }
    }

    /// Remembers whom the application wakes.
    pub(super) fn register(&self, cx: &Context<'_>) {
        let mut driver = self.driver.borrow_mut();
        match driver.as_mut() {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *driver = Some(cx.waker().clone()),
        }
    }

    fn wake_driver(&self) {
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    /// Wakes whoever waits for a message, for room, or for the end.
    pub(super) fn wake(&self) {
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    fn wait(&self, cx: &Context<'_>) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
    }

    /// Whether the application awaits a message and none is there.
    pub(super) fn wants(&self) -> bool {
        self.wanted.get() > 0 && self.inbox.borrow().is_none()
    }

    /// A message has come.
    pub(super) fn deliver(&self, message: Message) {
        *self.inbox.borrow_mut() = Some(message);
        self.wake();
    }

    /// No message comes or goes from now on. One that came before can still be taken.
    pub(super) fn close(&self) {
        self.closed.set(true);
        self.wake();
    }

    pub(super) fn take_farewell(&self) -> Option<(u16, String)> {
        self.farewell.take()
    }
}

/// One end of a WebSocket, as the application's session holds it.
///
/// Pings are answered, silence is noticed and a close is heard while a message is awaited: also a session
/// that only sends should await one.
pub struct WebSocket {
    pub(super) channel: Rc<Channel>,
}

impl WebSocket {
    /// The next message of the peer; `None` once the connection is closing. The peer's bytes are read only
    /// while somebody awaits a message, so a session that is busy slows its peer down.
    ///
    /// May be given up and called again: no message is lost.
    pub async fn recv(&self) -> Option<Message> {
        Recv {
            channel: &self.channel,
            counted: false,
        }
        .await
    }

    /// Sends a message once `M0_WS_WINDOW_BYTES` has room for it: what a slow peer has not taken makes the
    /// session wait. A message that is larger than the window is sent alone.
    ///
    /// May be given up: then nothing of the message was sent.
    ///
    /// # Errors
    /// [`Closed`] once the connection is closing.
    pub async fn send(&self, message: Message) -> Result<(), Closed> {
        let channel = &*self.channel;
        let bytes = message.frame();
        drop(message);
        poll_fn(|cx| {
            if channel.closed.get() {
                return Poll::Ready(Err(Closed));
            }
            let room = channel
                .outbox
                .borrow_mut()
                .push(bytes.clone(), channel.window);
            if room.is_err() {
                channel.wait(cx);
                return Poll::Pending;
            }
            channel.wake_driver();
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Closes the WebSocket with a code (1000, 1001, 1003, 1007 to 1014, or an application's own from 3000
    /// to 4999) and a reason of at most 123 bytes, behind what was sent before. Nothing can be sent after.
    ///
    /// # Panics
    /// If the code must not be sent (RFC 6455 section 7.4).
    pub fn close(&self, code: u16, reason: &str) {
        assert!(
            frame::may_close_with(code),
            "{code} is no code to close with"
        );
        if !self.channel.closed.get() {
            *self.channel.farewell.borrow_mut() = Some((code, reason.to_owned()));
            self.channel.close();
            self.channel.wake_driver();
        }
    }
}

impl std::fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSocket")
            .field("closed", &self.channel.closed.get())
            .finish_non_exhaustive()
    }
}

/// Waits for a message; given up, it asks for none any more.
struct Recv<'a> {
    channel: &'a Channel,
    counted: bool,
}

impl Future for Recv<'_> {
    type Output = Option<Message>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        let channel = self.channel;
        if let Some(message) = channel.inbox.take() {
            if channel.wanted.get() > usize::from(self.counted) {
                // Another call, perhaps of another task, awaits the next one.
                channel.wake_driver();
            }
            return Poll::Ready(Some(message));
        }
        if channel.closed.get() {
            return Poll::Ready(None);
        }
        if !self.counted {
            self.counted = true;
            channel.wanted.set(channel.wanted.get() + 1);
            channel.wake_driver();
        }
        channel.wait(cx);
        Poll::Pending
    }
}

impl Drop for Recv<'_> {
    fn drop(&mut self) {
        if self.counted {
            self.channel.wanted.set(self.channel.wanted.get() - 1);
        }
    }
}
