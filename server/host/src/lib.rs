//! A pre-fork host for HTTP applications.
//!
//! An application writes a handler and, if it likes, a periodic producer; the host owns everything
//! else: the listeners, the workers and their supervision, accept sharing, the cross-worker bus, held
//! streams, signals, refusals and the drain. [`serve`] is the whole of it, in thirteen steps.
//!
//! The contract, promise by promise, is in `spec/`; each row names the evidence that holds it.

mod accept;
#[cfg(test)]
mod accept_tests;
mod access;
mod answer;
mod app;
mod body;
mod cadence;
mod closing;
mod config;
mod conn;
mod doctor;
mod driver;
mod engine;
mod exchange;
mod fanout;
mod feed;
mod frames;
mod handler;
mod held;
mod link;
mod listen;
mod log;
#[cfg(test)]
mod log_tests;
mod metrics;
mod middleware;
pub mod producer;
#[cfg(test)]
mod producer_tests;
mod publisher;
mod refusal;
#[cfg(test)]
mod router_tests;
mod run;
mod serve;
mod settings;
#[cfg(test)]
mod stream_tests;
mod supervisor;
mod tls;
mod turn;
#[cfg(test)]
mod turn_tests;
mod variables;
mod watch;
mod websocket;
mod worker;

pub use app::{AppHandler, HostContext, NoProducer, Producer};
pub use body::{BodyError, RequestBody};
pub use config::AppConfig;
pub use frames::{Frames, Lapped};
pub use held::EventStream;
pub use m0_framelog::FrameId;
pub use m0_page::{Page, PageSnapshot, ProducerCounter, WorkerCounter, WorkerState};
pub use m0_streams::sse::Frame;
pub use m0_unix::sockets::Peer;
pub use m0_wire::proxy::Networks;
pub use middleware::{Compression, Cors, Files, Guard, Secret};
pub use publisher::{PublishError, Published, Publisher};
pub use refusal::{EXIT_CLEAN, EXIT_CONFIG, EXIT_CRASH_LOOP, EXIT_OS, EXIT_UNCLEAN, Refusal};
pub use serve::{serve, serve_service};
pub use settings::{Bind, Level, Settings};
pub use websocket::{Closed, Message, WebSocket, WebSocketUpgrade};
