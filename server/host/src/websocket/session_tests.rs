//! A session over a real socket, without an engine.

use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response, Version};
use m0_spec::row;
use m0_unix::clock::monotonic_ms;

use super::session::TURN_EVENTS;
use super::{Begin, End, Message, WebSocket, run};
use crate::conn::Conn;
use crate::driver;
use crate::exchange::Exchange;
use crate::handler::app_answer;
use crate::stream_tests::Scene;
use crate::worker::Worker;

/// An empty text, masked.
const EMPTY: &[u8] = b"\x81\x80\0\0\0\0";
/// A close frame without a code, masked.
const CLOSE: &[u8] = b"\x88\x80\0\0\0\0";

fn begin<T: Future<Output = ()> + 'static>(
    session: impl FnOnce(WebSocket) -> T + Send + 'static,
) -> Begin {
    Box::new(|socket| Box::pin(session(socket)))
}

/// Runs a session to its end.
async fn ended(conn: &Rc<Conn>, worker: &Worker, begin: Begin) -> (End, Option<&'static str>) {
    let told = std::cell::Cell::new(None);
    let running = run(conn, worker, begin, |why| told.set(Some(why)));
    let end = tokio::time::timeout(Duration::from_secs(20), running).await;
    (end.expect("it ends"), told.get())
}

/// The worker's sweep as far as this connection goes, which is told of in time.
async fn swept(conn: Rc<Conn>, worker: Rc<Worker>) {
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    loop {
        tick.tick().await;
        conn.wake_if_silent(worker.rhythm(), monotonic_ms());
    }
}

