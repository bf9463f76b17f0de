//! SIGINT and SIGTERM to the tool: the run in hand is ended, what was judged is kept, the rest is PENDING.
//!
//! Owns the two signals while rules run. Refuses to end the program: whoever asked for the work does, when
//! the copy is as it was. Invariant: a command started in between is killed, and none is started after.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};

static ASKED: AtomicBool = AtomicBool::new(false);

/// The error by which everything in hand is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// From now on both signals are remembered instead of ending the program. To be called before threads are
/// started, which inherit what this one does not listen to.
pub fn watch() -> Result<()> {
    let set = both();
    set.thread_block().context("cannot block signals")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            while set.wait().is_ok() {
                ASKED.store(true, Ordering::Relaxed);
            }
        })
        .context("cannot start the thread that waits for signals")?;
    Ok(())
}

/// What a started program inherits is taken back: it hears signals again.
pub fn listen() {
    // Where that is refused, the command hears SIGKILL alone, which is what the tool sends.
    let _ = both().thread_unblock();
}

fn both() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set
}

/// Whether somebody asked for the end.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// An error when somebody asked for the end.
pub fn check() -> Result<(), Interrupted> {
    if asked() { Err(Interrupted) } else { Ok(()) }
}
