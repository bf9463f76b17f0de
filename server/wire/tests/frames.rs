//! What a client's frames come to, one rule of RFC 6455 a case, over every cut into reads.

use m0_wire::ws::{Decoder, Event, Fault, Limits, Opcode, code, frame};
use proptest::prelude::*;
use tungstenite::protocol::{Message, Role, WebSocket, WebSocketConfig};

const LIMITS: Limits = Limits {
    message_bytes: 300,
    frame_bytes: 200,
    fragments: 4,
};
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A client's frame: the first byte, then the payload behind a mask.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            bytes.push(0x80 | 0x7e);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 0x7f);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(b, m)| b ^ m));
    bytes
}

/// All events of `bytes` in reads of so many.
fn events(limits: Limits, bytes: &[u8], read: usize) -> Vec<Event> {
    let mut decoder = Decoder::new(limits);
    let mut events = Vec::new();
    for mut piece in bytes.chunks(read) {
        loop {
            let fed = decoder.feed(piece);
            piece = &piece[fed.used..];
            match fed.event {
                Some(event) => events.push(event),
                None => break,
            }
        }
        assert!(piece.is_empty(), "bytes were left without an event");
    }
    events
}

/// The events of `bytes`, after a check that no size of read changes them.
fn all(bytes: &[u8]) -> Vec<Event> {
    let whole = events(LIMITS, bytes, bytes.len().max(1));
    for read in [1, 2, 3, 5, 13] {
        assert_eq!(events(LIMITS, bytes, read), whole, "{read} bytes a read");
    }
    whole
}

fn text(text: &str) -> Event {
    Event::Text(text.to_owned())
}

#[m0_spec::row(K2)]
#[test]
fn messages_and_control_frames_come_out_as_they_were_sent() {
    let long = vec![b'x'; 200];
    let bytes = [
        masked(0x81, b""),
        masked(0x81, "grün".as_bytes()),
        masked(0x82, &long),
        // A message in fragments, with control frames between them (section 5.4).
        masked(0x01, b"a"),
        masked(0x89, b"ping"),
        masked(0x00, b""),
        masked(0x8a, b""),
        masked(0x80, b"b"),
        masked(0x88, &[&code::AWAY.to_be_bytes()[..], b"bye"].concat()),
        // Behind a close frame nothing means anything (section 5.5.1).
        masked(0x81, b"late"),
        vec![0xff],
    ]
    .concat();
    let wanted = [
        text(""),
        text("grün"),
        Event::Binary(long),
        Event::Ping(b"ping".to_vec()),
        Event::Pong(Vec::new()),
        text("ab"),
        Event::Close(Some(code::AWAY), "bye".to_owned()),
    ];
    assert_eq!(all(&bytes), wanted);
    assert_eq!(all(&masked(0x88, b"")), [Event::Close(None, String::new())]);
}

fn faults(code: u16, cases: &[(&str, Vec<u8>)]) {
    for (why, bytes) in cases {
        let found = all(bytes);
        let Some(Event::Fault(Fault { code: got, .. })) = found.last() else {
            panic!("{why}: {found:?}");
        };
        assert_eq!(*got, code, "{why}: {found:?}");
    }
}

#[m0_spec::row(K3)]
#[test]
fn what_breaks_the_protocol_is_a_fault_of_1002() {
    let length = |second: u8, bytes: &[u8]| [&[0x82, second][..], bytes, &MASK, b"xx"].concat();
    let mut cases = vec![
        ("not masked (5.1)", b"\x81\x02hi".to_vec()),
        ("a ping in fragments (5.5)", masked(0x09, b"")),
        ("a close in fragments (5.5)", masked(0x08, b"")),
        ("a ping of 126 bytes (5.5)", masked(0x89, &[0; 126])),
        ("a continuation of nothing (5.4)", masked(0x80, b"a")),
        (
            "a message inside a message (5.4)",
            [masked(0x01, b"a"), masked(0x81, b"b")].concat(),
        ),
        (
            "a continuation of a whole message (5.4)",
            [masked(0x81, b"a"), masked(0x80, b"b")].concat(),
        ),
        ("a length of 2 in 16 bits (5.2)", length(0xfe, &[0, 2])),
        (
            "a length of 2 in 64 bits (5.2)",
            length(0xff, &[0, 0, 0, 0, 0, 0, 0, 2]),
        ),
        (
            "a length of 300 in 64 bits (5.2)",
            length(0xff, &[0, 0, 0, 0, 0, 0, 1, 44]),
        ),
        (
            "a length whose highest bit is set (5.2)",
            length(0xff, &[0x80, 0, 0, 0, 0, 0, 0, 2]),
        ),
        ("a close code of one byte (5.5.1)", masked(0x88, &[3])),
    ];
    for bit in [0x40, 0x20, 0x10] {
        cases.push(("a reserved bit (5.2)", masked(0x81 | bit, b"a")));
    }
    for opcode in (0x3..=0x7).chain(0xb..=0xf) {
        cases.push(("a reserved opcode (5.2)", masked(0x80 | opcode, b"")));
    }
    for code in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535] {
        let close = masked(0x88, &code.to_be_bytes());
        cases.push(("a close code not to be sent (7.4)", close));
    }
    faults(code::PROTOCOL, &cases);
}

