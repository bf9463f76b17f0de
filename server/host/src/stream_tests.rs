//! The seam between a stream's head and its place in the fan-out, with a real socket and no engine.

use std::io::Read as _;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Response};
use m0_spec::row;
use m0_streams::Frame;
use m0_unix::sockets::{Peer, accept, listen_tcp};
use m0_wire::Scanner;
use socket2::Socket;

use crate::answer::AnswerBody;
use crate::app::HostContext;
use crate::config::AppConfig;
use crate::conn::Conn;
use crate::driver;
use crate::exchange::Exchange;
use crate::handler::app_answer;
use crate::held::EventStream;
use crate::publisher::Bus;
use crate::serve::shared;
use crate::worker::Worker;

/// One worker, and one connection of it whose peer is this process.
pub(crate) struct Scene {
    bus: Arc<Bus>,
    pub(crate) worker: Rc<Worker>,
    pub(crate) client: TcpStream,
    accepted: Option<(Socket, Peer)>,
}

impl Scene {
    /// With these settings.
    pub(crate) fn new(settings: &[(&str, &str)]) -> Self {
        let variables = [&[("M0_WORKERS", "1")], settings].concat();
        let config = AppConfig::from_parts(variables, std::iter::empty::<&str>());
        let settings = config.resolve(&[]).expect("valid");
        let (bus, app_page) = shared(&settings, 0).expect("shared memory");
        bus.page.share(0).begin(std::process::id());
        let context = HostContext::new(0, settings, Arc::clone(&bus), app_page);
        let listener = listen_tcp(([127, 0, 0, 1], 0).into(), 64).expect("a port");
        let address = listener.local_addr().expect("bound");
        let address = address.as_socket().expect("TCP");
        let worker = Rc::new(Worker::new(context, vec![listener]));
        let client = TcpStream::connect(address).expect("room in the queue");
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .expect("a socket takes a timeout");
        let accepted = accept(&worker.listeners()[0]).expect("accept works");
        Scene {
            bus,
            worker,
            client,
            accepted,
        }
    }

    /// Does `work` on a loop of its own.
    pub(crate) fn on_a_loop(work: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        tokio::task::LocalSet::new().block_on(&runtime, work);
    }

    /// The connection.
    pub(crate) fn conn(&mut self) -> Rc<Conn> {
        let (socket, peer) = self.accepted.take().expect("one waits");
        let scanner = Scanner::new(self.worker.limits());
        let conn = Conn::new(socket, peer, scanner, self.worker.share(), false).expect("a loop");
        Rc::new(conn)
    }

    /// A connection whose application has answered with a stream: its head may be on the wire.
    fn answered_with_a_stream(&mut self) -> (Rc<Conn>, Response<AnswerBody<String>>) {
        let conn = self.conn();
        let stream = EventStream::from_request(&HeaderMap::new()).into_response::<String>();
        let answer = app_answer(
            stream,
            &Exchange::Alone(Rc::clone(&conn)),
            &self.worker,
            None,
            None,
        );
        (conn, answer)
    }

    /// All that the peer was sent until the end.
    fn text(mut self) -> String {
        drop(self.worker);
        let mut text = String::new();
        // How the connection ends is not what is asked about.
        let _ = self.client.read_to_string(&mut text);
        text
    }
}

/// What the engine does once the head is with the socket.
fn head_is_out(conn: &Conn, answer: Response<AnswerBody<String>>) {
    conn.arm_takeover();
    conn.flushed();
    drop(answer);
}

#[row(S27, S29)]
#[test]
fn what_is_published_between_the_head_and_the_takeover_is_the_streams_too() {
    let mut scene = Scene::new(&[]);
    Scene::on_a_loop(async {
        let (conn, answer) = scene.answered_with_a_stream();
        let (worker, log) = (Rc::clone(&scene.worker), scene.bus.log);
        let publish = |data: &str| {
            log.append(1, |id, text| Frame::new(Some(id), text).data(data).finish())
                .expect("it fits");
        };
        publish("delivered before");
        while worker.fanout().deliver() {}
        publish("published before");
        head_is_out(&conn, answer);
        let holding = tokio::task::spawn_local({
            let (conn, worker) = (Rc::clone(&conn), Rc::clone(&worker));
            async move { driver::take_over(&conn, &worker).await }
        });
        while worker.share().streams() == 0 {
            tokio::task::yield_now().await;
        }
        while worker.fanout().deliver() {}
        assert_eq!(worker.fanout().tell_drain(), 1, "the stream is held");
        let counted = worker.share().snapshot().streams_opened;
        assert_eq!(counted, 1, "one stream counts once");
        holding.await.expect("it ends");
    });
    let text = scene.text();
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

#[row(S30)]
#[test]
fn a_stream_whose_head_was_on_its_way_at_the_drain_is_told_as_well() {
    let mut scene = Scene::new(&[]);
    Scene::on_a_loop(async {
        let (conn, answer) = scene.answered_with_a_stream();
        scene.worker.context().begin_drain();
        assert_eq!(scene.worker.fanout().tell_drain(), 0, "none is held yet");
        head_is_out(&conn, answer);
        let holding = driver::take_over(&conn, &scene.worker);
        let ended = tokio::time::timeout(Duration::from_secs(10), holding).await;
        ended.expect("a stream that was told ends");
    });
    let text = scene.text();
    assert!(
        text.contains("event: drain\n") && text.contains("retry: "),
        "{text}"
    );
    assert!(
        text.ends_with("0\r\n\r\n"),
        "without its last chunk: {text}"
    );
}

#[row(S15)]
#[test]
fn a_place_that_a_websocket_took_meanwhile_is_no_streams() {
    let mut scene = Scene::new(&[("M0_MAX_STREAMS", "1")]);
    Scene::on_a_loop(async {
        let (conn, answer) = scene.answered_with_a_stream();
        let worker = Rc::clone(&scene.worker);
        let taken = worker.hold_socket();
        head_is_out(&conn, answer);
        let held = driver::take_over(&conn, &worker);
        let ended = tokio::time::timeout(Duration::from_secs(10), held).await;
        ended.expect("there is no room for it");
        assert_eq!(worker.share().streams(), 1, "more than the limit");
        drop(taken);
    });
}
