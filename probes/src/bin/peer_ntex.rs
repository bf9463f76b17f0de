//! What ntex does with the probes' questions, on tokio with one worker and its defaults.
//!
//! Owns the peer's routes, which answer byte for byte the same bodies as the application and the example
//! that stand beside it. Refuses every variable: its one argument is the time between beats in milliseconds.
//! Invariant: nothing here is tuned against the peer; events are framed once and each stream gets the same bytes.

use std::convert::Infallible;
use std::net::TcpListener;

use ntex::time::{Millis, Seconds};
use ntex::util::Bytes;
use ntex::web::types::State;
use ntex::web::{self, App, HttpResponse, HttpServer};
use tokio::sync::broadcast;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::BroadcastStream;

/// Events that the channel holds for a stream that reads late; enough that no probe loses one.
const HELD_EVENTS: usize = 4096;

#[ntex::main]
async fn main() -> std::io::Result<()> {
    let period = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let (events, _) = broadcast::channel(HELD_EVENTS);
    ntex::rt::spawn(beat(events.clone(), Millis(period.unwrap_or(100))));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = HttpServer::new(move || {
        let events = events.clone();
        async move {
            App::new()
                .state(events)
                .route("/", web::get().to(hello))
                .route("/json", web::get().to(json))
                .route("/events", web::get().to(stream))
                .route("/publish", web::post().to(publish))
        }
    })
    .workers(1)
    // How it ends is no probe's question, and half a minute for connections that are gone outlasts their patience.
    .shutdown_timeout(Seconds(1))
    .listen(listener)?;
    eprintln!("{{\"event\":\"listening\",\"address\":\"http://{address}\"}}");
    server.run().await
}

async fn hello() -> HttpResponse {
    HttpResponse::Ok()
        .header("x-worker", "0")
        .content_type("text/plain; charset=utf-8")
        .body("m0 host_check\n")
}

async fn json() -> HttpResponse {
    HttpResponse::Ok().json(&["a", "b"])
}

async fn stream(events: State<broadcast::Sender<Bytes>>) -> HttpResponse {
    // A stream that lost events misses them in the count of the probe, which compares streams.
    let body = BroadcastStream::new(events.subscribe())
        .filter_map(|event| event.ok().map(Ok::<_, Infallible>));
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .header("cache-control", "no-cache")
        .streaming(body)
}

async fn publish(events: State<broadcast::Sender<Bytes>>, text: String) -> String {
    let frame = Bytes::from(format!("id: a-1\nevent: note\ndata: {text}\n\n"));
    // It fails only when no stream is open.
    events.send(frame).map_or(0, |streams| streams).to_string()
}

/// One beat a period, in the shape of host_check's.
async fn beat(events: broadcast::Sender<Bytes>, period: Millis) {
    let ticks = ntex::time::interval(period);
    let pid = std::process::id();
    for count in 1_u64.. {
        ticks.tick().await;
        let id = format!("198f2a6b3c0-{count}");
        let data = format!("{{\"n\":{count},\"pid\":{pid},\"slot\":0,\"id\":\"{id}\"}}");
        let frame = format!("id: {id}\nevent: beat\ndata: {data}\n\n");
        // It fails only when no stream is open.
        let _ = events.send(Bytes::from(frame));
    }
}
