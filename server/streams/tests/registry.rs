//! The streams of a worker together: slow ones, heartbeats, the drain, the keys.

mod fixture;
mod reader;

use fixture::{BUDGET, Memory, Socket, beats, deliver_all, publish, publish_many};
use m0_framelog::Replay;
use m0_streams::{Delivered, Fate, Full, Key, Registry, Stream, Wrote};
use reader::{interpret, unchunk};

#[m0_spec::row(S7, S8)]
#[test]
fn a_slow_reader_is_bounded_told_and_cut_and_nobody_else_notices() {
    let memory = Memory::new(64 * 1024);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let slow = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    // The slow one's socket takes the first frame and a part of the second.
    let mut slow_socket = Socket::with_room(60);
    let mut quick_socket = Socket::open();
    let mut most = 0;
    let mut changes = Vec::new();
    for _ in 0..20 {
        publish(log, "x");
        let write = |key, bytes: &[u8]| {
            if key == slow {
                slow_socket.write(bytes)
            } else {
                quick_socket.write(bytes)
            }
        };
        registry.deliver(1, 0, &mut changes, write);
        let stream = registry.get(slow).expect("held");
        if !stream.is_ending() {
            most = most.max(stream.outbox().len_bytes());
        }
    }
    assert!(most > BUDGET - 50 && most <= BUDGET, "{most} bytes waited");
    assert!(registry.get(slow).expect("held").is_ending());
    assert!(
        changes
            .iter()
            .all(|change| *change == (slow, Fate::Blocked)),
        "{changes:?}"
    );
    assert_eq!(quick_socket.events(), (beats(1..=20), false));

    slow_socket.room = usize::MAX;
    assert_eq!(
        registry.pump(slow, 0, |bytes| slow_socket.write(bytes)),
        Fate::Finished
    );
    let mut expected = beats(1..=2);
    expected.push(("gap".to_owned(), "5eed-2".to_owned()));
    assert_eq!(slow_socket.events(), (expected, true));
    // It comes back with the last frame it had, and goes on there.
    assert_eq!(m0_framelog::plan(Some("5eed-2"), log), Replay::From(3));
}

#[m0_spec::row(S8)]
#[test]
fn a_worker_that_was_overtaken_tells_its_streams_of_the_gap() {
    let memory = Memory::new(1024);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    publish_many(log, 100);
    let mut socket = Socket::open();
    let mut changes = Vec::new();
    let delivered = registry.deliver(1, 0, &mut changes, |_, bytes| socket.write(bytes));
    assert!(
        matches!(delivered, Delivered::Lapped { missed: 1.. }),
        "{delivered:?}"
    );
    assert_eq!(changes, [(key, Fate::Finished)]);
    assert_eq!(
        socket.events(),
        (vec![("gap".to_owned(), String::new())], true)
    );
    assert_eq!(registry.live_next(), log.oldest());
}

#[m0_spec::row(S8)]
#[test]
fn a_worker_that_was_overtaken_ends_no_stream_that_misses_nothing() {
    let memory = Memory::new(1024);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    publish_many(log, 100);
    // Both come from a faster worker, and all that they miss is still held.
    let (oldest, tail) = (log.oldest(), log.tail());
    let mut held = [oldest, tail].map(|next| {
        let key = registry.insert(Replay::From(next), false, 0);
        (key.expect("room"), next, Socket::open())
    });
    let mut changes = Vec::new();
    loop {
        let delivered = registry.deliver(1, 0, &mut changes, |key, bytes| {
            let mut to = held.iter_mut().filter(|(other, ..)| *other == key);
            to.next().expect("one of the two").2.write(bytes)
        });
        match delivered {
            Delivered::Empty => break,
            Delivered::Lapped { .. } => assert_eq!(registry.live_next(), oldest),
            Delivered::Frames { .. } => {}
        }
    }
    for (key, next, socket) in &held {
        assert!(
            !registry.get(*key).expect("held").is_ending(),
            "from {next}"
        );
        assert_eq!(socket.events(), (beats(*next..tail), false));
    }
}

