//! The producer's thread with a real bus and no server.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use m0_framelog::{Next, Reader};
use m0_page::ProducerCounter;
use m0_spec::row;

use crate::app::{HostContext, Producer};
use crate::config::AppConfig;
use crate::producer::{Joined, ProducerThread, Status};
use crate::publisher::{Bus, Publisher};
use crate::refusal::Refusal;
use crate::serve::shared;

/// A bound that no promise of this file comes near: a wait that reaches it has failed.
const LONG: Duration = Duration::from_secs(20);

fn context(slot: usize, page_words: usize) -> (HostContext, Arc<Bus>) {
    let config = AppConfig::from_parts([("M0_WORKERS", "2")], std::iter::empty::<&str>());
    let settings = config.resolve(&[]).expect("valid");
    let (bus, app_page) = shared(&settings, page_words).expect("shared memory");
    (
        HostContext::new(slot, settings, Arc::clone(&bus), app_page),
        bus,
    )
}

/// What the producers below are told, through a slot of their own: `make` takes no arguments.
static NOTES: Mutex<Vec<(u64, mpsc::Sender<Instant>)>> = Mutex::new(Vec::new());

/// Registers a sender under the context's first page word.
fn tell(context: &HostContext, key: u64) -> mpsc::Receiver<Instant> {
    let (sender, receiver) = mpsc::channel();
    context.app_page()[0].store(key, Ordering::Relaxed);
    NOTES
        .lock()
        .expect("no test panics while it holds it")
        .push((key, sender));
    receiver
}

fn told(context: &HostContext) -> mpsc::Sender<Instant> {
    let key = context.app_page()[0].load(Ordering::Relaxed);
    let notes = NOTES.lock().expect("no test panics while it holds it");
    notes
        .iter()
        .find(|(known, _)| *known == key)
        .map(|(_, sender)| sender.clone())
        .expect("tell was called first")
}

/// Publishes and reports each step; its period is a constant.
struct Steady<const PERIOD_MS: u64>(mpsc::Sender<Instant>);

impl<const PERIOD_MS: u64> Producer for Steady<PERIOD_MS> {
    type Error = Infallible;

    fn make(context: &HostContext) -> Result<Self, Refusal> {
        Ok(Steady(told(context)))
    }

    fn step(&mut self, out: &mut Publisher) -> Result<Duration, Infallible> {
        let published = out
            .publish(|frame| {
                frame.event("tick").data("x");
            })
            .expect("a small frame into a free log");
        assert_eq!(published.unreached, 0);
        // The test may have seen enough and gone.
        let _ = self.0.send(Instant::now());
        Ok(Duration::from_millis(PERIOD_MS))
    }
}

#[row(E30, S16, F2)]
#[test]
fn every_step_reaches_the_log_and_every_workers_doorbell_in_order() {
    let (context, bus) = context(0, 1);
    let steps = tell(&context, 1);
    let mut reader = Reader::at_tail(bus.log);
    let thread = ProducerThread::start::<Steady<1>>(&context).expect("started");
    for _ in 0..20 {
        steps.recv_timeout(LONG).expect("a step");
    }
    thread.stop();
    assert_eq!(thread.join_within(LONG), Joined::Ended(Status::Stopped));
    let mut text = Vec::new();
    let mut seqs = Vec::new();
    while let Next::Frame(id) = reader.next(&mut text) {
        assert!(
            text.starts_with(format!("id: {id}\n").as_bytes()),
            "the stamped id is the frame's"
        );
        seqs.push(id.seq);
    }
    assert!(seqs.len() >= 20);
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    for (slot, bell) in bus.frame_bells.iter().enumerate() {
        assert_eq!(
            bell.answer().expect("a bell"),
            seqs.len() as u64,
            "rings of worker {slot}"
        );
    }
    assert_eq!(
        bus.page.producer().counter(ProducerCounter::Steps).get(),
        seqs.len() as u64
    );
}

#[row(E35)]
#[test]
fn a_period_of_a_minute_stops_within_its_slice() {
    let (context, _) = context(0, 1);
    let steps = tell(&context, 2);
    let thread = ProducerThread::start::<Steady<60_000>>(&context).expect("started");
    steps.recv_timeout(LONG).expect("the first step");
    thread.stop();
    // The bound is far below the period and far above what a loaded machine adds to a wake-up.
    assert_eq!(
        thread.join_within(Duration::from_secs(10)),
        Joined::Ended(Status::Stopped)
    );
}

/// Stays in its step until the test lets it go.
struct Stuck(mpsc::Sender<Instant>, u64);

static GATE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

impl Producer for Stuck {
    type Error = Infallible;

    fn make(context: &HostContext) -> Result<Self, Refusal> {
        Ok(Stuck(
            told(context),
            context.app_page()[0].load(Ordering::Relaxed),
        ))
    }

    fn step(&mut self, _: &mut Publisher) -> Result<Duration, Infallible> {
        let _ = self.0.send(Instant::now());
        while !GATE.lock().expect("no holder panics").contains(&self.1) {
            std::thread::yield_now();
        }
        Ok(Duration::from_millis(1))
    }
}

