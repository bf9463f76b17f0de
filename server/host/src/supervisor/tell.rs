//! What the supervisor says: one line for each thing that an operator should know.
//!
//! Owns the wording. Refuses to act. Invariant: every death is one line, with slot, pid, signal or code,
//! uptime and the delay until the respawn.

use std::io;

use m0_page::SupervisorCounter;
use m0_policy::{Action, DeathReason, Ending};
use m0_unix::signals::{self, Signal};
use serde_json::{Value, json};

use super::Supervisor;
use crate::listen::Listeners;
use crate::log;
use crate::settings::{Level, Settings};

impl Supervisor<'_> {
    /// The actions that are one line in the log.
    pub(super) fn tell(&self, action: &Action) {
        match *action {
            Action::LogDeath {
                slot,
                pid,
                how,
                uptime_ms,
                respawn_in_ms,
                reason,
            } => {
                if respawn_in_ms.is_some() {
                    self.count(SupervisorCounter::Respawns);
                }
                let mut fields = json!({
                    "slot": slot, "worker": pid, "uptime_ms": uptime_ms, "reason": reason.as_str(),
                });
                match how {
                    Ending::Code(code) => fields["code"] = code.into(),
                    Ending::Signal(signal) => fields["signal"] = signal_name(signal),
                }
                if let Some(delay) = respawn_in_ms {
                    fields["respawn_ms"] = delay.into();
                }
                let level = if reason == DeathReason::Drained {
                    Level::Info
                } else {
                    Level::Warn
                };
                log::event(level, "worker-died", fields);
            }
            Action::LogForkFailed {
                slot,
                errno,
                retry_in_ms,
            } => log::event(
                Level::Error,
                "fork-failed",
                json!({ "slot": slot, "message": io::Error::from_raw_os_error(errno).to_string(), "retry_ms": retry_in_ms }),
            ),
            Action::LogCrashLoop {
                slot,
                deaths,
                window_ms,
            } => log::event(
                Level::Error,
                "crash-loop",
                json!({ "slot": slot, "deaths": deaths, "window_ms": window_ms }),
            ),
            Action::LogStopping { signal, again } => log::event(
                Level::Info,
                "stopping",
                json!({ "signal": signal_name(signal), "again": again }),
            ),
            _ => {}
        }
    }
}

/// The banner: printed once everything that serves has said so.
pub(crate) fn announce(listeners: &Listeners, settings: &Settings) {
    let mut fields = json!({ "address": listeners.addresses(), "workers": settings.workers });
    if let Some(names) = listeners.names() {
        fields["names"] = names.into();
    }
    if settings.tls_cert.is_some() {
        fields["tls"] = true.into();
    }
    log::event(Level::Info, "listening", fields);
}

fn signal_name(number: i32) -> Value {
    Signal::from_number(number).map_or_else(|| number.into(), |signal| signals::name(signal).into())
}