#[m0_spec::row(S10)]
#[test]
fn a_heartbeat_comes_after_silence_only() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(Replay::LiveFrom(1), false, 1_000)
        .expect("room");
    let mut socket = Socket::open();
    let mut changes = Vec::new();
    let mut beat = |registry: &mut Registry<'_>, socket: &mut Socket, ms| {
        let before = socket.taken.len();
        registry.heartbeats(100, ms, &mut changes, |_, bytes| socket.write(bytes));
        socket.taken.len() > before
    };
    assert!(!beat(&mut registry, &mut socket, 1_099));
    assert!(beat(&mut registry, &mut socket, 1_100));
    assert!(
        !beat(&mut registry, &mut socket, 1_199),
        "a heartbeat is a sign of life too"
    );
    publish(log, "x");
    registry.deliver(1, 1_199, &mut Vec::new(), |_, bytes| socket.write(bytes));
    assert!(!beat(&mut registry, &mut socket, 1_298));
    assert!(beat(&mut registry, &mut socket, 1_299));
    let (text, _) = unchunk(&socket.taken);
    assert_eq!(interpret(&text).comments, 2);

    // A stream that is blocked has bytes on the way.
    socket.room = 0;
    publish(log, "x");
    registry.deliver(1, 1_300, &mut Vec::new(), |_, bytes| socket.write(bytes));
    socket.room = usize::MAX;
    assert!(!beat(&mut registry, &mut socket, 9_000));
    assert!(!registry.get(key).expect("held").outbox().is_empty());
}

#[m0_spec::row(S13)]
#[test]
fn a_drain_tells_every_stream_and_ends_it_with_its_last_chunk() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let chunked = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    let bare = registry.insert(Replay::LiveFrom(1), true, 0).expect("room");
    let blocked = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    let mut sockets = [Socket::open(), Socket::open(), Socket::with_room(5)];
    let mut changes = Vec::new();
    publish_many(log, 2);
    for _ in 0..2 {
        registry.deliver(1, 0, &mut changes, |key, bytes| {
            sockets[key.index()].write(bytes)
        });
    }
    changes.clear();
    let retry = |key: Key| 1_000 + key.index() as u64;
    registry.drain(0, retry, &mut changes, |key, bytes| {
        sockets[key.index()].write(bytes)
    });
    assert_eq!(
        changes,
        [
            (chunked, Fate::Finished),
            (bare, Fate::Finished),
            (blocked, Fate::Blocked)
        ]
    );
    sockets[2].room = usize::MAX;
    assert_eq!(
        registry.pump(blocked, 0, |bytes| sockets[2].write(bytes)),
        Fate::Finished
    );
    for (index, socket) in sockets.iter().enumerate() {
        let (text, ended) = if index == 1 {
            (socket.taken.clone(), true)
        } else {
            unchunk(&socket.taken)
        };
        assert!(ended, "stream {index}");
        let seen = interpret(&text);
        let names: Vec<_> = seen.events.iter().map(|event| &event.name[..]).collect();
        assert_eq!(names, ["beat", "beat", "drain"], "stream {index}");
        assert_eq!(
            (seen.retry, &seen.last_event_id[..]),
            (Some(1_000 + index as u64), "5eed-2")
        );
    }
}

#[m0_spec::row(S13)]
#[test]
fn a_stream_is_told_its_last_word_once() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    let mut socket = Socket::with_room(3);
    let mut changes = Vec::new();
    for _ in 0..3 {
        registry.drain(0, |_| 1, &mut changes, |_, bytes| socket.write(bytes));
        registry.heartbeats(0, 10, &mut changes, |_, bytes| socket.write(bytes));
        publish(log, "x");
        registry.deliver(1, 0, &mut changes, |_, bytes| socket.write(bytes));
    }
    socket.room = usize::MAX;
    assert_eq!(
        registry.pump(key, 0, |bytes| socket.write(bytes)),
        Fate::Finished
    );
    assert_eq!(
        socket.events(),
        (vec![("drain".to_owned(), String::new())], true)
    );
}

#[m0_spec::row(S22)]
#[test]
fn a_key_names_one_stream_for_ever() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let first = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    assert!(registry.remove(first).is_some());
    assert!(registry.remove(first).is_none());
    let second = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    assert_eq!(
        (second.index(), registry.len()),
        (first.index(), 1),
        "the place is used again"
    );
    assert_ne!(first, second);
    assert!(registry.get(first).is_none() && registry.get(second).is_some());
    assert!(registry.remove(first).is_none());
    let fate = registry.pump(first, 0, |_| panic!("bytes for a stream that went"));
    assert_eq!((fate, registry.len()), (Fate::Gone, 1));
}

