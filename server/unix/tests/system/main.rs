//! What this crate promises, seen from outside: over real processes, descriptors and sockets.

mod activation;
mod connections;
mod doorbell;
mod dying;
mod forking;
mod limits;
mod listening;
mod output;
mod polling;
mod process;
mod reaping;
mod sharing;
mod signalling;
mod standard;
mod time_and_threads;
