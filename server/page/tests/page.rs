//! The page's words through its interface: format and attach, shares, counters, the producer's claim.
//!
//! Owns what one thread can show; interleavings are in `loom.rs`, deaths in `death.rs`, the choice of
//! a sibling in `verdict.rs`.

#![cfg(not(loom))]

use std::sync::atomic::Ordering::Relaxed;

use m0_page::{
    AtomicU64, AttachError, MAX_WORKERS, Page, ProducerCounter, SupervisorCounter, WorkerCounter,
    WorkerState, words, words_needed,
};

/// All words as plain numbers.
fn image(memory: &[AtomicU64]) -> Vec<u64> {
    memory.iter().map(|word| word.load(Relaxed)).collect()
}

/// The indices of the words that `act` changed.
fn changed(memory: &[AtomicU64], act: impl FnOnce()) -> Vec<usize> {
    let before = image(memory);
    act();
    let after = image(memory);
    (0..memory.len())
        .filter(|&index| before[index] != after[index])
        .collect()
}

#[m0_spec::row(F25)]
#[test]
fn a_formatted_page_attaches_with_the_same_meaning() {
    for workers in 1..=MAX_WORKERS {
        let memory = words(words_needed(workers));
        // Memory that held something else is no hindrance.
        for word in &memory {
            word.store(u64::MAX, Relaxed);
        }
        let page = Page::format(&memory, workers, 99);
        let fresh = words(words_needed(workers));
        Page::format(&fresh, workers, 99);
        assert_eq!(image(&memory), image(&fresh), "an old word is left");
        page.event_id_word().store(5, Relaxed);
        let other = Page::attach(&memory).expect("it was formatted");
        assert_eq!(
            (other.workers(), other.epoch(), other.event_id()),
            (workers, 99, 5)
        );
        assert_eq!(other.live().count(), 0);
        assert!(
            other
                .snapshot()
                .shares
                .iter()
                .all(|share| share.state == WorkerState::Absent)
        );
    }
}

#[m0_spec::row(F25)]
#[test]
fn words_that_are_no_page_are_refused_and_the_refusal_says_why() {
    let formatted = || {
        let memory = words(words_needed(2));
        Page::format(&memory, 2, 1);
        memory
    };
    #[track_caller]
    fn check(memory: &[AtomicU64], expected: AttachError, says: &str) {
        let Err(error) = Page::attach(memory) else {
            panic!("attached, not {expected:?}");
        };
        assert_eq!(error, expected);
        assert!(error.to_string().contains(says), "{error}");
    }

    check(
        &words(words_needed(2)),
        AttachError::Unformatted,
        "never formatted",
    );
    let memory = formatted();
    memory[2].store(77, Relaxed);
    check(&memory, AttachError::NotAPage { found: 77 }, "magic word");
    let memory = formatted();
    memory[3].store(9 << 32 | 2, Relaxed);
    check(
        &memory,
        AttachError::Version {
            found: 9,
            expected: 2,
        },
        "version 9",
    );
    for workers in [0, MAX_WORKERS as u32 + 1] {
        let memory = formatted();
        memory[3].store(2 << 32 | u64::from(workers), Relaxed);
        check(
            &memory,
            AttachError::Workers { found: workers },
            "outside 1 to 64",
        );
    }
    let (memory, needed) = (formatted(), words_needed(2));
    for length in [4, needed - 1] {
        let short = AttachError::TooSmall {
            words: length,
            needed,
        };
        check(&memory[..length], short, "are needed");
    }
    for length in 0..4 {
        let short = AttachError::TooSmall {
            words: length,
            needed: words_needed(1),
        };
        check(&memory[..length], short, "are needed");
    }
}

#[m0_spec::row(E18)]
#[test]
fn the_first_words_stand_where_a_reader_of_another_language_looks() {
    let memory = words(words_needed(2));
    let page = Page::format(&memory, 2, 7);
    assert_eq!(
        changed(&memory, || page.event_id_word().store(41, Relaxed)),
        [0],
        "the event id"
    );
    assert_eq!(memory[2].load(Relaxed).to_be_bytes(), *b"m0 page1");
    // Connections held are the first word of a worker's share, and every share has 24 words.
    for (slot, held) in [(0, 24), (1, 48)] {
        let share = page.share(slot);
        share.begin(10);
        share.serving();
        share.opened();
        assert_eq!(memory[held].load(Relaxed), 1, "slot {slot}");
        share.opened();
        assert_eq!(memory[held].load(Relaxed), 2, "slot {slot}");
    }
}

