//! What `axum::serve` does with the probes' questions, on one thread and with its defaults.
//!
//! Owns the peer's routes, which answer byte for byte the same bodies as the application and the example
//! that stand beside it. Refuses every variable: its one argument is the time between beats in milliseconds.
//! Invariant: nothing here is tuned against the peer; a broadcast channel and `Sse` are what axum's own examples use.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _};

/// Events that the channel holds for a stream that reads late; enough that no probe loses one.
const HELD_EVENTS: usize = 4096;

fn main() -> std::io::Result<()> {
    let period = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let period = Duration::from_millis(period.unwrap_or(100));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (events, _) = broadcast::channel(HELD_EVENTS);
        tokio::spawn(beat(events.clone(), period));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        eprintln!("{{\"event\":\"listening\",\"address\":\"http://{address}\"}}");
        axum::serve(listener, router(events)).await
    })
}

fn router(events: broadcast::Sender<Event>) -> Router {
    // The layer stands where host_check has it: before the routes that are compared with host_check's.
    Router::new()
        .route("/", get(|| async { "m0 host_check\n" }))
        .layer(from_fn(name_worker))
        .route("/json", get(|| async { Json(["a", "b"]) }))
        .route("/events", get(stream))
        .route("/publish", post(publish))
        .with_state(events)
}

async fn name_worker(request: Request, next: Next) -> Response<axum::body::Body> {
    let mut response = next.run(request).await;
    let worker = HeaderValue::from(0_usize);
    response.headers_mut().insert("x-worker", worker);
    response
}

async fn stream(
    State(events): State<broadcast::Sender<Event>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    // A stream that lost events misses them in the count of the probe, which compares streams.
    Sse::new(BroadcastStream::new(events.subscribe()).filter_map(|event| event.ok().map(Ok)))
}

async fn publish(State(events): State<broadcast::Sender<Event>>, text: String) -> String {
    let event = Event::default().id("a-1").event("note").data(text);
    // It fails only when no stream is open.
    events.send(event).map_or(0, |streams| streams).to_string()
}

/// One beat a period, in the shape of host_check's.
async fn beat(events: broadcast::Sender<Event>, period: Duration) {
    let mut ticks = tokio::time::interval(period);
    let pid = std::process::id();
    for count in 1_u64.. {
        ticks.tick().await;
        let id = format!("198f2a6b3c0-{count}");
        let data = format!("{{\"n\":{count},\"pid\":{pid},\"slot\":0,\"id\":\"{id}\"}}");
        // It fails only when no stream is open.
        let _ = events.send(Event::default().id(id).event("beat").data(data));
    }
}
