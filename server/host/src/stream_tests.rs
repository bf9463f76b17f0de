//! The seam between a stream's head and its place in the fan-out, with a real socket and no engine.

use std::io::Read as _;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use m0_spec::row;
use m0_streams::Frame;
use m0_unix::sockets::{accept, listen_tcp};
use m0_wire::Scanner;

use crate::app::HostContext;
use crate::config::AppConfig;
use crate::conn::Conn;
use crate::driver;
use crate::handler::app_answer;
use crate::held::EventStream;
use crate::serve::shared;
use crate::worker::Worker;

#[row(S27, S29)]
#[test]
fn what_is_published_between_the_head_and_the_takeover_is_the_streams_too() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let config = AppConfig::from_parts([("M0_WORKERS", "1")], std::iter::empty::<&str>());
    let settings = config.resolve(&[]).expect("valid");
    let (bus, app_page) = shared(&settings, 0).expect("shared memory");
    bus.page.share(0).begin(std::process::id());
    let context = HostContext::new(0, settings, Arc::clone(&bus), app_page);
    let log = context.log();
    let listener = listen_tcp(([127, 0, 0, 1], 0).into(), 64).expect("a port");
    let address = listener
        .local_addr()
        .expect("bound")
        .as_socket()
        .expect("TCP");
    let worker = Rc::new(Worker::new(context, listener));
    let mut client = TcpStream::connect(address).expect("room in the queue");
    client
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a socket takes a timeout");
    let (socket, peer) = accept(worker.listener())
        .expect("accept works")
        .expect("one waits");

    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let scanner = Scanner::new(worker.limits());
        let conn =
            Rc::new(Conn::new(socket, peer, scanner, worker.share(), false).expect("a loop"));
        // The application has answered with a stream: its head may be on the wire from here on.
        let stream = EventStream::from_request(&HeaderMap::new()).into_response::<String>();
        let answer = app_answer(stream, &conn, &worker, None);
        let publish = |data: &str| {
            log.append(1, |id, text| Frame::new(Some(id), text).data(data).finish())
                .expect("it fits");
        };
        publish("delivered before");
        assert!(!worker.fanout().deliver(), "all is delivered");
        publish("published before");
        // What the engine does once the head is with the socket.
        conn.arm_takeover();
        conn.flushed();
        drop(answer);
        let holding = tokio::task::spawn_local({
            let (conn, worker) = (Rc::clone(&conn), Rc::clone(&worker));
            async move { driver::hold(&conn, &worker).await }
        });
        while worker.share().streams() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(!worker.fanout().deliver(), "all is delivered");
        assert_eq!(worker.fanout().tell_drain(), 1, "the stream is held");
        let counted = worker.share().snapshot().streams_opened;
        assert_eq!(counted, 1, "one stream counts once");
        holding.await.expect("it ends");
    });
    drop(local);
    let mut text = String::new();
    // The end of the connection is not what is asked about.
    let _ = client.read_to_string(&mut text);
    let seen: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    assert_eq!(
        seen[..2],
        ["delivered before", "published before"],
        "{text}"
    );
}