#[m0_spec::row(F17)]
#[test]
fn each_workers_words_stand_on_cache_lines_of_their_own() {
    let memory = words(words_needed(4));
    let page = Page::format(&memory, 4, 1);
    let everything = |slot: usize| {
        changed(&memory, || {
            let share = page.share(slot);
            share.begin(10);
            share.serving();
            share.opened();
            share.stream_opened();
            share.deferred();
            share.woke();
            share.fruitless();
            share.mark_busy(true);
            for counter in WORKER_COUNTERS {
                share.counter(counter).add(1);
            }
        })
    };
    let lines = |indices: Vec<usize>| -> std::collections::BTreeSet<usize> {
        indices.into_iter().map(|index| index / 8).collect()
    };
    let mut taken = lines(changed(&memory, || {
        page.event_id_word().store(1, Relaxed);
        page.supervisor(SupervisorCounter::Respawns).add(1);
        assert!(page.producer().claim(3, 0));
    }));
    assert_eq!(
        taken.len(),
        3,
        "one line each for the log, the supervisor and the producer"
    );
    for slot in 0..4 {
        let indices = everything(slot);
        assert_eq!(
            indices.len(),
            18,
            "each action has a word of its own: {indices:?}"
        );
        let own = lines(indices);
        assert_eq!(own.len(), 3);
        assert!(taken.is_disjoint(&own), "slot {slot} shares a line");
        taken.extend(own);
    }
}

const WORKER_COUNTERS: [WorkerCounter; 10] = [
    WorkerCounter::Requests,
    WorkerCounter::FramesDelivered,
    WorkerCounter::StreamsOpened,
    WorkerCounter::StreamsCut,
    WorkerCounter::LogDropped,
    WorkerCounter::Panics,
    WorkerCounter::BytesSent,
    WorkerCounter::Refused,
    WorkerCounter::ProxyRefused,
    WorkerCounter::TlsFailed,
];

#[m0_spec::row(F14)]
#[test]
fn a_share_counts_what_its_worker_holds() {
    let memory = words(words_needed(2));
    let page = Page::format(&memory, 2, 1);
    let share = page.share(1);
    share.begin(4242);
    assert_eq!((share.state(), share.pid()), (WorkerState::Starting, 4242));
    share.serving();
    assert_eq!((share.state(), share.pid()), (WorkerState::Serving, 4242));
    (0..3).for_each(|_| share.opened());
    share.closed();
    share.stream_opened();
    share.stream_opened();
    share.stream_closed();
    share.draining();
    let seen = page.snapshot().shares[1].clone();
    assert_eq!((seen.state, seen.pid), (WorkerState::Draining, 4242));
    assert_eq!((seen.held, seen.accepted), (2, 3));
    assert_eq!((seen.streams, seen.streams_opened), (1, 2));
    assert_eq!(
        page.share(0).snapshot().accepted,
        0,
        "the sibling's line is untouched"
    );
}

#[m0_spec::row(F14)]
#[test]
#[should_panic(expected = "a connection was closed that was not held")]
fn closing_a_connection_that_is_not_held_is_our_mistake() {
    let memory = words(words_needed(1));
    Page::format(&memory, 1, 1).share(0).closed();
}

#[m0_spec::row(F14)]
#[test]
#[should_panic(expected = "a stream was closed that was not held")]
fn closing_a_stream_that_is_not_held_is_our_mistake() {
    let memory = words(words_needed(1));
    Page::format(&memory, 1, 1).share(0).stream_closed();
}

#[m0_spec::row(F16)]
#[test]
#[should_panic(expected = "slot 0 still belongs to pid 7")]
fn a_successor_does_not_begin_before_the_repair() {
    let memory = words(words_needed(1));
    let page = Page::format(&memory, 1, 1);
    page.share(0).begin(7);
    page.share(0).begin(8);
}

#[m0_spec::row(F16)]
#[test]
#[should_panic(expected = "slot 0 has no worker")]
fn a_slot_without_a_worker_does_not_serve() {
    let memory = words(words_needed(1));
    Page::format(&memory, 1, 1).share(0).serving();
}

#[m0_spec::row(F14)]
#[test]
#[should_panic(expected = "slot 2 of a page for 2 workers")]
fn a_slot_beyond_the_page_is_our_mistake() {
    let memory = words(words_needed(4));
    Page::format(&memory, 2, 1).share(2);
}

#[m0_spec::row(F16, F26)]
#[test]
fn a_repair_clears_what_was_held_keeps_what_was_counted_and_spares_the_siblings() {
    let memory = words(words_needed(3));
    let page = Page::format(&memory, 3, 1);
    for slot in 0..3 {
        let share = page.share(slot);
        share.begin(100 + slot as u32);
        share.serving();
        share.opened();
        share.stream_opened();
        share.deferred();
        share.woke();
        share.fruitless();
        share.mark_busy(true);
        share.mark_starved(true);
        share.mark_stopped(true);
        for (n, counter) in WORKER_COUNTERS.into_iter().enumerate() {
            share.counter(counter).add(n as u64 + 1);
        }
    }
    let before = page.snapshot();
    page.share(1).repair();
    let mut expected = before.clone();
    let dead = &mut expected.shares[1];
    (dead.state, dead.pid, dead.held, dead.streams) = (WorkerState::Absent, 0, 0, 0);
    (dead.busy, dead.starved, dead.stopped) = (false, false, false);
    assert_eq!(page.snapshot(), expected);
    page.share(1).repair();
    assert_eq!(page.snapshot(), expected, "a second repair changes nothing");

    let successor = page.share(1);
    successor.begin(200);
    successor.serving();
    assert_eq!(
        page.live().collect::<Vec<_>>(),
        [1],
        "siblings are flagged, the successor not"
    );
    assert_eq!(
        successor.snapshot().accepted,
        1,
        "a slot's figures go on over a respawn"
    );
}

