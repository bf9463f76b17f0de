//! The process that is killed: the same test, run again with an order in its environment.
//!
//! Owns starting it, what it does, and seeing how it ended. Knows nothing of what the tests check.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use m0_framelog::{FrameLog, points};
use m0_unix::shared::SharedWords;
use m0_unix::{Signal, process, signals};

/// The order to the victim, in its environment.
const ORDER: &str = "M0_FRAMELOG_TEST_ORDER";
const BOUND: Duration = Duration::from_secs(20);

/// What a victim does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// Appends one frame and dies after a store (from 1).
    Append { bytes: usize, dies_after: u32 },
    /// Repairs what process `pid` left and dies after a store (from 1).
    Repair { pid: u32, dies_after: u32 },
    /// Appends frames of many sizes until it is killed.
    AppendForEver,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Killed(u32),
    Ended,
}

/// Starts victims of one test.
pub(crate) struct Victim {
    test: &'static str,
}

/// The log and its id word, as every test here lays them out: the id word on a line before the log.
pub(crate) fn log_over(shared: &SharedWords) -> FrameLog<'static> {
    let words = shared.words();
    FrameLog::attach(&words[8..], &words[0]).expect("the parent formatted the log")
}

/// The bytes of frame `seq` when it is `bytes` long: each depends on all three of number, length, place.
pub(crate) fn body(seq: u64, bytes: usize) -> impl Iterator<Item = u8> {
    (0..bytes).map(move |place| {
        let mixed =
            (seq ^ (bytes as u64) << 20 ^ (place as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 56) as u8
    })
}

/// Awaits `what`, bounded.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !done() {
        assert!(Instant::now() < deadline, "not within {BOUND:?}: {what}");
        std::thread::yield_now();
    }
}

/// In the victim: carries out the order (and then says `true`, if it lives). In the parent: `false`.
pub(crate) fn obeyed() -> bool {
    let Ok(order) = std::env::var(ORDER) else {
        return false;
    };
    let mut parts = order
        .split(' ')
        .map(|part| part.parse::<u32>().expect("a number"));
    let mut part = || parts.next().expect("three numbers");
    let (what, argument, dies_after) = (part(), part(), part());
    let words = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .expect("stdin is the words");
    let log = log_over(&SharedWords::adopt(words).expect("memory words"));
    let pid = std::process::id();
    die_after(dies_after);
    match what {
        0 => {
            let append = log.append(pid, |id, out| out.extend(body(id.seq, argument as usize)));
            append.expect("nobody else holds the lock");
        }
        1 => {
            log.repair(argument);
        }
        _ => loop {
            // A lock that a killed sibling holds is refused until the parent repairs it.
            let _ = log.append(pid, |id, out| {
                out.extend(body(id.seq, id.seq as usize % 900));
            });
        },
    }
    points::set(None);
    true
}

impl Victim {
    pub(crate) fn of(test: &'static str) -> Self {
        Self { test }
    }

    /// Starts a victim.
    pub(crate) fn start(&self, shared: &SharedWords, order: Order) -> Child {
        let order = match order {
            Order::Append { bytes, dies_after } => format!("0 {bytes} {dies_after}"),
            Order::Repair { pid, dies_after } => format!("1 {pid} {dies_after}"),
            Order::AppendForEver => "2 0 0".to_owned(),
        };
        let words = shared
            .fd()
            .try_clone_to_owned()
            .expect("one more descriptor");
        Command::new(std::env::current_exe().expect("a test has a path"))
            .args(["--exact", self.test])
            .env(ORDER, order)
            .env_remove("TRACE_EVENTS")
            .stdin(Stdio::from(words))
            .stdout(Stdio::null())
            .spawn()
            .expect("the test can be run again")
    }

    /// Starts a victim and awaits its end.
    pub(crate) fn run(&self, shared: &SharedWords, order: Order) -> Outcome {
        let mut child = self.start(shared, order);
        let deadline = Instant::now() + BOUND;
        let status = loop {
            if let Some(status) = child.try_wait().expect("the child is ours") {
                break status;
            }
            if Instant::now() > deadline {
                child.kill().expect("the child is ours");
                panic!("a victim still lives after {BOUND:?}: {order:?}");
            }
            std::thread::sleep(Duration::from_micros(300));
        };
        if status.success() {
            return Outcome::Ended;
        }
        assert_eq!(
            status.signal(),
            Some(Signal::SIGKILL.number()),
            "{order:?}: {status}"
        );
        Outcome::Killed(child.id())
    }
}

/// From now on this process kills itself after store number `stores`; never for 0.
fn die_after(stores: u32) {
    thread_local! {
        static LEFT: Cell<u32> = const { Cell::new(0) };
    }
    LEFT.set(stores);
    points::set(Some(|_pid| {
        let left = LEFT.get();
        LEFT.set(left.saturating_sub(1));
        if left == 1 {
            signals::kill(process::pid(), Signal::SIGKILL).expect("a process may kill itself");
            unreachable!("SIGKILL is not survived");
        }
    }));
}
