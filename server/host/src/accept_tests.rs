//! The batch of the loop's accept, with a real listener and no loop.

use std::cell::{Cell, RefCell};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;

use m0_spec::row;
use m0_unix::sockets::listen_tcp;
use socket2::Socket;

use crate::accept::look;
use crate::app::HostContext;
use crate::config::AppConfig;
use crate::link::{End, Looked};
use crate::serve::shared;
use crate::worker::Worker;

fn context() -> HostContext {
    let config = AppConfig::from_parts([("M0_WORKERS", "1")], std::iter::empty::<&str>());
    let settings = config.resolve(&[]).expect("valid");
    let (bus, app_page) = shared(&settings, 0).expect("shared memory");
    bus.page.share(0).begin(std::process::id());
    HostContext::new(0, settings, Arc::clone(&bus), app_page)
}

#[row(E112)]
#[test]
fn listeners_take_turns_whatever_waits_at_each_and_from_look_to_look() {
    let listeners: Vec<_> = (0..3)
        .map(|_| listen_tcp(([127, 0, 0, 1], 0).into(), 64).expect("a port"))
        .collect();
    let addresses: Vec<_> = listeners
        .iter()
        .map(|it| it.local_addr().expect("bound").as_socket().expect("TCP"))
        .collect();
    // Many at the second one; few at the others.
    let clients: Vec<TcpStream> = [(0, 2), (1, 30), (2, 1)]
        .into_iter()
        .flat_map(|(at, count)| std::iter::repeat_n(addresses[at], count))
        .map(|address| TcpStream::connect(address).expect("room in the queue"))
        .collect();
    let worker = Rc::new(Worker::new(context(), listeners));
    let order = RefCell::new(Vec::new());
    let take = |socket: Socket, _| {
        let own = socket.local_addr().expect("open").as_socket();
        order.borrow_mut().push(
            addresses
                .iter()
                .position(|it| Some(*it) == own)
                .expect("one of them"),
        );
    };
    let looked = look(&worker, false, &take);
    assert_eq!((looked.end, looked.took), (End::More, true));
    assert_eq!(order.borrow()[..6], [0, 1, 2, 0, 1, 1], "{order:?}");
    // Who comes between two looks does not wait behind the many.
    let _late = TcpStream::connect(addresses[2]).expect("room in the queue");
    order.borrow_mut().clear();
    while order.borrow().len() < clients.len() + 1 - 16 {
        assert!(look(&worker, false, &take).took, "{order:?}");
    }
    assert!(order.borrow()[..3].contains(&2), "{order:?}");
    assert_eq!(look(&worker, false, &take).end, End::Empty);
}

#[row(E55)]
#[test]
fn a_look_takes_a_batch_and_says_that_there_may_be_more() {
    let listener = listen_tcp(([127, 0, 0, 1], 0).into(), 64).expect("a port");
    let address = listener
        .local_addr()
        .expect("bound")
        .as_socket()
        .expect("TCP");
    let worker = Rc::new(Worker::new(context(), vec![listener]));

    let clients: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(address).expect("room in the queue"))
        .collect();
    let taken = Cell::new(0);
    let mut looks = Vec::new();
    while taken.get() < clients.len() {
        let before = taken.get();
        let looked = look(&worker, false, &|_, _| taken.set(taken.get() + 1));
        looks.push((taken.get() - before, looked));
        assert!(looks.len() <= clients.len(), "it takes nothing: {looks:?}");
    }
    let more = Looked {
        end: End::More,
        took: true,
    };
    let rest = Looked {
        end: End::Empty,
        took: true,
    };
    assert_eq!(looks, [(16, more), (16, more), (8, rest)]);
}
