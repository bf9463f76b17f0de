//! Events go out as they were made, whatever text their fields hold; chunks hold one event each.

mod reader;

use m0_framelog::{FrameId, Reason};
use m0_streams::{Chunk, Frame, GapReason, chunk, end};
use proptest::prelude::*;
use reader::{Event, interpret, unchunk};

const ID: FrameId = FrameId {
    epoch: 0xa1,
    seq: 7,
};

/// Reads `text` between two events that must come out untouched, which is where an injection shows.
fn between_sentinels(text: &[u8]) -> Vec<Event> {
    let sentinel = |number: u64| {
        let mut text = Vec::new();
        let id = FrameId {
            epoch: 1,
            seq: number,
        };
        Frame::new(Some(id), &mut text).event("sentinel").data("s");
        text
    };
    let seen = interpret(&[&sentinel(1)[..], text, &sentinel(2)].concat());
    let mut events = seen.events;
    let expected = |number: u64| Event {
        name: "sentinel".to_owned(),
        data: "s".to_owned(),
        last_event_id: format!("1-{number}"),
    };
    assert_eq!(events.pop(), Some(expected(2)), "{}", text.escape_ascii());
    assert_eq!(events.remove(0), expected(1), "{}", text.escape_ascii());
    events
}

fn event(name: &str, data: &str) -> Vec<Event> {
    vec![Event {
        name: name.to_owned(),
        data: data.to_owned(),
        last_event_id: "a1-7".to_owned(),
    }]
}

#[m0_spec::row(S2)]
#[test]
fn an_event_is_written_field_by_field() {
    let mut text = Vec::new();
    Frame::new(Some(ID), &mut text)
        .event("beat")
        .retry(250)
        .comment("note")
        .data("one\ntwo")
        .data("three")
        .finish();
    let expected =
        "id: a1-7\nevent: beat\nretry: 250\n: note\ndata: one\ndata: two\ndata: three\n\n";
    assert_eq!(String::from_utf8(text.clone()).expect("text"), expected);
    let seen = interpret(&text);
    assert_eq!(seen.events, event("beat", "one\ntwo\nthree"));
    assert_eq!((seen.retry, seen.comments), (Some(250), 1));
}

#[m0_spec::row(S1)]
#[test]
fn no_field_can_end_the_event_or_forge_another() {
    let attempts = [
        "\n\nevent: forged\ndata: x\n\n",
        "\r\revent: forged\rdata: x\r\r",
        "\r\n\r\nevent: forged\r\ndata: x\r\n\r\n",
        "x\rid: 666",
        "x\nretry: 1",
        "x\r\n\ndata: y",
        "\u{2028}\u{2028}event: forged",
        "\u{2029}data: x\u{2029}",
        "\0",
        "\n",
        "\r",
        "\r\n",
        "",
        " ",
        ": comment",
        "\u{feff}",
        "data: x",
    ];
    for attempt in attempts {
        let mut text = Vec::new();
        Frame::new(Some(ID), &mut text)
            .event(attempt)
            .data("x")
            .comment(attempt)
            .finish();
        let name = attempt.replace(['\r', '\n', '\0', '\u{2028}', '\u{2029}'], " ");
        let name = if name.is_empty() {
            "message".to_owned()
        } else {
            name
        };
        assert_eq!(
            between_sentinels(&text),
            event(&name, "x"),
            "as a name: {attempt:?}"
        );
        let seen = interpret(&text);
        assert_eq!(
            (seen.retry, seen.comments),
            (None, 1),
            "as a name: {attempt:?}"
        );

        let mut text = Vec::new();
        Frame::new(Some(ID), &mut text)
            .data(attempt)
            .data("y")
            .finish();
        let data = attempt.replace("\r\n", "\n").replace('\r', "\n") + "\ny";
        assert_eq!(
            between_sentinels(&text),
            event("message", &data),
            "as data: {attempt:?}"
        );
        assert_eq!(interpret(&text).retry, None, "as data: {attempt:?}");
    }
}

#[m0_spec::row(S1)]
#[test]
fn what_only_looks_like_a_line_end_cannot_stand_in_a_name_or_comment() {
    let mut text = Vec::new();
    Frame::new(None, &mut text)
        .event("a\u{2028}b\u{2029}c\0d\r\ne")
        .comment("a\u{2028}b")
        .finish();
    assert_eq!(
        String::from_utf8(text).expect("text"),
        "event: a b c d  e\n: a b\n\n"
    );
}

#[m0_spec::row(S1)]
#[test]
fn an_event_that_is_dropped_unfinished_ends_all_the_same() {
    let mut text = Vec::new();
    let mut frame = Frame::new(Some(ID), &mut text);
    frame.data("x");
    assert_eq!(frame.id(), Some(ID));
    drop(frame);
    let mut finished = Vec::new();
    Frame::new(Some(ID), &mut finished).data("x").finish();
    assert_eq!(text, finished);
}