#[m0_spec::row(F14)]
#[test]
fn each_flag_is_set_and_cleared_alone() {
    type Mark = fn(&m0_page::Share<'_>, bool);
    let memory = words(words_needed(1));
    let page = Page::format(&memory, 1, 1);
    let share = page.share(0);
    share.begin(1);
    share.serving();
    let flags = || (share.busy(), share.starved(), share.stopped());
    let marks: [(Mark, _); 3] = [
        (|share, on| share.mark_busy(on), (true, false, false)),
        (|share, on| share.mark_starved(on), (false, true, false)),
        (|share, on| share.mark_stopped(on), (false, false, true)),
    ];
    for (mark, expected) in marks {
        mark(&share, true);
        mark(&share, true);
        assert_eq!(flags(), expected);
        assert_eq!(page.live().count(), 0);
        mark(&share, false);
        assert_eq!(flags(), (false, false, false));
        assert_eq!(page.live().count(), 1);
    }
    for (mark, _) in marks {
        mark(&share, true);
    }
    assert_eq!(flags(), (true, true, true));
    marks[0].0(&share, false);
    assert_eq!(flags(), (false, true, true));
}

#[m0_spec::row(F26)]
#[test]
fn every_counter_has_a_word_of_its_own_and_shows_in_the_snapshot() {
    let memory = words(words_needed(1));
    let page = Page::format(&memory, 1, 1);
    let supervisor = [
        SupervisorCounter::Respawns,
        SupervisorCounter::Crashes,
        SupervisorCounter::ForkFailures,
        SupervisorCounter::Strangers,
        SupervisorCounter::Stops,
        SupervisorCounter::LockRepairs,
        SupervisorCounter::StandIns,
        SupervisorCounter::Kills,
    ];
    for (n, counter) in supervisor.into_iter().enumerate() {
        page.supervisor(counter).add(n as u64 + 1);
        page.supervisor(counter).add(10);
    }
    let producer = [
        ProducerCounter::Steps,
        ProducerCounter::Missed,
        ProducerCounter::RefusedPublishes,
        ProducerCounter::Published,
        ProducerCounter::Failures,
        ProducerCounter::Abandoned,
    ];
    for (n, counter) in producer.into_iter().enumerate() {
        page.producer().counter(counter).add(n as u64 + 21);
    }
    for (n, counter) in WORKER_COUNTERS.into_iter().enumerate() {
        page.share(0).counter(counter).add(n as u64 + 31);
    }
    let seen = page.snapshot();
    let s = &seen.supervisor;
    assert_eq!(
        [
            s.respawns,
            s.crashes,
            s.fork_failures,
            s.strangers,
            s.stops,
            s.lock_repairs,
            s.stand_ins,
            s.kills
        ],
        [11, 12, 13, 14, 15, 16, 17, 18]
    );
    let p = &seen.producer;
    assert_eq!(
        [
            p.steps,
            p.missed,
            p.refused_publishes,
            p.published,
            p.failures,
            p.abandoned
        ],
        [21, 22, 23, 24, 25, 26]
    );
    let w = &seen.shares[0];
    assert_eq!(
        [
            w.requests,
            w.frames_delivered,
            w.streams_opened,
            w.streams_cut,
            w.log_dropped,
            w.panics,
            w.bytes_sent,
            w.refused,
            w.proxy_refused,
            w.tls_failed
        ],
        [31, 32, 33, 34, 35, 36, 37, 38, 39, 40]
    );
}

#[m0_spec::row(F23)]
#[test]
fn one_producer_is_registered_at_a_time() {
    let memory = words(words_needed(2));
    let page = Page::format(&memory, 2, 1);
    let line = page.producer();
    assert_eq!(line.owner(), None);
    assert!(line.claim(50, 1));
    assert_eq!(line.owner(), Some((50, 1)));
    assert!(!line.claim(60, 0), "another one is registered");
    assert!(!line.claim(50, 1), "nor twice the same");
    assert!(!line.release(60), "only the owner's claim is given up");
    assert_eq!(page.snapshot().producer.owner, Some((50, 1)));
    assert!(!line.repair(60), "60 did not run the producer");
    assert!(line.repair(50));
    assert!(!line.repair(50), "once");
    assert!(line.claim(61, 0));
    assert!(line.release(61));
    assert_eq!(line.owner(), None);
}
