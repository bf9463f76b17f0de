//! One stream, step by step: the id filter, the seam between replay and live frames, the reset.

mod fixture;
mod reader;

use fixture::{BUDGET, Memory, Socket, beats, deliver_all, now, publish, publish_many};
use m0_framelog::{Reason, Replay};
use m0_streams::{Batch, Fate, Offer, Registry, Stream};
use reader::{interpret, unchunk};

#[m0_spec::row(S3)]
#[test]
fn the_filter_takes_the_next_frame_and_no_other() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut stream = Stream::join(Replay::LiveFrom(5), false, now(log, 5));
    assert_eq!(stream.offer(3, 4), Offer::Duplicate);
    assert_eq!(stream.offer(6, 6), Offer::Gap);
    assert_eq!(stream.offer(5, 5), Offer::Send { from: 5 });
    assert_eq!(stream.offer(5, 5), Offer::Duplicate);
    assert_eq!(stream.offer(4, 8), Offer::Send { from: 6 });
    assert_eq!(stream.next(), 9);
}

#[m0_spec::row(S3)]
#[test]
fn a_frame_that_comes_twice_is_sent_once() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut stream = Stream::join(Replay::LiveFrom(1), false, now(log, 1));
    let mut socket = Socket::open();
    for seq in [1, 1, 2, 1, 2, 3] {
        let text = format!("id: 5eed-{seq}\nevent: beat\ndata: x\n\n");
        let batch = Batch::of(seq, [text.as_bytes()]);
        let fate = stream.deliver(&batch, now(log, seq + 1), |bytes| socket.write(bytes));
        assert_eq!(fate, Fate::Clear);
    }
    assert_eq!(socket.events(), (beats(1..=3), false));
}

#[m0_spec::row(S3)]
#[test]
fn a_frame_that_was_skipped_ends_the_stream_with_a_gap() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut stream = Stream::join(Replay::LiveFrom(1), false, now(log, 1));
    let mut socket = Socket::open();
    let batch = Batch::of(2, [&b"data: late\n\n"[..]]);
    let fate = stream.deliver(&batch, now(log, 3), |bytes| socket.write(bytes));
    assert_eq!(fate, Fate::Finished);
    assert_eq!(
        socket.events(),
        (vec![("gap".to_owned(), String::new())], true)
    );
    assert_eq!(
        stream.offer(1, 1),
        Offer::NotNow,
        "an ended stream gets no frame"
    );
}

#[m0_spec::row(S4)]
#[test]
fn a_replay_joins_the_live_frames_where_the_worker_stands() {
    let memory = Memory::new(4096);
    let log = memory.log();
    publish_many(log, 5);
    let mut registry = Registry::new(log, 10, BUDGET);
    publish_many(log, 3);
    // The worker has delivered up to 5; 6 to 8 are in the log and on their way.
    assert_eq!(registry.live_next(), 6);
    let key = registry
        .insert(m0_framelog::plan(Some("5eed-2"), log), false, 0)
        .expect("room");
    let mut socket = Socket::open();
    assert_eq!(
        registry.pump(key, 0, |bytes| socket.write(bytes)),
        Fate::Clear
    );
    assert_eq!(socket.events().0, beats(3..=5));
    deliver_all(&mut registry, &mut socket);
    assert_eq!(socket.events().0, beats(3..=8));
}

#[m0_spec::row(S4)]
#[test]
fn a_client_that_is_ahead_of_its_new_worker_gets_nothing_twice() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    publish_many(log, 4);
    // It had frame 3 from a faster worker; this one stands before 1.
    let key = registry
        .insert(m0_framelog::plan(Some("5eed-3"), log), false, 0)
        .expect("room");
    let mut socket = Socket::open();
    assert_eq!(
        registry.pump(key, 0, |bytes| socket.write(bytes)),
        Fate::Clear
    );
    deliver_all(&mut registry, &mut socket);
    assert_eq!(socket.events().0, beats(4..=4));
}

#[m0_spec::row(S4, S7)]
#[test]
fn a_replay_larger_than_the_budget_goes_out_as_the_socket_takes_it() {
    let memory = Memory::new(64 * 1024);
    let log = memory.log();
    publish_many(log, 100);
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(m0_framelog::plan(Some("5eed-0"), log), false, 0)
        .expect("room");
    let mut socket = Socket::with_room(0);
    let mut most = 0;
    while registry.pump(key, 0, |bytes| socket.write(bytes)) != Fate::Clear {
        most = most.max(registry.get(key).expect("held").outbox().len_bytes());
        socket.room += 13;
        // Live frames come meanwhile.
        if publish(log, "x").is_multiple_of(10) {
            deliver_all(&mut registry, &mut Socket::with_room(0));
        }
        if registry.live_next() > 300 {
            socket.room = usize::MAX;
        }
    }
    assert!(most > BUDGET / 2 && most <= BUDGET, "{most} bytes waited");
    deliver_all(&mut registry, &mut socket);
    assert_eq!(socket.events().0, beats(1..log.tail()));
}