#[row(K27)]
#[test]
fn a_peer_of_many_small_messages_leaves_the_loop_to_others_in_between() {
    const MESSAGES: usize = 5_000;
    let mut scene = Scene::new(&[]);
    Scene::on_a_loop(async {
        let conn = scene.conn();
        let all = [&EMPTY.repeat(MESSAGES), CLOSE].concat();
        scene.client.write_all(&all).expect("the kernel has room");
        let seen = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&seen);
        let counting = begin(|socket| async move {
            while socket.recv().await.is_some() {
                counts.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (worker, counted) = (Rc::clone(&scene.worker), Arc::clone(&seen));
        let session =
            tokio::task::spawn_local(async move { ended(&conn, &worker, counting).await });
        let (mut last, mut most) = (0, 0);
        // A task that is always ready: it and the session take turns.
        let other = tokio::task::spawn_local(poll_fn(move |cx| {
            let now = counted.load(Ordering::Relaxed);
            most = most.max(now - last);
            last = now;
            if now == MESSAGES {
                return Poll::Ready(most);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let (end, _) = session.await.expect("no panic");
        assert_eq!(end, End::Closed);
        assert_eq!(seen.load(Ordering::Relaxed), MESSAGES);
        let most = other.await.expect("no panic");
        assert!(most <= TURN_EVENTS, "{most} messages in one turn");
    });
}

#[row(K30)]
#[test]
fn a_peer_that_has_not_been_handed_its_ping_is_not_silent() {
    const BOUND_MS: u64 = 10;
    let bound = BOUND_MS.to_string();
    let settings = [
        ("M0_WS_PING_MS", &*bound),
        ("M0_WS_PONG_TIMEOUT_MS", &bound),
    ];
    let mut scene = Scene::new(&settings);
    Scene::on_a_loop(async {
        let conn = scene.conn();
        let worker = Rc::clone(&scene.worker);
        // More than the kernels take, and the session listens meanwhile.
        let flood = begin(|socket| async move {
            for _ in 0..600 {
                let mut sending = pin!(socket.send(Message::Binary(vec![7; 60_000])));
                loop {
                    tokio::select! {
                        biased;
                        sent = &mut sending => break sent.expect("it is open"),
                        heard = socket.recv() => assert_eq!(heard, None, "the peer says nothing"),
                    }
                }
            }
            while socket.recv().await.is_some() {}
        });
        let sweep = tokio::task::spawn_local(swept(Rc::clone(&conn), Rc::clone(&worker)));
        let ending = Rc::clone(&conn);
        let mut session =
            tokio::task::spawn_local(async move { ended(&conn, &worker, flood).await });
        let bounds = Duration::from_millis(10 * BOUND_MS);
        let given_up = tokio::time::timeout(bounds, &mut session).await;
        given_up.expect_err("given up before it could answer");
        // It takes all at last, then it is asked, and says nothing.
        let mut client = scene.client.try_clone().expect("a descriptor");
        let reading = std::thread::spawn(move || {
            // How the connection ends is not what is asked about.
            let _ = std::io::copy(&mut client, &mut std::io::sink());
        });
        let told = session.await.expect("no panic");
        assert_eq!(told, (End::Cut, Some("no pong in time")));
        sweep.abort();
        ending.shutdown();
        reading.join().expect("no panic");
    });
}

#[row(K32)]
#[test]
fn a_peer_that_takes_what_stands_before_its_ping_is_not_silent() {
    const BOUND_MS: u64 = 40;
    /// More than the peer's kernel takes, and less than ours.
    const ALL_BYTES: usize = 1 << 20;
    const READ_BYTES: usize = 1 << 17;
    let bound = BOUND_MS.to_string();
    let settings = [
        ("M0_WS_PING_MS", "10"),
        ("M0_WS_PONG_TIMEOUT_MS", &*bound),
        ("M0_WS_WINDOW_BYTES", "4194304"),
    ];
    let mut scene = Scene::new(&settings);
    let narrow = socket2::SockRef::from(&scene.client).set_recv_buffer_size(READ_BYTES / 4);
    narrow.expect("a socket takes a size");
    Scene::on_a_loop(async {
        let conn = scene.conn();
        let worker = Rc::clone(&scene.worker);
        let speaks = begin(|socket| async move {
            let all = Message::Binary(vec![7; ALL_BYTES]);
            socket.send(all).await.expect("it is open");
            while socket.recv().await.is_some() {}
        });
        let (seen, sweeping) = (Rc::clone(&conn), Rc::clone(&worker));
        let mut session =
            tokio::task::spawn_local(async move { ended(&conn, &worker, speaks).await });
        while seen.sent_bytes() < ALL_BYTES as u64 {
            tokio::task::yield_now().await;
        }
        // Each time that the bound has passed once more it has taken something, and nothing else.
        let mut taken = vec![0; READ_BYTES];
        for _ in 0..ALL_BYTES / READ_BYTES - 1 {
            let before = seen.taken_bytes();
            scene.client.read_exact(&mut taken).expect("sent");
            assert!(before < seen.taken_bytes(), "its kernel took all at once");
            let bound = Duration::from_millis(2 * BOUND_MS);
            let given_up = tokio::time::timeout(bound, &mut session).await;
            given_up.expect_err("given up by itself");
            seen.wake_if_silent(sweeping.rhythm(), monotonic_ms());
            tokio::task::yield_now().await;
            assert!(!session.is_finished(), "given up while it takes");
        }
        let sweep = tokio::task::spawn_local(swept(Rc::clone(&seen), sweeping));
        let told = session.await.expect("no panic");
        assert_eq!(told, (End::Cut, Some("no pong in time")));
        sweep.abort();
    });
}

#[row(K31)]
#[test]
fn a_close_that_waits_is_not_lost_by_a_fault_of_the_peer() {
    let mut scene = Scene::new(&[]);
    Scene::on_a_loop(async {
        let conn = scene.conn();
        let worker = Rc::clone(&scene.worker);
        // The close waits behind more than the kernels take.
        let farewell = begin(|socket| async move {
            let all = Message::Binary(vec![7; 32 << 20]);
            socket.send(all).await.expect("it is open");
            socket.close(4000, "enough");
        });
        // A frame without a mask.
        scene.client.write_all(b"\x81\x00").expect("room");
        let mut client = scene.client.try_clone().expect("a descriptor");
        let swept = Rc::clone(&conn);
        let session =
            tokio::task::spawn_local(async move { ended(&conn, &worker, farewell).await });
        // The fault is read once nothing of it is left in the socket.
        while swept.has_input() {
            tokio::task::yield_now().await;
        }
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = client.read_to_end(&mut all);
            all
        });
        let (end, _) = session.await.expect("no panic");
        assert_eq!(end, End::Failed);
        swept.shutdown();
        let all = reading.join().expect("no panic");
        assert!(all.ends_with(b"\x88\x08\x0f\xa0enough"), "{}", all.len());
    });
}

#[row(K20)]
#[test]
fn a_place_is_taken_by_the_answer_and_given_back_with_the_connection() {
    let mut scene = Scene::new(&[("M0_MAX_STREAMS", "1")]);
    Scene::on_a_loop(async {
        let conn = scene.conn();
        let worker = Rc::clone(&scene.worker);
        let request = Request::get("/ws")
            .version(Version::HTTP_11)
            .header("host", "a")
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("sec-websocket-version", "13")
            .body(())
            .expect("a request");
        let head =
            b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        scene.client.write_all(head).expect("room");
        poll_fn(|cx| conn.poll_read(cx, 4096, &mut |_| {}))
            .await
            .expect("a head");
        let asked = || -> Response<String> {
            let upgrade = worker.context().websocket(&request);
            upgrade.on(|socket| async move { while socket.recv().await.is_some() {} })
        };
        let first = app_answer(
            asked(),
            &Exchange::Alone(Rc::clone(&conn)),
            &worker,
            None,
            None,
        );
        assert_eq!(first.status(), 101);
        let second = app_answer(
            asked(),
            &Exchange::Alone(Rc::clone(&conn)),
            &worker,
            None,
            None,
        );
        assert_eq!(second.status(), 503, "the place is the first one's");
        drop(second);
        // The head is out, and the peer leaves.
        conn.arm_takeover();
        conn.flushed();
        drop(first);
        scene.client.write_all(CLOSE).expect("room");
        let held = driver::take_over(&conn, &worker);
        let ended = tokio::time::timeout(Duration::from_secs(10), held).await;
        ended.expect("it ends");
        assert_eq!((worker.sockets(), worker.share().streams()), (0, 0));
        assert!(
            poll_fn(|_| Poll::Ready(worker.refuses_streams()))
                .await
                .is_none()
        );
    });
}