fn sharp_text() -> impl Strategy<Value = String> {
    let sharp = "\r\n\0:\u{2028}\u{2029}\u{feff} \tadeinrtv0é\u{1f600}";
    let letters = proptest::sample::select(sharp.chars().collect::<Vec<_>>());
    proptest::collection::vec(prop_oneof![6 => letters, 1 => any::<char>()], 0..24)
        .prop_map(|letters| letters.into_iter().collect())
}

#[derive(Debug, Clone)]
enum Field {
    Event(String),
    Data(String),
    Retry(u64),
    Comment(String),
}

fn fields() -> impl Strategy<Value = Vec<Field>> {
    let field = prop_oneof![
        sharp_text().prop_map(Field::Event),
        sharp_text().prop_map(Field::Data),
        any::<u64>().prop_map(Field::Retry),
        sharp_text().prop_map(Field::Comment),
    ];
    proptest::collection::vec(field, 0..6)
}

proptest! {
    #[m0_spec::row(S1, S2)]
    #[test]
    fn any_event_is_read_as_it_was_made(fields in fields()) {
        let mut text = Vec::new();
        let mut frame = Frame::new(Some(ID), &mut text);
        let (mut name, mut data, mut retry, mut comments) = (String::new(), Vec::new(), None, 0);
        for field in &fields {
            match field {
                Field::Event(value) => {
                    frame.event(value);
                    name = value.replace(['\r', '\n', '\0', '\u{2028}', '\u{2029}'], " ");
                }
                Field::Data(value) => {
                    frame.data(value);
                    data.push(value.replace("\r\n", "\n").replace('\r', "\n"));
                }
                Field::Retry(value) => {
                    frame.retry(*value);
                    retry = Some(*value);
                }
                Field::Comment(value) => {
                    frame.comment(value);
                    comments += 1;
                }
            }
        }
        frame.finish();
        drop(frame);
        let name = if name.is_empty() { "message" } else { &name };
        let expected = if data.is_empty() { Vec::new() } else { event(name, &data.join("\n")) };
        prop_assert_eq!(between_sentinels(&text), expected);
        let seen = interpret(&text);
        prop_assert_eq!((seen.retry, seen.comments, seen.last_event_id), (retry, comments, "a1-7".to_owned()));
        prop_assert_eq!(seen.complete, text.len());
    }

    #[m0_spec::row(S23)]
    #[test]
    fn a_chunk_holds_its_payload_in_both_forms(payload in proptest::collection::vec(any::<u8>(), 1..600)) {
        let chunk = Chunk::encode(&payload);
        let stream = [chunk.framed(), chunk::LAST].concat();
        prop_assert_eq!(unchunk(&stream), (payload.clone(), true));
        prop_assert_eq!(&chunk.payload()[..], &payload[..]);
        prop_assert_eq!(chunk.bytes_for(false), chunk.framed());
        prop_assert_eq!(chunk.bytes_for(true), chunk.payload());
        prop_assert_eq!(chunk.slice_for(false), &chunk.framed()[..]);
        prop_assert_eq!(chunk.slice_for(true), &payload[..]);
    }
}

#[m0_spec::row(S19)]
#[test]
fn both_forms_share_one_piece_of_memory() {
    let chunk = Chunk::encode(b"payload");
    assert_eq!(chunk.framed().as_ptr(), chunk.framed().as_ptr());
    assert_eq!(chunk.payload().as_ptr(), chunk.framed()[3..].as_ptr());
}

#[m0_spec::row(S23)]
#[test]
#[should_panic(expected = "an empty chunk would end the stream")]
fn an_empty_chunk_is_a_bug_of_ours() {
    let _ = Chunk::encode(b"");
}

#[m0_spec::row(S6, S8, S13, S10)]
#[test]
fn each_notice_is_an_event_that_a_page_gets() {
    let words = [
        (Reason::TooOld, "too-old"),
        (Reason::Future, "future"),
        (Reason::Epoch, "epoch"),
        (Reason::Malformed, "malformed"),
    ];
    for (reason, word) in words {
        let seen = interpret(&end::reset(reason, ID));
        assert_eq!(
            seen.events,
            event("reset", &format!("{{\"reason\":\"{word}\"}}"))
        );
    }
    for (reason, word) in [(GapReason::Slow, "slow"), (GapReason::Lapped, "lapped")] {
        let seen = interpret(&end::gap(reason));
        assert_eq!(
            (&seen.events[0].name[..], &seen.events[0].data[..]),
            ("gap", &format!("{{\"reason\":\"{word}\"}}")[..])
        );
        assert_eq!(
            (seen.events.len(), &seen.last_event_id[..]),
            (1, ""),
            "the reader keeps its last id"
        );
    }
    let seen = interpret(&end::drain(1_234));
    assert_eq!(
        (
            &seen.events[0].name[..],
            seen.retry,
            &seen.last_event_id[..]
        ),
        ("drain", Some(1_234), "")
    );
    let seen = interpret(end::HEARTBEAT);
    assert_eq!(
        (seen.events.len(), seen.comments, seen.complete),
        (0, 1, end::HEARTBEAT.len())
    );
}
