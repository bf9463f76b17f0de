//! A worker killed at each step of its life, in a process of its own.
//!
//! The test runs itself again as the worker, on the same shared words, and that process sends itself
//! SIGKILL after step N; N grows until a life runs to its end. So the number of deaths follows the
//! life, not a constant.

#![cfg(not(loom))]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use m0_page::{Page, Verdict, WorkerCounter, WorkerState, words_needed};
use m0_unix::shared::SharedWords;
use m0_unix::{Signal, process, signals};

/// Set in the process that plays the worker: after how many steps it dies.
const DIES_AFTER: &str = "M0_PAGE_TEST_DIES_AFTER";
const SLOT: usize = 1;
const BOUND: Duration = Duration::from_secs(20);

/// A worker's life, a step at a time.
fn live(page: Page<'_>, mut step: impl FnMut()) {
    let share = page.share(SLOT);
    let pid = std::process::id();
    let actions: [&dyn Fn(); 18] = [
        &|| share.begin(pid),
        &|| assert!(page.producer().claim(pid, SLOT)),
        &|| share.serving(),
        &|| share.woke(),
        &|| share.opened(),
        &|| share.opened(),
        &|| share.stream_opened(),
        &|| share.mark_busy(true),
        &|| share.counter(WorkerCounter::Requests).add(1),
        &|| share.mark_starved(true),
        &|| share.mark_busy(false),
        &|| share.deferred(),
        &|| share.draining(),
        &|| share.stream_closed(),
        &|| share.closed(),
        &|| share.closed(),
        &|| assert!(page.producer().release(pid)),
        &|| share.leave(),
    ];
    for action in actions {
        action();
        step();
    }
}

fn die() -> ! {
    signals::kill(process::pid(), Signal::SIGKILL).expect("a process may kill itself");
    unreachable!("SIGKILL is not survived");
}

/// Lives a life in another process. `None` when it ended in good order, the pid when it was killed.
fn worker(shared: &SharedWords, dies_after: usize) -> Option<u32> {
    let words = shared
        .fd()
        .try_clone_to_owned()
        .expect("one more descriptor");
    let mut child = Command::new(std::env::current_exe().expect("a test has a path"))
        .args([
            "--exact",
            "a_worker_killed_at_any_step_is_repaired_and_followed",
        ])
        .env(DIES_AFTER, dies_after.to_string())
        .env_remove("TRACE_EVENTS")
        .stdin(Stdio::from(words))
        .stdout(Stdio::null())
        .spawn()
        .expect("the test can be run again");
    let deadline = Instant::now() + BOUND;
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().expect("the child is ours");
            panic!("the worker still lives after {BOUND:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if status.success() {
        return None;
    }
    assert_eq!(status.signal(), Some(Signal::SIGKILL.number()), "{status}");
    Some(child.id())
}

#[m0_spec::row(F28, F16, F23)]
#[test]
fn a_worker_killed_at_any_step_is_repaired_and_followed() {
    if let Some(dies_after) = std::env::var_os(DIES_AFTER) {
        let dies_after: usize = dies_after
            .to_str()
            .and_then(|text| text.parse().ok())
            .expect("the parent sent a number");
        let fd = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned();
        let shared = SharedWords::adopt(fd.expect("stdin is the words")).expect("memory words");
        let page = Page::attach(shared.words()).expect("the parent formatted the page");
        let mut done = 0;
        live(page, || {
            done += 1;
            if done == dies_after {
                die();
            }
        });
        return;
    }

    let mut deaths = 0;
    loop {
        let shared = SharedWords::create("page-test", words_needed(2)).expect("memory");
        let page = Page::format(shared.words(), 2, 1);
        let sibling = page.share(0);
        sibling.begin(1);
        sibling.serving();
        sibling.opened();
        let sibling_before = sibling.snapshot();

        let Some(pid) = worker(&shared, deaths + 1) else {
            break;
        };
        deaths += 1;

        // What the supervisor does.
        let accepted = page.share(SLOT).snapshot().accepted;
        page.share(SLOT).repair();
        let ran_the_producer = page.producer().owner().is_some();
        assert_eq!(
            page.producer().repair(pid),
            ran_the_producer,
            "step {deaths}"
        );

        let seen = page.snapshot();
        let dead = &seen.shares[SLOT];
        assert_eq!(
            (dead.state, dead.pid),
            (WorkerState::Absent, 0),
            "step {deaths}"
        );
        assert_eq!((dead.held, dead.streams), (0, 0), "step {deaths}");
        assert!(
            !dead.busy && !dead.starved && !dead.stopped,
            "step {deaths}"
        );
        assert_eq!(dead.accepted, accepted, "step {deaths}");
        assert_eq!(seen.producer.owner, None, "step {deaths}");
        assert_eq!(seen.shares[0], sibling_before, "step {deaths}");
        assert_eq!(
            page.verdict(0),
            Verdict::Take,
            "step {deaths}: the dead one is not named"
        );

        // And a successor lives its whole life on the same words.
        live(page, || ());
        assert_eq!(page.share(SLOT).held(), 0);
    }
    assert!(
        deaths >= 8,
        "only {deaths} deaths: the worker did not die where it should"
    );
}
