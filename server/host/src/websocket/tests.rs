//! The meeting place of a session and its driver, without a socket.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use m0_spec::row;

use super::channel::{Channel, Closed, Message, WebSocket};
use super::hub;
use crate::frames::tests as frames;

const WINDOW: usize = 1000;

fn scene() -> (Rc<Channel>, WebSocket) {
    let channel = Rc::new(Channel::new(WINDOW));
    let socket = WebSocket {
        channel: Rc::clone(&channel),
    };
    (channel, socket)
}

/// What a future says at its first poll; it is given up then.
fn once<T>(future: impl Future<Output = T>) -> Poll<T> {
    let mut context = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut context)
}

fn text(text: &str) -> Message {
    Message::Text(text.to_owned())
}

#[row(K23)]
#[test]
fn a_receive_that_is_given_up_loses_no_message() {
    let (channel, socket) = scene();
    assert_eq!(once(socket.recv()), Poll::Pending);
    // It came while nobody waited any more: between two turns of a select, say.
    channel.deliver(text("kept"));
    assert_eq!(once(socket.recv()), Poll::Ready(Some(text("kept"))));
    assert_eq!(once(socket.recv()), Poll::Pending);
}

#[row(K23)]
#[test]
fn a_send_that_is_given_up_has_sent_nothing() {
    let (channel, socket) = scene();
    let most = Message::Binary(vec![7; WINDOW - 4]);
    assert_eq!(once(socket.send(most)), Poll::Ready(Ok(())));
    let waiting = channel.outbox.borrow().len_bytes();
    assert_eq!(once(socket.send(text("never"))), Poll::Pending);
    assert_eq!(channel.outbox.borrow().len_bytes(), waiting);
    channel.outbox.borrow_mut().advance(waiting);
    assert_eq!(once(socket.send(text("next"))), Poll::Ready(Ok(())));
    let outbox = channel.outbox.borrow();
    assert_eq!(outbox.front(), Some(&b"\x81\x04next"[..]));
}

#[row(K17)]
#[test]
fn a_message_is_asked_for_only_while_it_is_awaited_and_none_is_there() {
    let (channel, socket) = scene();
    assert!(!channel.wants(), "nobody has asked");
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut receive = pin!(socket.recv());
        assert!(receive.as_mut().poll(&mut context).is_pending());
        assert!(channel.wants());
        channel.deliver(text("one"));
        assert!(!channel.wants(), "one waits already");
        let got = receive.as_mut().poll(&mut context);
        assert_eq!(got, Poll::Ready(Some(text("one"))));
    }
    assert!(!channel.wants(), "the session is busy with it");
    assert!(once(socket.recv()).is_pending());
    assert!(!channel.wants(), "the call was given up");
}

#[row(K18)]
#[test]
fn what_waits_for_a_peer_is_within_the_window_or_one_message() {
    let (channel, socket) = scene();
    let waiting = || channel.outbox.borrow().len_bytes();
    let fits = |_: &i32| once(socket.send(Message::Binary(vec![7; 98]))).is_ready();
    let sent = (0..100).take_while(fits).count();
    assert_eq!((sent, waiting()), (10, WINDOW), "ten frames of 100 bytes");
    channel.outbox.borrow_mut().advance(WINDOW);
    // One that is larger is sent alone.
    let large = || Message::Binary(vec![7; 5 * WINDOW]);
    assert!(once(socket.send(large())).is_ready());
    assert_eq!(waiting(), 5 * WINDOW + 4);
    assert!(once(socket.send(text(""))).is_pending());
    channel.outbox.borrow_mut().advance(5 * WINDOW);
    assert!(once(socket.send(large())).is_pending(), "behind four bytes");
}

#[row(K23)]
#[test]
fn a_closed_socket_gives_what_had_come_and_takes_nothing() {
    let (channel, socket) = scene();
    channel.deliver(text("last"));
    channel.close();
    assert_eq!(once(socket.send(text("late"))), Poll::Ready(Err(Closed)));
    assert_eq!(once(socket.recv()), Poll::Ready(Some(text("last"))));
    assert_eq!(once(socket.recv()), Poll::Ready(None));
    assert!(channel.outbox.borrow().is_empty());
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[row(K28)]
#[test]
fn two_tasks_that_await_a_message_each_get_one() {
    let (channel, socket) = scene();
    let driver = Arc::new(Woken::default());
    channel.register(&Context::from_waker(&Arc::clone(&driver).into()));
    let mut context = Context::from_waker(Waker::noop());
    let (mut one, mut two) = (pin!(socket.recv()), pin!(socket.recv()));
    assert!(one.as_mut().poll(&mut context).is_pending());
    assert!(two.as_mut().poll(&mut context).is_pending());
    channel.deliver(text("one"));
    let before = driver.0.load(Ordering::Relaxed);
    let got = one.as_mut().poll(&mut context);
    assert_eq!(got, Poll::Ready(Some(text("one"))));
    assert!(two.as_mut().poll(&mut context).is_pending());
    let asked = driver.0.load(Ordering::Relaxed) - before;
    assert_eq!(asked, 1, "nobody was asked for the second message");
    channel.deliver(text("two"));
    let got = two.as_mut().poll(&mut context);
    assert_eq!(got, Poll::Ready(Some(text("two"))));
}

#[row(K29)]
#[test]
fn a_peer_of_the_hub_that_is_behind_is_heard() {
    let (channel, socket) = scene();
    let context = frames::scene();
    let published = context.frames(None);
    let data = "x".repeat(WINDOW);
    for _ in 0..3 {
        frames::publish(&context, &data);
    }
    let mut hub = pin!(hub::run(socket, published));
    let mut waking = Context::from_waker(Waker::noop());
    for behind in [2, 1] {
        assert!(hub.as_mut().poll(&mut waking).is_pending());
        let waiting = channel.outbox.borrow().len_bytes();
        assert!(waiting > WINDOW, "{waiting} bytes wait, {behind} frames do");
        for _ in 0..3 {
            assert!(channel.wants(), "the peer is not read");
            channel.deliver(text("dropped"));
            assert!(hub.as_mut().poll(&mut waking).is_pending());
        }
        let still = channel.outbox.borrow().len_bytes();
        assert_eq!(still, waiting, "something was sent again");
        channel.outbox.borrow_mut().advance(waiting);
    }
    channel.close();
    assert!(hub.as_mut().poll(&mut waking).is_ready());
}
