//! A router of axum behind the engine, with a real socket and no supervisor.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::routing::{get, post};
use axum::{Json, Router};
use m0_spec::row;
use m0_unix::sockets::{accept, listen_tcp};
use m0_wire::Scanner;

use crate::app::HostContext;
use crate::config::AppConfig;
use crate::conn::Conn;
use crate::driver;
use crate::handler::Handler;
use crate::serve::shared;
use crate::worker::Worker;

/// The status line and the body that `router` answers a request with.
fn answered(router: Router, request: &str) -> (String, String) {
    let config = AppConfig::from_parts([("M0_WORKERS", "1")], std::iter::empty::<&str>());
    let settings = config.resolve(&[]).expect("valid");
    let (bus, app_page) = shared(&settings, 0).expect("shared memory");
    bus.page.share(0).begin(std::process::id());
    let context = HostContext::new(0, settings, Arc::clone(&bus), app_page);
    let listener = listen_tcp(([127, 0, 0, 1], 0).into(), 8).expect("a port");
    let address = listener.local_addr().expect("bound").as_socket();
    let worker = Rc::new(Worker::new(context, vec![listener]));
    let mut client = TcpStream::connect(address.expect("TCP")).expect("room in the queue");
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a socket takes a timeout");
    client.write_all(request.as_bytes()).expect("sent");
    let (socket, peer) = accept(&worker.listeners()[0])
        .expect("accept works")
        .expect("one waits");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let scanner = Scanner::new(worker.limits());
        let conn = Conn::new(socket, peer, scanner, worker.share(), false).expect("a loop");
        let conn = Rc::new(conn);
        let handler = Handler::new(router, Rc::clone(&worker));
        driver::drive(conn, handler, Rc::clone(&worker)).await;
    });
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.lines().next().expect("a status line");
    (status.to_owned(), body.to_owned())
}

#[row(E1)]
#[test]
fn a_router_with_extractors_bodies_and_a_fallback_is_served_as_it_stands() {
    let router = Router::new()
        .route(
            "/items/{id}",
            get(|Path(id): Path<u32>| async move { Json([id, id + 1]) }),
        )
        .route("/echo", post(|body: String| async move { body }));
    let ask = |line: &str, rest: &str| {
        let head = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
        answered(router.clone(), &format!("{head}{rest}"))
    };
    let told = |status: &str, body: &str| (format!("HTTP/1.1 {status}"), body.to_owned());
    assert_eq!(ask("GET /items/7", "\r\n"), told("200 OK", "[7,8]"));
    assert_eq!(
        ask("POST /echo", "Content-Length: 5\r\n\r\nhello"),
        told("200 OK", "hello")
    );
    // What the router itself refuses is its own answer, too.
    assert_eq!(ask("GET /nowhere", "\r\n"), told("404 Not Found", ""));
    assert_eq!(ask("GET /echo", "\r\n"), told("405 Method Not Allowed", ""));
}
