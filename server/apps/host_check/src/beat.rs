//! The producer of the check: one beat a period.
//!
//! Owns what a beat says. Refuses to choose its id. Invariant: each beat names its own id, its producer's
//! process and slot, so a second producer cannot hide behind the same ids.

use std::thread;
use std::time::Duration;

use m0_host::{HostContext, Producer, Publisher, Refusal};
use serde_json::json;

use crate::knobs;

/// A producer that beats.
pub(crate) struct Beat {
    count: u64,
    slot: usize,
    period: Duration,
    step: Duration,
    first_step: Duration,
    fails_at: Option<u64>,
    padding: String,
}

impl Producer for Beat {
    type Error = String;

    fn make(context: &HostContext) -> Result<Self, Refusal> {
        if knobs::is_on("M0_HOSTCHECK_PRODUCER_RAISES")? {
            return Err(Refusal::new(
                "M0_HOSTCHECK_PRODUCER_RAISES is set, so this producer refuses to be made; unset it",
            ));
        }
        let padding = knobs::number("M0_HOSTCHECK_BEAT_BYTES")?.unwrap_or(0);
        Ok(Beat {
            count: 0,
            slot: context.slot(),
            period: Duration::from_millis(knobs::number("M0_HOSTCHECK_PERIOD_MS")?.unwrap_or(100)),
            step: knobs::millis("M0_HOSTCHECK_STEP_MS")?,
            first_step: knobs::millis("M0_HOSTCHECK_STEP_MS_ONCE")?,
            fails_at: knobs::number("M0_HOSTCHECK_STEP_RAISES_AT")?,
            padding: "x".repeat(padding as usize),
        })
    }

    fn step(&mut self, out: &mut Publisher) -> Result<Duration, String> {
        self.count += 1;
        if self.fails_at == Some(self.count) {
            return Err(format!(
                "step {} fails, as M0_HOSTCHECK_STEP_RAISES_AT wants",
                self.count
            ));
        }
        let (count, slot) = (self.count, self.slot);
        let padding = &self.padding;
        out.publish(|frame| {
            let mut beat = json!({ "n": count, "pid": std::process::id(), "slot": slot });
            if let Some(id) = frame.id() {
                beat["id"] = id.to_string().into();
            }
            if !padding.is_empty() {
                beat["padding"] = padding.as_str().into();
            }
            frame.event("beat").data(&beat.to_string());
        })
        .map_err(|error| error.to_string())?;
        // A step that takes its time is what the knobs promise.
        thread::sleep(if count == 1 {
            self.first_step.max(self.step)
        } else {
            self.step
        });
        Ok(self.period)
    }
}
