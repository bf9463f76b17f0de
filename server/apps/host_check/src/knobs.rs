//! The faults that a smoke can ask for.
//!
//! Owns the names, their reading, and what each does to a worker. Refuses to know who asks. Invariant:
//! a knob with a bad value is a refusal, never a quiet default.

use std::thread;
use std::time::Duration;

use m0_host::{HostContext, Refusal};
use m0_unix::process;

/// Names of the knobs.
pub(crate) const NAMES: &[&str] = &[
    "M0_HOSTCHECK_MAKE_RAISES",
    "M0_HOSTCHECK_MAKE_RAISES_SLOT",
    "M0_HOSTCHECK_PRODUCER_RAISES",
    "M0_HOSTCHECK_STEP_RAISES_AT",
    "M0_HOSTCHECK_STEP_MS",
    "M0_HOSTCHECK_STEP_MS_ONCE",
    "M0_HOSTCHECK_PERIOD_MS",
    "M0_HOSTCHECK_BOOT_MS",
    "M0_HOSTCHECK_BOOT_SLOT",
    "M0_HOSTCHECK_BEAT_BYTES",
    "M0_HOSTCHECK_CRASH_AFTER_MS",
    "M0_HOSTCHECK_CRASH_SLOT",
    "M0_HOSTCHECK_CRASH_IN_DRAIN_SLOT",
    "M0_HOSTCHECK_NO_DEATH_SIGNAL",
    "M0_HOSTCHECK_NOFILE",
    "M0_HOSTCHECK_NOFILE_SLOT",
];

/// The number behind a knob; none when it is not set.
pub(crate) fn number(name: &str) -> Result<Option<u64>, Refusal> {
    match std::env::var(name) {
        Err(std::env::VarError::NotPresent) => Ok(None),
        Ok(text) => text
            .parse()
            .map(Some)
            .map_err(|_| Refusal::of(name, text, "want a whole number")),
        Err(std::env::VarError::NotUnicode(text)) => Err(Refusal::of(
            name,
            text.to_string_lossy(),
            "want a whole number",
        )),
    }
}

/// The time behind a knob in milliseconds; zero when it is not set.
pub(crate) fn millis(name: &str) -> Result<Duration, Refusal> {
    Ok(Duration::from_millis(number(name)?.unwrap_or(0)))
}

/// Whether a switch is on.
pub(crate) fn is_on(name: &str) -> Result<bool, Refusal> {
    Ok(number(name)?.unwrap_or(0) != 0)
}

fn names_slot(name: &str, context: &HostContext) -> Result<bool, Refusal> {
    Ok(number(name)? == Some(context.slot() as u64))
}

/// What the knobs do to a worker while it makes its handler.
pub(crate) fn at_make(context: &HostContext) -> Result<(), Refusal> {
    // Also of knobs that another one makes idle, or that only another slot would read.
    for name in NAMES {
        number(name)?;
    }
    if is_on("M0_HOSTCHECK_NO_DEATH_SIGNAL")? {
        process::set_death_signal(None)
            .map_err(|error| Refusal::new(format!("the death signal stays: {error}")))?;
    }
    if number("M0_HOSTCHECK_BOOT_SLOT")?.is_none() || names_slot("M0_HOSTCHECK_BOOT_SLOT", context)?
    {
        // A boot that takes its time is what the knob promises.
        thread::sleep(millis("M0_HOSTCHECK_BOOT_MS")?);
    }
    if is_on("M0_HOSTCHECK_MAKE_RAISES")? || names_slot("M0_HOSTCHECK_MAKE_RAISES_SLOT", context)? {
        return Err(Refusal::new(
            "M0_HOSTCHECK_MAKE_RAISES is set, so this handler refuses to be made; unset it",
        ));
    }
    if let Some(limit) = number("M0_HOSTCHECK_NOFILE")?
        && (number("M0_HOSTCHECK_NOFILE_SLOT")?.is_none()
            || names_slot("M0_HOSTCHECK_NOFILE_SLOT", context)?)
    {
        process::limit_descriptors(limit).map_err(|error| {
            Refusal::of("M0_HOSTCHECK_NOFILE", limit.to_string(), error.to_string())
        })?;
    }
    crash_later(context)
}

/// Starts the thread that crashes this worker, where a knob wants it.
fn crash_later(context: &HostContext) -> Result<(), Refusal> {
    let delay = number("M0_HOSTCHECK_CRASH_AFTER_MS")?.map(Duration::from_millis);
    let slot = number("M0_HOSTCHECK_CRASH_SLOT")?;
    if let Some(delay) = delay
        && slot.is_none_or(|slot| slot == context.slot() as u64)
    {
        thread::spawn(move || {
            // The delay is what the knob promises.
            thread::sleep(delay);
            process::abort_now();
        });
    }
    if names_slot("M0_HOSTCHECK_CRASH_IN_DRAIN_SLOT", context)? {
        let context = context.clone();
        thread::spawn(move || {
            while !context.draining() {
                // A poll of this process's own state: there is nothing to wait on from here.
                thread::sleep(Duration::from_millis(1));
            }
            process::abort_now();
        });
    }
    Ok(())
}
