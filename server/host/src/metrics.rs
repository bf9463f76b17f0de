//! The figures of the host's page as an exporter reads them (OpenMetrics 1.0).
//!
//! Owns the names of the metrics. Refuses to count: the page does, in memory that all workers share, so any worker
//! answers for the whole host, and what a dead worker had counted is still there. Invariant: every series is there in
//! every answer, one for each slot where a worker counts.

use std::fmt::Error;

use m0_page::{PageSnapshot, ShareSnapshot, WorkerState};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

/// The content type of what [`encode`] gives.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The figures of one moment as text, ended by `# EOF`.
pub(crate) fn encode(page: PageSnapshot) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("m0");
    registry.register_collector(Box::new(Figures(page)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Figures(PageSnapshot);

/// Name, help and figure of what each worker has.
type OfWorker = (&'static str, &'static str, fn(&ShareSnapshot) -> u64);
/// Name, help and figure of what the host has once.
type OfHost = (&'static str, &'static str, fn(&PageSnapshot) -> u64);

const WORKER_COUNTERS: [OfWorker; 13] = [
    ("requests", "Requests whose head was read whole", |w| {
        w.requests
    }),
    ("accepted", "Connections accepted", |w| w.accepted),
    (
        "refused",
        "Connections and streams answered 503 because a limit was reached",
        |w| w.refused,
    ),
    (
        "proxy_refused",
        "Connections of proxies closed for want of a right header",
        |w| w.proxy_refused,
    ),
    (
        "tls_failed",
        "Handshakes of TLS that failed or took too long",
        |w| w.tls_failed,
    ),
    ("panics", "Panics caught in handlers and bodies", |w| {
        w.panics
    }),
    ("streams_opened", "Streams opened", |w| w.streams_opened),
    ("streams_cut", "Streams cut by the host", |w| w.streams_cut),
    (
        "frames_delivered",
        "Frames written to streams, one for each frame and stream",
        |w| w.frames_delivered,
    ),
    (
        "log_dropped",
        "Lines of the access log dropped because nobody read them",
        |w| w.log_dropped,
    ),
    (
        "accept_deferrals",
        "Connections left to a sibling that held less",
        |w| w.deferrals,
    ),
    (
        "accept_wakeups",
        "Times the worker woke for the listener",
        |w| w.wakeups,
    ),
    (
        "accept_fruitless",
        "Of these, those in which it took nothing",
        |w| w.fruitless,
    ),
];

const WORKER_GAUGES: [OfWorker; 6] = [
    ("connections", "Connections held", |w| w.held),
    ("streams", "Streams held", |w| w.streams),
    ("serving", "1 while the worker takes connections", |w| {
        u64::from(w.state == WorkerState::Serving)
    }),
    (
        "busy",
        "1 while the worker's loop does not answer its watch thread",
        |w| u64::from(w.busy),
    ),
    (
        "stopped",
        "1 while the worker is stopped by a signal",
        |w| u64::from(w.stopped),
    ),
    (
        "starved",
        "1 while the worker has no descriptor left to accept with",
        |w| u64::from(w.starved),
    ),
];

const HOST_COUNTERS: [OfHost; 13] = [
    ("respawns", "Workers started in place of dead ones", |p| {
        p.supervisor.respawns
    }),
    ("crashes", "Workers that ended without being asked", |p| {
        p.supervisor.crashes
    }),
    (
        "fork_failures",
        "Forks that the operating system refused",
        |p| p.supervisor.fork_failures,
    ),
    (
        "stops",
        "Times a worker was seen stopped by a signal",
        |p| p.supervisor.stops,
    ),
    (
        "stand_ins",
        "Doorbells rung in place of a stopped worker",
        |p| p.supervisor.stand_ins,
    ),
    (
        "kills",
        "Workers ended by SIGKILL at the drain's bound",
        |p| p.supervisor.kills,
    ),
    ("strangers", "Processes reaped that were no workers", |p| {
        p.supervisor.strangers
    }),
    (
        "lock_repairs",
        "Log locks taken back from dead workers",
        |p| p.supervisor.lock_repairs,
    ),
    ("producer_steps", "Steps of the producer", |p| {
        p.producer.steps
    }),
    ("producer_missed", "Steps that an overrun left out", |p| {
        p.producer.missed
    }),
    ("producer_failures", "Steps that failed", |p| {
        p.producer.failures
    }),
    (
        "producer_published",
        "Frames that the producer published",
        |p| p.producer.published,
    ),
    (
        "producer_refused_publishes",
        "Publishes that the frame log refused",
        |p| p.producer.refused_publishes,
    ),
];

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut of_workers = |(name, help, figure): OfWorker, unit: Option<&Unit>, kind| {
            let mut metric = encoder.encode_descriptor(name, help, unit, kind)?;
            for worker in &self.0.shares {
                let slot = [("slot", worker.slot.to_string())];
                let mut series = metric.encode_family(&slot)?;
                match kind {
                    MetricType::Counter => {
                        series.encode_counter::<NoLabelSet, _, u64>(&figure(worker), None)?;
                    }
                    _ => series.encode_gauge(&figure(worker))?,
                }
            }
            Ok(())
        };
        for counter in WORKER_COUNTERS {
            of_workers(counter, None, MetricType::Counter)?;
        }
        let sent: OfWorker = ("sent", "Bytes written to sockets", |w| w.bytes_sent);
        of_workers(sent, Some(&Unit::Bytes), MetricType::Counter)?;
        for gauge in WORKER_GAUGES {
            of_workers(gauge, None, MetricType::Gauge)?;
        }
        for (name, help, figure) in HOST_COUNTERS {
            encoder
                .encode_descriptor(name, help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, u64>(&figure(&self.0), None)?;
        }
        let frames: OfHost = ("frames", "Frames published by anybody", |p| p.event_id);
        let (name, help, figure) = frames;
        encoder
            .encode_descriptor(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&figure(&self.0), None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use m0_page::sync::words;
    use m0_page::{Page, WorkerCounter, words_needed};
    use m0_spec::row;

    use super::encode;

    /// Every series of which there is one for each slot. A dashboard holds these names: one that is missing here, or
    /// is called otherwise, breaks it.
    const OF_WORKERS: [&str; 20] = [
        "requests_total",
        "accepted_total",
        "refused_total",
        "proxy_refused_total",
        "tls_failed_total",
        "panics_total",
        "streams_opened_total",
        "streams_cut_total",
        "frames_delivered_total",
        "log_dropped_total",
        "accept_deferrals_total",
        "accept_wakeups_total",
        "accept_fruitless_total",
        "sent_bytes_total",
        "connections",
        "streams",
        "serving",
        "busy",
        "stopped",
        "starved",
    ];

    /// Every series of which the host has one.
    const OF_HOST: [&str; 14] = [
        "respawns_total",
        "crashes_total",
        "fork_failures_total",
        "stops_total",
        "stand_ins_total",
        "kills_total",
        "strangers_total",
        "lock_repairs_total",
        "producer_steps_total",
        "producer_missed_total",
        "producer_failures_total",
        "producer_published_total",
        "producer_refused_publishes_total",
        "frames_total",
    ];

    /// Names and labels of the series, and the text.
    fn answer(page: &Page<'_>) -> (BTreeSet<String>, String) {
        let text = encode(page.snapshot()).expect("a string takes every write");
        let series = text.lines().filter(|line| !line.starts_with('#'));
        let names = series.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()));
        (names.collect(), text)
    }

    #[row(E85)]
    #[test]
    fn an_answer_holds_every_series_of_every_slot_whoever_has_died() {
        let words = words(words_needed(3));
        let page = Page::format(&words, 3, 0x5eed);
        let (fresh, text) = answer(&page);
        let of_workers = OF_WORKERS
            .iter()
            .flat_map(|name| (0..3).map(move |slot| format!("m0_{name}{{slot=\"{slot}\"}}")));
        let of_host = OF_HOST.iter().map(|name| format!("m0_{name}"));
        assert_eq!(fresh, of_workers.chain(of_host).collect());
        for name in OF_WORKERS.iter().chain(&OF_HOST) {
            // What a family is called, and what it is (OpenMetrics, "MetricFamily").
            let (family, kind) = match name.strip_suffix("_total") {
                Some(family) => (family, "counter"),
                None => (*name, "gauge"),
            };
            let kind = format!("# TYPE m0_{family} {kind}");
            assert!(text.lines().any(|line| line == kind), "{kind} in {text}");
            let help = format!("# HELP m0_{family} ");
            let helped = text.lines().filter(|line| line.starts_with(&help)).count();
            assert_eq!(helped, 1, "{help} in {text}");
        }
        let share = page.share(1);
        share.begin(42);
        share.serving();
        share.opened();
        share.counter(WorkerCounter::Requests).add(7);
        let (alive, text) = answer(&page);
        for line in [
            "m0_requests_total{slot=\"1\"} 7",
            "m0_connections{slot=\"1\"} 1",
            "m0_serving{slot=\"1\"} 1",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
        share.repair();
        let (dead, text) = answer(&page);
        for line in [
            "m0_requests_total{slot=\"1\"} 7",
            "m0_connections{slot=\"1\"} 0",
            "m0_serving{slot=\"1\"} 0",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
        assert_eq!(fresh, alive);
        assert_eq!(fresh, dead);
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
