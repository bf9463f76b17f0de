//! Phases against a server with a planted defect: each must fail, and the good one must pass.
//!
//! They show that the harness notices what it claims to check; `tests/planted.rs` runs them.
//! Invariant: a planted phase differs from the good one in its defect alone.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use m0_spec::{H20, H21, H22, H23, Row};
use nix::sys::signal::Signal;

use crate::ends::Ending;
use crate::fake::DEFECT;
use crate::launch::Launch;
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;

const END: &[Row] = &[H23];

/// Every planted phase; `planted-good` first.
pub fn all() -> Vec<Phase> {
    let mut phases = vec![beside("planted-good", 20, END, good)];
    macro_rules! planted {
        ($($name:literal => $defect:literal),* $(,)?) => {
            $(phases.push(beside($name, 20, END, |run| defective(run, $defect)));)*
        };
    }
    planted! {
        "planted-leftover" => "leftover",
        "planted-unreaped" => "unreaped",
        "planted-orphan-without-mark" => "orphan-without-mark",
        "planted-port" => "port",
        "planted-exit-code" => "exit-code",
        "planted-signal" => "signal",
        "planted-descriptors" => "descriptors",
        "planted-zombie" => "zombie",
        "planted-second-thread" => "second-thread",
        "planted-panic" => "panic",
        "planted-plain-panic" => "plain-panic",
        "planted-plain-line" => "plain-line",
        "planted-bare-line" => "bare-line",
        "planted-access-line" => "access-line",
        "planted-early-exit" => "early-exit",
    }
    phases.push(beside("planted-no-banner", 20, &[H22], no_banner));
    phases.push(beside("planted-deaf", 20, &[H22], deaf));
    phases.push(beside("planted-vacuous", 20, &[H20], vacuous));
    phases.push(beside("planted-nothing-started", 20, &[H20], |_| {
        Ok(Witness::of("nothing", 1))
    }));
    phases.push(beside("planted-unfinished", 20, &[H21], unfinished));
    phases.push(beside("planted-panicking-phase", 20, &[H21], panicking));
    phases.push(beside("planted-hanging-phase", 2, &[H21], hanging));
    phases
}

fn launch<'run>(run: &'run Run, defect: &str) -> Launch<'run> {
    Server::launch(run)
        .args(&["fake"])
        .workers(2)
        .env(DEFECT, defect)
}

/// Asks the server to do what its defect is about while it runs.
fn prompt(server: &Server) -> Result<()> {
    server.signal(Signal::SIGUSR1)?;
    server.await_log("did-it", Duration::from_secs(5), |_| true)?;
    Ok(())
}

fn good(run: &Run) -> Result<Witness> {
    defective(run, "")
}

fn defective(run: &Run, defect: &str) -> Result<Witness> {
    let server = launch(run, defect).start()?;
    prompt(&server)?;
    server.stop()?;
    Ok(Witness::of("servers", 1))
}

fn no_banner(run: &Run) -> Result<Witness> {
    let mut server = launch(run, "no-banner").spawn()?;
    server.await_ready(Duration::from_millis(200))?;
    Ok(Witness::of("servers", 1))
}

fn deaf(run: &Run) -> Result<Witness> {
    let server = launch(run, "deaf").start()?;
    server.stop_with(&Ending::clean().within(Duration::from_millis(200)))?;
    Ok(Witness::of("servers", 1))
}

fn vacuous(run: &Run) -> Result<Witness> {
    launch(run, "").start()?.stop()?;
    Ok(Witness::of("servers", 1).and("kills", 0))
}

fn unfinished(run: &Run) -> Result<Witness> {
    let _dropped_unchecked = launch(run, "").start()?;
    Ok(Witness::of("servers", 1))
}

fn panicking(run: &Run) -> Result<Witness> {
    let server = launch(run, "").start()?;
    assert!(server.workers() == 0, "a phase that panics beside a server");
    Ok(Witness::of("servers", 1))
}

fn hanging(run: &Run) -> Result<Witness> {
    let _server = launch(run, "").start()?;
    let start = Instant::now();
    while start.elapsed() < Duration::from_mins(1) {
        std::thread::park_timeout(Duration::from_mins(1));
    }
    bail!("the runner let it run for a minute")
}
