//! A large answer beside another connection of the same worker, with real sockets and no supervisor.

use std::io::{Read as _, Write as _};
use std::rc::Rc;

use axum::Router;
use axum::routing::get;
use m0_spec::row;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::driver;
use crate::handler::Handler;
use crate::stream_tests::Scene;
use crate::turn::TURN_BYTES;

/// More than any kernel takes at once.
const LARGE: usize = 16 << 20;

#[row(E140)]
#[test]
fn a_large_answer_leaves_the_loop_to_what_else_came() {
    let mut scene = Scene::new(&[]);
    let large = || async { vec![b'x'; LARGE] };
    let router = Router::new().route("/", get(large));
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    scene.client.write_all(request.as_bytes()).expect("sent");
    let mut client = scene.client.try_clone().expect("a descriptor");
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        client.read_to_end(&mut all).expect("answered");
        all.len()
    });
    Scene::on_a_loop(async {
        let (conn, worker) = (scene.conn(), Rc::clone(&scene.worker));
        let handler = Handler::new(router, Rc::clone(&worker));
        let answering = tokio::task::spawn_local(driver::drive(conn, handler, Rc::clone(&worker)));
        // The other connection has something to read at every look of the loop, and at no other time.
        let (mut other, mut peer) = tokio::net::UnixStream::pair().expect("two sockets");
        let (mut last, mut most) = (0, 0);
        while !answering.is_finished() {
            peer.write_all(b"x").await.expect("room for a byte");
            other.read_exact(&mut [0]).await.expect("a byte");
            let sent = worker.share().snapshot().bytes_sent;
            most = most.max(sent - last);
            last = sent;
        }
        answering.await.expect("no panic");
        assert!(last > LARGE as u64, "{last} bytes in all");
        let turn = TURN_BYTES as u64;
        assert!(most >= turn, "{most} bytes: no turn was whole");
        // Whoever came before it in one round of the loop may come behind it in the next.
        assert!(most <= 2 * turn, "{most} bytes between two looks");
    });
    assert!(reading.join().expect("no panic") > LARGE);
}
