//! The suites, one file each, and the list of all their phases.
//!
//! Owns the order of the list, in which phases are shown. Knows nothing of what they do.
//! Invariant: every suite is in the list.

use crate::phase::Phase;

pub mod accept;
pub mod beat;
pub mod body;
pub mod codings;
pub mod drain;
pub mod endure;
pub mod files;
pub mod guards;
pub mod http;
pub mod http2;
pub mod http2_bounds;
pub mod last_request;
pub mod layers;
pub mod limits;
pub mod listeners;
pub mod output;
pub mod process_one;
pub mod producer;
pub mod proxied;
pub mod refuse;
pub mod replay;
pub mod respawn;
pub mod seams;
pub mod signals;
pub mod stream;
pub mod supervise;
pub mod table;
pub mod tls;
pub mod tls_ends;
pub mod websocket;
pub mod websocket_bounds;
pub mod websocket_hub;

/// Every phase of every suite.
pub fn all() -> Vec<Phase> {
    [
        beat::PHASES,
        stream::PHASES,
        drain::PHASES,
        signals::PHASES,
        accept::PHASES,
        endure::PHASES,
        respawn::PHASES,
        refuse::PHASES,
        process_one::PHASES,
        supervise::PHASES,
        producer::PHASES,
        replay::PHASES,
        output::PHASES,
        http::PHASES,
        body::PHASES,
        limits::PHASES,
        last_request::PHASES,
        listeners::PHASES,
        proxied::PHASES,
        http2::PHASES,
        http2_bounds::PHASES,
        tls::PHASES,
        tls_ends::PHASES,
        table::PHASES,
        seams::PHASES,
        files::PHASES,
        layers::PHASES,
        codings::PHASES,
        guards::PHASES,
        websocket::PHASES,
        websocket_bounds::PHASES,
        websocket_hub::PHASES,
    ]
    .concat()
}