#[m0_spec::row(K4)]
#[test]
fn a_text_or_a_reason_that_is_not_utf8_is_a_fault_of_1007() {
    let bad: &[&[u8]] = &[
        b"\xff",
        b"ab\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        // A character that is half there at the end.
        b"\xe2\x82",
    ];
    let mut cases = Vec::new();
    for bytes in bad {
        cases.push(("a text", masked(0x81, bytes)));
        let reason = [&code::NORMAL.to_be_bytes()[..], bytes].concat();
        cases.push(("a reason", masked(0x88, &reason)));
    }
    faults(code::INVALID, &cases);
    // Halves that come together are whole; bytes are not asked.
    let halves = [masked(0x01, b"\xe2\x82"), masked(0x80, b"\xac")].concat();
    assert_eq!(all(&halves), [text("€")]);
    let bytes = Event::Binary(vec![0xff]);
    assert_eq!(all(&masked(0x82, b"\xff")), [bytes]);
}

#[m0_spec::row(K4)]
#[test]
fn a_text_is_refused_at_its_first_wrong_byte_and_not_at_its_end() {
    let mut decoder = Decoder::new(LIMITS);
    let frame = masked(0x01, b"good\xf4\x90 and more that never comes");
    let fed = decoder.feed(&frame[..6 + 6]);
    assert!(matches!(fed.event, Some(Event::Fault(_))), "{fed:?}");
}

#[m0_spec::row(K5)]
#[test]
fn what_is_above_a_limit_is_a_fault_of_1009_before_a_byte_of_it_is_held() {
    let cases = [
        ("a frame", masked(0x82, &[0; 201])),
        (
            "a message",
            [
                masked(0x02, &[0; 200]),
                masked(0x00, &[0; 100]),
                masked(0x80, &[0]),
            ]
            .concat(),
        ),
        (
            "a count of fragments",
            [
                masked(0x01, b""),
                masked(0x00, b""),
                masked(0x00, b""),
                masked(0x00, b""),
                masked(0x80, b""),
            ]
            .concat(),
        ),
    ];
    faults(code::TOO_BIG, &cases);
    // At the limit nothing is wrong.
    let most = [masked(0x02, &[7; 200]), masked(0x80, &[7; 100])].concat();
    assert_eq!(all(&most), [Event::Binary(vec![7; 300])]);
    let four = [0x01, 0x00, 0x00, 0x80].map(|first| masked(first, b"a"));
    assert_eq!(all(&four.concat()), [text("aaaa")]);
    // By its head alone.
    let mut decoder = Decoder::new(LIMITS);
    let head = [
        0x82, 0xff, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4,
    ];
    let fed = decoder.feed(&head);
    assert!(matches!(fed.event, Some(Event::Fault(_))), "{fed:?}");
    assert_eq!(decoder.heap_bytes(), 0);
}

#[m0_spec::row(K2, K3, K5)]
#[test]
fn a_length_is_read_in_each_of_its_three_sizes() {
    let mut decoder = Decoder::new(Limits::default());
    for bytes in [125, 126, 300, 0xffff, 0x1_0000, 70_000] {
        let payload: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let event = decoder.feed(&masked(0x82, &payload)).event;
        assert!(event == Some(Event::Binary(payload)), "{bytes} bytes");
    }
    let most = decoder.feed(&masked(0x89, &[1; 125])).event;
    assert_eq!(most, Some(Event::Ping(vec![1; 125])));
    // The longest that the protocol has is too much, and no breach of it.
    for (length, wanted) in [(i64::MAX as u64, code::TOO_BIG), (1 << 63, code::PROTOCOL)] {
        let head = [&[0x82, 0xff][..], &length.to_be_bytes(), &MASK].concat();
        let event = Decoder::new(LIMITS).feed(&head).event;
        let fault = matches!(event, Some(Event::Fault(fault)) if fault.code == wanted);
        assert!(fault, "{length}: {event:?}");
    }
}

#[m0_spec::row(K6)]
#[test]
fn what_is_held_of_a_message_and_of_a_control_frame_inside_it_is_counted() {
    let mut decoder = Decoder::new(LIMITS);
    let mut feed = |bytes: &[u8]| {
        let event = decoder.feed(bytes).event;
        (event, decoder.heap_bytes())
    };
    let (event, held) = feed(&masked(0x02, &[7; 100]));
    assert!(event.is_none() && held >= 100, "{held}");
    let ping = masked(0x89, &[1; 50]);
    let (event, both) = feed(&ping[..36]);
    assert!(event.is_none() && both >= held + 30, "{both}");
    assert_eq!(feed(&ping[36..]), (Some(Event::Ping(vec![1; 50])), held));
    let whole = (Some(Event::Binary(vec![7; 100])), 0);
    assert_eq!(feed(&masked(0x80, b"")), whole);
}