#[row(E23)]
#[test]
fn a_step_that_does_not_end_is_abandoned_at_the_bound_and_can_still_end() {
    let (context, _) = context(0, 1);
    let steps = tell(&context, 3);
    let thread = ProducerThread::start::<Stuck>(&context).expect("started");
    steps.recv_timeout(LONG).expect("inside the step");
    thread.stop();
    let before = Instant::now();
    assert_eq!(
        thread.join_within(Duration::from_millis(200)),
        Joined::Abandoned
    );
    assert!(
        before.elapsed() >= Duration::from_millis(200),
        "the bound was waited out"
    );
    assert!(thread.name().ends_with("Stuck"), "{}", thread.name());
    GATE.lock().expect("no holder panics").push(3);
    assert_eq!(thread.join_within(LONG), Joined::Ended(Status::Stopped));
}

struct Fails;

impl Producer for Fails {
    type Error = &'static str;

    fn make(_: &HostContext) -> Result<Self, Refusal> {
        Ok(Fails)
    }

    fn step(&mut self, _: &mut Publisher) -> Result<Duration, &'static str> {
        Err("the board is gone")
    }
}

struct Panics;

impl Producer for Panics {
    type Error = Infallible;

    fn make(_: &HostContext) -> Result<Self, Refusal> {
        Ok(Panics)
    }

    fn step(&mut self, _: &mut Publisher) -> Result<Duration, Infallible> {
        panic!("the board burns")
    }
}

#[row(E36)]
#[test]
fn a_step_that_fails_or_panics_ends_the_producer_alone() {
    for failing in [
        ProducerThread::start::<Fails>,
        ProducerThread::start::<Panics>,
    ] {
        let (context, bus) = context(0, 0);
        let thread = failing(&context).expect("started");
        assert_eq!(thread.join_within(LONG), Joined::Ended(Status::Failed));
        assert_eq!(
            bus.page.producer().counter(ProducerCounter::Failures).get(),
            1
        );
        assert_eq!(bus.page.producer().counter(ProducerCounter::Steps).get(), 0);
    }
}

struct Refuses;

impl Producer for Refuses {
    type Error = Infallible;

    fn make(_: &HostContext) -> Result<Self, Refusal> {
        Err(Refusal::new("no board"))
    }

    fn step(&mut self, _: &mut Publisher) -> Result<Duration, Infallible> {
        unreachable!("it was never made")
    }
}

#[row(E28)]
#[test]
fn a_make_that_refuses_starts_no_thread_and_claims_nothing() {
    let (context, bus) = context(0, 0);
    let refusal = ProducerThread::start::<Refuses>(&context).expect_err("refused");
    assert_eq!(refusal.to_string(), "no board");
    assert_eq!(bus.page.producer().owner(), None);
}

#[row(E29, F23)]
#[test]
fn a_second_producer_of_one_host_is_refused_while_the_first_runs() {
    let (context, bus) = context(0, 1);
    let steps = tell(&context, 4);
    let first = ProducerThread::start::<Steady<10>>(&context).expect("started");
    steps.recv_timeout(LONG).expect("a step");
    let refusal = ProducerThread::start::<Steady<10>>(&context).expect_err("refused");
    assert!(refusal.to_string().contains("second"), "{refusal}");
    first.stop();
    assert_eq!(first.join_within(LONG), Joined::Ended(Status::Stopped));
    assert_eq!(
        bus.page.producer().owner(),
        None,
        "an ended producer gives up its claim"
    );
}

/// Tries a frame above the limit, then reports what it was told.
struct TooLarge(mpsc::Sender<Instant>);

impl Producer for TooLarge {
    type Error = String;

    fn make(context: &HostContext) -> Result<Self, Refusal> {
        Ok(TooLarge(told(context)))
    }

    fn step(&mut self, out: &mut Publisher) -> Result<Duration, String> {
        let large = "x".repeat(2 << 20);
        match out.publish(|frame| {
            frame.data(&large);
        }) {
            Err(error) => {
                let _ = self.0.send(Instant::now());
                Err(error.to_string())
            }
            Ok(published) => panic!("two MiB were published as {:?}", published.id),
        }
    }
}

#[row(E37, F8)]
#[test]
fn a_publish_that_is_refused_is_told_to_the_step_and_counted() {
    let (context, bus) = context(0, 1);
    let refused = tell(&context, 5);
    let thread = ProducerThread::start::<TooLarge>(&context).expect("started");
    refused.recv_timeout(LONG).expect("the step was told");
    assert_eq!(thread.join_within(LONG), Joined::Ended(Status::Failed));
    let producer = bus.page.producer();
    assert_eq!(producer.counter(ProducerCounter::RefusedPublishes).get(), 1);
    assert_eq!(producer.counter(ProducerCounter::Published).get(), 0);
    assert_eq!(bus.page.event_id(), 0, "a refused frame takes no id");
}