#[m0_spec::row(S4)]
#[test]
fn a_replay_that_waits_for_its_reader_loses_no_live_frame() {
    let memory = Memory::new(64 * 1024);
    let log = memory.log();
    publish_many(log, 4);
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(m0_framelog::plan(Some("5eed-0"), log), false, 0)
        .expect("room");
    let mut socket = Socket::with_room(0);
    registry.pump(key, 0, |bytes| socket.write(bytes));
    // All four would have fitted, and then the live ones would not.
    publish_many(log, 10);
    deliver_all(&mut registry, &mut socket);
    socket.room = usize::MAX;
    assert_eq!(
        registry.pump(key, 0, |bytes| socket.write(bytes)),
        Fate::Clear
    );
    assert_eq!(socket.events(), (beats(1..=14), false));
}

#[m0_spec::row(S4, S7)]
#[test]
fn a_replayed_frame_that_does_not_fit_waits_and_is_not_a_gap() {
    let memory = Memory::new(64 * 1024);
    let log = memory.log();
    publish(log, &"a".repeat(40));
    publish(log, &"b".repeat(2 * BUDGET));
    publish(log, &"c".repeat(BUDGET - 60));
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(m0_framelog::plan(Some("5eed-0"), log), false, 0)
        .expect("room");
    let mut socket = Socket::with_room(0);
    while registry.pump(key, 0, |bytes| socket.write(bytes)) == Fate::Blocked {
        socket.room = 9;
    }
    assert_eq!(socket.events(), (beats(1..=3), false));
}

#[m0_spec::row(S6)]
#[test]
fn an_id_that_cannot_be_continued_gets_a_reset_and_then_live_frames() {
    let cases = [
        ("5eed-1", "too-old"),
        ("5eed-99999", "future"),
        ("5eee-1", "epoch"),
        ("5eec-100", "epoch"),
        ("beef-99999", "epoch"),
        ("nonsense", "malformed"),
        ("5eed-+3", "malformed"),
        ("5EED-3", "malformed"),
    ];
    for (id, word) in cases {
        let memory = Memory::new(1024);
        let log = memory.log();
        publish_many(log, 100);
        let mut registry = Registry::new(log, 10, BUDGET);
        let key = registry
            .insert(m0_framelog::plan(Some(id), log), false, 0)
            .expect("room");
        let mut socket = Socket::open();
        assert_eq!(
            registry.pump(key, 0, |bytes| socket.write(bytes)),
            Fate::Clear
        );
        publish(log, "x");
        deliver_all(&mut registry, &mut socket);
        let events = interpret(&unchunk(&socket.taken).0).events;
        assert_eq!(
            (&events[0].name[..], &events[0].last_event_id[..]),
            ("reset", "5eed-100"),
            "{id}"
        );
        assert_eq!(events[0].data, format!("{{\"reason\":\"{word}\"}}"), "{id}");
        assert_eq!(events[1].last_event_id, "5eed-101", "{id}");
        assert_eq!(events.len(), 2, "{id}");
    }
}

#[m0_spec::row(S6)]
#[test]
fn a_reset_before_the_first_frame_gives_an_id_to_come_back_with() {
    let memory = Memory::new(1024);
    let log = memory.log();
    let stream = Stream::join(Replay::Reset(Reason::Epoch), true, now(log, 1));
    let text = stream.outbox().front().expect("the reset waits").to_vec();
    assert_eq!(interpret(&text).last_event_id, "5eed-0");
    publish(log, "x");
    assert_eq!(m0_framelog::plan(Some("5eed-0"), log), Replay::From(1));
}

#[m0_spec::row(S8)]
#[test]
fn a_replay_that_was_overtaken_is_told_of_the_gap() {
    let memory = Memory::new(1024);
    let log = memory.log();
    publish_many(log, 10);
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(m0_framelog::plan(Some("5eed-0"), log), false, 0)
        .expect("room");
    let mut socket = Socket::with_room(10);
    assert_eq!(
        registry.pump(key, 0, |bytes| socket.write(bytes)),
        Fate::Blocked
    );
    publish_many(log, 100);
    socket.room = usize::MAX;
    assert_eq!(
        registry.pump(key, 0, |bytes| socket.write(bytes)),
        Fate::Finished
    );
    let (events, ended) = socket.events();
    let (last, before) = events.split_last().expect("the gap at least");
    assert_eq!((&last.0[..], ended), ("gap", true));
    assert!(!before.is_empty());
    assert_eq!(before, beats(1..=before.len() as u64));
}