#[m0_spec::row(K6)]
#[test]
fn between_messages_nothing_is_held_and_a_declared_length_reserves_little() {
    let mut decoder = Decoder::new(Limits {
        message_bytes: 1 << 30,
        frame_bytes: 1 << 30,
        fragments: 4,
    });
    decoder.feed(&masked(0x81, b"hello"));
    decoder.feed(&masked(0x89, b"ping"));
    assert_eq!(decoder.heap_bytes(), 0);
    decoder.feed(&[0x82, 0xff, 0, 0, 0, 0, 0x30, 0, 0, 0, 1, 2, 3, 4]);
    assert!(decoder.heap_bytes() <= 64 * 1024);
}

#[m0_spec::row(K2)]
#[test]
fn our_frames_are_whole_unmasked_and_shortest() {
    for (length, head) in [
        (0, &[0x82, 0][..]),
        (125, &[0x82, 125]),
        (126, &[0x82, 126, 0, 126]),
        (65_535, &[0x82, 126, 0xff, 0xff]),
        (65_536, &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        let bytes = frame::encode(Opcode::Binary, &vec![9; length]);
        assert_eq!(&bytes[..head.len()], head);
        assert_eq!(bytes.len(), head.len() + length);
        assert_eq!(bytes.len(), frame::encoded_bytes(length));
    }
    let close = frame::close(Some(code::POLICY), &"ü".repeat(100));
    assert_eq!(close.len(), 2 + 2 + 122, "cut between two characters");
}

/// One message of the well-behaved client.
fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        ".{0,90}".prop_map(|text| Message::Text(text.into())),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(|b| Message::Binary(b.into())),
        prop::collection::vec(any::<u8>(), 0..=125).prop_map(|b| Message::Ping(b.into())),
        prop::collection::vec(any::<u8>(), 0..=125).prop_map(|b| Message::Pong(b.into())),
    ]
}

fn same(event: &Event, message: &Message) -> bool {
    match (event, message) {
        (Event::Text(ours), Message::Text(theirs)) => ours == theirs.as_str(),
        (Event::Binary(ours), Message::Binary(theirs))
        | (Event::Ping(ours), Message::Ping(theirs))
        | (Event::Pong(ours), Message::Pong(theirs)) => ours[..] == theirs[..],
        _ => false,
    }
}

/// What the client of another implementation reads of our bytes.
fn read_back(bytes: Vec<u8>) -> Message {
    let stream = std::io::Cursor::new(bytes);
    let config = WebSocketConfig::default();
    let mut client = WebSocket::from_raw_socket(stream, Role::Client, Some(config));
    client.read().expect("a frame that a client reads")
}

proptest! {
    #[m0_spec::row(K2)]
    #[test]
    fn what_another_client_sends_is_read_as_it_was_meant_over_any_cut(
        messages in prop::collection::vec(message(), 1..8),
        read in 1_usize..64,
    ) {
        let stream = std::io::Cursor::new(Vec::new());
        let mut client = WebSocket::from_raw_socket(stream, Role::Client, None);
        for message in &messages {
            client.write(message.clone()).expect("memory takes it");
        }
        client.flush().expect("memory takes it");
        let bytes = client.get_ref().get_ref().clone();
        let limits = Limits { message_bytes: 1000, frame_bytes: 1000, fragments: 4 };
        let found = events(limits, &bytes, read);
        prop_assert_eq!(found.len(), messages.len());
        for (event, message) in found.iter().zip(&messages) {
            prop_assert!(same(event, message), "{:?} for {:?}", event, message);
        }
    }

    #[m0_spec::row(K2)]
    #[test]
    fn what_we_send_is_read_by_another_client(text in ".{0,90}", bytes in prop::collection::vec(any::<u8>(), 0..70_000)) {
        let read = read_back(frame::encode(Opcode::Text, text.as_bytes()));
        prop_assert_eq!(read, Message::Text(text.into()));
        let read = read_back(frame::encode(Opcode::Binary, &bytes));
        prop_assert_eq!(read, Message::Binary(bytes.into()));
    }

    #[m0_spec::row(K3, K4, K5)]
    #[test]
    fn any_bytes_come_to_the_same_over_any_cut(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..130)), 0..4),
        read in 1_usize..40,
    ) {
        let mut bytes: Vec<u8> = frames.iter().flat_map(|(first, payload)| masked(*first, payload)).collect();
        bytes.extend(noise);
        let whole = events(LIMITS, &bytes, bytes.len().max(1));
        prop_assert_eq!(&events(LIMITS, &bytes, read), &whole);
        // Nothing follows the end, and a text is UTF-8 within the limits.
        let ends = whole.iter().filter(|event| matches!(event, Event::Close(..) | Event::Fault(_)));
        let last = whole.last().is_some_and(|event| matches!(event, Event::Close(..) | Event::Fault(_)));
        prop_assert!(ends.count() <= 1 && (last || !whole.iter().any(|e| matches!(e, Event::Fault(_)))));
        for event in &whole {
            let length = match event {
                Event::Text(text) => text.len(),
                Event::Binary(bytes) => bytes.len(),
                _ => 0,
            };
            prop_assert!(length <= LIMITS.message_bytes);
        }
    }
}
