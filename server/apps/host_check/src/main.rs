//! The application that the smokes drive: a handler, a producer and their fault knobs.
//!
//! Owns the routes and the `M0_HOSTCHECK_*` knobs. Refuses to know anything that the host owns: there is
//! no listener, fork, signal or frame id here. Invariant: without knobs it is an ordinary application.

mod beat;
mod front;
mod knobs;
mod layers;
mod mirror;
mod routes;
mod sockets;
mod stats;

use std::process::ExitCode;
use std::sync::LazyLock;

use m0_host::{AppHandler, HostContext, Refusal};

/// The handler of the check.
struct Check;

impl AppHandler for Check {
    type Service = front::Front;
    type Body = axum::body::Body;

    fn make(context: &HostContext) -> Result<front::Front, Refusal> {
        knobs::at_make(context)?;
        Ok(front::Front::new(routes::router(context.clone())))
    }

    fn variables() -> &'static [&'static str] {
        static ALL: LazyLock<Vec<&str>> = LazyLock::new(|| [knobs::NAMES, &layers::NAMES].concat());
        &ALL
    }
}

fn main() -> ExitCode {
    m0_host::serve::<Check, beat::Beat>(layers::config())
}
