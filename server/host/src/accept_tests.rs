//! The batch of the loop's accept, with a real listener and no loop.

use std::cell::Cell;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;

use m0_spec::row;
use m0_unix::sockets::listen_tcp;

use crate::accept::look;
use crate::app::HostContext;
use crate::config::AppConfig;
use crate::link::{End, Looked};
use crate::serve::shared;
use crate::worker::Worker;

#[row(E55)]
#[test]
fn a_look_takes_a_batch_and_says_that_there_may_be_more() {
    let config = AppConfig::from_parts([("M0_WORKERS", "1")], std::iter::empty::<&str>());
    let settings = config.resolve(&[]).expect("valid");
    let (bus, app_page) = shared(&settings, 0).expect("shared memory");
    bus.page.share(0).begin(std::process::id());
    let context = HostContext::new(0, settings, Arc::clone(&bus), app_page);
    let listener = listen_tcp(([127, 0, 0, 1], 0).into(), 64).expect("a port");
    let address = listener
        .local_addr()
        .expect("bound")
        .as_socket()
        .expect("TCP");
    let worker = Rc::new(Worker::new(context, listener));

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
