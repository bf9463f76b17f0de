//! The meeting place of a session and its driver, without a socket.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use m0_spec::row;

use super::channel::{Channel, Closed, Message, WebSocket};

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
