//! `/stats`: the host's page as this worker sees it.
//!
//! Owns the JSON shape that the smokes read. Invariant: figures are the page's, never this worker's alone.

use m0_host::HostContext;
use serde_json::{Value, json};

/// The page as JSON.
pub(crate) fn stats(context: &HostContext) -> Value {
    let page = context.page().snapshot();
    let shares: Vec<Value> = page
        .shares
        .iter()
        .map(|share| {
            json!({
                "slot": share.slot,
                "pid": share.pid,
                "state": format!("{:?}", share.state).to_lowercase(),
                "busy": share.busy,
                "starved": share.starved,
                "stopped": share.stopped,
                "held": share.held,
                "accepted": share.accepted,
                "deferrals": share.deferrals,
                "wakeups": share.wakeups,
                "fruitless": share.fruitless,
                "streams": share.streams,
                "requests": share.requests,
                "frames_delivered": share.frames_delivered,
                "streams_opened": share.streams_opened,
                "streams_cut": share.streams_cut,
                "log_dropped": share.log_dropped,
                "panics": share.panics,
                "proxy_refused": share.proxy_refused,
                "tls_failed": share.tls_failed,
            })
        })
        .collect();
    json!({
        "slot": context.slot(),
        "pid": std::process::id(),
        "workers": context.workers(),
        "page": { "event_id": page.event_id, "epoch": format!("{:x}", page.epoch) },
        "shares": shares,
        "producer": {
            "pid": page.producer.owner.map(|(pid, _)| pid),
            "steps": page.producer.steps,
            "missed": page.producer.missed,
            "refused_publishes": page.producer.refused_publishes,
            "published": page.producer.published,
        },
        "supervisor": {
            "respawns": page.supervisor.respawns,
            "crashes": page.supervisor.crashes,
            "strangers": page.supervisor.strangers,
            "stops": page.supervisor.stops,
            "lock_repairs": page.supervisor.lock_repairs,
            "stand_ins": page.supervisor.stand_ins,
            "kills": page.supervisor.kills,
        },
    })
}
