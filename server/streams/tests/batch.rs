//! Frames that go out together: what one write holds, and where a batch ends.

mod fixture;
mod reader;

use bytes::Bytes;
use fixture::{BUDGET, Memory, Socket, beats, now, publish_many};
use m0_framelog::Replay;
use m0_streams::{Batch, Delivered, Fate, Registry, Stream, Wrote};
use proptest::prelude::*;
use reader::unchunk;
use std::fmt::Write as _;

#[m0_spec::row(S31)]
#[test]
fn frames_that_wait_together_go_out_in_one_write() {
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, 4096);
    registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    publish_many(log, 5);
    let mut writes = Vec::new();
    let delivered = registry.deliver(4, 0, &mut Vec::new(), |_, bytes| {
        writes.push(bytes.to_vec());
        Wrote::Bytes(bytes.len())
    });
    assert!(
        matches!(delivered, Delivered::Frames { last, count: 4 } if last.seq == 4),
        "{delivered:?}"
    );
    let mut socket = Socket::open();
    assert_eq!(writes.len(), 1, "one write a turn");
    socket.write(&writes[0]);
    assert_eq!(socket.events(), (beats(1..=4), false));
    assert_eq!(registry.live_next(), 5);
}

#[m0_spec::row(S7, S31)]
#[test]
fn a_batch_ends_before_the_frame_that_is_too_much_for_a_stream() {
    let memory = Memory::new(64 * 1024);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, BUDGET);
    let key = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    publish_many(log, 40);
    let mut closed = Socket::with_room(0);
    let delivered = registry.deliver(40, 0, &mut Vec::new(), |_, bytes| closed.write(bytes));
    let Delivered::Frames { count, .. } = delivered else {
        panic!("{delivered:?}");
    };
    let waits = registry.get(key).expect("held").outbox().len_bytes();
    assert!(count > 1 && count < 40, "{count} frames");
    assert!(
        waits <= BUDGET,
        "{waits} bytes wait in a budget of {BUDGET}"
    );
    // The frame that did not fit is the next one, and nothing is lost in between.
    let mut open = Socket::open();
    assert_eq!(
        registry.pump(key, 0, |bytes| open.write(bytes)),
        Fate::Clear
    );
    while registry.deliver(40, 0, &mut Vec::new(), |_, bytes| open.write(bytes)) != Delivered::Empty
    {
    }
    assert_eq!(open.events(), (beats(1..=40), false));
}

#[m0_spec::row(S31, S8)]
#[test]
fn a_lap_is_told_first_and_what_is_still_held_counts_as_delivered() {
    let memory = Memory::new(1024);
    let log = memory.log();
    let mut registry = Registry::new(log, 10, 4096);
    let key = registry
        .insert(Replay::LiveFrom(1), false, 0)
        .expect("room");
    publish_many(log, 100);
    // Behind by a lap: nothing was read, so the gap comes first and what is still held after it.
    let mut socket = Socket::open();
    let mut turn = |registry: &mut Registry<'_>| {
        registry.deliver(1_000, 0, &mut Vec::new(), |_, bytes| socket.write(bytes))
    };
    assert!(matches!(turn(&mut registry), Delivered::Lapped { .. }));
    let oldest = log.oldest();
    assert_eq!(registry.live_next(), oldest);
    let delivered = turn(&mut registry);
    assert!(
        matches!(delivered, Delivered::Frames { count, .. } if count as u64 == 101 - oldest),
        "{delivered:?}"
    );
    assert!(registry.get(key).expect("held").is_ending());
    assert_eq!(
        socket.events(),
        (vec![("gap".to_owned(), String::new())], true)
    );
}

#[m0_spec::row(S3)]
#[test]
fn a_stream_takes_only_the_part_of_a_batch_that_it_has_not_had() {
    // A faster worker gave it everything up to 4.
    let memory = Memory::new(4096);
    let log = memory.log();
    let mut stream = Stream::join(Replay::From(5), false, now(log, 3));
    let texts: Vec<String> = (3..=6)
        .map(|seq| format!("id: 5eed-{seq}\nevent: beat\ndata: x\n\n"))
        .collect();
    let batch = Batch::of(3, texts.iter().map(String::as_bytes));
    let mut socket = Socket::open();
    let fate = stream.deliver(&batch, now(log, 7), |bytes| socket.write(bytes));
    assert_eq!(fate, Fate::Clear);
    assert_eq!(socket.events().0, beats(5..=6));
}

#[m0_spec::row(S19)]
#[test]
fn what_is_kept_of_a_batch_shares_its_bytes() {
    let batch = Batch::of(1, [&b"data: a\n\n"[..], b"data: b\n\n"]);
    for http10 in [false, true] {
        for seq in [1, 2] {
            let kept: [Bytes; 2] = [batch.bytes_from(seq, http10), batch.bytes_from(seq, http10)];
            assert_eq!(kept[0].as_ptr(), kept[1].as_ptr());
            assert_eq!(kept[0].as_ptr(), batch.slice_from(seq, http10).as_ptr());
        }
    }
}

mod properties {
    use super::*;

    proptest! {
        /// Each frame is one chunk of its own, wherever a batch is entered, and both forms say the same.
        #[m0_spec::row(S23, S25, S31)]
        #[test]
        fn every_frame_of_a_batch_is_one_chunk(
            texts in proptest::collection::vec("[a-z\n]{0,40}", 1..20),
            first in 1..1_000_u64,
            at in 0..20_usize,
        ) {
            let at = at % texts.len();
            let batch = Batch::of(first, texts.iter().map(String::as_bytes));
            prop_assert_eq!(batch.last(), first + texts.len() as u64 - 1);
            let seq = first + at as u64;
            let bare: String = texts[at..].concat();
            prop_assert_eq!(batch.slice_from(seq, true), bare.as_bytes());
            prop_assert_eq!(&batch.bytes_from(seq, true)[..], bare.as_bytes());
            let mut framed = String::new();
            for text in texts[at..].iter().filter(|text| !text.is_empty()) {
                write!(framed, "{:x}\r\n{text}\r\n", text.len()).expect("a string takes every write");
            }
            prop_assert_eq!(batch.slice_from(seq, false), framed.as_bytes());
            let (text, ended) = unchunk(framed.as_bytes());
            prop_assert_eq!((text, ended), (bare.into_bytes(), false));
        }
    }
}