#[m0_spec::row(S15)]
#[test]
fn a_registry_takes_as_many_streams_as_it_may() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 2, BUDGET);
    assert!(registry.is_empty());
    let first = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    assert!(!registry.has_room());
    assert_eq!((registry.len(), registry.is_empty()), (2, false));
    assert_eq!(registry.insert(Replay::LiveFrom(1), false, 0), Err(Full));
    registry.remove(first);
    assert!(registry.has_room());
    assert!(registry.insert(Replay::LiveFrom(1), false, 0).is_ok());
}

#[m0_spec::row(S11)]
#[test]
fn nothing_is_read_for_a_peer_that_is_gone() {
    let memory = Memory::new(64 * 1024);
    let log = memory.log();
    publish_many(log, 100);
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry.insert(Replay::From(1), false, 0).expect("room");
    let mut writes = 0;
    let fate = registry.pump(key, 0, |_| {
        writes += 1;
        Wrote::Gone
    });
    assert_eq!(
        (fate, writes),
        (Fate::Gone, 1),
        "its replay is longer than its outbox"
    );
}

#[m0_spec::row(S11)]
#[test]
fn a_peer_that_is_gone_is_reported_by_the_first_write() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    let mut socket = Socket {
        gone: true,
        ..Socket::open()
    };
    let mut changes = Vec::new();
    registry.heartbeats(10, 10, &mut changes, |_, bytes| socket.write(bytes));
    assert_eq!(changes, [(key, Fate::Gone)]);
    publish(log, "x");
    assert_eq!(deliver_all(&mut registry, &mut socket), [(key, Fate::Gone)]);
}

#[m0_spec::row(S19)]
#[test]
fn streams_that_wait_share_the_bytes_of_a_frame() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let keys: Vec<_> = (0..3)
        .map(|_| {
            registry
                .insert(Replay::LiveFrom(1), false, 0)
                .expect("room")
        })
        .collect();
    publish(log, "x");
    deliver_all(&mut registry, &mut Socket::with_room(0));
    let places: Vec<_> = keys
        .iter()
        .map(|key| {
            registry
                .get(*key)
                .expect("held")
                .outbox()
                .front()
                .expect("waits")
                .as_ptr()
        })
        .collect();
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    let length = registry.get(keys[0]).expect("held").outbox().len_bytes();
    let totals = registry.totals();
    assert_eq!((totals.streams, totals.outbox_bytes), (3, 3 * length));
}

#[m0_spec::row(S18)]
#[test]
fn a_stream_that_waits_for_nothing_holds_nothing() {
    assert!(size_of::<Stream>() <= 96, "{} bytes", size_of::<Stream>());
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    let capacity = |registry: &Registry<'_>| registry.get(key).expect("held").outbox().capacity();
    publish(log, "x");
    deliver_all(&mut registry, &mut Socket::with_room(3));
    assert!(capacity(&registry) > 0);
    let mut socket = Socket::open();
    assert_eq!(
        registry.pump(key, 0, |bytes| socket.write(bytes)),
        Fate::Clear
    );
    assert_eq!(capacity(&registry), 0);
}

#[m0_spec::row(S25)]
#[test]
fn a_frame_without_text_ends_nothing_and_leaves_no_gap() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let live = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    publish(log, "x");
    log.append(1, |_, _| {}).expect("the log takes it");
    publish(log, "x");
    let mut socket = Socket::open();
    deliver_all(&mut registry, &mut socket);
    let expected = (beats([1, 3]), false);
    assert_eq!(socket.events(), expected);
    registry.remove(live);
    let replayed = registry
        .insert(m0_framelog::plan(Some("5eed-0"), log), false, 0)
        .expect("room");
    let mut socket = Socket::open();
    assert_eq!(
        registry.pump(replayed, 0, |bytes| socket.write(bytes)),
        Fate::Clear
    );
    assert_eq!(socket.events(), expected);
}
